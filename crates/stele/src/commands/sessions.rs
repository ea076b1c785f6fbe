//! `stele session`: sessions of agents that run elsewhere. spec/anthropic.md 17.2.

mod hook;
mod import;
mod note;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use stele_client::{AgentSession, SessionFilter};

use super::{Session, agents, resolve, stores};
use crate::cli::{Made, RecordedSession};
use crate::failure::{Class, fail};
use crate::output::{cell, count, print, print_json, print_table, print_text, time};
use crate::transcript::{self, Format};

/// Most events that are sent at once, and about how many bytes of them.
const BATCH: (usize, usize) = (200, 4 * 1024 * 1024);
/// Characters of a text in a list.
const GLANCE: usize = 100;

pub(crate) fn run(session: &Session, action: RecordedSession) -> anyhow::Result<()> {
    match action {
        RecordedSession::Start { made, note } => start(session, &made, note),
        RecordedSession::Note { session: id } => {
            let found = session.client.session(&id)?;
            let text = note::text(&session.client, &found)?;
            if session.json {
                print_json(&json!({"session_id": found.id, "text": text}))
            } else {
                print_text(&text)
            }
        }
        RecordedSession::Send { session: id, file, user, assistant } => {
            let events = match (user, assistant) {
                (None, None) => events_of(file)?,
                (user, assistant) => {
                    let message = |(kind, text): (&str, Option<String>)| {
                        text.map(|text| json!({"type": kind, "content": [{"type": "text", "text": text}]}))
                    };
                    [("user.message", user), ("agent.message", assistant)]
                        .into_iter()
                        .filter_map(message)
                        .collect()
                }
            };
            send(session, &id, &events)
        }
        RecordedSession::Finish { session: id, failed } => finish(session, &id, failed.as_deref()),
        RecordedSession::List { agent, status, archived, limit } => {
            list(session, agent.as_deref(), status.as_deref(), archived, limit)
        }
        RecordedSession::Show { session: id, events } => show(session, &id, events),
        RecordedSession::Import(args) => import::import(session, &args),
        RecordedSession::Hook { program: crate::cli::Program::ClaudeCode, moment, made, finish } => {
            hook::hook(session, moment, made, finish)
        }
    }
}

/// What a session of a transcript is known by, beside what its maker says.
#[derive(Default)]
struct Origin<'a> {
    agent: &'a str,
    model: Option<&'a str>,
    title: Option<String>,
    metadata: Vec<(&'static str, String)>,
}

fn create(session: &Session, made: &Made, origin: Origin<'_>) -> anyhow::Result<AgentSession> {
    let client = &session.client;
    let mut resources = Vec::with_capacity(made.store.len());
    for attach in &made.store {
        let store = resolve::store(client, &attach.store)?;
        let access = if attach.read_only { "read_only" } else { "read_write" };
        resources.push(json!({"type": "memory_store", "memory_store_id": store.id, "access": access}));
    }
    let mut metadata = stores::pairs(&made.metadata, false)?;
    for (key, value) in origin.metadata {
        metadata[key] = value.chars().take(500).collect::<String>().into();
    }
    let agent = made.agent.as_deref().unwrap_or(origin.agent);
    let body = json!({
        "agent": agents::agent_for(client, agent, origin.model)?,
        "environment_id": agents::environment_for(client, &made.environment)?,
        "resources": resources,
        "title": made.title.clone().or(origin.title),
        "metadata": metadata,
    });
    Ok(client.session_create(&body)?)
}

fn start(session: &Session, made: &Made, with_note: bool) -> anyhow::Result<()> {
    if made.agent.is_none() {
        return Err(fail(Class::Usage, "say whose session it is: --agent NAME"));
    }
    let started = create(session, made, Origin::default())?;
    let note = if with_note { Some(note::text(&session.client, &started)?) } else { None };
    if session.json {
        let mut shown = serde_json::to_value(&started)?;
        if let Some(note) = note {
            shown["memory_note"] = note.into();
        }
        return print_json(&shown);
    }
    print(&started.id)?;
    note.map_or(Ok(()), |note| print_text(&format!("\n{note}")))
}

/// Opens a transcript or a file of events.
fn open(file: &Path) -> anyhow::Result<File> {
    let name = file.display();
    let opened = File::open(file).and_then(|opened| opened.metadata().map(|about| (opened, about)));
    match opened {
        Ok((_, about)) if about.is_dir() => {
            Err(fail(Class::Usage, format!("{name} is a directory: name one of the files in it")))
        }
        Ok((opened, _)) => Ok(opened),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(fail(Class::NotFound, format!("there is no file {name}")))
        }
        Err(error) => Err(anyhow::Error::new(error).context(format!("cannot read {name}"))),
    }
}

