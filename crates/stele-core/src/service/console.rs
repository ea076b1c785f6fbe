//! Signing in at the console with a key, who that is, and the people that keys name. DESIGN 6 and 13.

use std::collections::HashMap;

use crate::access::{Action, Caller, Forbidden, Principal, Requirement, Resource};
use crate::id::{ConsoleSessionId, KeyId, UserId, WorkspaceId};
use crate::key::{ApiKey, CONSOLE_PREFIX, KeyHash, Secret};
use crate::list::Created;
use crate::records::Order;
use crate::refusal::Refusal;
use crate::service::kept::{ATTEMPTS, Listing};
use crate::service::{STEP, Stele};
use crate::storage::{Error, StorageError, Workspace};
use crate::text::Name;
use crate::time::Timestamp;
use crate::work::console::{ConsoleSession, KeyHolder, Person, SIGNED_IN_MICROS};
use crate::work::document::{Document, Kept, made};

/// A person who has just signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// What the cookie holds.
    pub secret: Secret,
    /// Who asks, from now on.
    pub caller: Caller,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// Who a caller is.
#[derive(Clone, Debug)]
pub struct Whoami {
    /// The key.
    pub key: ApiKey,
    /// The workspace that it opens.
    pub workspace: Workspace,
    /// Whether that is the installation's first.
    pub first_workspace: bool,
    /// The person that the key names.
    pub person: Option<KeyHolder>,
}

impl Stele {
    /// Signs in with a key; `None` if it is unknown, revoked or expired, or no API key.
    ///
    /// # Errors
    /// The storage's.
    pub async fn console_sign_in(&self, shown: &str) -> Result<Option<SignedIn>, StorageError> {
        let now = self.clock.now();
        let key_hash = KeyHash::of(shown);
        let key = self.storage.key_by_hash(key_hash).await?.filter(|key| key.works_at(now));
        let Some(key) = key else { return Ok(None) };
        let secret = Secret::with_prefix(CONSOLE_PREFIX, &*self.random);
        let two_weeks = Timestamp::from_micros(now.as_micros() + SIGNED_IN_MICROS);
        let session = ConsoleSession {
            id: ConsoleSessionId::mint(now, self.random.bits()),
            key_hash: *key_hash.as_bytes(),
            hash: *secret.hash().as_bytes(),
            created_at: now,
            expires_at: key.expires_at.map_or(two_weeks, |end| end.min(two_weeks)),
        };
        self.commit_new(vec![made(key.workspace, &session)]).await?;
        let caller = self.at_the_console(&key).await?;
        Ok(Some(SignedIn { secret, caller, expires_at: session.expires_at }))
    }

    /// Ends the console session with this secret, on every process within 5 s; whatever else is shown is ignored.
    ///
    /// # Errors
    /// The storage's.
    pub async fn console_sign_out(&self, shown: &str) -> Result<(), StorageError> {
        let hash = *KeyHash::of(shown).as_bytes();
        if let Some(kept) = self.find_by_key::<ConsoleSession>(hash).await? {
            // What conflicts was ended by somebody else.
            self.commit(vec![kept.removed()]).await?;
        }
        self.forget_narrow();
        Ok(())
    }

    /// Who the holder of a console session is, and until when.
    pub(super) async fn holder_of_console_session(
        &self,
        hash: KeyHash,
        now: Timestamp,
    ) -> Result<Option<(Caller, Option<Timestamp>)>, StorageError> {
        let Some(kept) = self.find_by_key::<ConsoleSession>(*hash.as_bytes()).await? else {
            return Ok(None);
        };
        // Looked up anew, so that a revoked key signs out everywhere.
        let key = self.storage.key_by_hash(KeyHash::from_bytes(kept.doc.key_hash)).await?;
        let Some(key) = key.filter(|key| key.works_at(now)) else { return Ok(None) };
        Ok(Some((self.at_the_console(&key).await?, Some(kept.doc.expires_at))))
    }

    /// The caller that a key makes at the console: with the person that the key names.
    async fn at_the_console(&self, key: &ApiKey) -> Result<Caller, StorageError> {
        let mut caller = key.caller(self.installation.first_workspace);
        let holder = self.find::<KeyHolder>(key.workspace, *key.id.as_bytes()).await?;
        if let Principal::Key { person, .. } = &mut caller.principal {
            *person = holder.map(|kept| kept.doc.person);
        }
        Ok(caller)
    }

