//! Every version of a store, in order.
//!
//! The history of the copy is itself the record of what was done: each step writes one version there. So a later run
//! lays the two side by side, and goes on behind the last one that is there; where they differ, somebody else wrote
//! into the copy, and nothing is done.

use std::collections::HashMap;

use stele_client::{Store, Update, Version};
use stele_core::path::MemoryPath;

use super::{Between, MEMORY_BYTES, Pair, Problems, Tally};
use crate::carry::plan::Standing;
use crate::output::{complain, count, progress};

/// What a version of the store says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A text at a path.
    Write { memory: String, version: String, path: String, sha256: String },
    /// The memory goes.
    Delete { memory: String },
    /// A text that is gone here. The copy may have it from before.
    Redacted { memory: String },
}

impl Step {
    fn of(version: &Version) -> Self {
        let memory = version.memory_id.clone();
        match (&version.path, &version.content_sha256) {
            _ if version.operation == "deleted" => Self::Delete { memory },
            (Some(path), Some(sha256)) => Self::Write {
                memory,
                version: version.id.clone(),
                path: path.clone(),
                sha256: sha256.clone(),
            },
            _ => Self::Redacted { memory },
        }
    }
}

/// One change of the copy, which writes one version there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    Write { memory: String, version: String, path: String, sha256: String },
    Delete { memory: String },
}

/// A memory of the copy.
#[derive(Clone, Debug)]
struct Twin {
    id: String,
    /// Unknown where the version that says it was redacted.
    path: Option<String>,
    sha256: Option<String>,
}

/// What the copy holds, by the memories of the store.
#[derive(Clone, Debug, Default)]
struct State {
    twins: HashMap<String, Twin>,
    /// Memory by path.
    places: HashMap<String, String>,
    standing: Standing,
}

impl State {
    /// What the copy needs next to be as a step says; `None` where it is.
    fn next(&mut self, step: &Step) -> Option<Effect> {
        match step {
            Step::Redacted { .. } => None,
            Step::Delete { memory } => {
                self.twins.contains_key(memory).then(|| Effect::Delete { memory: memory.clone() })
            }
            Step::Write { memory, version, path, sha256 } => {
                let twin = self.twins.get(memory);
                let same =
                    |twin: &Twin| twin.path.as_ref() == Some(path) && twin.sha256.as_ref() == Some(sha256);
                if twin.is_some_and(same) {
                    return None;
                }
                // A memory that is in the way moved in a version that was redacted or is no longer kept. Its own place
                // is none: it moves away first.
                let own = twin.and_then(|twin| twin.path.clone());
                own.iter().for_each(|own| self.standing.remove(own));
                let other = MemoryPath::parse(path).ok().and_then(|path| self.standing.overlapping(&path));
                let other = other.and_then(|other| self.places.get(other).cloned());
                own.iter().for_each(|own| self.standing.insert(own));
                Some(match other {
                    Some(memory) => Effect::Delete { memory },
                    None => {
                        let (memory, version) = (memory.clone(), version.clone());
                        Effect::Write { memory, version, path: path.clone(), sha256: sha256.clone() }
                    }
                })
            }
        }
    }

    /// Notes an effect; `id` is the memory's in the copy.
    fn apply(&mut self, effect: &Effect, id: &str) {
        match effect {
            Effect::Delete { memory } => self.remove(memory),
            Effect::Write { memory, path, sha256, .. } => {
                let twin = Twin { id: id.into(), path: Some(path.clone()), sha256: Some(sha256.clone()) };
                self.place(memory, twin);
            }
        }
    }

    fn remove(&mut self, memory: &str) {
        if let Some(path) = self.twins.remove(memory).and_then(|twin| twin.path) {
            self.places.remove(&path);
            self.standing.remove(&path);
        }
    }

    fn place(&mut self, memory: &str, twin: Twin) {
        self.remove(memory);
        if let Some(path) = &twin.path {
            self.places.insert(path.clone(), memory.into());
            self.standing.insert(path);
        }
        self.twins.insert(memory.into(), twin);
    }

