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

/// What a version of the store is for the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A text at a path.
    Write { memory: String, version: String, path: String, sha256: String },
    /// The memory goes.
    Delete { memory: String, path: String },
    /// A text that is gone here. The copy may have it from before.
    Redacted { memory: String },
}

/// What is to be done, and which memory of the copy is which.
pub(super) struct Plan {
    steps: Vec<Step>,
    /// Memories of the copy by those of the store.
    twins: HashMap<String, String>,
    done: usize,
}

/// Lays the two histories side by side.
pub(super) fn plan(between: &Between<'_>, pair: &Pair, problems: &mut Problems) -> anyhow::Result<Plan> {
    let source = &pair.source;
    let mut versions = between.from.versions(&source.id, None).collect::<Result<Vec<_>, _>>()?;
    versions.reverse();
    for version in &versions {
        let (path, bytes) =
            (version.path.as_deref().unwrap_or_default(), version.content_size_bytes.unwrap_or_default());
        if bytes > MEMORY_BYTES {
            problems.caps.push(format!(
                "{}:{path} once had {bytes} bytes, at most {MEMORY_BYTES} are taken",
                source.name
            ));
        }
    }
    versions.retain(|version| version.content_size_bytes.is_none_or(|bytes| bytes <= MEMORY_BYTES));
    let steps = steps(&versions);
    let mut copied = match &pair.target {
        Some(target) => between.to.versions(&target.id, None).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    copied.reverse();
    let Some(Aligned { at, twins, held }) = align(&steps, &copied) else {
        problems.conflicts.push(format!(
            "{}: the history of its copy is another one: somebody wrote there, or versions are no longer kept. Copy the \
             present texts without --history",
            source.name
        ));
        return Ok(Plan { steps: Vec::new(), twins: HashMap::new(), done: 0 });
    };
    if held > 0 {
        let texts = count(held, "text that was redacted here is", "texts that were redacted here are");
        complain(&format!("{}: {texts} still in the copy: redact there as well", source.name));
    }
    Ok(Plan { steps: steps[at..].to_vec(), twins, done: copied.len() })
}

/// What a history (oldest first) is for a copy: each step but for a redaction changes something there.
fn steps(versions: &[Version]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut present: HashMap<&str, (&str, &str)> = HashMap::new();
    let mut memories: HashMap<&str, &str> = HashMap::new();
    let mut standing = Standing::default();
    for version in versions {
        let memory = version.memory_id.as_str();
        if version.operation == "deleted" {
            if let Some((path, _)) = present.remove(memory) {
                memories.remove(path);
                standing.remove(path);
                steps.push(Step::Delete { memory: memory.into(), path: path.into() });
            }
            continue;
        }
        let (Some(path), Some(sha256)) = (version.path.as_deref(), version.content_sha256.as_deref()) else {
            steps.push(Step::Redacted { memory: memory.into() });
            continue;
        };
        if present.get(memory) == Some(&(path, sha256)) {
            continue;
        }
        if let Some((old, _)) = present.remove(memory) {
            memories.remove(old);
            standing.remove(old);
        }
        // A memory that is in the way moved in a version that is no longer kept.
        while let Some(other) =
            MemoryPath::parse(path).ok().and_then(|path| standing.overlapping(&path).map(str::to_owned))
        {
            standing.remove(&other);
            if let Some(gone) = memories.remove(other.as_str()) {
                present.remove(gone);
                steps.push(Step::Delete { memory: gone.into(), path: other });
            }
        }
        present.insert(memory, (path, sha256));
        memories.insert(path, memory);
        standing.insert(path);
        steps.push(Step::Write {
            memory: memory.into(),
            version: version.id.clone(),
            path: path.into(),
            sha256: sha256.into(),
        });
    }
    steps
}

/// How far a copy got.
struct Aligned {
    /// The first step that it has not made.
    at: usize,
    twins: HashMap<String, String>,
    /// Texts that it holds and the store does not any more.
    held: usize,
}

/// Lays the copy's history (oldest first) beside the steps; `None` where it is another one.
fn align(steps: &[Step], copied: &[Version]) -> Option<Aligned> {
    let mut aligned = Aligned { at: 0, twins: HashMap::new(), held: 0 };
    for version in copied {
        loop {
            let step = steps.get(aligned.at)?;
            aligned.at += 1;
            if made(step, version) {
                match step {
                    Step::Write { memory, .. } => {
                        aligned.twins.insert(memory.clone(), version.memory_id.clone());
                    }
                    Step::Delete { memory, .. } => drop(aligned.twins.remove(memory)),
                    Step::Redacted { .. } => {}
                }
                break;
            }
            let Step::Redacted { memory } = step else { return None };
            // Redacted before it was ever copied, if what the copy has is what comes next.
            let next = steps[aligned.at..].iter().find(|step| !matches!(step, Step::Redacted { .. }));
            if !next.is_some_and(|next| made(next, version)) {
                aligned.held += usize::from(version.redacted_at.is_none());
                aligned.twins.insert(memory.clone(), version.memory_id.clone());
                break;
            }
        }
    }
    Some(aligned)
}

/// Whether a version of the copy is what a step makes. One that was redacted there may be any text.
fn made(step: &Step, version: &Version) -> bool {
    let deleted = version.operation == "deleted";
    let redacted = version.redacted_at.is_some();
    match step {
        Step::Write { path, sha256, .. } => {
            !deleted
                && (redacted
                    || (version.path.as_ref() == Some(path)
                        && version.content_sha256.as_ref() == Some(sha256)))
        }
        Step::Delete { path, .. } => deleted && (redacted || version.path.as_ref() == Some(path)),
        Step::Redacted { .. } => false,
    }
}

impl Plan {
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally { unchanged: self.done, ..Tally::default() };
        let mut known: Vec<&str> = self.twins.keys().map(String::as_str).collect();
        for step in &self.steps {
            match step {
                Step::Write { memory, .. } if known.contains(&memory.as_str()) => tally.updated += 1,
                Step::Write { memory, .. } => {
                    known.push(memory);
                    tally.created += 1;
                }
                Step::Delete { .. } => tally.deleted += 1,
                Step::Redacted { .. } => tally.skipped += 1,
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
        for step in std::mem::take(&mut self.steps) {
            self.make(between, source, target, step)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(tally)
    }

    fn make(
        &mut self,
        between: &Between<'_>,
        source: &Store,
        target: &Store,
        step: Step,
    ) -> anyhow::Result<()> {
        match step {
            Step::Redacted { .. } => {}
            Step::Delete { memory, .. } => {
                let Some(twin) = self.twins.remove(&memory) else { return Ok(()) };
                match between.to.memory_delete(&target.id, &twin, None) {
                    Err(error) if error.status() == Some(404) => {}
                    done => done?,
                }
            }
            Step::Write { memory, version, path, sha256 } => {
                // Redacted since the histories were read: it is one of those that stay behind.
                let Some(content) = between.from.version(&source.id, &version)?.content else {
                    return Ok(());
                };
                let twin = match self.twins.get(&memory) {
                    Some(twin) => {
                        let update = Update { content: Some(&content), path: Some(&path), expected: None };
                        between.to.memory_update(&target.id, twin, &update)?
                    }
                    None => between.create(target, &path, &content, &sha256)?,
                };
                self.twins.insert(memory, twin.id);
            }
        }
        Ok(())
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

    /// The versions that a copy has which made so many of the steps.
    fn copy(steps: &[Step], number: usize) -> Vec<Version> {
        let made =
            steps.iter().filter(|step| !matches!(step, Step::Redacted { .. })).take(number).enumerate();
        let version = |(n, step): (usize, &Step)| match step {
            Step::Write { memory, path, sha256, .. } => {
                version(n, &format!("copy of {memory}"), Some((path, sha256)))
            }
            Step::Delete { memory, path } => {
                Version { path: Some(path.clone()), ..version(n, &format!("copy of {memory}"), None) }
            }
            Step::Redacted { .. } => unreachable!("left out above"),
        };
        made.map(version).collect()
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
        let steps = steps(&versions);
        assert_eq!(steps.len(), 6, "a version that changes nothing is no step");
        for done in 0..=steps.len() {
            let aligned = align(&steps, &copy(&steps, done)).expect("the same history");
            assert_eq!((aligned.at, aligned.held), (done, 0));
            assert_eq!(aligned.twins.get("a").map(String::as_str), (done > 0).then_some("copy of a"));
        }
        let mut other = copy(&steps, 4);
        other[2].content_sha256 = Some("x".into());
        assert!(align(&steps, &other).is_none());
        let more = [copy(&steps, 6), vec![version(9, "z", Some(("/z", "9")))]].concat();
        assert!(align(&steps, &more).is_none());
    }

    #[test]
    fn what_was_redacted_after_it_was_copied_is_told_from_what_never_came() {
        let mut versions =
            history(&[("a", Some(("/a", "1"))), ("a", Some(("/a", "2"))), ("b", Some(("/b", "3")))]);
        let before = copy(&steps(&versions), 3);
        (versions[0].path, versions[0].content_sha256) = (None, None);
        versions[0].redacted_at = Some("t".into());
        let steps = steps(&versions);
        let late = align(&steps, &before).expect("the same history");
        assert_eq!((late.at, late.held), (3, 1));
        let never = align(&steps, &copy(&steps, 2)).expect("the same history");
        assert_eq!((never.at, never.held), (3, 0));
    }

    #[test]
    fn a_move_that_is_not_kept_any_more_makes_room_all_the_same() {
        let versions =
            history(&[("a", Some(("/x", "1"))), ("b", Some(("/x/y", "2"))), ("a", Some(("/z", "1")))]);
        let made = steps(&versions);
        let gone = Step::Delete { memory: "a".into(), path: "/x".into() };
        assert!(made.len() == 4 && made[1] == gone, "{made:?}");
    }
}