    /// Who the caller is: for callers with an API key, at the console or not.
    ///
    /// # Errors
    /// The caller shows the credential of a worker or of a session.
    pub async fn whoami(&self, caller: &Caller) -> Result<Whoami, Error> {
        let Principal::Key { key: id, first_workspace, .. } = &caller.principal else {
            return Err(Refusal::from(Forbidden(Requirement::ApiKey)).into());
        };
        let keys = self.storage.key_list(caller.workspace).await?;
        let key = keys.into_iter().find(|key| key.id == *id).ok_or(Refusal::KeyNotFound(*id))?;
        let workspaces = self.storage.workspace_list().await?;
        let workspace = workspaces.into_iter().find(|workspace| workspace.id == caller.workspace);
        let workspace = workspace.ok_or(Refusal::WorkspaceNotFound(caller.workspace))?;
        let person = self.find::<KeyHolder>(caller.workspace, *id.as_bytes()).await?.map(|kept| kept.doc);
        Ok(Whoami { key, workspace, first_workspace: *first_workspace, person })
    }

    /// The people that keys of the workspace have named, oldest first, so that history can be read with their names.
    ///
    /// # Errors
    /// The caller may not read versions.
    pub async fn person_list(&self, caller: &Caller) -> Result<Vec<Person>, Error> {
        caller.may(Resource::Version, Action::Read).map_err(Refusal::from)?;
        let (mut people, mut after) = (Vec::new(), None);
        loop {
            let (created, order) = (Created::default(), Order::OldestFirst);
            let listing = Listing { tag: None, created, order, after, limit: STEP };
            let page = self.list::<Person>(caller.workspace, listing).await?;
            people.extend(page.items.into_iter().map(|kept| kept.doc));
            after = people.last().map(|person| (person.created_at, *person.id.as_bytes()));
            if !page.more {
                return Ok(people);
            }
        }
    }

    /// The names of those who hold these keys, where the keys name somebody.
    ///
    /// # Errors
    /// The caller is no admin.
    pub async fn key_holders(
        &self,
        caller: &Caller,
        keys: &[ApiKey],
    ) -> Result<HashMap<KeyId, String>, Error> {
        caller.may(Resource::ApiKey, Action::Read).map_err(Refusal::from)?;
        let ids = keys.iter().map(|key| *key.id.as_bytes()).collect();
        let holders = self.find_many::<KeyHolder>(caller.workspace, ids).await?;
        Ok(holders.into_iter().map(|kept| (kept.doc.key, kept.doc.name)).collect())
    }

    /// Notes whose key this is; people are made when a key first names them.
    pub(super) async fn key_holder_note(&self, key: &ApiKey, name: Name) -> Result<(), StorageError> {
        let person = self.person_named(key.workspace, name.as_str()).await?;
        let name = name.as_str().to_owned();
        let holder = KeyHolder { key: key.id, person, name, created_at: key.created_at };
        self.commit_new(vec![made(key.workspace, &holder)]).await
    }

    async fn person_named(&self, workspace: WorkspaceId, name: &str) -> Result<UserId, StorageError> {
        for _ in 0..ATTEMPTS {
            if let Some(kept) = self.find_by_key::<Person>(Person::key_of(workspace, name)).await? {
                return Ok(kept.doc.id);
            }
            let now = self.clock.now();
            let id = UserId::mint(now, self.random.bits());
            let person = Person { id, workspace, name: name.to_owned(), created_at: now };
            if self.commit(vec![made(workspace, &person)]).await? {
                return Ok(id);
            }
        }
        Err(StorageError::Overloaded)
    }

    /// Removes console sessions that have run out.
    ///
    /// # Errors
    /// The storage's.
    pub async fn console_sessions_forget(&self) -> Result<(), StorageError> {
        for record in self.storage.record_due(ConsoleSession::KIND, self.clock.now(), STEP).await? {
            // What conflicts was ended by somebody else.
            self.commit(vec![Kept::<ConsoleSession>::of(&record)?.removed()]).await?;
        }
        Ok(())
    }
}