    /// Whether a version can be of the memory's twin, or of the one that it would get.
    fn is_twin(&self, memory: &str, version: &Version) -> bool {
        match self.twins.get(memory) {
            Some(twin) => twin.id == version.memory_id,
            None => self.twins.values().all(|twin| twin.id != version.memory_id),
        }
    }

    /// Whether a version of the copy is what an effect writes. One that was redacted there may be any text.
    fn made(&self, effect: &Effect, version: &Version) -> bool {
        let deleted = version.operation == "deleted";
        match effect {
            Effect::Delete { memory } => deleted && self.is_twin(memory, version),
            Effect::Write { memory, path, sha256, .. } => {
                let same =
                    version.path.as_ref() == Some(path) && version.content_sha256.as_ref() == Some(sha256);
                !deleted && self.is_twin(memory, version) && (same || version.redacted_at.is_some())
            }
        }
    }
}

/// How far a copy got.
struct Aligned {
    /// The first step that it has not made.
    at: usize,
    state: State,
    /// Texts that it holds and the store does not any more.
    held: usize,
}

/// Lays the copy's history (oldest first) beside the steps; `None` where it is another one.
fn align(steps: &[Step], copied: &[Version]) -> Option<Aligned> {
    let mut state = State::default();
    let mut held = 0;
    let mut copied = copied.iter().peekable();
    for (at, step) in steps.iter().enumerate() {
        if let Step::Redacted { memory } = step {
            let next = copied.peek().copied();
            if let Some(version) = next.filter(|version| holds(&mut state, memory, version, &steps[at + 1..]))
            {
                copied.next();
                held += usize::from(version.redacted_at.is_none());
                let old = state.twins.get(memory).and_then(|twin| twin.path.clone());
                let (path, sha256) = (version.path.clone().or(old), version.content_sha256.clone());
                state.place(memory, Twin { id: version.memory_id.clone(), path, sha256 });
            }
            continue;
        }
        while let Some(effect) = state.next(step) {
            let Some(version) = copied.next() else { return Some(Aligned { at, state, held }) };
            if !state.made(&effect, version) {
                return None;
            }
            state.apply(&effect, &version.memory_id);
        }
    }
    copied.peek().is_none().then_some(Aligned { at: steps.len(), state, held })
}

/// Whether a version of the copy is the text that was redacted here, rather than what comes next: then it was redacted
/// before it was ever copied.
fn holds(state: &mut State, memory: &str, version: &Version, rest: &[Step]) -> bool {
    let next = rest.iter().find_map(|step| state.next(step));
    let is_next = next.is_some_and(|next| state.made(&next, version));
    !is_next && version.operation != "deleted" && state.is_twin(memory, version)
}

/// What is to be done, and what the copy holds.
pub(super) struct Plan {
    steps: Vec<Step>,
    state: State,
    done: usize,
}

