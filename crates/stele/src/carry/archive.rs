//! `stele export STORE FILE` and `stele import FILE`: stores as archive files. docs/EXPORT.md.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use stele_archive::{Bounds, Item, Reader};
use stele_client::{ClientError, Store};
use stele_core::limits::Limits;

use super::shown;
use crate::cli::{Conflict, ExportArgs, Format, ImportArgs};
use crate::commands::{Session, resolve};
use crate::failure::{Class, fail};
use crate::output::{Report, complain, count, is_terminal};

/// What a file is called while it is written.
const PARTIAL: &str = "partial";

pub(super) fn export(session: &Session, args: &ExportArgs) -> anyhow::Result<()> {
    let other = args.delete_missing || args.partial || args.dry_run || args.on_conflict != Conflict::Refuse;
    if other {
        let message = "--on-conflict, --delete-missing, --partial and --dry-run are for a directory, not for an archive";
        return Err(fail(Class::Usage, message));
    }
    let mut report = Report::default();
    if args.all {
        let dir = args.output.clone().unwrap_or_else(|| PathBuf::from("."));
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", shown(&dir)))?;
        for store in session.client.stores(true).collect::<Result<Vec<_>, _>>()? {
            let file = dir.join(name_of(session, &store)?);
            write_one(session, &store, &file, args.format, &mut report)?;
        }
        return report.end();
    }
    let place = args.place.as_ref().ok_or_else(|| fail(Class::Usage, "name a store, or --all"))?;
    if place.path.as_deref().is_some_and(|path| path != "/") {
        return Err(fail(Class::Usage, "an archive is of a whole store: name it without a directory"));
    }
    let store = resolve::store(&session.client, &place.store)?;
    let file = match args.output.as_ref().or(args.target.as_ref()) {
        Some(file) => file.clone(),
        None => PathBuf::from(name_of(session, &store)?),
    };
    write_one(session, &store, &file, args.format, &mut report)?;
    report.end()
}

fn name_of(session: &Session, store: &Store) -> anyhow::Result<String> {
    let slugs = session.client.slugs()?;
    let own = slugs
        .iter()
        .find(|slug| crate::ids::store_token(&slug.memory_store_id).is_some_and(|id| id == store.id));
    Ok(format!("{}.tar.zst", own.map_or(store.id.as_str(), |slug| slug.slug.as_str())))
}

/// Writes a store under another name, reads it to its end, and only then gives it its name.
fn write_one(
    session: &Session,
    store: &Store,
    file: &Path,
    format: Option<Format>,
    report: &mut Report,
) -> anyhow::Result<()> {
    if file.exists() {
        let message = format!("{} is there already: remove it, or name another file", shown(file));
        return Err(fail(Class::Conflict, message));
    }
    let draft = Draft::beside(file);
    let format = format.unwrap_or(Format::Archive);
    let word = match format {
        Format::Archive => "archive",
        Format::Markdown => "markdown",
    };
    let out = File::create(&draft.0).with_context(|| format!("cannot write {}", shown(&draft.0)))?;
    let bar = bytes(None);
    let mut out = bar.wrap_write(BufWriter::new(out));
    let exported = session.client.export(&store.id, word, &mut out);
    bar.finish_and_clear();
    exported?;
    out.flush()?;
    drop(out);
    let memories = verify(&draft.0, format)
        .with_context(|| format!("what came of {} is not whole; try again", store.name))?;
    File::open(&draft.0)?.sync_all()?;
    fs::rename(&draft.0, file).with_context(|| format!("cannot write {}", shown(file)))?;
    if session.json {
        let size = fs::metadata(file)?.len();
        report.json(
            &json!({"store": store.id, "file": file, "format": word, "memories": memories, "bytes": size}),
        );
    } else {
        let memories = count(memories, "memory", "memories");
        report.line(&format!("{}: {memories} of {}", shown(file), store.name));
    }
    Ok(())
}

/// A file that is gone when it did not get its name.
struct Draft(PathBuf);

