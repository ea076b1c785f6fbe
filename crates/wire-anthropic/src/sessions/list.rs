//! Lists of sessions, which can be walked forward and back. spec/anthropic.md 7.2.

use schemars::JsonSchema;
use serde::Serialize;
use stele_core::id::{AgentId, EnvironmentId, StoreId};
use stele_core::records::Order;
use stele_core::refusal::Refusal;
use stele_core::service::{Position, SessionFilter, SessionQuery};
use stele_core::work::session::{Facet, SessionStatus, Whole};
use stele_http::cursor::{BadCursor, List, created_key, created_position};
use stele_http::query::Query;
use stele_http::reply::{bytes, json};

use super::SessionView;
use crate::context::{page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::{Prefixed, read_filter};
use crate::work::{Answer, WorkCall, created, order};

/// A page of sessions, with both cursors.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOfSession")]
pub(crate) struct SessionsView {
    data: Vec<SessionView>,
    next_page: Option<String>,
    prev_page: Option<String>,
}

/// The way a cursor leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    On,
    Back,
}

fn key(way: Way, position: Position) -> Vec<u8> {
    let mut key = vec![u8::from(way == Way::Back)];
    key.extend(created_key(position));
    key
}

fn position(key: &[u8]) -> Result<(Way, Position), BadCursor> {
    let (way, rest) = key.split_first().ok_or(BadCursor)?;
    let way = match way {
        0 => Way::On,
        1 => Way::Back,
        _ => return Err(BadCursor),
    };
    Ok((way, created_position(rest)?))
}

fn filter<T: Prefixed>(query: &Query, name: &str) -> Result<Option<T>, Refusal> {
    let read = |text| read_filter(text).ok_or_else(|| Refusal::shape(name, "is not an id of one"));
    query.get(name).map(read).transpose()
}

fn parse(query: &Query) -> Result<SessionQuery, Refusal> {
    let statuses = query.all("statuses").map(|name| {
        let problem = "must be some of idle, running, rescheduling and terminated";
        SessionStatus::parse(name).ok_or_else(|| Refusal::shape("statuses", problem))
    });
    let agent = filter::<AgentId>(query, "agent_id")?;
    let store = filter::<StoreId>(query, "memory_store_id")?;
    let environment = filter::<EnvironmentId>(query, "environment_id")?;
    let mut facets: Vec<Facet> = [
        store.map(Facet::Store),
        agent.map(Facet::Agent),
        environment.map(Facet::Environment),
        // There are no deployments, so that none has a session.
        query.get("deployment_id").map(|_| Facet::Agent(AgentId::from_bytes([0; 16]))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let facet = if facets.is_empty() { Facet::All } else { facets.remove(0) };
    let version = query.get("agent_version").map(|_| query.number("agent_version", 1, u32::MAX as usize, 1));
    Ok(SessionQuery {
        filter: SessionFilter::default(),
        facet,
        also: facets,
        agent_version: version.transpose()?.and_then(|version| u32::try_from(version).ok()),
        statuses: statuses.collect::<Result<_, _>>()?,
        created: created(query)?,
        include_archived: query.flag("include_archived")?,
        order: order(query, Order::NewestFirst)?,
        after: None,
        limit: query.number("limit", 1, 1000, 20)?,
    })
}

fn turned(order: Order) -> Order {
    match order {
        Order::NewestFirst => Order::OldestFirst,
        Order::OldestFirst => Order::NewestFirst,
    }
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let mut query = parse(&call.query)?;
    let bound = SessionQuery { limit: 0, ..query.clone() };
    let list = List::new(&["anthropic sessions", &format!("{bound:?}")]);
    let from: Result<_, ApiError> = read_cursor(&call.query, &list, |key| position(&key));
    let from = from?;
    let way = from.map_or(Way::On, |(way, _)| way);
    query.after = from.map(|(_, position)| position);
    if way == Way::Back {
        query.order = turned(query.order);
    }
    let mut found = call.stele.session_list(&call.caller, query).await?;
    if way == Way::Back {
        found.items.reverse();
    }
    let place = |whole: &Whole| (whole.session.created_at, *whole.session.id.as_bytes());
    let (first, last) = (found.items.first().map(place), found.items.last().map(place));
    // Where a walk came from there is something, as far as can be known without looking.
    let (more_before, more_behind) = match way {
        Way::On => (from.is_some(), found.more),
        Way::Back => (found.more, true),
    };
    let next_page = page_cursor(&list, more_behind, last.map(|place| key(Way::On, place)));
    let prev_page = page_cursor(&list, more_before, first.map(|place| key(Way::Back, place)));
    let data = found.items.iter().map(SessionView::of).collect();
    Ok(json(bytes(&SessionsView { data, next_page, prev_page })))
}
