//! `/v1/memory_stores/{id}/changes`: a store's feed as a page, a long poll or a stream. DESIGN 7.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use stele_core::feed::{Changes, Reader, Standing, Told};
use stele_core::id::Epoch;
use stele_core::model::MarkKind;
use stele_core::refusal::Refusal;
use stele_http::auth::{Unknown, credential};
use stele_http::follow::{Follower, Happened, Woken};
use stele_http::query::Query;
use stele_http::reply::{at, bytes, json};
use stele_http::stream::{self, Making, event_stream};
use tokio::time::Instant;

use crate::context::Call;
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::{ActorView, StoreView, operation};

/// Most changes of a page, and how many if nothing is said.
pub(crate) const PAGE: (usize, usize) = (1_000, 100);
/// Longest wait of a long poll, in seconds.
pub(crate) const WAIT: usize = 30;

/// One change of a store; paths and hashes are null once a redaction took them, and for what is about the store.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryStoreChange")]
pub(crate) struct ChangeView<'a> {
    sequence: u64,
    memory_id: Option<String>,
    memory_version_id: Option<String>,
    #[schemars(extend("enum" = ["created", "modified", "deleted", "redacted", "store_archived", "store_deleted"]))]
    operation: &'static str,
    path: Option<&'a str>,
    previous_path: Option<&'a str>,
    content_sha256: Option<String>,
    content_size_bytes: Option<u64>,
    created_by: ActorView,
    created_at: String,
}

/// A page of changes, oldest first; `last_sequence` is where the next one goes on.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryStoreChanges")]
pub(crate) struct ChangesView<'a> {
    data: Vec<ChangeView<'a>>,
    last_sequence: u64,
}

impl<'a> ChangeView<'a> {
    fn of(told: &'a Told) -> Self {
        let (version, previous_path) = match told {
            Told::Version { version, previous_path } => (version, previous_path),
            Told::Mark(mark) => {
                let (operation, memory, version) = match mark.kind {
                    MarkKind::Redacted { memory, version } => ("redacted", Some(memory), Some(version)),
                    MarkKind::StoreArchived => ("store_archived", None, None),
                    MarkKind::StoreDeleted => ("store_deleted", None, None),
                };
                return Self {
                    sequence: mark.sequence,
                    memory_id: memory.map(|id| id.spell()),
                    memory_version_id: version.map(|id| id.spell()),
                    operation,
                    path: None,
                    previous_path: None,
                    content_sha256: None,
                    content_size_bytes: None,
                    created_by: mark.author.into(),
                    created_at: mark.created_at.to_string(),
                };
            }
        };
        // As in versions: what is redacted shows no path here, also where the other dialect kept it.
        let path = version.path.as_ref().filter(|_| version.redaction.is_none());
        Self {
            sequence: version.sequence,
            memory_id: Some(version.memory.spell()),
            memory_version_id: Some(version.id.spell()),
            operation: operation(version.operation),
            path: path.map(|path| path.as_str()),
            previous_path: previous_path.as_ref().map(|path| path.as_str()),
            content_sha256: version.recorded.as_ref().map(|r| r.content_sha256.to_string()),
            content_size_bytes: version.recorded.as_ref().map(|r| r.size_bytes),
            created_by: version.author.into(),
            created_at: version.created_at.to_string(),
        }
    }
}

/// A whole number of digits.
fn sequence(name: &str, text: &str) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| Refusal::shape(name, "must be a sequence: a whole number, 0 for the beginning"))
}

fn epoch(name: &str, text: &str) -> Result<Epoch, Refusal> {
    Epoch::parse(text).ok_or_else(|| Refusal::shape(name, "must be the UUID that the header stele-epoch had"))
}

/// The id of an event: the epoch and the sequence behind it.
fn event_id(epoch: Epoch, sequence: u64) -> String {
    format!("{epoch}:{sequence}")
}