impl Draft {
    fn beside(file: &Path) -> Self {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{PARTIAL}"));
        Self(file.with_file_name(name))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has its name, or was not made.
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads an archive to its end; how many memories are in it.
fn verify(file: &Path, format: Format) -> anyhow::Result<usize> {
    // Whatever the server's own caps are.
    let limits =
        Limits { content_bytes: u32::MAX as usize, summary_chars: u32::MAX as usize, ..Limits::default() };
    let mut reader = Reader::new(File::open(file)?, &Bounds { limits, unpacked_bytes: u64::MAX })?;
    let (mut memories, mut ended) = (0, format == Format::Markdown);
    while let Some(item) = reader.next()? {
        match item {
            Item::Memory(_) => memories += 1,
            Item::End(_) => ended = true,
            Item::Bad(problem) => anyhow::bail!("{}: {}", problem.path, problem.what),
            Item::Manifest(_) | Item::Past(_) => {}
        }
    }
    if ended { Ok(memories) } else { anyhow::bail!("it has no end") }
}

pub(super) fn import(session: &Session, args: &ImportArgs) -> anyhow::Result<()> {
    if args.git || args.delete_missing || args.partial || args.dir.is_some() {
        let message = "--git, --delete-missing, --partial and a second directory do not go with an archive";
        return Err(fail(Class::Usage, message));
    }
    let file = File::open(&args.source).with_context(|| format!("cannot read {}", shown(&args.source)))?;
    let bar = bytes(Some(file.metadata()?.len()));
    let mut reading = bar.wrap_read(BufReader::new(file));
    let mut report = Report::default();
    if args.restore {
        let answer = named(session.client.store_restore(&mut reading), &bar)?;
        if session.json {
            report.json(&answer);
        } else {
            let of = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let number = |field: &str| answer.get(field).and_then(Value::as_u64).unwrap_or_default();
            report.line(&format!(
                "put back {} ({}): {} memories, {} versions, sequence {}",
                of("name"),
                of("slug"),
                number("memories"),
                number("versions"),
                number("sequence")
            ));
        }
        return report.end();
    }
    let place = args.store.as_ref().ok_or_else(|| fail(Class::Usage, "--store names the store"))?;
    if place.path.as_deref().is_some_and(|path| path != "/") {
        return Err(fail(Class::Usage, "the files of an archive keep their paths: name the store alone"));
    }
    let store = resolve::store(&session.client, &place.store)?;
    let answer = named(take(session, &store, args, &mut reading), &bar)?;
    if session.json {
        report.json(&answer);
    } else {
        told(&answer, &mut report);
    }
    report.end()
}

fn take(
    session: &Session,
    store: &Store,
    args: &ImportArgs,
    reading: &mut dyn Read,
) -> Result<Value, ClientError> {
    let on_conflict = match args.on_conflict {
        Conflict::Refuse => "refuse",
        Conflict::Skip => "skip",
        Conflict::Overwrite => "overwrite",
    };
    session.client.import(&store.id, (args.dry_run, on_conflict), reading)
}

/// Problems that the message itself names.
const NAMED: usize = 3;

/// The answer; of a refusal for more problems than its message names, every one on a line of its own.
fn named(answer: Result<Value, ClientError>, bar: &ProgressBar) -> anyhow::Result<Value> {
    bar.finish_and_clear();
    if let Err(ClientError::Unfit { problems, .. }) = &answer
        && problems.len() > NAMED
    {
        for (path, what) in problems {
            complain(&format!("{path}: {what}"));
        }
    }
    Ok(answer?)
}

fn told(answer: &Value, report: &mut Report) {
    let dry_run = answer.get("dry_run").and_then(Value::as_bool).unwrap_or_default();
    let number = |field: &str| answer.get(field).and_then(Value::as_u64).unwrap_or_default();
    if dry_run {
        for file in answer.get("data").and_then(Value::as_array).into_iter().flatten() {
            let of = |field: &str| file.get(field).and_then(Value::as_str).unwrap_or_default();
            if of("action") != "unchanged" {
                report.line(&format!("would {} {}", of("action"), of("path")));
            }
        }
    }
    report.line(&format!(
        "{}{} created, {} overwritten, {} skipped, {} unchanged",
        if dry_run { "dry run: " } else { "" },
        number("created"),
        number("overwritten"),
        number("skipped"),
        number("unchanged")
    ));
}

/// A bar of bytes; of an unknown number of them it only counts.
fn bytes(length: Option<u64>) -> ProgressBar {
    let target = if is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = match length {
        Some(_) => "{bar:30} {bytes}/{total_bytes} {eta}",
        None => "{spinner} {bytes} {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is sound");
    ProgressBar::with_draw_target(length, target).with_style(style)
}
