//! Random commands against an oracle that knows the rules from the specs and not from `decide`.
//!
//! One writer: every answer and the whole state after it are what the oracle says. Many writers: whatever the
//! order was, history gives the present.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use stele_core::command::{Command, Expected, MemoryRef, OnArchived, RedactedPath};
use stele_core::hash::Sha256;
use stele_core::id::MemoryId;
use stele_core::limits::Limits;
use stele_core::list::{VersionFilter, VersionQuery};
use stele_core::model::{Operation, Recorded, Redaction, Version, VersionText};
use stele_core::path::MemoryPath;
use stele_core::refusal::Refusal;

use crate::StoreFactory;
use crate::properties::check;
use crate::replay::history_gives_the_present;
use crate::world::*;

const PATHS: [&str; 9] = ["/a", "/a/b", "/a/b/c", "/a/c", "/a.md", "/a_", "/A", "/é/b", "/é"];
const CAP: u64 = 4;

/// One step, with its memory or version still to be chosen from the history so far.
#[derive(Clone, Debug)]
enum Step {
    Clock(i64),
    Archive,
    Create(usize, u8),
    Update { of: Index, path: Option<usize>, summary: Option<u8>, content: Option<u8>, knows: Knows },
    Delete(Index, Knows, OnArchived),
    Restore(Index),
    Redact(Index, RedactedPath),
}

/// What a writer believes.
#[derive(Clone, Copy, Debug)]
enum Knows {
    Nothing,
    Current,
    Stale,
}

fn knows() -> impl Strategy<Value = Knows> {
    prop_oneof![3 => Just(Knows::Nothing), 2 => Just(Knows::Current), 1 => Just(Knows::Stale)]
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let some = |range| proptest::option::of(range);
    let on_archived = prop_oneof![Just(OnArchived::Allow), Just(OnArchived::Refuse)];
    let scrubs = prop_oneof![Just(RedactedPath::Keep), Just(RedactedPath::Scrub)];
    prop_oneof![
        2 => (-5_000_000i64..5_000_000).prop_map(Step::Clock),
        8 => (path(), 0u8..5).prop_map(|(path, content)| Step::Create(path, content)),
        12 => (any::<Index>(), proptest::option::of(path()), some(0u8..3), some(0u8..5), knows())
            .prop_map(|(of, path, summary, content, knows)| Step::Update { of, path, summary, content, knows }),
        4 => (any::<Index>(), knows(), on_archived).prop_map(|(of, knows, on)| Step::Delete(of, knows, on)),
        4 => any::<Index>().prop_map(Step::Restore),
        3 => (any::<Index>(), scrubs).prop_map(|(of, path)| Step::Redact(of, path)),
    ]
}

/// Steps of one writer: now and then the store is archived half way.
fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let archived = prop::bool::weighted(0.2);
    (proptest::collection::vec(step(), 1..most), archived).prop_map(|(mut steps, archived)| {
        if archived {
            steps.insert(steps.len() / 2, Step::Archive);
        }
        steps
    })
}

/// Texts that are kept in different ways: empty, short, long.
fn words(n: u8) -> String {
    "some words ".repeat([0, 1, 2, 400, 9_000][usize::from(n)])
}

impl Step {
    /// The command, choosing among these versions, oldest first; `None` where there is nothing to choose from.
    fn command(&self, versions: &[Version]) -> Option<Command> {
        if let Self::Create(path, content) = self {
            return Some(create(PATHS[*path], &words(*content)));
        }
        if matches!(self, Self::Archive) {
            return Some(Command::ArchiveStore);
        }
        if versions.is_empty() {
            return None;
        }
        match self {
            Self::Update { of, path: to, summary: about, content: text, knows } => {
                let memory = of.get(versions).memory;
                Some(Command::UpdateMemory {
                    memory: memory.into(),
                    path: to.map(|n| path(PATHS[n])),
                    summary: about.map(|n| summary(&words(n))),
                    content: text.map(|n| content(&words(n))),
                    expected: knows.about(versions, memory),
                })
            }
            Self::Delete(of, knows, on_archived) => {
                let memory = of.get(versions).memory;
                let expected = knows.about(versions, memory);
                Some(Command::DeleteMemory { memory: memory.into(), expected, on_archived: *on_archived })
            }
            Self::Restore(of) => Some(restore(of.get(versions).id)),
            Self::Redact(of, path) => Some(redact(of.get(versions).id, *path)),
            Self::Clock(_) | Self::Archive | Self::Create(..) => None,
        }
    }
}

