//! Environments and their keys. spec/anthropic.md 11 and 17.1, spec/recursion.md 10.3.

use crate::access::{Action, Caller, Principal, Resource};
use crate::id::{EnvironmentId, EnvironmentKeyId};
use crate::key::{ENVIRONMENT_PREFIX, Secret};
use crate::list::{Created, Page};
use crate::records::{Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing, Position, docs};
use crate::storage::{Error, StorageError};
use crate::text::{Metadata, MetadataPatch};
use crate::work::credential::{EnvironmentKey, keys_of};
use crate::work::document::{Kept, made};
use crate::work::environment::{self, Environment, Hosting};
use crate::work::item::{self, WorkItem};
use crate::work::refusal::WorkRefusal;
use crate::work::{Dialect, Fields};

/// Documents that go with a deleted environment in one commit.
const STEP: usize = 500;

/// A new environment.
#[derive(Clone, Debug)]
pub struct NewEnvironment {
    /// The dialect that makes it.
    pub made_through: Dialect,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Who executes tools.
    pub hosting: Hosting,
    /// What else Anthropic says of it.
    pub config: Fields,
    /// Free pairs.
    pub metadata: Metadata,
    /// What only Recursion knows.
    pub extra: Fields,
}

/// A change of an environment: `None` keeps a part.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentPatch {
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<Option<String>>,
    /// Who executes tools, which cannot change, with the rest of the configuration, which can.
    pub config: Option<(Hosting, Fields)>,
    /// Change of the metadata.
    pub metadata: MetadataPatch,
}

impl EnvironmentPatch {
    fn apply(&self, to: &Environment) -> Result<Environment, Refusal> {
        let mut new = to.clone();
        if let Some(name) = &self.name {
            new.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            new.description.clone_from(description);
        }
        if let Some((hosting, config)) = &self.config {
            if *hosting != to.hosting {
                return Err(WorkRefusal::HostingFixed.into());
            }
            new.config.clone_from(config);
        }
        let patched = to.metadata.patched(&self.metadata);
        new.metadata = patched.map_err(|error| Refusal::invalid("metadata", error))?;
        Ok(new)
    }
}

impl Stele {
    /// Makes an environment.
    ///
    /// # Errors
    /// No create permission.
    pub async fn environment_create(
        &self,
        caller: &Caller,
        new: NewEnvironment,
    ) -> Result<Environment, Error> {
        caller.may(Resource::Environment, Action::Create).map_err(Refusal::from)?;
        let now = self.clock.now();
        let environment = Environment {
            id: EnvironmentId::mint(now, self.random.bits()),
            made_through: new.made_through,
            name: new.name,
            description: new.description,
            hosting: new.hosting,
            config: new.config,
            metadata: new.metadata,
            extra: new.extra,
            created_at: now,
            updated_at: now,
            archived_at: None,
        };
        self.commit_new(vec![made(caller.workspace, &environment)]).await?;
        Ok(environment)
    }

    /// An environment.
    ///
    /// # Errors
    /// No read permission, or no such environment.
    pub async fn environment_get(&self, caller: &Caller, id: EnvironmentId) -> Result<Environment, Error> {
        caller.may(Resource::Environment, Action::Read).map_err(Refusal::from)?;
        Ok(self.environment_there(caller, id).await?.doc)
    }

    pub(super) async fn environment_there(
        &self,
        caller: &Caller,
        id: EnvironmentId,
    ) -> Result<Kept<Environment>, Error> {
        let found = self.find::<Environment>(caller.workspace, *id.as_bytes()).await?;
        Ok(found.ok_or_else(|| Refusal::from(WorkRefusal::EnvironmentNotFound(id)))?)
    }