/// Lays the two histories side by side.
pub(super) fn plan(between: &Between<'_>, pair: &Pair, problems: &mut Problems) -> anyhow::Result<Plan> {
    let source = &pair.source;
    let mut versions = between.from.versions(&source.id, None).collect::<Result<Vec<_>, _>>()?;
    versions.reverse();
    let mut steps = Vec::with_capacity(versions.len());
    for version in &versions {
        match version.content_size_bytes.filter(|bytes| *bytes > MEMORY_BYTES) {
            None => steps.push(Step::of(version)),
            Some(bytes) => problems.caps.push(format!(
                "{}:{} once had {bytes} bytes, at most {MEMORY_BYTES} are taken",
                source.name,
                version.path.as_deref().unwrap_or_default()
            )),
        }
    }
    let mut copied = match &pair.target {
        Some(target) => between.to.versions(&target.id, None).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    copied.reverse();
    let Some(Aligned { at, state, held }) = align(&steps, &copied) else {
        problems.conflicts.push(format!(
            "{}: the history of its copy is another one: somebody wrote there, or versions are no longer kept. Copy the \
             present texts without --history",
            source.name
        ));
        return Ok(Plan { steps: Vec::new(), state: State::default(), done: 0 });
    };
    if held > 0 {
        let texts = count(held, "text that was redacted here is", "texts that were redacted here are");
        complain(&format!("{}: {texts} still in the copy: redact there as well", source.name));
    }
    Ok(Plan { steps: steps.split_off(at), state, done: copied.len() })
}

impl Plan {
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally { unchanged: self.done, ..Tally::default() };
        let mut state = self.state.clone();
        for step in &self.steps {
            tally.skipped += usize::from(matches!(step, Step::Redacted { .. }));
            while let Some(effect) = state.next(step) {
                match &effect {
                    Effect::Delete { .. } => tally.deleted += 1,
                    Effect::Write { memory, .. } if state.twins.contains_key(memory) => tally.updated += 1,
                    Effect::Write { .. } => tally.created += 1,
                }
                state.apply(&effect, "");
            }
        }
        tally
    }

    pub(super) fn carry_out(
        mut self,
        between: &Between<'_>,
        source: &Store,
        target: &Store,
    ) -> anyhow::Result<Tally> {
        let tally = self.tally();
        let bar = progress(self.steps.len() as u64);
        // A text that is redacted while the copy is made stays behind as those redacted before.
        let mut redacted = 0;
        for step in std::mem::take(&mut self.steps) {
            while let Some(effect) = self.state.next(&step) {
                match self.make(between, source, target, &effect)? {
                    Some(id) => self.state.apply(&effect, &id),
                    None => {
                        redacted += 1;
                        break;
                    }
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Tally { skipped: tally.skipped + redacted, ..tally })
    }

    /// Makes one change; the memory's id in the copy, or `None` where its text is gone here.
    fn make(
        &self,
        between: &Between<'_>,
        source: &Store,
        target: &Store,
        effect: &Effect,
    ) -> anyhow::Result<Option<String>> {
        match effect {
            Effect::Delete { memory } => {
                let id = self.state.twins.get(memory).map(|twin| twin.id.clone()).unwrap_or_default();
                match between.to.memory_delete(&target.id, &id, None) {
                    Err(error) if error.status() == Some(404) => {}
                    done => done?,
                }
                Ok(Some(id))
            }
            Effect::Write { memory, version, path, sha256 } => {
                let Some(content) = between.from.version(&source.id, version)?.content else {
                    return Ok(None);
                };
                let twin = match self.state.twins.get(memory) {
                    Some(twin) => {
                        let update = Update { content: Some(&content), path: Some(path), expected: None };
                        between.to.memory_update(&target.id, &twin.id, &update)?
                    }
                    None => between.create(target, path, &content, sha256)?,
                };
                Ok(Some(twin.id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(n: usize, memory: &str, what: Option<(&str, &str)>) -> Version {
        Version {
            id: format!("v{n}"),
            r#type: "memory_version".into(),
            memory_store_id: "s".into(),
            memory_id: memory.into(),
            operation: if what.is_some() { "modified" } else { "deleted" }.into(),
            created_at: String::new(),
            created_by: None,
            path: what.map(|(path, _)| path.into()),
            content: None,
            content_sha256: what.map(|(_, hash)| hash.into()),
            content_size_bytes: what.map(|_| 1),
            redacted_at: None,
            redacted_by: None,
        }
    }

    fn history(changes: &[(&str, Option<(&str, &str)>)]) -> Vec<Version> {
        changes.iter().enumerate().map(|(n, (memory, what))| version(n, memory, *what)).collect()
    }

    fn steps(versions: &[Version]) -> Vec<Step> {
        versions.iter().map(Step::of).collect()
    }

    fn redact(version: &mut Version) {
        (version.path, version.content_sha256, version.redacted_at) = (None, None, Some("t".into()));
    }

    /// The history of a copy that was made of these versions, from wherever it is.
    fn go_on(versions: &[Version], copied: &mut Vec<Version>) {
        let steps = steps(versions);
        let Aligned { at, mut state, .. } = align(&steps, copied).expect("the same history");
        for step in &steps[at..] {
            while let Some(effect) = state.next(step) {
                let n = copied.len();
                let (memory, what) = match &effect {
                    Effect::Write { memory, path, sha256, .. } => {
                        (memory, Some((path.as_str(), sha256.as_str())))
                    }
                    Effect::Delete { memory } => (memory, None),
                };
                let id = state.twins.get(memory).map_or_else(|| format!("twin {n}"), |twin| twin.id.clone());
                copied.push(version(n, &id, what));
                state.apply(&effect, &id);
            }
        }
    }

    fn copy(versions: &[Version]) -> Vec<Version> {
        let mut copied = Vec::new();
        go_on(versions, &mut copied);
        copied
    }

    #[test]
    fn a_copy_goes_on_where_it_ended_wherever_that_was() {
        let versions = history(&[
            ("a", Some(("/a", "1"))),
            ("b", Some(("/b", "1"))),
            ("a", Some(("/a", "1"))),
            ("a", Some(("/c", "1"))),
            ("b", None),
            ("d", Some(("/b/x", "2"))),
            ("a", Some(("/c", "3"))),
        ]);
        let whole = copy(&versions);
        assert_eq!(whole.len(), 6, "a version that changes nothing is none in the copy");
        for done in 0..=whole.len() {
            let mut copied = whole[..done].to_vec();
            go_on(&versions, &mut copied);
            assert_eq!(copied.len(), 6, "gone on with after {done}");
            assert_eq!(align(&steps(&versions), &copied).map(|aligned| aligned.held), Some(0));
        }
        let mut other = whole[..4].to_vec();
        other[2].content_sha256 = Some("x".into());
        assert!(align(&steps(&versions), &other).is_none());
        let more = [whole, vec![version(9, "z", Some(("/z", "9")))]].concat();
        assert!(align(&steps(&versions), &more).is_none());
    }

    #[test]
    fn what_was_redacted_after_it_was_copied_is_told_from_what_never_came() {
        let changes = [
            ("a", Some(("/a", "1"))),
            ("a", Some(("/x", "2"))),
            ("a", Some(("/a", "1"))),
            ("b", Some(("/b", "3"))),
            ("b", None),
            ("c", Some(("/b", "4"))),
        ];
        let versions = history(&changes);
        for gone in 0..4 {
            let mut now = versions.clone();
            redact(&mut now[gone]);
            for done in 0..=changes.len() {
                let before = &copy(&versions)[..done];
                let aligned = align(&steps(&now), before).expect("the same history");
                assert_eq!(aligned.held, usize::from(done > gone), "{gone} redacted, {done} copied before");
                let mut copied = before.to_vec();
                go_on(&now, &mut copied);
                let of = |versions: &[Version]| {
                    let last = versions.iter().rev().take(2).map(|one| one.content_sha256.clone());
                    last.collect::<Vec<_>>()
                };
                assert_eq!(of(&copied)[0], Some("4".into()), "{gone} redacted, {done} copied before");
            }
        }
    }

    #[test]
    fn a_move_that_is_not_kept_any_more_makes_room_all_the_same() {
        let versions =
            history(&[("a", Some(("/x", "1"))), ("b", Some(("/x/y", "2"))), ("a", Some(("/z", "1")))]);
        let made: Vec<_> = copy(&versions).into_iter().map(|one| (one.operation, one.path)).collect();
        let written = |path: &str| ("modified".to_owned(), Some(path.to_owned()));
        assert_eq!(made, [written("/x"), ("deleted".into(), None), written("/x/y"), written("/z")]);
    }
}