impl Knows {
    fn about(self, versions: &[Version], memory: MemoryId) -> Expected {
        let newest = versions.iter().rfind(|version| version.memory == memory);
        let current = newest.and_then(|version| version.recorded.as_ref());
        match (self, current) {
            (Self::Nothing, _) => Expected::Anything,
            (Self::Current, Some(recorded)) => Expected::Content(recorded.content_sha256),
            (Self::Current, None) | (Self::Stale, _) => expecting("never written"),
        }
    }
}

/// What a command comes to.
#[derive(Debug)]
enum Effect {
    Nothing,
    Archived,
    /// One more version, of this memory or of a new one.
    Version {
        memory: Option<MemoryId>,
        operation: Operation,
        path: MemoryPath,
        texts: Option<(String, String)>,
    },
    /// The version at this place among all loses its texts.
    Redacted {
        at: usize,
        path: RedactedPath,
    },
}

/// What there should be: the history, and whether it is closed.
#[derive(Default)]
struct Oracle {
    archived: bool,
    /// Changes so far, with and without a version.
    sequence: u64,
    history: Vec<VersionText>,
}

fn text_of(bytes: Option<&bytes::Bytes>) -> String {
    String::from_utf8(bytes.expect("a text").to_vec()).expect("contents are UTF-8")
}

impl Oracle {
    /// The newest version of each live memory.
    fn live(&self) -> BTreeMap<MemoryId, &VersionText> {
        let mut heads: BTreeMap<MemoryId, &VersionText> = BTreeMap::new();
        heads.extend(self.history.iter().map(|text| (text.version.memory, text)));
        heads.retain(|_, head| head.version.operation != Operation::Deleted);
        heads
    }

