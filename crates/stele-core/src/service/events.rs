//! Events of sessions: sending, listing, following. spec/anthropic.md 8, 12.3 and 17.2.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;

use crate::access::{Action, Caller, Resource};
use crate::id::{EnvironmentId, EventId, SessionId, WorkItemId, WorkspaceId};
use crate::list::{Created, Page};
use crate::records::{Entry, EntryQuery, Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::ATTEMPTS;
use crate::service::sessions::{after_end, ended};
use crate::storage::{Error, StorageError};
use crate::watch::Watch;
use crate::work::document::made;
use crate::work::event::{self, Event, EventKind, NewEvent, Source};
use crate::work::item::{ItemState, WorkItem};
use crate::work::refusal::WorkRefusal;
use crate::work::session::{Session, SessionState, log_of, state_of};

/// Events that are read at a time.
const STEP: usize = 50;
/// Events that are read at once first.
const FIRST_STEP: usize = 4;
/// Most bytes of an event.
const EVENT_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of events after which a page ends.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Uses of tools that are looked through for one that goes by an id of its sender's.
const LOOK: usize = 1_000;

/// Which events are listed.
#[derive(Clone, Debug)]
pub struct EventsQuery {
    /// Of these kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// Written in this span.
    pub at: Created,
    /// The order.
    pub order: Order,
    /// Behind this sequence.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// How a dialect reads the id of an event.
pub type ReadEventId = fn(&str) -> Option<EventId>;

impl Stele {
    /// Sends events: all of them or none, in their order, and answers with them and with the session's state then.
    /// `read_id` reads the ids by which they name uses of tools.
    ///
    /// # Errors
    /// No update permission, no such session, it has ended, or an event answers to a use of a tool that is not there.
    pub async fn event_send(
        &self,
        caller: &Caller,
        id: SessionId,
        events: Vec<NewEvent>,
        read_id: ReadEventId,
    ) -> Result<(Vec<Event>, SessionState), Error> {
        let recorded = events.iter().any(|event| event.kind.source() != Source::Sender);
        let resource = if recorded { Resource::Recording } else { Resource::Event };
        caller.may(resource, Action::Create).map_err(Refusal::from)?;
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if read.whole().has_ended() {
                return Err(Refusal::from(WorkRefusal::SessionEnded(id)).into());
            }
            self.tools_there(caller.workspace, id, &events, read_id).await?;
            let appended = event::append(&read.state.doc, events.clone(), self.clock.now(), &*self.random);
            let (mut state, written) = appended.map_err(|place| after_end("events", place))?;
            if written.is_empty() {
                return Ok((written, state));
            }
            let mut writes = Vec::with_capacity(3);
            let session = &read.session.doc;
            let grown =
                self.queue_after(caller.workspace, session, &mut state, &written, &mut writes).await?;
            writes.push(read.state.replaced_by(&state));
            let entries: Vec<Entry> = written.iter().map(Event::entry).collect();
            if let Some(place) = entries.iter().position(|entry| entry.body.len() > EVENT_BYTES) {
                let problem = format!("has more than {EVENT_BYTES} bytes: shorten what it holds");
                return Err(Refusal::shape(format!("events.{place}"), problem).into());
            }
            writes.push(RecordWrite::Append { workspace: caller.workspace, log: session.log(), entries });
            if self.commit(writes).await? {
                if ended(&state) {
                    self.forget_narrow();
                }
                if let Some(environment) = grown {
                    self.queue_moved(environment);
                }
                return Ok((written, state));
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Adds what the events mean for the work queue: input asks for a worker where no item stands for the session, and
    /// its end takes the item out. Answers with the environment whose queue grows. spec/anthropic.md 12.3.
    async fn queue_after(
        &self,
        workspace: WorkspaceId,
        session: &Session,
        state: &mut SessionState,
        events: &[Event],
        writes: &mut Vec<RecordWrite>,
    ) -> Result<Option<EnvironmentId>, StorageError> {
        let now = self.clock.now();
        if ended(state) {
            if let Some(item) = self.live_item(workspace, state.live_item).await? {
                let over = item.doc.settled(now).session_ended(now);
                if over.state == ItemState::Stopped {
                    state.live_item = None;
                }
                writes.push(item.replaced_by(&over));
            }
            return Ok(None);
        }
        let wants = events.iter().any(|event| event.new.kind.wants_a_worker());
        let environment = session.environment.filter(|_| session.self_hosted && wants);
        let Some(environment) = environment.filter(|_| state.live_item.is_none()) else { return Ok(None) };
        let id = WorkItemId::mint(now, self.random.bits());
        state.live_item = Some(id);
        writes.push(made(workspace, &WorkItem::queued(id, environment, session.id, now)));
        Ok(Some(environment))
    }

    /// Checks that the uses of tools that events answer to are there. spec/anthropic.md 8.2.
    async fn tools_there(
        &self,
        workspace: WorkspaceId,
        session: SessionId,
        events: &[NewEvent],
        read_id: ReadEventId,
    ) -> Result<(), Error> {
        for (place, event) in events.iter().enumerate() {
            let Some((field, kinds)) = event.kind.answers_to() else { continue };
            let Some(wanted) = event.fields.get(field).and_then(Value::as_str) else { continue };
            let goes_by = |other: &NewEvent| {
                kinds.contains(&other.kind.as_str()) && other.given_id.as_deref() == Some(wanted)
            };
            let query = |at: Created, limit| EntryQuery {
                workspace,
                log: log_of(session),
                kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
                at,
                order: Order::NewestFirst,
                after: None,
                limit,
            };
            let mut there = events[..place].iter().any(goes_by);
            if let Some(id) = read_id(wanted).filter(|_| !there) {
                // An event's id tells its time, which no other of its session has.
                let at = Some(id.minted_at());
                let found = self.storage.entries(query(Created { from: at, to: at }, 1)).await?;
                there = found.items.iter().any(|entry| entry.id == *id.as_bytes());
            }
            if !there {
                let found = self.storage.entries(query(Created::default(), LOOK)).await?;
                for entry in found.items {
                    there = there || goes_by(&Event::try_from(entry)?.new);
                }
            }
            if !there {
                let problem = "names no use of a tool in this session";
                return Err(Refusal::shape(format!("events.{place}.{field}"), problem).into());
            }
        }
        Ok(())
    }

    /// Events of a session, with its state.
    ///
    /// # Errors
    /// No read permission, or no such session.
    pub async fn event_list(
        &self,
        caller: &Caller,
        id: SessionId,
        query: EventsQuery,
    ) -> Result<(Page<Event>, SessionState), Error> {
        caller.may(Resource::Event, Action::Read).map_err(Refusal::from)?;
        let read = self.session_reached(caller, id).await?;
        let EventsQuery { kinds, at, order, after, limit } = query;
        let kinds = kinds.into_iter().map(|kind| kind.as_str().to_owned()).collect();
        let log = read.session.doc.log();
        let query = EntryQuery { workspace: caller.workspace, log, kinds, at, order, after, limit };
        Ok((self.events_bounded(query).await?, read.state.doc))
    }

    /// A page of events that stays below a number of bytes: it ends early, and says that there is more.
    async fn events_bounded(&self, query: EntryQuery) -> Result<Page<Event>, StorageError> {
        let (mut items, mut bytes, limit) = (Vec::new(), 0, query.limit);
        // Few at first: each of them may be large.
        let mut step = FIRST_STEP;
        let mut query = EntryQuery { limit: limit.min(step), ..query };
        loop {
            let page = self.storage.entries(query.clone()).await?;
            for entry in page.items {
                bytes += entry.body.len();
                query.after = Some(entry.sequence);
                items.push(Event::try_from(entry)?);
            }
            if !page.more || items.len() == limit || bytes >= PAGE_BYTES {
                return Ok(Page { items, more: page.more });
            }
            step = (step * 2).min(STEP);
            query.limit = (limit - items.len()).min(step);
        }
    }

    /// The place of an event in the log of a session; `None` where it is not there.
    ///
    /// # Errors
    /// No read permission, or no such session.
    pub async fn event_place(
        &self,
        caller: &Caller,
        session: SessionId,
        id: EventId,
    ) -> Result<Option<u64>, Error> {
        // An event's id tells its time, which no other of its session has.
        let at = Some(id.minted_at());
        let (kinds, at) = (Vec::new(), Created { from: at, to: at });
        let query = EventsQuery { kinds, at, order: Order::OldestFirst, after: None, limit: 1 };
        let (found, _) = self.event_list(caller, session, query).await?;
        Ok(found.items.first().filter(|event| event.id == id).map(|event| event.sequence))
    }

    async fn events(&self, query: EntryQuery) -> Result<Page<Event>, StorageError> {
        let page = self.storage.entries(query).await?;
        let items = page.items.into_iter().map(Event::try_from).collect::<Result<_, _>>()?;
        Ok(Page { items, more: page.more })
    }

    /// Starts to follow a session: what comes after this call, and nothing that came before. spec/anthropic.md 8.3.
    ///
    /// # Errors
    /// No read permission, or no such session.
    pub async fn event_follow(self: &Arc<Self>, caller: &Caller, id: SessionId) -> Result<EventFeed, Error> {
        caller.may(Resource::Event, Action::Read).map_err(Refusal::from)?;
        // Subscribed first, so that nothing falls between the state read and the wait.
        let events = self.storage.watches().subscribe(log_of(id));
        let session = self.storage.watches().subscribe(*id.as_bytes());
        let read = self.session_reached(caller, id).await?;
        let (workspace, behind) = (caller.workspace, read.state.doc.last_sequence);
        Ok(EventFeed { stele: self.clone(), workspace, id, events, session, behind })
    }
}

/// What a follower is told next.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowedBy {
    /// These events, at least one.
    Events(Vec<Event>),
    /// The session is deleted; nothing follows.
    Deleted,
}

/// One who follows a session. It holds a place in its log and no events, so that one who reads slowly costs nothing and
/// misses nothing.
pub struct EventFeed {
    stele: Arc<Stele>,
    workspace: WorkspaceId,
    id: SessionId,
    events: Watch,
    session: Watch,
    behind: u64,
}

impl EventFeed {
    /// The same, from behind the event at `place` on, 0 being before the first.
    #[must_use]
    pub fn behind(mut self, place: u64) -> Self {
        self.behind = place;
        self
    }

    /// Waits for what follows. Whoever stops waiting loses nothing.
    ///
    /// # Errors
    /// The storage's.
    pub async fn next(&mut self) -> Result<FollowedBy, StorageError> {
        loop {
            let query = EntryQuery {
                workspace: self.workspace,
                log: log_of(self.id),
                kinds: Vec::new(),
                at: Created::default(),
                order: Order::OldestFirst,
                after: Some(self.behind),
                limit: STEP,
            };
            let events = self.stele.events(query).await?.items;
            if let Some(last) = events.last() {
                self.behind = last.sequence;
                return Ok(FollowedBy::Events(events));
            }
            if self.stele.find::<SessionState>(self.workspace, state_of(self.id)).await?.is_none() {
                return Ok(FollowedBy::Deleted);
            }
            either(self.events.changed(), self.session.changed()).await;
        }
    }
}

/// Waits for the first of two.
async fn either(a: impl Future<Output = u64>, b: impl Future<Output = u64>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| match a.as_mut().poll(context).is_ready() || b.as_mut().poll(context).is_ready() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
