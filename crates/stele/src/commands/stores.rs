//! `stele store`.

use serde_json::{Map, Value, json};
use stele_client::Store;

use super::{Session, resolve};
use crate::cli::Drastic;
use crate::failure::{Class, fail};
use crate::output::{print, print_json, print_table, time};
use crate::prompt::confirm;

/// Prints a store for a program, or says what was done to it.
fn done(session: &Session, store: &Store, what: &str) -> anyhow::Result<()> {
    if session.json {
        return print_json(store);
    }
    print(&format!("{what} {} ({})", store.name, store.id))
}

pub(super) fn pairs(given: &[String], may_remove: bool) -> anyhow::Result<Value> {
    let mut map = Map::new();
    for pair in given {
        let (key, value) = match pair.split_once('=') {
            Some((key, value)) => (key, Value::from(value)),
            None if may_remove => (pair.as_str(), Value::Null),
            None => {
                return Err(fail(Class::Usage, format!("metadata must look like KEY=VALUE, not {pair:?}")));
            }
        };
        map.insert(key.into(), value);
    }
    Ok(map.into())
}

pub(crate) fn create(
    session: &Session,
    name: String,
    description: Option<String>,
    metadata: Vec<String>,
) -> anyhow::Result<()> {
    let mut body = json!({"name": name, "metadata": pairs(&metadata, false)?});
    if let Some(description) = description {
        body["description"] = description.into();
    }
    done(session, &session.client.store_create(&body)?, "created")
}

pub(crate) fn list(session: &Session, archived_too: bool) -> anyhow::Result<()> {
    let stores = session.client.stores(archived_too).collect::<Result<Vec<_>, _>>()?;
    if session.json {
        return print_json(&json!({"data": stores}));
    }
    let rows: Vec<_> = stores
        .into_iter()
        .map(|store| {
            let state = if store.archived_at.is_some() { "archived" } else { "" };
            [store.name, store.id, time(&store.created_at), state.into(), store.description]
        })
        .collect();
    print_table(["NAME", "ID", "CREATED", "STATE", "DESCRIPTION"], &rows)
}

pub(crate) fn show(session: &Session, wanted: &str) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, wanted)?;
    if session.json {
        return print_json(&store);
    }
    let (mut memories, mut bytes) = (0_u64, 0_u64);
    for memory in session.client.memories(&store.id, "/") {
        memories += 1;
        bytes += memory?.content_size_bytes;
    }
    let mut rows = vec![
        ["name".into(), store.name],
        ["id".into(), store.id],
        ["description".into(), store.description],
        ["created".into(), time(&store.created_at)],
        ["updated".into(), time(&store.updated_at)],
        ["archived".into(), store.archived_at.as_deref().map_or("no".into(), time)],
        ["memories".into(), memories.to_string()],
        ["size".into(), format!("{bytes} bytes")],
    ];
    rows.extend(store.metadata.into_iter().map(|(key, value)| [format!("metadata.{key}"), value]));
    print_table(["FIELD", "VALUE"], &rows)
}

pub(crate) fn update(
    session: &Session,
    wanted: &str,
    name: Option<String>,
    description: Option<String>,
    metadata: Vec<String>,
) -> anyhow::Result<()> {
    let mut body = json!({});
    if let Some(name) = name {
        body["name"] = name.into();
    }
    if let Some(description) = description {
        body["description"] = description.into();
    }
    if !metadata.is_empty() {
        body["metadata"] = pairs(&metadata, true)?;
    }
    if body.as_object().is_some_and(Map::is_empty) {
        return Err(fail(Class::Usage, "say what to change: --name, --description or --metadata"));
    }
    let store = resolve::store(&session.client, wanted)?;
    done(session, &session.client.store_update(&store.id, &body)?, "updated")
}

pub(crate) fn archive(session: &Session, which: &Drastic) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &which.store)?;
    confirm(&format!("Make {} read-only for good?", store.name), which.yes)?;
    done(session, &session.client.store_archive(&store.id)?, "archived")
}

pub(crate) fn delete(session: &Session, which: &Drastic) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &which.store)?;
    let question = format!("Delete {} ({}) with all its memories and their history?", store.name, store.id);
    confirm(&question, which.yes)?;
    session.client.store_delete(&store.id)?;
    done(session, &store, "deleted")
}
