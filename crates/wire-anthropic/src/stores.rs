//! `/v1/memory_stores`. spec/anthropic.md 2.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::Response;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use stele_core::access::{Action, Resource};
use stele_core::command::{Command, NewStore};
use stele_core::decide::Outcome;
use stele_core::id::StoreId;
use stele_core::list::{Created, StoreFilter, StorePosition};
use stele_core::refusal::Refusal;
use stele_core::storage::Changed;
use stele_core::text::{Description, MetadataPatch, Name};
use stele_http::body;
use stele_http::cursor::{List, store_key, store_position};
use stele_http::openapi::{NO_NUL, PRINTABLE};
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, object, page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::{DeletedView, PageView, StoreView};

type Answer = Result<Response, ApiError>;

/// Metadata on the wire; a `null` value removes its key.
pub(crate) type Pairs = BTreeMap<String, Option<String>>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateStore {
    /// 1 to 255 characters, no control characters; need not be unique.
    #[schemars(length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    name: String,
    /// At most 1,024 characters.
    #[schemars(length(max = 1024), regex(pattern = NO_NUL))]
    description: Option<String>,
    /// At most 16 pairs.
    #[schemars(with = "Option<BTreeMap<String, String>>", transform = bounded_metadata)]
    metadata: Option<Pairs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateStore {
    /// 1 to 255 characters, no control characters.
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "String", length(min = 1, max = 255), regex(pattern = PRINTABLE))]
    name: Option<Option<String>>,
    /// At most 1,024 characters; null clears it.
    #[serde(default, deserialize_with = "body::given")]
    #[schemars(with = "Option<String>", length(max = 1024), regex(pattern = NO_NUL))]
    description: Option<Option<String>>,
    /// A string sets a pair, null removes it, and what is not named stays.
    #[schemars(transform = bounded_metadata)]
    metadata: Option<Pairs>,
}

/// What the document says of metadata beyond its types.
pub(crate) fn bounded_metadata(schema: &mut Schema) {
    schema.insert("maxProperties".into(), 16.into());
    schema.insert(
        "propertyNames".into(),
        serde_json::json!({"minLength": 1, "maxLength": 64, "pattern": NO_NUL}),
    );
    if let Some(values) = schema.get_mut("additionalProperties").and_then(|values| values.as_object_mut()) {
        values.insert("maxLength".into(), 512.into());
        values.insert("pattern".into(), NO_NUL.into());
    }
}

fn parse_name(name: &str) -> Result<Name, Refusal> {
    Name::parse(name).map_err(|error| Refusal::invalid("name", error))
}

fn parse_description(text: Option<&str>) -> Result<Description, Refusal> {
    Description::parse(text.unwrap_or_default()).map_err(|error| Refusal::invalid("description", error))
}

pub(crate) fn parse_metadata(pairs: Option<Pairs>) -> Result<MetadataPatch, Refusal> {
    MetadataPatch::parse(pairs.unwrap_or_default())
        .map_err(|(key, error)| Refusal::invalid(format!("metadata.{key}"), error))
}

impl CreateStore {
    fn parse(self) -> Result<NewStore, Refusal> {
        if let Some((key, _)) = self.metadata.iter().flatten().find(|(_, value)| value.is_none()) {
            return Err(Refusal::shape(format!("metadata.{key}"), "must be a string"));
        }
        Ok(NewStore {
            name: parse_name(&self.name)?,
            description: parse_description(self.description.as_deref())?,
            metadata: parse_metadata(self.metadata)?,
            agent: None,
            learned: None,
        })
    }
}

impl UpdateStore {
    fn parse(self) -> Result<Command, Refusal> {
        let name = match self.name {
            Some(None) => return Err(Refusal::shape("name", "cannot be null")),
            Some(Some(name)) => Some(parse_name(&name)?),
            None => None,
        };
        let description = self.description.map(|text| parse_description(text.as_deref())).transpose()?;
        Ok(Command::UpdateStore { name, description, metadata: parse_metadata(self.metadata)? })
    }
}

fn store_answer(changed: &Changed) -> Response {
    let answer = match &changed.outcome {
        Outcome::Store(store) => json(bytes(&StoreView::of(store))),
        Outcome::StoreDeleted(id) => {
            json(bytes(&DeletedView { id: id.spell(), r#type: "memory_store_deleted" }))
        }
        Outcome::Memory(_) | Outcome::MemoryDeleted(_) | Outcome::Version(_) => {
            unreachable!("commands on stores have outcomes about stores")
        }
    };
    at(changed.sequence, answer)
}

pub(crate) async fn create(call: Call, body: Body) -> Answer {
    call.may(Resource::Store, Action::Create)?;
    let wanted: CreateStore = object(&body::read(body).await?)?;
    let store = call.stele.store_create(&call.caller, wanted.parse()?).await?;
    Ok(at(store.counters.sequence, json(bytes(&StoreView::of(&store)))))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    let store = call.stele.store_get(&call.caller, call.store()?).await?;
    Ok(at(store.counters.sequence, json(bytes(&StoreView::of(&store)))))
}

pub(crate) async fn update(call: Call, body: Body) -> Answer {
    let id = call.store()?;
    call.may(Resource::Store, Action::Update)?;
    let body = body::read(body).await?;
    let parsed = object::<UpdateStore>(&body).and_then(|wanted| Ok(wanted.parse()?));
    let command = call.or_first(parsed, id, None, (Resource::Store, Action::Update)).await?;
    Ok(store_answer(&call.stele.change(&call.caller, id, command, false).await?))
}

pub(crate) async fn archive(call: Call, body: Body) -> Answer {
    act(call, body, Command::ArchiveStore).await
}

pub(crate) async fn delete(call: Call, body: Body) -> Answer {
    act(call, body, Command::DeleteStore).await
}

async fn act(call: Call, body: Body, command: Command) -> Answer {
    let id: StoreId = call.store()?;
    call.no_fields(body).await?;
    Ok(store_answer(&call.stele.change(&call.caller, id, command, false).await?))
}

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.query.number("limit", 1, 100, 20)?;
    let created =
        Created { from: call.query.time("created_at[gte]")?, to: call.query.time("created_at[lte]")? };
    let include_archived = call.query.flag("include_archived")?;
    let filter = StoreFilter { include_archived, created, ..StoreFilter::default() };
    let list = List::new(&["anthropic stores", &format!("{filter:?}")]);
    let after = read_cursor(&call.query, &list, |key| store_position(&key))?;
    let page = call.stele.store_list(&call.caller, filter, after, limit).await?;
    let last = page.items.last().map(|s| store_key(StorePosition { created_at: s.created_at, id: s.id }));
    let data = page.items.iter().map(StoreView::of).collect();
    Ok(json(bytes(&PageView { data, next_page: page_cursor(&list, page.more, last) })))
}
