//! `stele edit` and `stele merge`: a text that is saved only over what it was made from, and merged where that moved.

use serde_json::json;
use stele_client::{Client, ClientError, Memory, Store, Update};
use stele_core::merge::{Labels, Merged, has_markers, merge};

use super::editor::Draft;
use super::{Session, memories, resolve};
use crate::cli::{Edit, Merge};
use crate::failure::{Class, fail};
use crate::output::{complain, count, print, print_json, print_text};
use crate::prompt::{ask, possible};

/// A text to be saved over the memory it was made from.
struct Work<'a> {
    client: &'a Client,
    store: &'a Store,
    /// The memory as it was when `text` was made.
    from: Memory,
    text: String,
}

impl Work<'_> {
    fn base(&self) -> &str {
        self.from.content.as_deref().unwrap_or_default()
    }

    /// Saves the text; where the memory changed meanwhile, merges as often as it takes.
    fn save(&mut self, draft: &Draft) -> anyhow::Result<Memory> {
        loop {
            let update = Update {
                content: Some(&self.text),
                expected: Some(&self.from.content_sha256),
                ..Update::default()
            };
            match self.client.memory_update(&self.store.id, &self.from.id, &update) {
                Err(error) if error.is_precondition() => self.catch_up(draft)?,
                Err(error) => return Err(self.unless_gone(error)),
                Ok(memory) => return Ok(memory),
            }
        }
    }

    /// That there is no such memory any more is a conflict here: it was there when the work began.
    fn unless_gone(&self, error: ClientError) -> anyhow::Error {
        match error.status() {
            Some(404) => fail(
                Class::Conflict,
                format!("{} was deleted while you worked on it: nothing was saved", self.from.path),
            ),
            _ => error.into(),
        }
    }

    fn catch_up(&mut self, draft: &Draft) -> anyhow::Result<()> {
        let theirs = self.client.memory(&self.store.id, &self.from.id);
        let theirs = theirs.map_err(|error| self.unless_gone(error))?;
        let other = theirs.content.as_deref().unwrap_or_default();
        let labels = Labels { ours: "your text", base: "what you began with", theirs: "saved meanwhile" };
        let merged = merge(self.base(), &self.text, other, labels);
        draft.set_aside(&self.text)?;
        if !possible() {
            let what = match merged.conflicts {
                0 => "it would merge without overlaps, but there is no terminal to ask on".into(),
                n => format!("your edit overlaps with that in {}", count(n, "place", "places")),
            };
            return Err(fail(
                Class::Conflict,
                format!("{} changed while you edited it; {what}", self.from.path),
            ));
        }
        draft.write(&merged.text)?;
        let question = match merged.conflicts {
            0 => format!(
                "{} changed while you edited it. Both edits fit together. Save them both?",
                self.from.path
            ),
            n => format!(
                "{} changed while you edited it, in {} that you changed too. Edit the merge?",
                self.from.path,
                count(n, "place", "places")
            ),
        };
        if !ask(&question)? {
            return Err(fail(
                Class::Conflict,
                "nothing was saved; the merge and, beside it, your own text are kept",
            ));
        }
        self.text = resolved(draft, merged)?;
        self.from = theirs;
        Ok(())
    }
}

/// The merged text, once a person has taken out the markers.
fn resolved(draft: &Draft, merged: Merged) -> anyhow::Result<String> {
    if merged.conflicts == 0 {
        return Ok(merged.text);
    }
    loop {
        let text = draft.edit()?;
        if !has_markers(&text) {
            return Ok(text);
        }
        if !possible() || !ask("The text still holds conflict markers. Edit it again?")? {
            return Err(fail(
                Class::Conflict,
                "nothing was saved: the merged text still holds conflict markers",
            ));
        }
    }
}

pub(crate) fn edit(session: &Session, args: Edit) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.memory.store)?;
    let path = resolve::path(&args.memory)?;
    let there = client.memory_at(&store.id, path)?;
    let there = there.map(|found| client.memory(&store.id, &found.id)).transpose()?;
    let base = there.as_ref().and_then(|memory| memory.content.as_deref()).unwrap_or_default().to_owned();
    let draft = Draft::new(path, &base)?;
    let edited = draft.edit();
    let text = match edited {
        Ok(text) if text != base || (there.is_none() && !text.is_empty()) => text,
        Ok(_) => {
            draft.finish();
            complain(&format!("{path} is as it was: nothing to save"));
            return if session.json { print_json(&there) } else { Ok(()) };
        }
        Err(error) => {
            if !draft.differs_from(&base) {
                draft.finish();
            }
            return Err(error);
        }
    };
    let (memory, what) = match there {
        Some(from) => (Work { client, store: &store, from, text }.save(&draft)?, "saved"),
        None => (client.memory_create(&store.id, path, &text)?, "created"),
    };
    draft.finish();
    memories::done(session, &store, &memory, what)
}

pub(crate) fn merge_displaced(session: &Session, args: Merge) -> anyhow::Result<()> {
    let client = &session.client;
    let store = resolve::store(client, &args.memory.store)?;
    let found = resolve::memory(client, &store, &args.memory)?;
    let current = client.memory(&store.id, &found.id)?;
    let history = client.versions(&store.id, Some(&found.id)).collect::<Result<Vec<_>, _>>()?;
    let displaced = resolve::version(&history, &args.version)?;
    if displaced.id == current.memory_version_id {
        return Err(fail(
            Class::Refused,
            format!("{} is the present version: there is nothing to merge", displaced.id),
        ));
    }
    let base = match &args.base {
        Some(base) => Some(resolve::version(&history, base)?),
        None => history.iter().skip_while(|version| version.id != displaced.id).nth(1),
    };
    let text_of = |id: &str| -> anyhow::Result<String> {
        let version = client.version(&store.id, id)?;
        version
            .content
            .ok_or_else(|| fail(Class::Refused, format!("the version {id} holds no text any more")))
    };
    let base = base.map(|version| text_of(&version.id)).transpose()?.unwrap_or_default();
    let (ours, theirs) = (current.content.clone().unwrap_or_default(), text_of(&displaced.id)?);
    let labels = Labels { ours: &current.memory_version_id, base: "base", theirs: &displaced.id };
    let merged = merge(&base, &ours, &theirs, labels);
    if args.dry_run {
        if session.json {
            let (path, text) = (&current.path, &merged.text);
            let overlaps = merged.conflicts;
            print_json(&json!({"path": path, "content": text, "overlaps": overlaps, "dry_run": true}))?;
        } else {
            print_text(&merged.text)?;
        }
        return conflicts(merged.conflicts);
    }
    if merged.text == ours && session.json {
        return print_json(&current);
    }
    if merged.text == ours {
        return print(&format!("{} holds all of {} already", current.path, displaced.id));
    }
    let draft = Draft::new(&current.path, &merged.text)?;
    if merged.conflicts > 0 {
        complain(&format!("{} in {}", count(merged.conflicts, "overlap", "overlaps"), current.path));
        if !possible() {
            return conflicts(merged.conflicts);
        }
    }
    let text = resolved(&draft, merged)?;
    let memory = Work { client, store: &store, from: current, text }.save(&draft)?;
    draft.finish();
    memories::done(session, &store, &memory, "merged")
}

fn conflicts(overlaps: usize) -> anyhow::Result<()> {
    match overlaps {
        0 => Ok(()),
        n => Err(fail(
            Class::Conflict,
            format!("{}: resolve what stands between the markers", count(n, "overlap", "overlaps")),
        )),
    }
}
