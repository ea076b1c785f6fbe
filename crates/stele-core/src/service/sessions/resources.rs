//! Files and repositories of sessions. Attachments are fixed.

use crate::access::{Action, Caller, Resource as Kind};
use crate::id::{ResourceId, SessionId};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::ATTEMPTS;
use crate::storage::{Error, StorageError};
use crate::work::Fields;
use crate::work::refusal::WorkRefusal;
use crate::work::session::{Resource, Session};

impl Stele {
    /// Adds a file or repository to a session.
    ///
    /// # Errors
    /// No update permission, no such session, ended, or in an environment that takes none.
    pub async fn session_resource_add(
        &self,
        caller: &Caller,
        id: SessionId,
        fields: Fields,
    ) -> Result<Resource, Error> {
        caller.may(Kind::Session, Action::Update).map_err(Refusal::from)?;
        let at = self.clock.now();
        let added = Resource::Other { id: ResourceId::mint(at, self.random.bits()), fields, created_at: at };
        let resource = added.clone();
        self.session_resources(caller, id, move |session| {
            if session.self_hosted {
                let problem = "a self-hosted environment takes memory_store resources only";
                return Err(Refusal::shape("type", problem));
            }
            session.resources.push(added.clone());
            Ok(())
        })
        .await?;
        Ok(resource)
    }

    /// Removes a file or repository from a session.
    ///
    /// # Errors
    /// No update permission, no such session or resource, or ended.
    pub async fn session_resource_remove(
        &self,
        caller: &Caller,
        id: SessionId,
        resource: ResourceId,
    ) -> Result<(), Error> {
        caller.may(Kind::Session, Action::Update).map_err(Refusal::from)?;
        self.session_resources(caller, id, move |session| {
            let is_it = |other: &Resource| matches!(other, Resource::Other { id, .. } if *id == resource);
            let place = session.resources.iter().position(is_it);
            session.resources.remove(place.ok_or(WorkRefusal::ResourceNotFound)?);
            Ok(())
        })
        .await
    }

    async fn session_resources(
        &self,
        caller: &Caller,
        id: SessionId,
        change: impl Fn(&mut Session) -> Result<(), Refusal>,
    ) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if read.whole().has_ended() {
                return Err(Refusal::from(WorkRefusal::SessionEnded(id)).into());
            }
            let mut session = read.session.doc.clone();
            change(&mut session)?;
            session.updated_at = self.clock.now().after(read.session.doc.updated_at);
            if self.commit(vec![read.session.replaced_by(&session)]).await? {
                return Ok(());
            }
        }
        Err(StorageError::Overloaded.into())
    }
}
