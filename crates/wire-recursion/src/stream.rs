//! `/sessions/{id}/events/stream`: a session's events as they come, each once, to its end. spec/recursion.md 10.1.

use serde_json::Value;
use stele_core::access::{Action, Resource};
use stele_core::id::{AgentId, SessionId};
use stele_core::service::FollowedBy;
use stele_core::work::session::SessionStatus;
use stele_http::attend::{Attendant, Attended};
use stele_http::auth::credential;
use stele_http::flat::FlatError;
use stele_http::stream::{self, Making, event_stream};

use crate::context::{Answer, Call, Id, query_id};
use crate::events;

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
    let shown = credential(&call.headers).unwrap_or_default();
    let follower = Follower {
        attendant: Attendant::new(call.stele.clone(), shown, feed.behind(begin)),
        session: id,
        agent: whole.session.agent.id,
        // Nothing follows the last event of a session that has ended.
        over: ended.is_some_and(|last| begin >= last),
    };
    Ok(event_stream(stream::body(follower, Follower::next)))
}

/// One who follows a session until it has ended.
struct Follower {
    attendant: Attendant,
    session: SessionId,
    agent: AgentId,
    over: bool,
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
            let followed = match self.attendant.next().await? {
                Attended::Followed(FollowedBy::Events(followed)) => followed,
                Attended::Followed(FollowedBy::Deleted) => return None,
                Attended::Quiet => return Some(": still there\n\n".into()),
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
