//! `/v1/sessions/{id}/resources`: attached stores, which are fixed, and files and repositories, which Stele keeps and
//! shows but does not fetch. spec/anthropic.md 6 and 7.3.

use axum::body::Body;
use serde_json::{Value, json};
use stele_core::access::{Action, Resource as Kind};
use stele_core::id::{ResourceId, StoreId};
use stele_core::refusal::Refusal;
use stele_core::service::WantedResource;
use stele_core::work::Fields;
use stele_core::work::attachment::{Access, Wanted};
use stele_core::work::refusal::WorkRefusal;
use stele_core::work::session::{Resource, Whole};
use stele_http::cursor::{BadCursor, List};
use stele_http::reply::{bytes, json};

use crate::context::{page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::{DeletedView, PageView};
use crate::work::{Answer, WorkCall, nothing_left, take_text};

/// What a session asks for at `at`.
pub(crate) fn parse(at: &str, sent: Value) -> Result<WantedResource, Refusal> {
    let Value::Object(mut fields) = sent else { return Err(Refusal::shape(at, "must be an object")) };
    let required = |fields: &mut Fields, name: &str| {
        take_text(fields, at, name)?.ok_or_else(|| Refusal::shape(format!("{at}.{name}"), "is required"))
    };
    let kind = required(&mut fields, "type")?;
    let mut kept = Fields::new();
    match kind.as_str() {
        "memory_store" => {
            let store = required(&mut fields, "memory_store_id")?;
            let access = match take_text(&mut fields, at, "access")? {
                None => Access::ReadWrite,
                Some(name) => Access::parse(&name).ok_or_else(|| {
                    Refusal::shape(format!("{at}.access"), "must be read_write or read_only")
                })?,
            };
            let instructions = take_text(&mut fields, at, "instructions")?;
            nothing_left(&fields, at)?;
            // A malformed id names nothing, as any that is unknown.
            let store = StoreId::read(&store).unwrap_or(StoreId::from_bytes([0; 16]));
            return Ok(WantedResource::Store(Wanted { store, access, instructions }));
        }
        "file" => {
            let file = required(&mut fields, "file_id")?;
            let mount = take_text(&mut fields, at, "mount_path")?;
            kept.insert("mount_path".into(), mount.unwrap_or_else(|| format!("/mnt/files/{file}")).into());
            kept.insert("file_id".into(), file.into());
        }
        "github_repository" => {
            let url = required(&mut fields, "url")?;
            let mount = take_text(&mut fields, at, "mount_path")?;
            let name =
                url.trim_end_matches('/').rsplit('/').next().unwrap_or_default().trim_end_matches(".git");
            kept.insert("mount_path".into(), mount.unwrap_or_else(|| format!("/workspace/{name}")).into());
            kept.insert("url".into(), url.clone().into());
            kept.insert("checkout".into(), fields.remove("checkout").unwrap_or(Value::Null));
            // Nothing is fetched here, so the token is not kept.
            take_text(&mut fields, at, "authorization_token")?;
        }
        _ => {
            return Err(Refusal::shape(
                format!("{at}.type"),
                "must be memory_store, file or github_repository",
            ));
        }
    }
    nothing_left(&fields, at)?;
    kept.insert("type".into(), kind.into());
    Ok(WantedResource::Other(kept))
}

/// A resource as it is shown. spec/anthropic.md 6.2.
pub(crate) fn view(resource: &Resource) -> Value {
    match resource {
        Resource::Store(attachment) => json!({
            "type": "memory_store",
            "memory_store_id": attachment.store.spell(),
            "access": attachment.access.as_str(),
            "instructions": attachment.instructions,
            "name": attachment.name,
            "description": attachment.description,
            "mount_path": attachment.mount_path(),
        }),
        Resource::Other { id, fields, created_at } => {
            let mut shown = fields.clone();
            shown.insert("id".into(), id.spell().into());
            shown.insert("created_at".into(), created_at.to_string().into());
            shown.insert("updated_at".into(), created_at.to_string().into());
            shown.into()
        }
    }
}

/// The resource that goes by this id: a store's own, since its attachment has none.
fn find<'a>(whole: &'a Whole, id: &str) -> Result<&'a Resource, Refusal> {
    let is_it = |resource: &&Resource| match resource {
        Resource::Store(attachment) => StoreId::read(id) == Some(attachment.store),
        Resource::Other { id: own, .. } => ResourceId::read(id) == Some(*own),
    };
    Ok(whole.session.resources.iter().find(is_it).ok_or(WorkRefusal::ResourceNotFound)?)
}

