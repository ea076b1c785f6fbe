//! `/sessions/{id}/events/stream`: a session's events as they come, each once, to its end. spec/recursion.md 10.1.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use serde_json::Value;
use stele_core::access::{Action, Resource};
use stele_core::id::{AgentId, SessionId};
use stele_core::service::{EventFeed, FollowedBy, Stele};
use stele_core::storage::StorageError;
use stele_core::work::session::SessionStatus;
use stele_http::auth::credential;
use stele_http::flat::FlatError;
use stele_http::stream::{self, Making};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::context::{Answer, Call, Id, query_id};
use crate::events;

/// Between two signs of life of a quiet stream.
const PING: Duration = Duration::from_secs(15);
/// Between two looks at whether the key still works; one is believed for 3 s, and 5 are promised.
const CREDENTIAL: Duration = Duration::from_millis(1_500);
const LAST: &str = "Last-Event-ID";

/// The event that the reader has read last: the query counts before the header.
async fn begin(call: &Call, session: SessionId) -> Result<u64, FlatError> {
    let query = call.query()?;
    if let Some(id) = query_id(&query, "after_event_id")? {
        return events::place(call, session, Some(id), "after_event_id").await;
    }
    let last = call.headers.get(LAST).map(|value| {
        let id = value.to_str().ok().and_then(Id::read);
        id.ok_or_else(|| FlatError::malformed_id(LAST))
    });
    events::place(call, session, last.transpose()?, LAST).await
}

pub(crate) async fn stream(call: Call) -> Answer {
    call.may(Resource::Event, Action::Read)?;
    let id = call.id("session_id")?;
    let feed = call.stele.event_follow(&call.caller, id).await?;
    let begin = begin(&call, id).await?;
    let whole = call.stele.session_get(&call.caller, id).await?;
    let ended = (whole.state.status == SessionStatus::Terminated).then_some(whole.state.last_sequence);
    let every = |period: Duration| {
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let follower = Follower {
        shown: credential(&call.headers).unwrap_or_default().to_owned(),
        feed: feed.behind(begin),
        ending: call.stele.ending(),
        session: id,
        agent: whole.session.agent.id,
        // Nothing follows the last event of a session that has ended.
        over: ended.is_some_and(|last| begin >= last),
        pings: every(PING),
        looks: every(CREDENTIAL),
        stele: call.stele,
    };
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
    session: SessionId,
    agent: AgentId,
    over: bool,
    pings: Interval,
    looks: Interval,
}

/// What a follower waits for.
enum News {
    Followed(Result<FollowedBy, StorageError>),
    Ping,
    Look,
}

impl Follower {
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
            let followed = match news {
                News::Followed(Ok(FollowedBy::Events(followed))) => followed,
                News::Followed(Ok(FollowedBy::Deleted)) => return None,
                News::Followed(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a stream of events ends");
                    return None;
                }
                News::Ping => return Some(": still there\n\n".into()),
                // A storage that is out of reach for a moment says nothing about the key.
                News::Look if matches!(self.stele.authenticate(&self.shown).await, Ok(None)) => return None,
                News::Look => continue,
            };
            self.over =
                followed.iter().any(|event| event.new.kind.status() == Some(SessionStatus::Terminated));
            let mut frames = String::new();
            for event in &followed {
                let Some(view) = events::view(self.session, self.agent, event) else { continue };
                let kind = view.get("event_type").and_then(Value::as_str).unwrap_or_default().to_owned();
                let data = Value::Object(view).to_string();
                // JSON holds no line break, so the data is one line.
                for part in ["id: ", &event.id.to_string(), "\nevent: ", &kind, "\ndata: ", &data, "\n\n"] {
                    frames.push_str(part);
                }
            }
            if !frames.is_empty() {
                return Some(frames);
            }
        }
        None
    }
}
