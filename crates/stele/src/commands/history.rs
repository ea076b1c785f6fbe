//! `stele log`, `diff`, `restore` and `redact`.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use serde_json::{Value, json};
use similar::TextDiff;
use stele_client::{Client, Store, Update, Version};

use super::{Session, memories, resolve};
use crate::cli::{Address, Diff, Log, Redact, Restore, When};
use crate::failure::{Class, fail};
use crate::ids::key_uuid;
use crate::output::{
    Report, cell, colours, complain, count, print, print_json, print_raw, print_table, time, visible,
};
use crate::prompt::confirm;

/// The memory that an address has or had, and its versions, newest first.
fn past(session: &Session, store: &Store, address: &Address) -> anyhow::Result<(String, Vec<Version>)> {
    let id = resolve::memory_id_past(&session.client, store, resolve::path(address)?)?;
    let versions = session.client.versions(&store.id, Some(&id)).collect::<Result<_, _>>()?;
    Ok((id, versions))
}

pub(crate) fn log(session: &Session, args: Log) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.place.store)?;
    let versions: Vec<Version> = match args.place.path.as_deref() {
        None | Some("/") => client.versions(&store.id, None).take(args.limit).collect::<Result<_, _>>()?,
        Some(_) => past(session, &store, &args.place)?.1.into_iter().take(args.limit).collect(),
    };
    if session.json {
        return print_json(&json!({"data": versions}));
    }
    // A version names its own path only: what a memory was called before stands in its next older entry.
    let mut older: HashMap<&str, &str> = HashMap::new();
    let mut rows = Vec::new();
    for version in versions.iter().rev() {
        let path = version.path.as_deref().unwrap_or("(redacted)");
        let before = version.path.as_deref().and_then(|path| older.insert(&version.memory_id, path));
        let moved = before.filter(|before| *before != path);
        rows.push([
            time(&version.created_at),
            if moved.is_some() { "moved".into() } else { version.operation.clone() },
            version.id.clone(),
            version.content_size_bytes.map_or("-".into(), |bytes| bytes.to_string()),
            author(version),
            moved.map_or_else(|| path.into(), |before| format!("{before} -> {path}")),
        ]);
    }
    rows.reverse();
    print_table(["TIME", "WHAT", "VERSION", "SIZE", "BY", "PATH"], &rows)
}

fn author(version: &Version) -> String {
    let id = version.created_by.as_ref().and_then(|actor| actor.iter().find(|(key, _)| *key != "type"));
    // A key's id as `stele key list` shows it.
    id.map_or("-".into(), |(_, id)| key_uuid(id).unwrap_or_else(|| id.clone()))
}

/// A text as one side of a diff: its name and what it holds.
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) text: String,
}

fn side(session: &Session, store: &Store, version: &Version) -> anyhow::Result<Side> {
    let version = session.client.version(&store.id, &version.id)?;
    if version.redacted_at.is_some() {
        return Err(fail(
            Class::Refused,
            format!("the version {} was redacted: its text is gone", version.id),
        ));
    }
    // A deletion is a version without a text.
    let text = version.content.unwrap_or_default();
    Ok(Side { name: version.id, path: version.path.unwrap_or_default(), text })
}

pub(crate) fn diff(session: &Session, args: Diff) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &args.memory.store)?;
    let (_, versions) = past(session, &store, &args.memory)?;
    let old = match (args.from.as_str(), versions.as_slice()) {
        // The first version came from nothing.
        ("@1", [only]) => {
            let path = only.path.clone().unwrap_or_default();
            Side { name: "nothing".into(), path, text: String::new() }
        }
        (from, versions) => side(session, &store, resolve::version(versions, from)?)?,
    };
    let new = side(session, &store, resolve::version(&versions, &args.to)?)?;
    if session.json {
        return print_json(&document(&old, &new));
    }
    let coloured = match args.color {
        When::Always => true,
        When::Never => false,
        When::Auto => colours(),
    };
    print_diff(&old, &new, coloured)
}

fn document(old: &Side, new: &Side) -> Value {
    let part = |side: &Side| json!({"memory_version_id": side.name, "path": side.path, "content": side.text});
    json!({"from": part(old), "to": part(new), "diff": unified(old, new)})
}

fn unified(old: &Side, new: &Side) -> String {
    let name = |side: &Side| format!("{} ({})", cell(&side.path), side.name);
    let diff = TextDiff::from_lines(&old.text, &new.text);
    diff.unified_diff().header(&name(old), &name(new)).to_string()
}

/// Prints how one text became another, as a unified diff.
pub(crate) fn print_diff(old: &Side, new: &Side, coloured: bool) -> anyhow::Result<()> {
    if old.path != new.path {
        print(&format!("renamed {} -> {}", cell(&old.path), cell(&new.path)))?;
    }
    for line in unified(old, new).lines() {
        if !coloured {
            print(line)?;
            continue;
        }
        let colour = match line.as_bytes().first() {
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => "0",
        };
        // The colour is ours; what it surrounds is made visible first.
        print_raw(&format!("\x1b[{colour}m{}\x1b[0m", visible(line)))?;
    }
    Ok(())
}