    /// Environments, newest first.
    ///
    /// # Errors
    /// No read permission.
    pub async fn environment_list(
        &self,
        caller: &Caller,
        include_archived: bool,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<Environment>, Error> {
        caller.may(Resource::Environment, Action::Read).map_err(Refusal::from)?;
        let tag = environment::listed(include_archived);
        let listing = Listing { tag, created: Created::default(), order: Order::NewestFirst, after, limit };
        Ok(docs(self.list(caller.workspace, listing).await?))
    }

    /// Changes an environment.
    ///
    /// # Errors
    /// No update permission, no such environment, archived, another kind, bounds.
    pub async fn environment_update(
        &self,
        caller: &Caller,
        id: EnvironmentId,
        patch: EnvironmentPatch,
    ) -> Result<Environment, Error> {
        caller.may(Resource::Environment, Action::Update).map_err(Refusal::from)?;
        for _ in 0..ATTEMPTS {
            let kept = self.environment_there(caller, id).await?;
            if kept.doc.archived_at.is_some() {
                return Err(Refusal::from(WorkRefusal::EnvironmentArchived(id)).into());
            }
            let mut new = patch.apply(&kept.doc)?;
            if new == kept.doc {
                return Ok(new);
            }
            new.updated_at = self.clock.now().after(kept.doc.updated_at);
            if self.commit(vec![kept.replaced_by(&new)]).await? {
                return Ok(new);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Archives an environment; again changes nothing.
    ///
    /// # Errors
    /// No update permission, or no such environment.
    pub async fn environment_archive(
        &self,
        caller: &Caller,
        id: EnvironmentId,
    ) -> Result<Environment, Error> {
        caller.may(Resource::Environment, Action::Archive).map_err(Refusal::from)?;
        for _ in 0..ATTEMPTS {
            let kept = self.environment_there(caller, id).await?;
            if kept.doc.archived_at.is_some() {
                return Ok(kept.doc);
            }
            let mut new = kept.doc.clone();
            new.updated_at = self.clock.now().after(kept.doc.updated_at);
            new.archived_at = Some(new.updated_at);
            if self.commit(vec![kept.replaced_by(&new)]).await? {
                return Ok(new);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Deletes an environment with its keys and its queue; sessions that ran in it stay.
    ///
    /// # Errors
    /// No delete permission, or no such environment.
    pub async fn environment_delete(&self, caller: &Caller, id: EnvironmentId) -> Result<(), Error> {
        caller.may(Resource::Environment, Action::Delete).map_err(Refusal::from)?;
        let mut gone = false;
        for _ in 0..ATTEMPTS {
            let kept = self.environment_there(caller, id).await?;
            if self.commit(vec![kept.removed()]).await? {
                gone = true;
                break;
            }
        }
        if !gone {
            return Err(StorageError::Overloaded.into());
        }
        // Without the environment neither keys nor items open anything; this clears them away.
        loop {
            let keys =
                self.list::<EnvironmentKey>(caller.workspace, Listing::tagged(keys_of(id), STEP)).await?;
            let items =
                self.list::<WorkItem>(caller.workspace, Listing::tagged(item::of_environment(id), STEP));
            let items = items.await?;
            let writes: Vec<RecordWrite> =
                keys.items.iter().map(Kept::removed).chain(items.items.iter().map(Kept::removed)).collect();
            if writes.is_empty() || (self.commit(writes).await? && !keys.more && !items.more) {
                break;
            }
        }
        self.forget_narrow();
        Ok(())
    }

    /// Makes a key of an environment.
    ///
    /// # Errors
    /// The caller is no admin, no such environment, or one without workers of its own.
    pub async fn environment_key_create(
        &self,
        caller: &Caller,
        id: EnvironmentId,
        name: Option<String>,
    ) -> Result<(EnvironmentKey, Secret), Error> {
        caller.may(Resource::EnvironmentKey, Action::Create).map_err(Refusal::from)?;
        let environment = self.environment_there(caller, id).await?.doc;
        if environment.hosting != Hosting::SelfHosted {
            let problem = "is not self_hosted, so it has no workers that could use a key";
            return Err(Refusal::shape("environment", problem).into());
        }
        let now = self.clock.now();
        let secret = Secret::with_prefix(ENVIRONMENT_PREFIX, &*self.random);
        let key = EnvironmentKey {
            id: EnvironmentKeyId::mint(now, self.random.bits()),
            environment: id,
            name,
            hash: *secret.hash().as_bytes(),
            created_at: now,
        };
        self.commit_new(vec![made(caller.workspace, &key)]).await?;
        Ok((key, secret))
    }

    /// Keys of an environment, newest first.
    ///
    /// # Errors
    /// The caller is no admin, or no such environment.
    pub async fn environment_key_list(
        &self,
        caller: &Caller,
        id: EnvironmentId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<EnvironmentKey>, Error> {
        caller.may(Resource::EnvironmentKey, Action::Read).map_err(Refusal::from)?;
        self.environment_there(caller, id).await?;
        let listing = Listing { after, ..Listing::tagged(keys_of(id), limit) };
        Ok(docs(self.list(caller.workspace, listing).await?))
    }

    /// Revokes a key of an environment: at once in this process, within 5 s in the others.
    ///
    /// # Errors
    /// The caller is no admin, no such environment or key.
    pub async fn environment_key_revoke(
        &self,
        caller: &Caller,
        id: EnvironmentId,
        key: EnvironmentKeyId,
    ) -> Result<(), Error> {
        caller.may(Resource::EnvironmentKey, Action::Delete).map_err(Refusal::from)?;
        self.environment_there(caller, id).await?;
        let found = self.find::<EnvironmentKey>(caller.workspace, *key.as_bytes()).await?;
        let found = found.filter(|found| found.doc.environment == id);
        let kept = found.ok_or_else(|| Refusal::from(WorkRefusal::EnvironmentKeyNotFound))?;
        // Keys never change, so a conflict means that somebody else has just revoked it.
        self.commit(vec![kept.removed()]).await?;
        self.forget_narrow();
        Ok(())
    }

    /// Judges the part of an address that names an environment: for the holder of one's key, or of a token handed out
    /// in one, no other than that exists.
    pub(super) fn environment_reached(&self, caller: &Caller, id: EnvironmentId) -> Result<(), Refusal> {
        let own = match &caller.principal {
            Principal::Key { .. } => return Ok(()),
            Principal::Environment { environment, .. } => Some(*environment),
            Principal::Session(scope) => scope.environment,
        };
        if own == Some(id) { Ok(()) } else { Err(WorkRefusal::ForeignEnvironment.into()) }
    }
}
