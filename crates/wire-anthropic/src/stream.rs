//! `/v1/sessions/{id}/events/stream`: a session's events as they come. spec/anthropic.md 8.3.
//!
//! The stream is pulled by the connection: it holds a place in the log, and reads on when the client has taken what was
//! there. So a slow reader costs nothing but its connection, which is cut off when nothing was taken for a minute, and
//! it never sees a gap.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use serde_json::{Value, json};
use stele_core::id::{EventId, SessionId};
use stele_core::refusal::Refusal;
use stele_core::service::{EventFeed, FollowedBy, Stele};
use stele_core::storage::StorageError;
use stele_core::work::event::EventKind;
use stele_http::auth::credential;
use stele_http::stream::{self, Making};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::events;
use crate::id::Prefixed;
use crate::work::{Answer, WorkCall};

/// Between two pings of a quiet stream.
const PING: Duration = Duration::from_secs(15);
/// Between two looks at whether the credential still works; a key is believed for 3 s, and 5 are promised.
const CREDENTIAL: Duration = Duration::from_millis(1_500);

pub(crate) async fn stream(call: WorkCall) -> Answer {
    let id = call.session()?;
    stream_of(&call, id).await
}

/// The stream of a session's events.
pub(crate) async fn stream_of(call: &WorkCall, id: SessionId) -> Answer {
    let known = |name: &str| matches!(name, "agent.message" | "agent.thinking");
    if call.query.all("event_deltas").any(|name| !known(name)) {
        return Err(Refusal::shape("event_deltas", "must be agent.message or agent.thinking").into());
    }
    // Subscribed before the headers go out: what happens from now on is seen.
    let feed = call.stele.event_follow(&call.caller, id).await?;
    let shown = credential(call.headers()).unwrap_or_default().to_owned();
    let follower = Follower::new(call.stele.clone(), shown, feed);
    let mut response = Response::new(stream::body(follower, Follower::next));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// One who follows a session, with what ends it.
struct Follower {
    stele: Arc<Stele>,
    shown: String,
    feed: EventFeed,
    ending: tokio::sync::watch::Receiver<bool>,
    pings: tokio::time::Interval,
    looks: tokio::time::Interval,
    over: bool,
}

/// What a follower waits for.
enum News {
    Followed(Result<FollowedBy, StorageError>),
    Ping,
    Look,
}

impl Follower {
    fn new(stele: Arc<Stele>, shown: String, feed: EventFeed) -> Self {
        let every = |period: Duration| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let ending = stele.ending();
        Self { stele, shown, feed, ending, pings: every(PING), looks: every(CREDENTIAL), over: false }
    }

    /// The next frames, and who follows on; nothing at the end.
    fn next(mut self) -> Making<Self> {
        Box::pin(async move {
            let frames = self.frames().await?;
            Some((frames.into(), self))
        })
    }

    async fn frames(&mut self) -> Option<String> {
        while !self.over {
            let news = tokio::select! {
                followed = self.feed.next() => News::Followed(followed),
                _ = self.pings.tick() => News::Ping,
                _ = self.looks.tick() => News::Look,
                _ = self.ending.wait_for(|ending| *ending) => return None,
            };
            let mut frames = String::new();
            match news {
                News::Followed(Ok(FollowedBy::Events(events))) => {
                    for event in &events {
                        // What was sent a moment ago is still queued.
                        let data = Value::Object(events::view(event, 0)).to_string();
                        frame(&mut frames, event.new.kind.as_str(), &data);
                    }
                }
                News::Followed(Ok(FollowedBy::Deleted)) => {
                    self.over = true;
                    frame(&mut frames, EventKind::DELETED.as_str(), &self.deleted());
                }
                News::Followed(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a stream of events ends");
                    return None;
                }
                News::Ping => frame(&mut frames, "ping", r#"{"type":"ping"}"#),
                News::Look => {
                    // A storage that is out of reach for a moment says nothing about the credential.
                    if matches!(self.stele.authenticate(&self.shown).await, Ok(None)) {
                        return None;
                    }
                    continue;
                }
            }
            return Some(frames);
        }
        None
    }

    fn deleted(&self) -> String {
        let now = self.stele.now();
        let id = EventId::mint(now, self.stele.random_bits()).spell();
        json!({"id": id, "type": EventKind::DELETED.as_str(), "processed_at": now.to_string()}).to_string()
    }
}

/// Writes one frame. JSON holds no line break, so the data is one line.
fn frame(frames: &mut String, event: &str, data: &str) {
    for part in ["event: ", event, "\ndata: ", data, "\n\n"] {
        frames.push_str(part);
    }
}