pub(crate) fn restore(session: &Session, args: Restore) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.memory.store)?;
    let (id, versions) = past(session, &store, &args.memory)?;
    let wanted = resolve::version(&versions, &args.version)?;
    let old = client.version(&store.id, &wanted.id)?;
    let Some(text) = old.content.as_deref() else {
        let why = if old.redacted_at.is_some() { "it was redacted" } else { "it records a deletion" };
        return Err(fail(Class::Refused, format!("the version {} holds no text to restore: {why}", old.id)));
    };
    let path = resolve::path(&args.memory)?;
    let live = versions.first().is_some_and(|newest| newest.operation != "deleted");
    let present = if live { Some(client.memory(&store.id, &id)?) } else { None };
    if args.dry_run {
        let now = present.as_ref().and_then(|memory| memory.content.clone()).unwrap_or_default();
        let name = match &present {
            Some(memory) if session.json => memory.memory_version_id.clone(),
            _ => "present".into(),
        };
        let old_side = Side { name, path: path.into(), text: now };
        let new_side = Side { name: old.id.clone(), path: path.into(), text: text.into() };
        if session.json {
            let mut document = document(&old_side, &new_side);
            document["dry_run"] = true.into();
            return print_json(&document);
        }
        return print_diff(&old_side, &new_side, colours());
    }
    match present {
        Some(memory) if memory.content.as_deref() == Some(text) => {
            memories::done(session, &store, &memory, "unchanged, it has that text already:")
        }
        Some(memory) => {
            let expected = Some(memory.content_sha256.as_str());
            let update = Update { content: Some(text), expected, ..Update::default() };
            memories::done(session, &store, &client.memory_update(&store.id, &id, &update)?, "restored")
        }
        None => memories::done(session, &store, &client.memory_create(&store.id, path, text)?, "recreated"),
    }
}

pub(crate) fn redact(session: &Session, args: Redact) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.place.store)?;
    let versions = doomed(session, &store, &args)?;
    for version in versions.iter().filter(|_| !session.json || !(args.yes || args.dry_run)) {
        let path = version.path.as_deref().unwrap_or("-");
        let what = format!("{}  {}  {path}", version.id, time(&version.created_at));
        complain(&format!("{} {}", if args.dry_run { "would redact" } else { "redacts" }, cell(&what)));
    }
    if args.dry_run {
        let document = json!({"data": versions, "dry_run": true});
        return if session.json { print_json(&document) } else { Ok(()) };
    }
    let all = versions.len();
    let versions_in_words = count(all, "version", "versions");
    let question =
        format!("Remove the content of {versions_in_words} for good? Who wrote it and when stays.");
    confirm(&question, args.yes)?;
    let mut redacted = Vec::new();
    let mut report = Report::default();
    for version in versions {
        let after = client.version_redact(&store.id, &version.id).with_context(|| {
            format!("{} was not redacted; {} of {all} were before", version.id, redacted.len())
        })?;
        if !session.json {
            report.line(&format!("redacted {}", after.id));
        }
        redacted.push(after);
    }
    if session.json {
        report.json(&json!({"data": redacted, "dry_run": false}));
    }
    for backup in crate::backup::holding(client)?.into_iter().flatten() {
        complain(&format!("may still be held by the backup {backup}; stele backup scrub rewrites it"));
    }
    report.end()
}

/// The versions to redact, each once and each found fit for it, so that nothing is redacted where one is not.
fn doomed(session: &Session, store: &Store, args: &Redact) -> anyhow::Result<Vec<Version>> {
    let client = &session.client;
    let of_memory = args.place.path.as_ref().map(|_| past(session, store, &args.place)).transpose()?;
    let mut versions: Vec<Version> = Vec::new();
    for wanted in &args.versions {
        let version = match &of_memory {
            Some((_, history)) => resolve::version(history, wanted)?.clone(),
            None => client.version(&store.id, wanted).with_context(|| format!("cannot redact {wanted}"))?,
        };
        if !versions.iter().any(|other| other.id == version.id) {
            versions.push(Version { content: None, ..version });
        }
    }
    let heads = heads(client, store, &versions)?;
    match versions.iter().find(|version| heads.contains(&version.id)) {
        Some(head) => Err(fail(
            Class::Refused,
            format!(
                "{} is the present text of {}: write a clean one first, then redact this one",
                head.id,
                head.path.as_deref().unwrap_or("its memory")
            ),
        )),
        None => Ok(versions),
    }
}

/// The present versions of the memories that `versions` are of, as far as they are live.
fn heads(client: &Client, store: &Store, versions: &[Version]) -> anyhow::Result<HashSet<String>> {
    let memories: HashSet<&str> = versions.iter().map(|version| version.memory_id.as_str()).collect();
    let mut heads = HashSet::new();
    for memory in memories {
        match client.memory(&store.id, memory) {
            Ok(live) => drop(heads.insert(live.memory_version_id)),
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(heads)
}