    fn free(&self, wanted: &MemoryPath, but_for: Option<MemoryId>) -> Result<(), Refusal> {
        let live = self.live();
        let others = live.iter().filter(|(id, _)| Some(**id) != but_for);
        let paths = others.map(|(id, head)| (head.version.path.clone().expect("heads keep it"), *id));
        match paths.filter(|(at, _)| at.overlaps(wanted)).min() {
            Some((at, by)) => Err(Refusal::PathOccupied { wanted: wanted.clone(), by, at }),
            None => Ok(()),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        if self.live().len() as u64 >= CAP { Err(Refusal::MemoryLimit { limit: CAP }) } else { Ok(()) }
    }

    fn place(&self, id: stele_core::id::VersionId) -> usize {
        self.history.iter().position(|text| text.version.id == id).expect("steps choose known versions")
    }

    fn judge(&self, store: &Handle, command: &Command) -> Result<Effect, Refusal> {
        let allowed = match command {
            Command::ArchiveStore | Command::RedactVersion { .. } => true,
            Command::DeleteMemory { on_archived, .. } => *on_archived == OnArchived::Allow,
            _ => false,
        };
        if self.archived && !allowed {
            return Err(Refusal::StoreArchived(store.id));
        }
        match command {
            Command::ArchiveStore if self.archived => Ok(Effect::Nothing),
            Command::ArchiveStore => Ok(Effect::Archived),
            Command::CreateMemory { path, summary, content } => {
                self.free(path, None)?;
                self.room()?;
                let texts = Some((summary.as_str().to_owned(), text_of(Some(content.bytes()))));
                Ok(Effect::Version { memory: None, operation: Operation::Created, path: path.clone(), texts })
            }
            Command::UpdateMemory { .. } => self.update(command),
            Command::DeleteMemory { memory, expected, .. } => {
                let live = self.live();
                let memory = &by_id(memory);
                let head = live.get(memory).ok_or(Refusal::MemoryNotFound(*memory))?;
                fits(head, *expected)?;
                let path = head.version.path.clone().expect("heads keep it");
                Ok(Effect::Version {
                    memory: Some(*memory),
                    operation: Operation::Deleted,
                    path,
                    texts: None,
                })
            }
            Command::RestoreVersion { version } => self.restored(self.place(*version)),
            Command::RedactVersion { version, path } => {
                let at = self.place(*version);
                let old = &self.history[at].version;
                if self.live().get(&old.memory).is_some_and(|head| head.version.id == *version) {
                    return Err(Refusal::VersionIsHead(*version));
                }
                Ok(Effect::Redacted { at, path: *path })
            }
            Command::UpdateStore { .. } | Command::DeleteStore => unreachable!("no such step"),
        }
    }

    fn update(&self, command: &Command) -> Result<Effect, Refusal> {
        let Command::UpdateMemory { memory, path, summary, content, expected } = command else {
            unreachable!("an update")
        };
        let live = self.live();
        let memory = &by_id(memory);
        let head = live.get(memory).ok_or(Refusal::MemoryNotFound(*memory))?;
        let old_path = head.version.path.clone().expect("heads keep it");
        let old_summary = head.summary.as_ref().expect("heads have one").as_str().to_owned();
        let old_text = text_of(head.content.as_ref());
        let new_path = path.clone().unwrap_or(old_path.clone());
        let new_summary = summary.as_ref().map_or(old_summary.clone(), |new| new.as_str().to_owned());
        let new_text = content.as_ref().map_or(old_text.clone(), |new| text_of(Some(new.bytes())));
        let texts_stay = (&new_summary, &new_text) == (&old_summary, &old_text);
        if texts_stay && new_path == old_path {
            return Ok(Effect::Nothing);
        }
        fits(head, *expected)?;
        if new_path != old_path {
            self.free(&new_path, Some(*memory))?;
        }
        let operation = if texts_stay { Operation::Renamed } else { Operation::Updated };
        let texts = Some((new_summary, new_text));
        Ok(Effect::Version { memory: Some(*memory), operation, path: new_path, texts })
    }

    fn restored(&self, at: usize) -> Result<Effect, Refusal> {
        let VersionText { version, summary, content, .. } = &self.history[at];
        let (Some(summary), Some(_)) = (summary, content) else {
            return Err(Refusal::VersionNotRestorable(version.id));
        };
        let texts = Some((summary.as_str().to_owned(), text_of(content.as_ref())));
        let memory = Some(version.memory);
        if let Some(head) = self.live().get(&version.memory) {
            let path = head.version.path.clone().expect("heads keep it");
            return Ok(Effect::Version { memory, operation: Operation::Updated, path, texts });
        }
        let path = version.path.clone().expect("only redacted versions lose it");
        self.free(&path, None)?;
        self.room()?;
        Ok(Effect::Version { memory, operation: Operation::Recreated, path, texts })
    }

    /// Takes the effect over, with the ids and times that `seen`, the history as it is, shows.
    fn settle(&mut self, effect: Effect, seen: &[VersionText], store: &Handle) {
        match effect {
            Effect::Nothing => {}
            Effect::Archived => {
                self.archived = true;
                self.sequence += 1;
            }
            Effect::Version { memory, operation, path, texts } => {
                self.sequence += 1;
                let new = &seen.last().expect("a new version").version;
                let known = self.history.iter().any(|old| old.version.memory == new.memory);
                assert!(memory.map_or(!known, |memory| memory == new.memory), "of the right memory");
                let recorded = texts.as_ref().map(|(_, text)| Recorded {
                    content_sha256: Sha256::of(text.as_bytes()),
                    size_bytes: text.len() as u64,
                });
                let (about, text) = texts.unzip();
                let version = Version {
                    id: new.id,
                    store: store.id,
                    memory: new.memory,
                    sequence: self.sequence,
                    operation,
                    created_at: new.created_at,
                    author: store.actor,
                    path: Some(path),
                    recorded,
                    redaction: None,
                };
                let summary = about.map(|about| summary(&about));
                self.history.push(VersionText {
                    version,
                    summary,
                    reason: None,
                    content: text.map(Into::into),
                });
            }
            Effect::Redacted { at, path } => {
                let time = seen[at].version.redaction.expect("a stamp").at;
                let VersionText { version, summary, content, .. } = &mut self.history[at];
                let again = version.redaction.is_some();
                // A repeat changes nothing, unless it takes the path too.
                if !again || (path == RedactedPath::Scrub && version.path.is_some()) {
                    self.sequence += 1;
                }
                (version.recorded, *summary, *content) = (None, None, None);
                version.redaction = version.redaction.or(Some(Redaction { at: time, by: store.actor }));
                if path == RedactedPath::Scrub {
                    version.path = None;
                }
            }
        }
    }
}

fn fits(head: &VersionText, expected: Expected) -> Result<(), Refusal> {
    let actual = Sha256::of(head.content.as_ref().expect("heads have one"));
    let memory = head.version.memory;
    if expected.fits(actual) { Ok(()) } else { Err(Refusal::ContentChanged { memory, actual }) }
}

fn capped() -> Limits {
    Limits { memories_per_store: CAP, ..Limits::default() }
}

pub(crate) async fn one_writer_gets_what_the_oracle_says(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, capped()).await;
    check(32, &steps(40), async |steps: Vec<Step>| {
        let store = world.store("machine").await;
        let mut oracle = Oracle::default();
        for (n, step) in steps.iter().enumerate() {
            let store = store.by(actor(n as u64 % 3));
            if let Step::Clock(by) = step {
                world.clock.advance(*by);
            }
            let versions: Vec<_> = oracle.history.iter().map(|text| text.version.clone()).collect();
            let Some(command) = step.command(&versions) else { continue };
            let expected = oracle.judge(&store, &command);
            let before = store.store().await;
            let answer = store.change(command.clone()).await;
            let seen = store.history().await;
            match expected {
                Err(refusal) => assert_eq!(answer.expect_err("refused"), refusal, "{command:?}"),
                Ok(effect) => {
                    answer.unwrap_or_else(|refusal| panic!("{command:?} gives {effect:?}, not {refusal:?}"));
                    if matches!(effect, Effect::Nothing) {
                        assert_eq!(store.store().await, before, "{command:?} changes nothing");
                    }
                    oracle.settle(effect, &seen, &store);
                }
            }
            assert_eq!(seen, oracle.history, "after {command:?}");
            let after = store.store().await;
            assert_eq!(
                (after.archived_at.is_some(), after.counters.sequence),
                (oracle.archived, oracle.sequence)
            );
            history_gives_the_present(&store).await;
            assert_eq!(store.follow(0, 1_000).await.len() as u64, oracle.sequence, "all of it is told");
        }
    });
}

