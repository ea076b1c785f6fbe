//! `stele session import`: a transcript becomes a session, once.
//!
//! A session says in its metadata which transcript it is of, and its events have ids that depend on the transcript
//! alone. Who imports again reads what is there and sends the rest, in batches that are taken whole or not at all. So
//! an import that was broken off, or a transcript that has grown, is gone on with by the same command.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use stele_client::{AgentSession, SessionFilter};
use stele_core::hash::Sha256;

use super::{BATCH, Origin, Session, create, glance, open};
use crate::cli::{Import, Made};
use crate::failure::{Class, fail};
use crate::output::{complain, count, print, print_json};
use crate::transcript::{self, About, Format, Tally};

/// The metadata that says which transcript a session is of.
pub(super) const TRANSCRIPT: &str = "stele.transcript";
/// How long before the first line its session may have been made, as far as clocks differ.
const BEFORE: jiff::SignedDuration = jiff::SignedDuration::from_hours(48);

pub(crate) fn import(session: &Session, args: &Import) -> anyhow::Result<()> {
    let name = args.file.display().to_string();
    let mut file = open(&args.file)?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(fail(
            Class::Usage,
            format!("{name} is no file that can be read twice: write it to one first"),
        ));
    }
    // Two imports of one file take turns. Where a file system has no locks they do not: then both may send.
    let _ = file.lock();
    let (about, tally) = transcript::read(args.format, BufReader::new(&file), |_| Ok(()))?;
    if tally.events == 0 {
        return Err(transcript::nothing_in(args.format, &name, &tally));
    }
    if let Some(version) = about.strange_version.as_deref().filter(|_| !args.any_version) {
        let message = format!(
            "{name} was written by version {version:?} of {}, whose transcripts this stele does not know; nothing was \
             sent. --any-version imports what it recognises",
            args.format.name()
        );
        return Err(fail(Class::Refused, message));
    }
    let key = key(args, &about, &mut file)?;
    let since = about.began_at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let earlier = sessions_of(session, &key, since)?;
    let mut known = HashSet::new();
    for session_before in &earlier {
        for event in session.client.events(&session_before.id) {
            known.extend(event?.get("id").and_then(Value::as_str).map(str::to_owned));
        }
    }
    let ended = earlier.first().map(|one| one.id.clone()).unwrap_or_default();
    let open_one = earlier.into_iter().find(is_open);
    let mut work = Work {
        ended,
        session,
        made: &args.made,
        args,
        about: &about,
        key,
        target: open_one,
        batch: Batch::default(),
        sent: 0,
    };
    file.rewind().context("the transcript cannot be read again")?;
    let mut there = 0;
    let (_, tally) = transcript::read(args.format, BufReader::new(&file), |event| {
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        if known.insert(id) {
            work.take(event)
        } else {
            there += 1;
            Ok(())
        }
    })?;
    let finished = work.end()?;
    work.report(&tally, there, finished)
}

/// Sessions of a transcript, newest first.
pub(super) fn sessions_of(
    session: &Session,
    key: &str,
    since: Option<jiff::Timestamp>,
) -> anyhow::Result<Vec<AgentSession>> {
    let since = since.and_then(|since| since.checked_sub(BEFORE).ok()).map(|since| since.to_string());
    let filter = SessionFilter { since: since.as_deref(), archived_too: true, ..SessionFilter::default() };
    let mut found = Vec::new();
    for one in session.client.sessions(&filter) {
        let one = one?;
        if one.metadata.get(TRANSCRIPT).is_some_and(|of| of == key) {
            found.push(one);
        }
    }
    Ok(found)
}

/// Whether events can be sent to a session.
pub(super) fn is_open(session: &AgentSession) -> bool {
    session.archived_at.is_none() && session.status != "terminated"
}

/// What a transcript of this program with this id is recognised by.
pub(super) fn named(format: Format, id: &str) -> String {
    let key = format!("{}:{id}", format.name());
    // As long as metadata may be.
    if key.chars().count() <= 400 { key } else { format!("{}:{}", format.name(), Sha256::of(id.as_bytes())) }
}

fn key(args: &Import, about: &About, file: &mut File) -> anyhow::Result<String> {
    if let Some(id) = args.id.as_ref().or(about.id.as_ref()) {
        return Ok(named(args.format, id));
    }
    let path = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    file.rewind().context("the transcript cannot be read again")?;
    let mut first = Vec::new();
    let mut start = std::io::Read::take(BufReader::new(&*file), 64 * 1024);
    std::io::BufRead::read_until(&mut start, b'\n', &mut first)
        .context("the transcript cannot be read again")?;
    Ok(named(args.format, &of_place(&path, &first)))
}

/// What stands for the id of a transcript that says none: where it lies, and its first line.
fn of_place(path: &Path, first: &[u8]) -> String {
    let place = [path.as_os_str().as_encoded_bytes(), b"\0", first.trim_ascii()].concat();
    Sha256::of(&place).to_string()
}

/// Events on their way.
#[derive(Default)]
struct Batch {
    events: Vec<Value>,
    bytes: usize,
}

