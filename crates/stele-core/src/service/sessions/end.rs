//! The ends of sessions: archived, ended from outside, deleted.

use super::{STEP, WhenRunning, ended};
use crate::access::{Action, Caller, Resource as Kind};
use crate::id::SessionId;
use crate::records::RecordWrite;
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing};
use crate::storage::{Error, StorageError};
use crate::time::Timestamp;
use crate::work::credential::{SessionToken, tokens_of};
use crate::work::document::Kept;
use crate::work::event::{EventKind, NewEvent};
use crate::work::item::{self, ItemState, WorkItem};
use crate::work::refusal::WorkRefusal;
use crate::work::session::{End, Outcome, Session, SessionState, Whole};

impl Stele {
    /// Archives a session: it ends, and stays readable. Again changes nothing. spec/anthropic.md 7.2.
    ///
    /// # Errors
    /// No update permission, no such session, or it is running.
    pub async fn session_archive(&self, caller: &Caller, id: SessionId) -> Result<Whole, Error> {
        caller.may(Kind::Session, Action::Archive).map_err(Refusal::from)?;
        self.session_close(caller, id, WhenRunning::Refuse, |session, at| {
            session.archived_at = Some(at);
            session.updated_at = at;
        })
        .await
    }

    /// Ends a session that somebody drives from outside. spec/recursion.md 18, X1.
    ///
    /// # Errors
    /// No update permission, no such session, or it has ended already.
    pub async fn session_end(
        &self,
        caller: &Caller,
        id: SessionId,
        outcome: Outcome,
    ) -> Result<Whole, Error> {
        caller.may(Kind::Session, Action::Update).map_err(Refusal::from)?;
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if read.whole().has_ended() {
                return Err(Refusal::from(WorkRefusal::SessionEnded(id)).into());
            }
            let mut writes = Vec::new();
            let state = self.ended_state(caller, &read.state, Some(&outcome), &mut writes).await?;
            if self.commit(writes).await? {
                self.forget_narrow();
                return Ok(Whole { session: read.session.doc, state });
            }
        }
        Err(StorageError::Overloaded.into())
    }

    async fn session_close(
        &self,
        caller: &Caller,
        id: SessionId,
        when_running: WhenRunning,
        mark: fn(&mut Session, Timestamp),
    ) -> Result<Whole, Error> {
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if read.session.doc.archived_at.is_some() {
                return Ok(read.whole());
            }
            if when_running == WhenRunning::Refuse {
                read.not_running()?;
            }
            let mut session = read.session.doc.clone();
            mark(&mut session, self.clock.now().after(read.session.doc.updated_at));
            let mut writes = vec![read.session.replaced_by(&session)];
            let state = match ended(&read.state.doc) {
                true => read.state.doc.clone(),
                false => self.ended_state(caller, &read.state, None, &mut writes).await?,
            };
            if self.commit(writes).await? {
                self.forget_narrow();
                return Ok(Whole { session, state });
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Adds the writes that end a session, and answers with its state then.
    async fn ended_state(
        &self,
        caller: &Caller,
        state: &Kept<SessionState>,
        outcome: Option<&Outcome>,
        writes: &mut Vec<RecordWrite>,
    ) -> Result<SessionState, Error> {
        let mut before = state.clone();
        if let Some(outcome) = outcome {
            let at = self.clock.now().after(state.doc.last_at);
            before.doc.end = Some(End { at, outcome: outcome.clone() });
        }
        let live = before.doc.live_item;
        if let Some(item) = self.live_item(caller.workspace, live).await? {
            let over = item.doc.settled(self.clock.now()).session_ended(self.clock.now());
            if over.state == ItemState::Stopped {
                before.doc.live_item = None;
            }
            writes.push(item.replaced_by(&over));
        }
        let event = vec![NewEvent::bare(EventKind::TERMINATED)];
        Ok(self.append_to(caller.workspace, &before, event, writes, "events")?)
    }

    /// Deletes a session with its events; what it wrote into stores stays its own. A worker that holds it is told to
    /// stop and may sync a last time.
    ///
    /// # Errors
    /// No delete permission, no such session, or it is running and that stands in the way.
    pub async fn session_delete(
        &self,
        caller: &Caller,
        id: SessionId,
        when_running: WhenRunning,
    ) -> Result<(), Error> {
        caller.may(Kind::Session, Action::Delete).map_err(Refusal::from)?;
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if when_running == WhenRunning::Refuse {
                read.not_running()?;
            }
            let workspace = caller.workspace;
            let mut writes = vec![
                read.session.removed(),
                read.state.removed(),
                RecordWrite::DropLog { workspace, log: read.session.doc.log() },
            ];
            let items = self.list::<WorkItem>(workspace, Listing::tagged(item::of_session(id), STEP)).await?;
            for item in &items.items {
                writes.push(self.orphaned(item));
            }
            let tokens = self.list::<SessionToken>(workspace, Listing::tagged(tokens_of(id), STEP)).await?;
            writes.extend(tokens.items.iter().filter(|token| token.doc.item.is_none()).map(Kept::removed));
            if self.commit(writes).await? {
                self.forget_narrow();
                (self.purge_wanted)();
                return Ok(());
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// What becomes of an item of a deleted session: gone, unless a worker holds it or its token still works.
    fn orphaned(&self, item: &Kept<WorkItem>) -> RecordWrite {
        let now = self.clock.now();
        let settled = item.doc.settled(now).session_ended(now);
        match settled.state {
            ItemState::Stopped if settled.token.is_none() => item.removed(),
            _ => item.replaced_by(&settled.asked_to_stop(false, now)),
        }
    }
}
