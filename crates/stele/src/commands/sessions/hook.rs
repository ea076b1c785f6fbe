//! `stele session hook`: what the hooks of an agent's program call, so that a line of its settings is enough.

use std::io::Read;
use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;

use super::{Origin, Session, create, import, note};
use crate::cli::{Import, Made, Moment};
use crate::config::process_env;
use crate::failure::{Class, fail};
use crate::output::{complain, print, print_json, print_text};
use crate::transcript::{self, Format};

/// Most bytes of what a hook is told.
const MOST_BYTES: u64 = 1024 * 1024;
/// How far back the session of a transcript is looked for when its program goes on with it: Claude Code removes
/// transcripts after 30 days.
const LOOK_BACK: jiff::SignedDuration = jiff::SignedDuration::from_hours(40 * 24);

/// What Claude Code tells a hook, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Told {
    session_id: String,
    #[serde(default)]
    transcript_path: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
}

pub(super) fn hook(session: &Session, moment: Moment, made: Made, finish: bool) -> anyhow::Result<()> {
    let mut input = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut input).context("cannot read standard input")?;
    let told = told(&input)?;
    match moment {
        Moment::Start => start(session, &made, &told),
        Moment::End => end(session, made, told, finish),
    }
}

fn told(input: &str) -> anyhow::Result<Told> {
    let told: Told = serde_json::from_str(input).map_err(|error| {
        let message = format!(
            "standard input is not what Claude Code tells a hook ({error}): this command is for its settings.json, and \
             `stele session import` is for people"
        );
        fail(Class::Usage, message)
    })?;
    if told.session_id.is_empty() {
        return Err(fail(Class::Usage, "the hook was told an empty session_id"));
    }
    Ok(told)
}

/// Prints the note, which Claude Code gives to the model. A session that goes on, or whose conversation was compacted,
/// is the one it was.
fn start(session: &Session, made: &Made, told: &Told) -> anyhow::Result<()> {
    let key = import::named(Format::ClaudeCode, &told.session_id);
    let since = jiff::Timestamp::now().checked_sub(LOOK_BACK).ok();
    let known = import::sessions_of(session, &key, since)?.into_iter().find(import::is_open);
    let found = match known {
        Some(found) => found,
        None => {
            let mut metadata = vec![(import::TRANSCRIPT, key)];
            metadata.extend(told.cwd.clone().map(|cwd| ("stele.directory", cwd)));
            create(session, made, Origin { agent: Format::ClaudeCode.name(), metadata, ..Origin::default() })?
        }
    };
    let text = note::text(&session.client, &found)?;
    if session.json {
        return print_json(&serde_json::json!({"session_id": found.id, "text": text}));
    }
    print_text(&text)?;
    print(&format!("\nStele records this session as {}.", found.id))
}

/// Imports the transcript. A session in which nothing was said has none, which is no failure.
fn end(session: &Session, made: Made, told: Told, finish: bool) -> anyhow::Result<()> {
    let path = told.transcript_path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| fail(Class::Usage, "the hook was told no transcript_path"))?;
    let file = match (path.strip_prefix("~/"), process_env("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    };
    let format = Format::ClaudeCode;
    if !file.exists() || said_nothing(format, &file)? {
        complain("nothing was said, so nothing is imported");
        return Ok(());
    }
    let args =
        Import { format, file, made, id: Some(told.session_id), finish, any_version: true, dry_run: false };
    import::import(session, &args)
}

fn said_nothing(format: Format, file: &std::path::Path) -> anyhow::Result<bool> {
    let input = std::io::BufReader::new(super::open(file)?);
    let (_, tally) = transcript::read(format, input, |_| Ok(()))?;
    Ok(tally.events == 0 && tally.damaged == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_takes_what_claude_code_tells_and_nothing_else() {
        let input = r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"SessionEnd",
            "reason":"prompt_input_exit","new_field":{"a":1}}"#;
        let told_it = told(input).expect("told");
        assert_eq!(
            (told_it.session_id.as_str(), told_it.transcript_path.as_deref()),
            ("s", Some("/t.jsonl"))
        );
        for bad in ["", "x", "{}", r#"{"session_id":7}"#, r#"{"session_id":""}"#] {
            assert_eq!(crate::failure::class(&told(bad).expect_err("refused")), Class::Usage, "{bad}");
        }
    }
}
