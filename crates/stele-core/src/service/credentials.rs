//! Who shows the key of an environment, the token of a session or the cookie of the console, and until when it counts.
//! DESIGN 6.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::{Action, Caller, Permission, Permissions, Principal, Resource};
use crate::id::{SessionId, SessionTokenId};
use crate::key::{CONSOLE_PREFIX, KeyHash, SESSION_PREFIX, Secret};
use crate::refusal::Refusal;
use crate::service::{KEY_BELIEVED_MICROS, KEYS_BELIEVED, Stele};
use crate::storage::{Error, StorageError};
use crate::time::Timestamp;
use crate::work::credential::{EnvironmentKey, SessionToken};
use crate::work::document::made;
use crate::work::environment::Environment;
use crate::work::item::WorkItem;
use crate::work::refusal::WorkRefusal;
use crate::work::session::{Session, Whole};

/// What was looked up a moment ago.
#[derive(Clone, Debug)]
struct Belief {
    caller: Caller,
    since: Timestamp,
    until: Option<Timestamp>,
}

/// Credentials other than API keys that were looked up a moment ago.
#[derive(Debug, Default)]
pub(super) struct Believed(Mutex<HashMap<KeyHash, Belief>>);

impl Stele {
    /// The caller that shows another credential than an API key.
    pub(super) async fn narrow_caller(
        &self,
        shown: &str,
        hash: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Caller>, StorageError> {
        if let Some(caller) = self.believed_narrow(hash, now) {
            return Ok(Some(caller));
        }
        let found = if shown.starts_with(SESSION_PREFIX) {
            self.session_of_token(hash).await?
        } else if shown.starts_with(CONSOLE_PREFIX) {
            self.holder_of_console_session(hash, now).await?
        } else {
            self.environment_of_key(hash).await?.map(|caller| (caller, None))
        };
        let works = |until: &Option<Timestamp>| until.is_none_or(|until| now < until);
        let Some((caller, until)) = found.filter(|(_, until)| works(until)) else { return Ok(None) };
        let belief = Belief { caller: caller.clone(), since: now, until };
        let mut believed = self.narrow.0.lock().unwrap_or_else(PoisonError::into_inner);
        if believed.len() >= KEYS_BELIEVED {
            believed.clear();
        }
        believed.insert(hash, belief);
        Ok(Some(caller))
    }

    fn believed_narrow(&self, hash: KeyHash, now: Timestamp) -> Option<Caller> {
        let believed = self.narrow.0.lock().unwrap_or_else(PoisonError::into_inner);
        let belief = believed.get(&hash)?;
        let age = now.as_micros() - belief.since.as_micros();
        let fresh = (0..KEY_BELIEVED_MICROS).contains(&age) && belief.until.is_none_or(|until| now < until);
        fresh.then(|| belief.caller.clone())
    }

    /// Looks all these credentials up again: one of them may have ended.
    pub(super) fn forget_narrow(&self) {
        self.narrow.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn environment_of_key(&self, hash: KeyHash) -> Result<Option<Caller>, StorageError> {
        let Some(kept) = self.find_by_key::<EnvironmentKey>(*hash.as_bytes()).await? else { return Ok(None) };
        let (key, environment) = (kept.doc.id, kept.doc.environment);
        let there = self.find::<Environment>(kept.workspace, *environment.as_bytes()).await?;
        let principal = Principal::Environment { key, environment };
        Ok(there.map(|_| Caller { workspace: kept.workspace, principal }))
    }

    /// The session of a token, and until when the token counts: with a work item until a while after that is stopped,
    /// else as long as the session lasts.
    async fn session_of_token(
        &self,
        hash: KeyHash,
    ) -> Result<Option<(Caller, Option<Timestamp>)>, StorageError> {
        let Some(kept) = self.find_by_key::<SessionToken>(*hash.as_bytes()).await? else { return Ok(None) };
        let (workspace, token) = (kept.workspace, kept.doc);
        if let Some(key) = token.made_with
            && !self.storage.key_list(workspace).await?.iter().any(|stands| stands.id == key)
        {
            return Ok(None);
        }
        let until = match token.item {
            Some(item) => {
                let item = self.find::<WorkItem>(workspace, *item.as_bytes()).await?;
                match item.filter(|item| item.doc.token == Some(token.id)) {
                    Some(item) => item.doc.token_until(),
                    None => return Ok(None),
                }
            }
            None => match self.whole(workspace, token.session).await? {
                Some(whole) if !whole.has_ended() => None,
                _ => return Ok(None),
            },
        };
        let principal = Principal::Session(Arc::new(token.scope()));
        Ok(Some((Caller { workspace, principal }, until)))
    }

    /// Makes a token of a session, which ends with it. DESIGN 6.
    ///
    /// # Errors
    /// No update permission, no such session, or it has ended.
    pub async fn session_token_create(&self, caller: &Caller, id: SessionId) -> Result<Secret, Error> {
        caller.may(Resource::SessionToken, Action::Create).map_err(Refusal::from)?;
        let whole = self.whole(caller.workspace, id).await?;
        let whole: Whole = whole.ok_or_else(|| Refusal::from(WorkRefusal::SessionNotFound(id)))?;
        if whole.has_ended() {
            return Err(Refusal::from(WorkRefusal::SessionEnded(id)).into());
        }
        let (mut token, secret) = self.new_token(&whole.session, None);
        if let Principal::Key { key, grant, .. } = &caller.principal {
            token.made_with = Some(*key);
            token.permissions = grant.permissions().bits();
        }
        self.commit_new(vec![made(caller.workspace, &token)]).await?;
        Ok(secret)
    }

    /// A token of a session, not stored yet.
    pub(super) fn new_token(&self, session: &Session, item: Option<&WorkItem>) -> (SessionToken, Secret) {
        let now = self.clock.now();
        let secret = Secret::with_prefix(SESSION_PREFIX, &*self.random);
        let token = SessionToken {
            id: SessionTokenId::mint(now, self.random.bits()),
            session: session.id,
            item: item.map(|item| item.id),
            environment: item.map(|item| item.environment),
            stores: session.attachments().map(|attachment| (attachment.store, attachment.access)).collect(),
            made_with: None,
            permissions: Permissions::of(Permission::ALL).bits(),
            hash: *secret.hash().as_bytes(),
            created_at: now,
        };
        (token, secret)
    }
}
