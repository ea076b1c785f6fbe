//! Lists of sessions. spec/recursion.md 2.2 and 10.5.

use serde_json::json;
use stele_core::access::{Action, Resource};
use stele_core::list::Created;
use stele_core::records::Order;
use stele_core::refusal::Refusal;
use stele_core::service::{Position, SessionFilter, SessionQuery};
use stele_core::time::Timestamp;
use stele_core::work::session::{Facet, Phase, Whole};
use stele_http::cursor::{BadCursor, List, created_key, created_position};
use stele_http::flat::FlatError;
use stele_http::query::Query;

use super::SOURCES;
use super::view::{row, status};
use crate::context::{Answer, Call, query_id};
use crate::view::shown;

/// How long a page token counts.
const TOKEN_SECS: u64 = 3600;
/// Most sessions that are sorted by their last update, which changes all the time.
const SORTED: usize = 1_000;
const KINDS: [&str; 8] =
    ["api_call", "chat", "rollout", "subagent", "benchmark", "evaluation", "reflection", "session_analyst"];

/// The values of a list that is separated by commas.
fn commas<'a>(query: &'a Query, name: &str) -> impl Iterator<Item = &'a str> {
    query.get(name).into_iter().flat_map(|text| text.split(',')).filter(|text| !text.is_empty())
}

fn parse_phase(text: &str) -> Result<Option<Phase>, Refusal> {
    let all = [Phase::Active, Phase::Completed, Phase::Failed, Phase::Cancelled];
    match all.into_iter().find(|phase| status(*phase) == text) {
        // A session asks nobody anything.
        None if text == "awaiting_human" => Ok(None),
        None => {
            let problem = "must be active, awaiting_human, completed, failed or cancelled";
            Err(Refusal::shape("status", problem))
        }
        found => Ok(found),
    }
}

fn parse_filter(query: &Query) -> Result<SessionFilter, Refusal> {
    let phases = commas(query, "status").map(parse_phase).filter_map(Result::transpose);
    let pair = |text: &str| {
        let (key, value) = text.split_once(':')?;
        Some((key.to_owned(), value.to_owned()))
    };
    let pairs = query.all("metadata").map(pair).collect::<Option<_>>();
    let source = |field: &str| Some((field.to_owned(), query.get(field)?.to_owned()));
    Ok(SessionFilter {
        phases: phases.collect::<Result<_, _>>()?,
        metadata: pairs.ok_or_else(|| Refusal::shape("metadata", "must be key:value"))?,
        metadata_keys: query.all("metadata_key").map(str::to_owned).collect(),
        extra: SOURCES.into_iter().filter_map(source).collect(),
    })
}

/// Whether there can be a session that the query asks for: all are calls of the API, and none asks a person.
fn has_any(query: &Query, filter: &SessionFilter) -> Result<bool, Refusal> {
    if let Some(unknown) = commas(query, "kind").find(|kind| !KINDS.contains(kind)) {
        return Err(Refusal::shape("kind", format!("{unknown:?} is not a kind of session")));
    }
    let kinds: Vec<_> = commas(query, "kind").collect();
    let has_kind = kinds.is_empty() || kinds.contains(&"api_call");
    let has_status = commas(query, "status").next().is_none() || !filter.phases.is_empty();
    Ok(has_kind && has_status)
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Most recently updated first.
    Update,
    /// Newest first.
    Creation,
}

impl By {
    fn place(self, whole: &Whole) -> Position {
        let at = match self {
            Self::Update => whole.updated_at(),
            Self::Creation => whole.session.created_at,
        };
        (at, *whole.session.id.as_bytes())
    }
}

/// A token tells when it was given, the order, and the place in it.
fn token(list: &List, (by, place): (By, Position), now: Timestamp) -> String {
    let order = [u8::from(by == By::Update)];
    list.cursor(&[&now.as_micros().to_be_bytes()[..], &order, &created_key(place)].concat())
}

fn read_token(list: &List, token: &str, now: Timestamp) -> Result<(By, Position), BadCursor> {
    let key = list.key(token)?;
    let (given, key) = key.split_first_chunk::<8>().ok_or(BadCursor)?;
    let given = Timestamp::from_micros(i64::from_be_bytes(*given));
    if given < now.minus_secs(TOKEN_SECS) {
        return Err(BadCursor);
    }
    let (order, place) = key.split_first().ok_or(BadCursor)?;
    let by = if *order == 1 { By::Update } else { By::Creation };
    Ok((by, created_position(place)?))
}

/// Sessions, the most recently updated first; where there are more than are sorted at once, the newest first.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Session, Action::List)?;
    let query = call.query()?;
    let limit = query.number("limit", 1, 1000, 100)?;
    let filter = parse_filter(&query)?;
    let facet = query_id(&query, "agent_id")?.map_or(Facet::All, Facet::Agent);
    query.flag("root_only")?;
    let organization = call.caller.workspace;
    let kind = query.get("kind").unwrap_or_default();
    let parts = [organization.to_string(), limit.to_string(), format!("{facet:?} {filter:?} {kind}")];
    let list = List::new(&["recursion sessions", &parts[0], &parts[1], &parts[2]]);
    let now = call.stele.now();
    let after = query.get("page_token").map(|token| read_token(&list, token, now)).transpose();
    let after = after.map_err(|_| {
        FlatError::from(Refusal::shape("page_token", "is not one of this list, or is over an hour old"))
    })?;
    if !has_any(&query, &filter)? {
        return Ok(shown(&json!({"sessions": []})));
    }
    let by_creation = after.and_then(|(by, place)| (by == By::Creation).then_some(place));
    let wanted = SessionQuery {
        facet,
        also: Vec::new(),
        agent_version: None,
        statuses: Vec::new(),
        filter,
        created: Created::default(),
        include_archived: true,
        order: Order::NewestFirst,
        after: by_creation,
        limit: if by_creation.is_some() { limit } else { SORTED },
    };
    let found = call.stele.session_list(&call.caller, wanted).await?;
    let (mut all, mut more) = (found.items, found.more);
    let by = match after {
        None if more => By::Creation,
        None => By::Update,
        Some((by, _)) => by,
    };
    if by == By::Update {
        all.sort_by_key(|whole| std::cmp::Reverse(by.place(whole)));
        all.retain(|whole| after.is_none_or(|(_, place)| by.place(whole) < place));
        more = false;
    }
    more = more || all.len() > limit;
    all.truncate(limit);
    let rows: Vec<_> = all.iter().map(|whole| row(organization, whole)).collect();
    let mut view = json!({"sessions": rows});
    if let Some(last) = all.last().filter(|_| more) {
        view["next_page_token"] = token(&list, (by, by.place(last)), now).into();
    }
    Ok(shown(&view))
}