/// Where the reader stands: what it received last, or what it asks for.
fn standing(query: &Query, last_event: Option<&HeaderValue>) -> Result<Standing, Refusal> {
    const LAST: &str = "Last-Event-ID";
    if let Some(id) = last_event {
        let id = id.to_str().map_err(|_| Refusal::shape(LAST, "is not an id of an event"))?;
        return match id.rsplit_once(':') {
            Some((of, after)) => {
                Ok(Standing { after: sequence(LAST, after)?, epoch: Some(epoch(LAST, of)?) })
            }
            None => Ok(Standing { after: sequence(LAST, id)?, epoch: None }),
        };
    }
    let after = query.get("after").map_or(Ok(0), |text| sequence("after", text))?;
    Ok(Standing { after, epoch: query.get("epoch").map(|text| epoch("epoch", text)).transpose()? })
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut media = values.flat_map(|value| value.split(',')).filter_map(|part| part.split(';').next());
    media.any(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}

pub(crate) async fn changes(call: Call, headers: HeaderMap) -> Result<Response, ApiError> {
    let store = call.store()?;
    let limit = call.query.number("limit", 1, PAGE.0, PAGE.1)?;
    let wait = call.query.number("wait", 0, WAIT, 0)?;
    let streams = wants_stream(&headers);
    let last_event = headers.get("last-event-id").filter(|id| streams && !id.is_empty());
    let standing = standing(&call.query, last_event)?;
    let shown = credential(&headers).unwrap_or_default();
    let mut follower = Follower::new(call.stele.clone(), call.caller.clone(), shown, store, standing, limit);
    let changes = follower.read(Reader::New).await?;
    if streams {
        let resumed = last_event.is_some();
        return Ok(stream(follower, &call, &changes, resumed));
    }
    let until = Instant::now() + Duration::from_secs(wait as u64);
    let changes = poll(&mut follower, changes, until).await?;
    Ok(page(standing.after, &changes))
}

/// Waits for the first changes, if there are none yet.
async fn poll(
    follower: &mut Follower,
    mut changes: Arc<Changes>,
    until: Instant,
) -> Result<Arc<Changes>, ApiError> {
    while changes.told.is_empty() && Instant::now() < until {
        match follower.wait(until).await {
            Woken::News => changes = follower.read(Reader::Following).await?,
            Woken::Late | Woken::Ending => break,
            Woken::Unknown => return Err(Unknown::Unauthenticated.into()),
        }
    }
    Ok(changes)
}

fn page(after: u64, changes: &Changes) -> Response {
    let last_sequence = changes.told.last().map_or(after, Told::sequence);
    let data = changes.told.iter().map(ChangeView::of).collect();
    at(changes.sequence, json(bytes(&ChangesView { data, last_sequence })))
}

/// A stream under way.
struct Stream {
    follower: Follower,
    epoch: Epoch,
}

/// Answers with a stream that begins with what was read already.
fn stream(mut follower: Follower, call: &Call, changes: &Changes, resumed: bool) -> Response {
    follower.knows(changes);
    let epoch = call.stele.installation().epoch;
    // Said at once, so that the client knows that it is connected.
    let mut first = b"retry: 1000\n\n".to_vec();
    say_changes(&mut first, epoch, &changes.told);
    if let Some(store) = changes.store.as_ref().filter(|_| resumed) {
        // It may have changed while the reader was away.
        say(&mut first, "store", None, &StoreView::of(store));
    }
    let state = (Some(Bytes::from(first)), Stream { follower, epoch });
    at(changes.sequence, event_stream(stream::body(state, next)))
}

fn next((ready, mut stream): (Option<Bytes>, Stream)) -> Making<(Option<Bytes>, Stream)> {
    Box::pin(async move {
        if let Some(ready) = ready {
            return Some((ready, (None, stream)));
        }
        let mut part = Vec::new();
        match stream.follower.next().await? {
            Happened::Changes(changes) => say_changes(&mut part, stream.epoch, &changes.told),
            Happened::Store(store) => say(&mut part, "store", None, &StoreView::of(&store)),
            Happened::Quiet => part.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        }
        Some((part.into(), (None, stream)))
    })
}

fn say_changes(out: &mut Vec<u8>, epoch: Epoch, told: &[Told]) {
    for told in told {
        say(out, "change", Some(event_id(epoch, told.sequence())), &ChangeView::of(told));
    }
}

/// One event; JSON never holds a line end.
fn say(out: &mut Vec<u8>, event: &str, id: Option<String>, data: &impl Serialize) {
    out.extend_from_slice(format!("event: {event}\n").as_bytes());
    if let Some(id) = id {
        out.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&bytes(data));
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stands_where_its_last_event_was_or_where_it_says() {
        let of = Epoch::from_bytes([0xAB; 16]);
        let stands = |query: &str, id: Option<&str>| {
            let id = id.map(|id| HeaderValue::from_str(id).expect("a value"));
            standing(&Query::parse(Some(query)), id.as_ref()).ok()
        };
        assert_eq!(stands("", None), Some(Standing { after: 0, epoch: None }));
        assert_eq!(stands("after=7", None), Some(Standing { after: 7, epoch: None }));
        assert_eq!(
            stands(&format!("after=7&epoch={of}"), None),
            Some(Standing { after: 7, epoch: Some(of) })
        );
        let id = event_id(of, 9);
        assert_eq!(stands("after=7", Some(&id)), Some(Standing { after: 9, epoch: Some(of) }));
        assert_eq!(stands("after=7", Some("9")), Some(Standing { after: 9, epoch: None }));
        for bad in ["after=", "after=-1", "after=x", "after=99999999999999999999", "epoch=x", "epoch="] {
            assert_eq!(stands(bad, None), None, "{bad}");
        }
        for bad in ["x", ":", "9:", ":9", "x:9", &format!("{of}:x"), &format!("{of}9")] {
            assert_eq!(stands("", Some(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_stream_is_asked_for_by_its_media_type() {
        let wants = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().expect("a value"));
            wants_stream(&headers)
        };
        assert!(wants("text/event-stream"));
        assert!(wants("application/json;q=0.5, Text/Event-Stream;q=1"));
        for other in ["*/*", "application/json", "text/*", ""] {
            assert!(!wants(other), "{other}");
        }
        assert!(!wants_stream(&HeaderMap::new()));
    }
}