/// An import under way.
struct Work<'a> {
    session: &'a Session,
    made: &'a Made,
    args: &'a Import,
    about: &'a About,
    key: String,
    /// The session that events go to, once there is one.
    target: Option<AgentSession>,
    /// The newest session of the transcript; empty where there is none.
    ended: String,
    batch: Batch,
    sent: usize,
}

impl Work<'_> {
    fn take(&mut self, event: Value) -> anyhow::Result<()> {
        self.batch.bytes += event.to_string().len();
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH.0 || self.batch.bytes >= BATCH.1 {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let count_of = batch.events.len();
        if self.args.dry_run {
            self.sent += count_of;
            return Ok(());
        }
        if self.target.is_none() {
            self.target = Some(self.create()?);
        }
        let Some(target) = &self.target else { return Ok(()) };
        let mut events = batch.events;
        if self.sent == 0 {
            events.insert(0, json!({"type": "session.status_running"}));
        }
        self.session.client.events_send(&target.id, &events).map_err(|error| {
            let sent = count(self.sent, "new event", "new events");
            let message = format!(
                "the import stopped when {sent} had been sent to {}: the same command goes on with it",
                target.id
            );
            anyhow::Error::new(error).context(message)
        })?;
        self.sent += count_of;
        Ok(())
    }

    fn create(&self) -> anyhow::Result<AgentSession> {
        let about = self.about;
        let mut metadata = vec![(TRANSCRIPT, self.key.clone())];
        if !self.ended.is_empty() {
            // That one has ended, and nothing can be added to it.
            metadata.push(("stele.continues", self.ended.clone()));
        }
        for (key, value) in [
            ("stele.directory", &about.directory),
            ("stele.branch", &about.branch),
            ("stele.version", &about.version),
        ] {
            metadata.extend(value.clone().map(|value| (key, value)));
        }
        let origin = Origin {
            agent: self.args.format.name(),
            model: about.model.as_deref(),
            title: self.title(),
            metadata,
        };
        create(self.session, self.made, origin)
    }

    fn title(&self) -> Option<String> {
        let about = self.about;
        let name = || self.args.file.file_name().map(|name| name.to_string_lossy().into_owned());
        let title = about.title.clone().or_else(|| about.opening.clone()).or_else(name);
        title.map(|title| glance(&title)).filter(|title| !title.is_empty())
    }

    /// Sends the rest and how it ended; says whether the session is finished.
    fn end(&mut self) -> anyhow::Result<bool> {
        if !self.batch.events.is_empty() {
            self.send()?;
        }
        let Some(target) = self.target.as_ref().filter(|_| !self.args.dry_run) else { return Ok(false) };
        // A hook made the session before anything was said in it.
        if let Some(title) = self.title().filter(|_| self.sent > 0 && target.title.is_none()) {
            self.session.client.session_entitle(&target.id, &title)?;
        }
        let mut last = Vec::new();
        // One that is still running was broken off behind its last event.
        if self.sent > 0 || target.status == "running" {
            last.push(json!({"type": "session.status_idle", "stop_reason": {"type": "end_turn"}}));
        }
        if self.args.finish {
            last.push(json!({"type": "session.status_terminated"}));
        }
        if !last.is_empty() {
            self.session.client.events_send(&target.id, &last)?;
        }
        Ok(self.args.finish)
    }

    fn report(&self, tally: &Tally, there: usize, finished: bool) -> anyhow::Result<()> {
        let id = self.target.as_ref().map(|target| target.id.as_str());
        if self.session.json {
            return print_json(&json!({
                "session_id": id, "transcript": self.key, "new_events": self.sent, "known_events": there,
                "left_out": tally.json(), "finished": finished, "dry_run": self.args.dry_run,
            }));
        }
        if let Some(missing) = tally.missing() {
            complain(&format!("left out: {missing}"));
        }
        let (new, into) = (count(self.sent, "event", "events"), id.unwrap_or("a new session"));
        let before = if there > 0 { format!(" ({there} were there)") } else { String::new() };
        let end = if finished { "; it is finished" } else { "" };
        match (self.args.dry_run, self.sent) {
            (true, _) => print(&format!("dry run: would import {new} into {into}{before}")),
            (false, 0) => {
                let known = count(there, "event", "events");
                print(&format!("nothing new in {}: {known} known{end}", id.unwrap_or(&self.ended)))
            }
            (false, _) => print(&format!("imported {new} into {into}{before}{end}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_recognised_by_its_id_or_by_where_it_lies() {
        assert_eq!(named(Format::ClaudeCode, "abc"), "claude-code:abc");
        let long = named(Format::Codex, &"x".repeat(10_000));
        assert!(long.starts_with("codex:") && long.len() < 100, "{long}");
        let of = |path: &str, first: &[u8]| of_place(Path::new(path), first);
        assert_eq!(of("/a", b"x\r\n"), of("/a", b"x"));
        assert_ne!(of("/a", b"x"), of("/b", b"x"));
        assert_ne!(of("/a", b"x"), of("/a", b"y"));
    }
}
