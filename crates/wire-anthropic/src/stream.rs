//! `/v1/sessions/{id}/events/stream`: a session's events as they come. spec/anthropic.md 8.3.

use serde_json::{Value, json};
use stele_core::id::{EventId, SessionId};
use stele_core::refusal::Refusal;
use stele_core::service::FollowedBy;
use stele_core::work::event::EventKind;
use stele_http::attend::{Attendant, Attended};
use stele_http::auth::credential;
use stele_http::stream::{self, Making, event_stream};

use crate::events;
use crate::id::Prefixed;
use crate::work::{Answer, WorkCall};

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
    let shown = credential(call.headers()).unwrap_or_default();
    let follower = Follower { attendant: Attendant::new(call.stele.clone(), shown, feed), over: false };
    Ok(event_stream(stream::body(follower, Follower::next)))
}

/// One who follows a session until it is deleted.
struct Follower {
    attendant: Attendant,
    over: bool,
}

impl Follower {
    /// The next frames, and who follows on; nothing at the end.
    fn next(mut self) -> Making<Self> {
        Box::pin(async move {
            let frames = self.frames().await?;
            Some((frames.into(), self))
        })
    }

    async fn frames(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        let mut frames = String::new();
        match self.attendant.next().await? {
            Attended::Followed(FollowedBy::Events(events)) => {
                for event in &events {
                    // What was sent a moment ago is still queued.
                    let data = Value::Object(events::view(event, 0)).to_string();
                    frame(&mut frames, event.new.kind.as_str(), &data);
                }
            }
            Attended::Followed(FollowedBy::Deleted) => {
                self.over = true;
                frame(&mut frames, EventKind::DELETED.as_str(), &self.deleted());
            }
            Attended::Quiet => frame(&mut frames, "ping", r#"{"type":"ping"}"#),
        }
        Some(frames)
    }

    fn deleted(&self) -> String {
        let stele = self.attendant.stele();
        let now = stele.now();
        let id = EventId::mint(now, stele.random_bits()).spell();
        json!({"id": id, "type": EventKind::DELETED.as_str(), "processed_at": now.to_string()}).to_string()
    }
}

/// Writes one frame. JSON holds no line break, so the data is one line.
fn frame(frames: &mut String, event: &str, data: &str) {
    for part in ["event: ", event, "\ndata: ", data, "\n\n"] {
        frames.push_str(part);
    }
}
