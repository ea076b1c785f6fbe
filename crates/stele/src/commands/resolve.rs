//! From what a person calls a store, memory or version to the thing itself.

use stele_client::{Client, Memory, Slug, Store, Version};
use stele_core::path::MemoryPath;

use crate::cli::Address;
use crate::failure::{Class, fail};
use crate::ids::store_token;

/// The store of that id, name or slug. An exact name wins over a slug and a name that differs in case; several are
/// refused with the candidates.
pub(crate) fn store(client: &Client, wanted: &str) -> anyhow::Result<Store> {
    if wanted.starts_with("memstore_") {
        return Ok(client.store(wanted)?);
    }
    if let Some(id) = store_token(wanted) {
        return Ok(client.store(&id)?);
    }
    let stores = client.stores(true).collect::<Result<Vec<_>, _>>()?;
    let named: Vec<&Store> = stores.iter().filter(|store| store.name == wanted).collect();
    let found = if named.is_empty() { called(&stores, wanted, &client.slugs()?) } else { named };
    match found.as_slice() {
        [] => {
            Err(fail(Class::NotFound, format!("there is no store {wanted:?}: `stele store list` shows them")))
        }
        [one] => Ok((*one).clone()),
        several => {
            let candidates: Vec<_> = several
                .iter()
                .map(|store| {
                    let archived = if store.archived_at.is_some() { ", archived" } else { "" };
                    format!("\n  {}  {} (made {}{archived})", store.id, store.name, store.created_at)
                })
                .collect();
            let (several, candidates) = (several.len(), candidates.concat());
            let message = format!("{several} stores are called {wanted:?}: name one by its id{candidates}");
            Err(fail(Class::Usage, message))
        }
    }
}

/// The stores with that slug, or that name but for its case.
fn called<'s>(stores: &'s [Store], wanted: &str, slugs: &[Slug]) -> Vec<&'s Store> {
    let id =
        slugs.iter().find(|slug| slug.slug == wanted).and_then(|slug| store_token(&slug.memory_store_id));
    let lower = wanted.to_lowercase();
    let matches = |store: &&Store| Some(&store.id) == id.as_ref() || store.name.to_lowercase() == lower;
    stores.iter().filter(matches).collect()
}

/// The path in an address that must have one, of a memory.
pub(crate) fn path(address: &Address) -> anyhow::Result<&str> {
    match address.path.as_deref() {
        Some(path) if !path.ends_with('/') => match MemoryPath::parse(path) {
            Ok(_) => Ok(path),
            Err(error) => Err(fail(Class::Refused, format!("the path {path} {error}"))),
        },
        _ => {
            let store = &address.store;
            Err(fail(Class::Usage, format!("name a memory by its path, as in {store}:/notes/todo.md")))
        }
    }
}

/// The prefix in an address of a directory.
pub(crate) fn prefix(address: &Address) -> String {
    let path = address.path.as_deref().unwrap_or("/");
    if path.ends_with('/') { path.into() } else { format!("{path}/") }
}

/// What is said of a path where there is no memory.
pub(crate) fn no_memory(store: &Store, path: &str) -> anyhow::Error {
    fail(
        Class::NotFound,
        format!("there is no memory at {path} in {}: `stele tree` shows what there is", store.name),
    )
}

/// The live memory at an address, without its content.
pub(crate) fn memory(client: &Client, store: &Store, address: &Address) -> anyhow::Result<Memory> {
    let path = path(address)?;
    client.memory_at(&store.id, path)?.ok_or_else(|| no_memory(store, path))
}

/// The id of the memory at `path`: the live one, else the one that was there last.
pub(crate) fn memory_id_past(client: &Client, store: &Store, path: &str) -> anyhow::Result<String> {
    if let Some(memory) = client.memory_at(&store.id, path)? {
        return Ok(memory.id);
    }
    for version in client.versions(&store.id, None) {
        let version = version?;
        if version.path.as_deref() == Some(path) {
            return Ok(version.memory_id);
        }
    }
    let message = format!("there is no memory at {path} in {}, and none is in its history", store.name);
    Err(fail(Class::NotFound, message))
}

/// The version that `wanted` names among a memory's versions (newest first): an id, or `@N`.
pub(crate) fn version<'v>(versions: &'v [Version], wanted: &str) -> anyhow::Result<&'v Version> {
    if let Some(back) = wanted.strip_prefix('@') {
        let back: usize = back.parse().map_err(|_| {
            fail(Class::Usage, format!("{wanted:?} is no version: say @1 for the one before the newest"))
        })?;
        return versions.get(back).ok_or_else(|| {
            let message = format!("the history holds {} versions, so there is no {wanted}", versions.len());
            fail(Class::NotFound, message)
        });
    }
    versions.iter().find(|version| version.id == wanted).ok_or_else(|| {
        fail(Class::NotFound, format!("this memory has no version {wanted}: `stele log` shows its history"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_the_one_that_the_server_gave_whatever_the_name_is_now() {
        let store = |n: u8, name: &str| {
            let uuid = stele_core::id::StoreId::from_bytes([n; 16]).to_string();
            let store = Store {
                id: store_token(&uuid).expect("an id"),
                r#type: "memory_store".into(),
                name: name.into(),
                description: String::new(),
                metadata: std::collections::BTreeMap::new(),
                created_at: String::new(),
                updated_at: String::new(),
                archived_at: None,
            };
            (store, uuid)
        };
        let ((renamed, first), (other, second)) = (store(1, "New Name"), store(2, "Old Name"));
        let slugs = [
            Slug { memory_store_id: first, slug: "old-name".into(), origin: "curated".into() },
            Slug { memory_store_id: second, slug: "old-name-2".into(), origin: "curated".into() },
        ];
        let stores = [renamed, other];
        let names =
            |wanted| called(&stores, wanted, &slugs).iter().map(|s| s.name.clone()).collect::<Vec<_>>();
        assert_eq!(names("old-name"), ["New Name"]);
        assert_eq!(names("old-name-2"), ["Old Name"]);
        assert_eq!(names("OLD NAME"), ["Old Name"]);
        assert!(names("new-name").is_empty());
    }

    #[test]
    fn addresses_name_a_store_and_perhaps_a_path() {
        let read = |text: &str| text.parse::<Address>().map(|a| (a.store, a.path));
        assert_eq!(read("notes"), Ok(("notes".into(), None)));
        assert_eq!(read("notes:"), Ok(("notes".into(), None)));
        assert_eq!(read("notes:/a/b.md"), Ok(("notes".into(), Some("/a/b.md".into()))));
        assert_eq!(read("notes:/"), Ok(("notes".into(), Some("/".into()))));
        assert_eq!(read("a: b"), Ok(("a: b".into(), None)));
        for bad in ["", ":/a", "/a/b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
