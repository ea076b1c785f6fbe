//! Events: the entries of a session's transcript. spec/anthropic.md 8 and 17.2.
//!
//! An event is kept in Anthropic's spelling, which says the most; Recursion's dialect translates. [`kinds`] says which
//! there are and what each holds.

pub mod kinds;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Random;
use crate::id::EventId;
use crate::records::Entry;
use crate::storage::StorageError;
use crate::time::Timestamp;
use crate::work::Fields;
use crate::work::session::{End, Outcome, SessionState, SessionStatus};

pub use kinds::{EventKind, Source};

/// An event to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// What it is.
    pub kind: EventKind,
    /// What it holds, beside its id and time.
    pub fields: Fields,
    /// The id that it goes by, where its sender names one: tools and their results refer to each other by it.
    pub given_id: Option<String>,
    /// When the agent processed it, where its sender says so.
    pub processed_at: Option<Timestamp>,
    /// What only Recursion knows of it, kept as it was sent.
    pub extra: Fields,
}

impl NewEvent {
    /// An event without anything beyond these fields.
    pub fn new(kind: EventKind, fields: Fields) -> Self {
        Self { kind, fields, given_id: None, processed_at: None, extra: Fields::new() }
    }

    /// One of the server's own that holds nothing.
    pub fn bare(kind: EventKind) -> Self {
        Self::new(kind, Fields::new())
    }
}

/// An event as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id, minted under the session's log.
    pub id: EventId,
    /// Its place in the log, from 1.
    pub sequence: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The event.
    pub new: NewEvent,
}

impl Event {
    /// When the agent processed it; `None` while it is queued. `taken_up` is the session's.
    pub fn processed_at(&self, taken_up: u64) -> Option<Timestamp> {
        let waits = self.new.kind.is_queued() && self.sequence > taken_up;
        (!waits).then(|| self.new.processed_at.unwrap_or(self.at))
    }
}

#[derive(Serialize, Deserialize)]
struct Body {
    fields: Fields,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    extra: Fields,
}

impl TryFrom<Entry> for Event {
    type Error = StorageError;

    fn try_from(entry: Entry) -> Result<Self, StorageError> {
        let damaged = || StorageError::Corrupt(format!("event {}", EventId::from_bytes(entry.id)));
        let body: Body = serde_json::from_slice(&entry.body).map_err(|_| damaged())?;
        let kind = EventKind::parse(&entry.kind).ok_or_else(damaged)?;
        let Body { fields, given_id, processed_at, extra } = body;
        Ok(Self {
            id: EventId::from_bytes(entry.id),
            sequence: entry.sequence,
            at: entry.at,
            new: NewEvent { kind, fields, given_id, processed_at, extra },
        })
    }
}

impl Event {
    /// The entry that keeps it.
    pub fn entry(&self) -> Entry {
        let body = Body {
            fields: self.new.fields.clone(),
            given_id: self.new.given_id.clone(),
            processed_at: self.new.processed_at,
            extra: self.new.extra.clone(),
        };
        Entry {
            sequence: self.sequence,
            id: *self.id.as_bytes(),
            at: self.at,
            kind: self.new.kind.as_str().to_owned(),
            body: Bytes::from(serde_json::to_vec(&body).expect("an event is always JSON")),
        }
    }
}

/// Puts events behind the last of a session: mints ids and times, each greater than the last one there, and moves the
/// state by what they say. Nothing may follow the end.
///
/// # Errors
/// The place of the first event behind the end of the session.
pub fn append(
    state: &SessionState,
    new: Vec<NewEvent>,
    now: Timestamp,
    random: &dyn Random,
) -> Result<(SessionState, Vec<Event>), usize> {
    let mut state = state.clone();
    let mut events = Vec::with_capacity(new.len());
    for (place, new) in new.into_iter().enumerate() {
        if state.status == SessionStatus::Terminated {
            return Err(place);
        }
        state.last_at = now.after(state.last_at);
        state.last_sequence += 1;
        follow(&mut state, &new);
        let (at, sequence) = (state.last_at, state.last_sequence);
        events.push(Event { id: EventId::mint(at, random.bits()), sequence, at, new });
    }
    Ok((state, events))
}

/// Moves the state by one event, which is the last one.
fn follow(state: &mut SessionState, event: &NewEvent) {
    if event.kind.is_of_the_agent() {
        state.taken_up = state.last_sequence;
    }
    if let Some(status) = event.kind.status() {
        state.status = status;
        state.stop_reason = event.fields.get("stop_reason").cloned();
        if status == SessionStatus::Terminated {
            state.end.get_or_insert(End { at: state.last_at, outcome: Outcome::Completed });
        }
    }
    if let Some(usage) = event.fields.get("model_usage").filter(|_| event.kind == EventKind::MODEL_END) {
        let tokens = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        let total = &mut state.usage;
        total.input_tokens = total.input_tokens.saturating_add(tokens("input_tokens"));
        total.output_tokens = total.output_tokens.saturating_add(tokens("output_tokens"));
        total.cache_read_input_tokens =
            total.cache_read_input_tokens.saturating_add(tokens("cache_read_input_tokens"));
        total.cache_creation_input_tokens =
            total.cache_creation_input_tokens.saturating_add(tokens("cache_creation_input_tokens"));
    }
}

#[cfg(test)]
mod tests;
