//! The present texts of a store.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use stele_client::{ClientError, Memory, Store, Update};
use stele_core::path::MemoryPath;

use super::{Between, MEMORIES, MEMORY_BYTES, Pair, Problems, Tally};
use crate::carry::plan::Standing;
use crate::cli::Conflict;
use crate::output::progress;

/// From so many texts on they are taken from a list rather than asked for one by one.
const MANY: usize = 20;

/// What becomes of the copy.
#[derive(Default)]
pub(super) struct Plan {
    /// By path, with the copy's memory where there is one.
    writes: BTreeMap<String, (Memory, Option<Memory>)>,
    deletions: Vec<Memory>,
    unchanged: usize,
    skipped: usize,
}

fn by_path(
    memories: impl Iterator<Item = Result<Memory, ClientError>>,
) -> Result<BTreeMap<String, Memory>, ClientError> {
    memories.map(|memory| memory.map(|memory| (memory.path.clone(), memory))).collect()
}

/// Compares a store with its copy.
pub(super) fn plan(between: &Between<'_>, pair: &Pair, problems: &mut Problems) -> anyhow::Result<Plan> {
    let (source, args) = (&pair.source, between.args);
    let here = by_path(between.from.memories(&source.id, "/"))?;
    let there = match &pair.target {
        Some(target) => by_path(between.to.memories(&target.id, "/"))?,
        None => BTreeMap::new(),
    };
    let (mut plan, mut past) = (Plan::default(), Past::default());
    let mut standing = Standing::default();
    for (path, memory) in there.iter().filter(|(path, _)| !here.contains_key(*path)) {
        if args.delete_missing {
            plan.deletions.push(memory.clone());
        } else {
            standing.insert(path);
        }
    }
    for (path, memory) in &here {
        let name = format!("{}:{path}", source.name);
        if memory.content_size_bytes > MEMORY_BYTES {
            problems.caps.push(format!(
                "{name} has {} bytes, at most {MEMORY_BYTES} are taken",
                memory.content_size_bytes
            ));
            plan.skipped += 1;
            continue;
        }
        let other = there.get(path);
        if other.is_some_and(|other| other.content_sha256 == memory.content_sha256) {
            plan.unchanged += 1;
            continue;
        }
        let conflict = match other {
            None => MemoryPath::parse(path).ok().and_then(|path| {
                standing
                    .overlapping(&path)
                    .map(|other| format!("{name} cannot be beside {other} in the copy"))
            }),
            Some(_) if args.on_conflict == Conflict::Overwrite => None,
            Some(other) if past.had(between, source, other)? => None,
            Some(_) => Some(format!("{name} was changed in the copy")),
        };
        match conflict {
            None => drop(plan.writes.insert(path.clone(), (memory.clone(), other.cloned()))),
            Some(_) if args.on_conflict == Conflict::Skip => plan.skipped += 1,
            Some(conflict) => problems.conflicts.push(conflict),
        }
    }
    let new = plan.writes.values().filter(|(_, other)| other.is_none()).count();
    let after = there.len() - plan.deletions.len() + new;
    if after > MEMORIES {
        problems.caps.push(format!(
            "{}: the copy would hold {after} memories, at most {MEMORIES} are taken by every server; with --partial it is \
             tried all the same",
            source.name
        ));
    }
    Ok(plan)
}

/// The hashes of all texts that a store is known to have had at a path. What the copy has of them, nobody else wrote.
#[derive(Default)]
struct Past(Option<HashSet<(String, String)>>);

impl Past {
    /// Whether the copy's memory is what the store once had in its place.
    fn had(&mut self, between: &Between<'_>, source: &Store, other: &Memory) -> Result<bool, ClientError> {
        let past = match &self.0 {
            Some(past) => past,
            None => self.0.insert(Self::read(between, source)?),
        };
        Ok(past.contains(&(other.path.clone(), other.content_sha256.clone())))
    }

    fn read(between: &Between<'_>, source: &Store) -> Result<HashSet<(String, String)>, ClientError> {
        let mut past = HashSet::new();
        for version in between.from.versions(&source.id, None) {
            match version {
                Ok(version) => past.extend(version.path.zip(version.content_sha256)),
                // A server without histories, or a key that may not see them: then nothing is known of it.
                Err(ClientError::Refused { status: 403..=405, .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(past)
    }
}

impl Plan {
    pub(super) fn tally(&self) -> Tally {
        let updated = self.writes.values().filter(|(_, other)| other.is_some()).count();
        Tally {
            created: self.writes.len() - updated,
            updated,
            deleted: self.deletions.len(),
            unchanged: self.unchanged,
            skipped: self.skipped,
        }
    }

    /// Deletions first, which make room.
    pub(super) fn carry_out(
        self,
        between: &Between<'_>,
        source: &Store,
        target: &Store,
    ) -> anyhow::Result<Tally> {
        let tally = self.tally();
        let bar = progress((self.deletions.len() + self.writes.len()) as u64);
        for memory in &self.deletions {
            match between.to.memory_delete(&target.id, &memory.id, Some(&memory.content_sha256)) {
                Err(error) if error.status() == Some(404) => {}
                done => done?,
            }
            bar.inc(1);
        }
        let mut waiting: BTreeSet<&str> = self.writes.keys().map(String::as_str).collect();
        if waiting.len() > MANY {
            for memory in between.from.memories_whole(&source.id) {
                let memory = memory?;
                if let Some((_, other)) = self.writes.get(&memory.path) {
                    write(between, target, &memory, other.as_ref())?;
                    waiting.remove(memory.path.as_str());
                    bar.inc(1);
                }
            }
        }
        for path in waiting {
            let (memory, other) = &self.writes[path];
            match between.from.memory(&source.id, &memory.id) {
                // Deleted or moved since: the next run sees to it.
                Err(error) if error.status() == Some(404) => {}
                memory => write(between, target, &memory?, other.as_ref())?,
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(tally)
    }
}

fn write(
    between: &Between<'_>,
    target: &Store,
    memory: &Memory,
    other: Option<&Memory>,
) -> anyhow::Result<()> {
    let content = memory.content.as_deref().unwrap_or_default();
    match other {
        None => between.create(target, &memory.path, content, &memory.content_sha256).map(drop),
        Some(other) => {
            let expected = Some(other.content_sha256.as_str());
            let update = Update { content: Some(content), expected, ..Update::default() };
            between.to.memory_update(&target.id, &other.id, &update)?;
            Ok(())
        }
    }
}
