//! Schedules: what begins when its occasion comes. spec/recursion.md 11.2, SW-06 and SW-07.
//!
//! Each server looks at the timers that are due. A run, its session and the timer's next state are one commit with the
//! timer's revision, so an occasion is run once whatever the number of servers, and one that stops in between leaves
//! nothing half done.

use crate::access::{Caller, Grant, Principal, Role};
use crate::id::{SessionId, WorkspaceId};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::storage::{Error, StorageError};
use crate::work::automation::Automation;
use crate::work::document::{Document, Kept};
use crate::work::refusal::WorkRefusal;
use crate::work::run::{Cause, Ran};
use crate::work::session::{Outcome, SessionState, state_of};
use crate::work::timer::Timer;

/// Timers that are looked at in one turn.
const DUE: usize = 100;

impl Stele {
    /// Looks at the timers that are due, in all workspaces, and begins what is to begin. Costs one short read where
    /// there is nothing to do. True if there may be more to do at once.
    ///
    /// # Errors
    /// The first of the storage's; the other timers were looked at all the same.
    pub async fn timers_look(&self) -> Result<bool, Error> {
        let due = self.storage.record_due(Timer::KIND, self.clock.now(), DUE).await?;
        let (mut result, mut moved) = (Ok(()), false);
        for record in due {
            let looked = match Kept::<Timer>::of(&record) {
                Ok(kept) => self.timer_look(&kept).await,
                Err(error) => Err(error.into()),
            };
            match looked {
                Ok(began) => moved |= began,
                Err(error) => result = result.and(Err(error)),
            }
        }
        result.map(|()| moved)
    }

    /// Moves one timer on; true if it was this server that did.
    async fn timer_look(&self, kept: &Kept<Timer>) -> Result<bool, Error> {
        let (workspace, timer) = (kept.workspace, &kept.doc);
        let automation = self.find::<Automation>(workspace, *timer.automation.as_bytes()).await?;
        let Some(automation) = automation.map(|kept| kept.doc) else {
            return Ok(self.commit(vec![kept.removed()]).await?);
        };
        let trigger =
            automation.trigger(timer.trigger).filter(|trigger| automation.active && trigger.enabled);
        let Some(timing) = trigger.map(|trigger| trigger.timing.clone()) else {
            return Ok(self.commit(vec![kept.replaced_by(&timer.clone().stopped())]).await?);
        };
        let going = self.going(workspace, timer.last_session).await?;
        let (mut after, start) = timer.step(&timing, self.clock.now(), going);
        let Some(start) = start else { return Ok(self.commit(vec![kept.replaced_by(&after)]).await?) };
        let grant = Grant::Role(Role::Developer);
        let principal =
            Principal::Key { key: automation.made_by, grant, first_workspace: false, person: None };
        let caller = Caller { workspace, principal };
        if let Some(session) = timer.last_session.filter(|_| start.cancels) {
            self.cancel(&caller, session).await?;
        }
        let (trigger, incarnation) = (timer.trigger, timer.incarnation);
        let cause = Cause::Schedule { trigger, incarnation, occasion: start.occasion };
        let (run, whole, mut writes) = self.run_draft(&caller, automation, cause).await?;
        after.last_run_at = Some(run.created_at);
        if let Ran::Created { session } = run.ran {
            after.last_session = Some(session);
        }
        writes.push(kept.replaced_by(&after));
        let began = self.commit(writes).await?;
        if let Some(whole) = whole.filter(|_| began) {
            self.session_begun(&whole);
        }
        Ok(began)
    }

    async fn going(&self, workspace: WorkspaceId, session: Option<SessionId>) -> Result<bool, StorageError> {
        let Some(session) = session else { return Ok(false) };
        let state = self.find::<SessionState>(workspace, state_of(session)).await?;
        Ok(state.is_some_and(|state| state.doc.is_going()))
    }

    /// Cancels a session, if it is there and has not ended.
    async fn cancel(&self, caller: &Caller, session: SessionId) -> Result<(), Error> {
        match self.session_end(caller, session, Outcome::Cancelled).await {
            Ok(_) => Ok(()),
            Err(Error::Refused {
                refusal: Refusal::Work(WorkRefusal::SessionEnded(_) | WorkRefusal::SessionNotFound(_)),
                ..
            }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
