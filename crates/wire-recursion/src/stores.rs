//! `/memory_stores`. spec/recursion.md 5.

use axum::body::Body;
use serde::Deserialize;
use stele_core::access::{Action, Resource};
use stele_core::command::{Command, NewStore};
use stele_core::decide::Outcome;
use stele_core::id::AgentId;
use stele_core::list::StoreFilter;
use stele_core::model::{Origin, Status};
use stele_core::refusal::Refusal;
use stele_core::service::{First, Target};
use stele_core::text::{Description, MetadataPatch, Name, TextError};
use stele_http::query::Query;

use crate::context::{Answer, Call, query_id};
use crate::view::{StoreView, StoresView, created_at, nothing_at, origin, shown, shown_at, status};

/// The body of create and update; a field that is `null` counts as left out.
#[derive(Deserialize)]
struct StoreFields {
    name: Option<String>,
    description: Option<String>,
    agent_id: Option<String>,
}

fn parse_name(name: &str) -> Result<Name, Refusal> {
    Name::parse(name.trim()).map_err(|error| Refusal::invalid("name", error))
}

fn parse_description(text: &str) -> Result<Description, Refusal> {
    Description::parse(text).map_err(|error| Refusal::invalid("description", error))
}

fn parse_agent(text: &str) -> Result<AgentId, Refusal> {
    AgentId::parse(text).ok_or_else(|| Refusal::shape("agent_id", "must be a UUID"))
}

impl StoreFields {
    fn parse_new(self) -> Result<NewStore, Refusal> {
        let name = self.name.ok_or_else(|| Refusal::invalid("name", TextError::Empty))?;
        Ok(NewStore {
            name: parse_name(&name)?,
            description: parse_description(self.description.as_deref().unwrap_or_default())?,
            metadata: MetadataPatch::default(),
            agent: self.agent_id.as_deref().map(parse_agent).transpose()?,
            learned: None,
        })
    }

    /// `agent` is the one that the store belongs to; a store never moves to another.
    fn parse_change(self, agent: Option<AgentId>) -> Result<Command, Refusal> {
        let named = self.agent_id.as_deref().map(parse_agent).transpose()?;
        if named.is_some() && named != agent {
            return Err(Refusal::shape("agent_id", "cannot change: a store stays with its agent"));
        }
        Ok(Command::UpdateStore {
            name: self.name.as_deref().map(parse_name).transpose()?,
            description: self.description.as_deref().map(parse_description).transpose()?,
            metadata: MetadataPatch::default(),
        })
    }
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    call.may(Resource::Store, Action::Create)?;
    let new = call.object::<StoreFields>(body).await?.and_then(StoreFields::parse_new)?;
    let store = call.stele.store_create(&call.caller, new).await?;
    Ok(created_at(store.counters.sequence, &StoreView::of(&store)))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Store, Action::Read)?;
    let store = call.stele.store_get(&call.caller, call.store()?).await?;
    Ok(shown_at(store.counters.sequence, &StoreView::of(&store)))
}

pub(crate) async fn update(call: Call, body: Body) -> Answer {
    let needed = (Resource::Store, Action::Update);
    call.may(needed.0, needed.1)?;
    let fields = call.object::<StoreFields>(body).await?;
    let id = call.store()?;
    let parsed = match fields {
        Ok(fields) if fields.agent_id.is_some() => {
            let judged = call.stele.precondition(&call.caller, id, Target::Store, needed, First::Existence);
            fields.parse_change(judged.await?.agent)
        }
        Ok(fields) => fields.parse_change(None),
        Err(malformed) => Err(malformed),
    };
    let changed = call.carry_out(id, Target::Store, needed, parsed).await?;
    match changed.outcome {
        Outcome::Store(store) => Ok(shown_at(changed.sequence, &StoreView::of(&store))),
        Outcome::StoreDeleted(_) | Outcome::Memory(_) | Outcome::MemoryDeleted(_) | Outcome::Version(_) => {
            unreachable!("an update of a store has the store as its outcome")
        }
    }
}

pub(crate) async fn archive(call: Call, body: Body) -> Answer {
    call.may(Resource::Store, Action::Archive)?;
    call.no_object(body).await?;
    let changed = call.act(call.store()?, Target::Store, Command::ArchiveStore).await?;
    Ok(nothing_at(changed.sequence))
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.may(Resource::Store, Action::Delete)?;
    let changed = call.act(call.store()?, Target::Store, Command::DeleteStore).await?;
    Ok(nothing_at(changed.sequence))
}

/// The value of a filter that has a few, if it is given.
fn one_of<T: Copy>(
    query: &Query,
    name: &str,
    all: &[T],
    spell: fn(T) -> &'static str,
) -> Result<Option<T>, Refusal> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let found = all.iter().copied().find(|value| spell(*value) == text);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| spell(*value)).collect();
        Refusal::shape(name, format!("must be {}", names.join(" or ")))
    })
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Store, Action::Read)?;
    let query = call.query()?;
    let filter = StoreFilter {
        agent: query_id(&query, "agent_id")?,
        origin: one_of(&query, "origin", &[Origin::Curated, Origin::Reflection], origin)?,
        status: one_of(&query, "status", &[Status::Active, Status::Archived], status)?,
        include_archived: query.flag("include_archived")?,
        ..StoreFilter::default()
    };
    let stores = call.stele.store_list_all(&call.caller, filter).await?;
    Ok(shown(&StoresView { memory_stores: stores.iter().map(StoreView::of).collect() }))
}
