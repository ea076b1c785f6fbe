//! `stele memory list|read|write|move|delete` and their Unix aliases.

use std::io::{IsTerminal, Read as _};

use anyhow::Context;
use serde_json::json;
use stele_client::{Entry, Memory, Store, Update};

use super::{Session, resolve, stores};
use crate::cli::{Address, List, Move, Read, Remove, Write};
use crate::failure::{Class, fail};
use crate::output::{Report, count, print, print_json, print_table, print_text, time};
use crate::prompt::confirm;

pub(crate) fn list(session: &Session, args: List) -> anyhow::Result<()> {
    let Some(place) = args.place else { return stores::list(session, false) };
    let store = resolve::store(&session.client, &place.store)?;
    let entries = entries(session, &store, &place, args.recursive)?;
    if session.json {
        return print_json(&json!({"data": entries}));
    }
    let rows: Vec<_> = entries
        .into_iter()
        .map(|entry| match entry {
            Entry::Memory(memory) => {
                [memory.content_size_bytes.to_string(), time(&memory.updated_at), memory.path]
            }
            Entry::Directory { path, .. } => ["-".into(), "-".into(), path],
        })
        .collect();
    print_table(["SIZE", "UPDATED", "PATH"], &rows)
}

/// What is at a place: a memory, or what lies in a directory.
fn entries(session: &Session, store: &Store, place: &Address, deep: bool) -> anyhow::Result<Vec<Entry>> {
    let client = &session.client;
    let prefix = resolve::prefix(place);
    let found: Vec<Entry> = if deep {
        let memories = client.memories(&store.id, &prefix);
        memories.map(|memory| memory.map(|m| Entry::Memory(Box::new(m)))).collect::<Result<_, _>>()?
    } else {
        client.children(&store.id, &prefix).collect::<Result<_, _>>()?
    };
    match place.path.as_deref() {
        Some(path) if found.is_empty() && path != "/" => {
            let path = path.trim_end_matches('/');
            let memory = client.memory_at(&store.id, path)?;
            Ok(vec![Entry::Memory(Box::new(memory.ok_or_else(|| resolve::no_memory(store, path))?))])
        }
        _ => Ok(found),
    }
}

pub(crate) fn read(session: &Session, args: Read) -> anyhow::Result<()> {
    let mut memories = Vec::new();
    for address in &args.memories {
        let store = resolve::store(&session.client, &address.store)?;
        let found = resolve::memory(&session.client, &store, address)?;
        let memory = session.client.memory(&store.id, &found.id)?;
        if session.json {
            memories.push(memory);
        } else {
            print_text(memory.content.as_deref().unwrap_or_default())?;
        }
    }
    match memories.as_slice() {
        [] => Ok(()),
        [one] => print_json(one),
        several => print_json(&json!({"data": several})),
    }
}

/// Prints a memory for a program, or says what was done to it.
pub(crate) fn done(session: &Session, store: &Store, memory: &Memory, what: &str) -> anyhow::Result<()> {
    if session.json {
        return print_json(memory);
    }
    print(&format!("{what} {}:{} ({})", store.name, memory.path, memory.memory_version_id))
}

pub(crate) fn write(session: &Session, args: Write) -> anyhow::Result<()> {
    let text = input(&args)?;
    let client = &session.client;
    let store = resolve::store(client, &args.memory.store)?;
    let path = resolve::path(&args.memory)?;
    let there = if args.create { None } else { client.memory_at(&store.id, path)? };
    match there {
        Some(old) => {
            let update =
                Update { content: Some(&text), expected: args.expect.as_deref(), ..Update::default() };
            let memory = client.memory_update(&store.id, &old.id, &update)?;
            let same = memory.memory_version_id == old.memory_version_id;
            done(session, &store, &memory, if same { "unchanged" } else { "wrote" })
        }
        None if args.expect.is_some() => Err(resolve::no_memory(&store, path)),
        None => done(session, &store, &client.memory_create(&store.id, path, &text)?, "created"),
    }
}

fn input(args: &Write) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let name = match &args.file {
        Some(file) if file.as_os_str() != "-" => {
            let name = file.display().to_string();
            bytes = std::fs::read(file).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => fail(Class::NotFound, format!("there is no file {name}")),
                _ => anyhow::Error::new(error).context(format!("cannot read {name}")),
            })?;
            name
        }
        _ => {
            if std::io::stdin().is_terminal() {
                crate::output::complain("type the text and end it with Ctrl-D");
            }
            std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            "standard input".into()
        }
    };
    String::from_utf8(bytes)
        .map_err(|_| fail(Class::Refused, format!("{name} is not UTF-8 text, and a memory must be")))
}

pub(crate) fn rename(session: &Session, args: Move) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.from.store)?;
    let to = match args.to.parse::<Address>() {
        _ if args.to.starts_with('/') => args.to.clone(),
        Ok(Address { store: other, path: Some(path) }) => {
            if other != args.from.store && resolve::store(client, &other)?.id != store.id {
                let message = "a memory stays in its store: write it there with `stele memory write` and delete it here";
                return Err(fail(Class::Usage, message));
            }
            path
        }
        _ => return Err(fail(Class::Usage, format!("the new path must begin with /, not {:?}", args.to))),
    };
    let memory = resolve::memory(client, &store, &args.from)?;
    let name = memory.path.rsplit('/').next().unwrap_or_default();
    let to = if to.ends_with('/') { format!("{to}{name}") } else { to };
    // Without a precondition: a text that somebody writes meanwhile is no hindrance to a move.
    let moved =
        client.memory_update(&store.id, &memory.id, &Update { path: Some(&to), ..Update::default() })?;
    done(session, &store, &moved, "moved to")
}

pub(crate) fn remove(session: &Session, args: Remove) -> anyhow::Result<()> {
    let client = &session.client;
    let mut doomed: Vec<(Store, Memory)> = Vec::new();
    for address in &args.memories {
        let store = resolve::store(client, &address.store)?;
        let path = address.path.as_deref().unwrap_or("/").trim_end_matches('/');
        let one = if path.is_empty() { None } else { client.memory_at(&store.id, path)? };
        if let Some(memory) = one {
            doomed.push((store, memory));
            continue;
        }
        let below = client.memories(&store.id, &resolve::prefix(address)).collect::<Result<Vec<_>, _>>()?;
        match below.is_empty() {
            true if path.is_empty() => {}
            true => return Err(resolve::no_memory(&store, path)),
            false if !args.recursive => {
                let memories = count(below.len(), "memory", "memories");
                let message = format!("{path}/ is a directory of {memories}: say -r to delete them");
                return Err(fail(Class::Usage, message));
            }
            false => doomed.extend(below.into_iter().map(|memory| (store.clone(), memory))),
        }
    }
    if args.recursive && !args.dry_run && !doomed.is_empty() {
        let question = format!("Delete {}? Their history stays.", count(doomed.len(), "memory", "memories"));
        confirm(&question, args.yes)?;
    }
    let mut deleted = Vec::new();
    let mut report = Report::default();
    for (store, memory) in doomed {
        if !args.dry_run {
            // Exactly the text that was listed: one that changed since is somebody's newer work.
            client.memory_delete(&store.id, &memory.id, Some(&memory.content_sha256))?;
        }
        if !session.json {
            let what = if args.dry_run { "would delete" } else { "deleted" };
            report.line(&format!("{what} {}:{}", store.name, memory.path));
        }
        deleted.push(json!({"id": memory.id, "memory_store_id": store.id, "path": memory.path}));
    }
    if session.json {
        report.json(&json!({"data": deleted, "dry_run": args.dry_run}));
    }
    report.end()
}