/// One of many writers: chooses from what it sees at the time.
async fn write_on(store: Handle, steps: Vec<Step>) {
    for step in steps {
        if let Step::Clock(by) = step {
            store.world.clock.advance(by);
        }
        let query = VersionQuery { filter: VersionFilter::default(), full: false, before: None, limit: 60 };
        let page = store.version_page(query).await;
        let versions: Vec<_> = page.items.into_iter().rev().map(|text| text.version).collect();
        let Some(command) = step.command(&versions) else { continue };
        // Refusals are as good as successes here.
        let _ = store.change(command).await;
    }
}

/// The steps of this machine name memories by their ids.
fn by_id(memory: &MemoryRef) -> MemoryId {
    match memory {
        MemoryRef::Id(id) => *id,
        MemoryRef::Path(_) => unreachable!("no step names a path"),
    }
}

pub(crate) async fn whatever_many_writers_do_history_gives_the_present(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, capped()).await;
    let writers = proptest::collection::vec(proptest::collection::vec(step(), 1..30), 6);
    check(12, &writers, async |writers: Vec<Vec<Step>>| {
        let store = world.store("machine").await;
        let jobs =
            writers.into_iter().enumerate().map(|(n, steps)| write_on(store.by(actor(n as u64)), steps));
        at_once(jobs).await;
        history_gives_the_present(&store).await;
        assert!(store.store().await.counters.memories <= CAP);
    });
}
