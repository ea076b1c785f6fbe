//! From what a person calls a store, memory or version to the thing itself.

use stele_client::{Client, Memory, Store, Version};
use stele_core::path::MemoryPath;

use crate::cli::Address;
use crate::failure::{Class, fail};

/// The store of that id, name or slug. An exact name wins over a slug; several are refused with the candidates.
pub(crate) fn store(client: &Client, wanted: &str) -> anyhow::Result<Store> {
    if wanted.starts_with("memstore_") {
        return Ok(client.store(wanted)?);
    }
    let mut named = Vec::new();
    let mut slugged = Vec::new();
    for store in client.stores(true) {
        let store = store?;
        if store.name == wanted {
            named.push(store);
        } else if slug(&store.name) == wanted {
            slugged.push(store);
        }
    }
    let mut found = if named.is_empty() { slugged } else { named };
    match found.len() {
        0 => {
            Err(fail(Class::NotFound, format!("there is no store {wanted:?}: `stele store list` shows them")))
        }
        1 => Ok(found.remove(0)),
        several => {
            let candidates: Vec<_> = found
                .iter()
                .map(|store| {
                    let archived = if store.archived_at.is_some() { ", archived" } else { "" };
                    format!("\n  {}  {} (made {}{archived})", store.id, store.name, store.created_at)
                })
                .collect();
            let message =
                format!("{several} stores are called {wanted:?}: name one by its id{}", candidates.concat());
            Err(fail(Class::Usage, message))
        }
    }
}

/// A store's name as a directory's name. spec/anthropic.md 6.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mapped: String = name.chars().map(plain).collect();
    mapped.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
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
    fn slugs_are_those_of_mount_paths() {
        let cases = [
            ("User Preferences", "user-preferences"),
            ("(Notes)", "notes"),
            ("Ünïcode", "n-code"),
            ("a  b__c", "a-b-c"),
        ];
        for (name, expected) in cases {
            assert_eq!(slug(name), expected);
        }
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