/// The events in a file or on standard input, all of them: where one cannot be read, none is sent.
fn events_of(file: Option<PathBuf>) -> anyhow::Result<Vec<Value>> {
    let input: Box<dyn BufRead> = match file.filter(|file| file.as_os_str() != "-") {
        Some(file) => Box::new(BufReader::new(open(&file)?)),
        None => Box::new(std::io::stdin().lock()),
    };
    let mut events = Vec::new();
    let (_, tally) = transcript::read(Format::Jsonl, input, |mut event| {
        // What has no id of its own gets one of the server's: lines are not numbered through over several calls.
        let own = event["id"].as_str().is_some_and(|id| !id.starts_with("line-"));
        if let Some(fields) = event.as_object_mut().filter(|_| !own) {
            fields.remove("id");
        }
        events.push(event);
        Ok(())
    })?;
    if let Some(missing) = tally.missing().filter(|_| tally.cut < tally.events || tally.events == 0) {
        if tally.left_out.is_empty() && tally.damaged == 0 && !tally.cut_off {
            crate::output::complain(&format!("{missing} left out: too large"));
        } else {
            return Err(fail(Class::Refused, format!("nothing was sent: {missing} cannot be sent")));
        }
    }
    if events.is_empty() { Err(fail(Class::Usage, "there is no event to send")) } else { Ok(events) }
}

fn send(session: &Session, id: &str, events: &[Value]) -> anyhow::Result<()> {
    let mut sent = Vec::new();
    for batch in events.chunks(BATCH.0) {
        let answered = session.client.events_send(id, batch).map_err(|error| {
            let before = count(sent.len(), "event", "events");
            anyhow::Error::new(error).context(format!("{before} of {} sent", events.len()))
        })?;
        sent.extend(answered);
    }
    if session.json {
        return print_json(&json!({"data": sent}));
    }
    print(&format!("sent {}", count(sent.len(), "event", "events")))
}

fn finish(session: &Session, id: &str, failed: Option<&str>) -> anyhow::Result<()> {
    let found = session.client.session(id)?;
    let ended = found.status == "terminated";
    if !ended {
        let mut events = Vec::new();
        if let Some(why) = failed {
            let retry = json!({"type": "terminal"});
            let error = json!({"type": "unknown_error", "message": why, "retry_status": retry});
            events.push(json!({"type": "session.error", "error": error}));
        }
        events.push(json!({"type": "session.status_terminated"}));
        session.client.events_send(id, &events)?;
    }
    if session.json {
        return print_json(&session.client.session(id)?);
    }
    print(&format!("{} {}", if ended { "already finished" } else { "finished" }, found.id))
}

fn agent_name(session: &AgentSession) -> String {
    session.agent.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list(
    session: &Session,
    agent: Option<&str>,
    status: Option<&str>,
    archived_too: bool,
    limit: usize,
) -> anyhow::Result<()> {
    let client = &session.client;
    let agent = agent.map(|agent| agents::named_agent(client, agent)).transpose()?;
    let agent = agent.as_ref().map(|agent| agent.id.as_str());
    let filter = SessionFilter { agent, status, archived_too, ..SessionFilter::default() };
    let found = client.sessions(&filter).take(limit).collect::<Result<Vec<_>, _>>()?;
    if session.json {
        return print_json(&json!({"data": found}));
    }
    let rows: Vec<_> = found
        .into_iter()
        .map(|one| {
            let (agent, title) = (agent_name(&one), glance(one.title.as_deref().unwrap_or_default()));
            [one.id, agent, one.status, time(&one.created_at), title]
        })
        .collect();
    print_table(["ID", "AGENT", "STATUS", "CREATED", "TITLE"], &rows)
}

fn show(session: &Session, id: &str, most: usize) -> anyhow::Result<()> {
    let client = &session.client;
    let found = client.session(id)?;
    let mut events = client.events_newest(id).take(most).collect::<Result<Vec<_>, _>>()?;
    events.reverse();
    if session.json {
        return print_json(&json!({"session": found, "events": events}));
    }
    let agent = agent_name(&found);
    let mut rows = vec![
        ["id".into(), found.id],
        ["agent".into(), agent],
        ["title".into(), found.title.unwrap_or_default()],
        ["status".into(), found.status],
        ["created".into(), time(&found.created_at)],
        ["archived".into(), found.archived_at.as_deref().map_or("no".into(), time)],
    ];
    let tokens =
        found.usage.iter().filter_map(|(name, value)| Some([name.clone(), value.as_u64()?.to_string()]));
    rows.extend(tokens);
    rows.extend(found.resources.iter().map(|resource| {
        let field = |name: &str| resource.get(name).and_then(Value::as_str).unwrap_or_default();
        ["store".into(), format!("{} ({}) at {}", field("name"), field("access"), field("mount_path"))]
    }));
    rows.extend(found.metadata.into_iter().map(|(key, value)| [format!("metadata.{key}"), value]));
    print_table(["FIELD", "VALUE"], &rows)?;
    let rows: Vec<_> = events.iter().map(event_row).collect();
    if !rows.is_empty() {
        print("")?;
    }
    print_table(["TIME", "EVENT", "WHAT"], &rows)
}

fn event_row(event: &Map<String, Value>) -> [String; 3] {
    let field = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = event.get("content").and_then(|content| content.get(0)?.get("text")?.as_str());
    let message = event.get("error").and_then(|error| error.get("message")?.as_str());
    let what = match (field("name"), text.or(message)) {
        ("", text) => text.unwrap_or_default().to_owned(),
        (name, _) => format!("{name} {}", event.get("input").unwrap_or(&Value::Null)),
    };
    [time(field("processed_at")), field("type").to_owned(), glance(&what)]
}

/// The beginning of a text, on one line.
fn glance(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(GLANCE) {
        Some((end, _)) => format!("{}…", cell(&line[..end])),
        None => cell(&line).into_owned(),
    }
}