fn place(key: &[u8]) -> Result<usize, BadCursor> {
    let place = u64::from_be_bytes(key.try_into().map_err(|_| BadCursor)?);
    usize::try_from(place).map_err(|_| BadCursor)
}

pub(crate) async fn list(call: WorkCall) -> Answer {
    let id = call.session()?;
    let limit = call.query.number("limit", 1, 1000, 1000)?;
    let list = List::new(&["anthropic resources", &id.spell()]);
    // Attachments have no ids; their places never change, and what is removed leaves only later ones.
    let from = read_cursor(&call.query, &list, |key| place(&key))?.unwrap_or(0);
    let whole = call.stele.session_get(&call.caller, id).await?;
    let all = &whole.session.resources;
    let (from, to) = (from.min(all.len()), from.saturating_add(limit).min(all.len()));
    let data = all[from..to].iter().map(view).collect::<Vec<_>>();
    let next_page = page_cursor(&list, to < all.len(), Some((to as u64).to_be_bytes().to_vec()));
    Ok(json(bytes(&PageView { data, next_page })))
}

pub(crate) async fn add(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    let sent: Fields = call.body(Kind::Session, Action::Update, body).await?;
    // Whatever a body says of a store, stores are attached when a session is made.
    if sent.get("type").is_some_and(|kind| kind == "memory_store") {
        call.stele.session_get(&call.caller, id).await?;
        return Err(Refusal::from(WorkRefusal::AttachmentsFixed).into());
    }
    match parse("body", sent.into())? {
        WantedResource::Other(fields) if fields["type"] == "file" => {
            Ok(json(bytes(&view(&call.stele.session_resource_add(&call.caller, id, fields).await?))))
        }
        _ => Err(Refusal::shape("type", "must be file").into()),
    }
}

pub(crate) async fn retrieve(call: WorkCall) -> Answer {
    let whole = call.stele.session_get(&call.caller, call.session()?).await?;
    Ok(json(bytes(&view(find(&whole, call.param("resource"))?))))
}

pub(crate) async fn update(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    let _sent: Fields = call.body(Kind::Session, Action::Update, body).await?;
    let whole = call.stele.session_get(&call.caller, id).await?;
    match find(&whole, call.param("resource"))? {
        Resource::Store(_) => Err(Refusal::from(WorkRefusal::AttachmentsFixed).into()),
        // The only change there is concerns a repository's token, which is not kept.
        Resource::Other { fields, .. } if fields["type"] == "github_repository" => {
            Ok(json(bytes(&view(find(&whole, call.param("resource"))?))))
        }
        Resource::Other { .. } => Err(ApiError::invalid("only repositories take a new token")),
    }
}

pub(crate) async fn remove(call: WorkCall, body: Body) -> Answer {
    let id = call.session()?;
    call.may(Kind::Session, Action::Update)?;
    call.no_fields(body).await?;
    let whole = call.stele.session_get(&call.caller, id).await?;
    match find(&whole, call.param("resource"))? {
        Resource::Store(_) => Err(Refusal::from(WorkRefusal::AttachmentsFixed).into()),
        Resource::Other { id: resource, .. } => {
            call.stele.session_resource_remove(&call.caller, id, *resource).await?;
            Ok(json(bytes(&DeletedView { id: resource.spell(), r#type: "session_resource_deleted" })))
        }
    }
}
