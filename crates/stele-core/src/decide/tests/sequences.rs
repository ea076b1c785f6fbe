//! Random commands on the model: what DESIGN 3 says always holds, holds after each of them.

use proptest::prelude::*;
use proptest::sample::Index;

use super::model::*;
use crate::decide::*;
use crate::hash::Sha256;
use crate::id::MemoryId;

const PATHS: [&str; 8] = ["/a", "/a/b", "/a/b/c", "/a/c", "/a.md", "/ab", "/b", "/b/c"];
const CAP: u64 = 4;

/// One step, with its memory or version still to be chosen from the history so far.
#[derive(Clone, Debug)]
enum Step {
    Clock(i64),
    Author(u64),
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
    Nonsense,
}

fn knows() -> impl Strategy<Value = Knows> {
    prop_oneof![Just(Knows::Nothing), Just(Knows::Current), Just(Knows::Stale), Just(Knows::Nonsense)]
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let index = any::<Index>;
    let some = |range| proptest::option::of(range);
    let on_archived = prop_oneof![Just(OnArchived::Allow), Just(OnArchived::Refuse)];
    let scrubs = prop_oneof![Just(RedactedPath::Keep), Just(RedactedPath::Scrub)];
    prop_oneof![
        4 => (-5_000_000i64..5_000_000).prop_map(Step::Clock),
        1 => (0u64..3).prop_map(Step::Author),
        8 => (path(), 0u8..4).prop_map(|(path, content)| Step::Create(path, content)),
        12 => (index(), proptest::option::of(path()), some(0u8..3), some(0u8..4), knows())
            .prop_map(|(of, path, summary, content, knows)| Step::Update { of, path, summary, content, knows }),
        4 => (index(), knows(), on_archived).prop_map(|(of, knows, on)| Step::Delete(of, knows, on)),
        4 => index().prop_map(Step::Restore),
        4 => (index(), scrubs).prop_map(|(of, path)| Step::Redact(of, path)),
        1 => prop::bool::weighted(0.3).prop_map(|rare| if rare { Step::Archive } else { Step::Clock(0) }),
    ]
}

fn words(n: u8) -> String {
    "word ".repeat(usize::from(n))
}

impl Step {
    /// The command, or the move of clock or author that it is.
    fn command(&self, model: &mut Model) -> Option<Command> {
        match self {
            Self::Clock(by) => model.now += by,
            Self::Author(n) => model.actor = actor(*n),
            Self::Archive => return Some(Command::ArchiveStore),
            Self::Create(path, content) => return Some(create(PATHS[*path], &words(*content))),
            _ if model.versions.is_empty() => {}
            Self::Update { of, path: to, summary: about, content, knows } => {
                let memory = of.get(&model.versions).version.memory;
                return Some(Command::UpdateMemory {
                    memory: memory.into(),
                    path: to.map(|n| path(PATHS[n])),
                    summary: about.map(|n| summary(&words(n))),
                    content: content.map(|n| text(&words(n))),
                    expected: knows.about(model, memory),
                });
            }
            Self::Delete(of, knows, on_archived) => {
                let memory = of.get(&model.versions).version.memory;
                let expected = knows.about(model, memory);
                return Some(Command::DeleteMemory {
                    memory: memory.into(),
                    expected,
                    on_archived: *on_archived,
                });
            }
            Self::Restore(of) => return Some(restore(&of.get(&model.versions).version)),
            Self::Redact(of, path) => return Some(redact(&of.get(&model.versions).version, *path)),
        }
        None
    }
}

impl Knows {
    fn about(self, model: &Model, memory: MemoryId) -> Expected {
        let current = model.live(memory).map(|current| current.memory.content_sha256);
        match self {
            Self::Nothing => Expected::Anything,
            Self::Current => Expected::Content(current.unwrap_or(Sha256::of(b""))),
            Self::Stale => Expected::Content(Sha256::of(b"never written")),
            Self::Nonsense => Expected::Impossible,
        }
    }
}

/// DESIGN 3.1, 3.5 and 3.6, and section 4 on ids and times, of a store of which nothing was swept.
fn holds(model: &Model) {
    let live: Vec<_> = model.memories.values().collect();
    for (n, one) in live.iter().enumerate() {
        let clash = live[n + 1..].iter().find(|other| one.memory.path.overlaps(&other.memory.path));
        assert_eq!(clash, None, "in the way of {one:?}");
    }
    let counters = model.store().counters;
    assert_eq!(counters.memories, live.len() as u64);
    assert!(counters.memories <= CAP);
    assert_eq!(counters.bytes, live.iter().map(|current| current.memory.size_bytes).sum::<u64>());
    assert_eq!(counters.versions, model.versions.len() as u64);
    for pair in model.versions.windows(2) {
        assert!(pair[0].version.id < pair[1].version.id, "ids increase");
    }
    // Versions and marks are one history without gaps.
    let versions = model.versions.iter().map(|new| (new.version.sequence, new.version.created_at));
    let mut places: Vec<_> =
        versions.chain(model.marks.iter().map(|mark| (mark.sequence, mark.created_at))).collect();
    places.sort_unstable();
    assert!(places.iter().map(|(sequence, _)| *sequence).eq(1..=counters.sequence));
    assert!(places.windows(2).all(|pair| pair[0].1 < pair[1].1), "times increase");
    for current in live {
        let of_it = |new: &&NewVersion| new.version.memory == current.memory.id;
        let head = model.versions.iter().rfind(of_it).expect("a live memory has versions");
        assert_eq!(head.version.id, current.memory.version, "the head is the newest version");
        assert_eq!(head.version.redaction, None, "the head is never redacted");
        assert_eq!(head.version.path.as_ref(), Some(&current.memory.path));
        assert_eq!(head.summary.as_ref(), Some(&current.summary));
        assert_eq!(model.texts[&head.version.id].sha256(), current.memory.content_sha256);
    }
}

/// What an update shall come to by spec/anthropic.md 3.5, worked out from the state alone: `Ok` says whether it
/// writes.
fn update_comes_to(model: &Model, command: &Command) -> Option<Result<bool, &'static str>> {
    let Command::UpdateMemory { memory, path, summary, content, expected } = command else { return None };
    if model.store().archived_at.is_some() {
        return Some(Err("archived"));
    }
    let Some(current) = model.id_of(memory).and_then(|id| model.live(id)) else {
        return Some(Err("not found"));
    };
    let (old_path, old_hash) = (&current.memory.path, current.memory.content_sha256);
    let same = path.as_ref().is_none_or(|path| path == old_path)
        && summary.as_ref().is_none_or(|summary| *summary == current.summary)
        && content.as_ref().is_none_or(|content| content.sha256() == old_hash);
    let fits = matches!(expected, Expected::Anything) || *expected == Expected::Content(old_hash);
    let others = model.memories.values().filter(|other| other.memory.id != current.memory.id);
    let taken = path.as_ref().is_some_and(|path| {
        path != old_path && others.into_iter().any(|other| other.memory.path.overlaps(path))
    });
    Some(match (same, fits, taken) {
        (true, _, _) => Ok(false),
        (_, false, _) => Err("stale"),
        (_, _, true) => Err("taken"),
        _ => Ok(true),
    })
}

fn name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::StoreArchived(_) => "archived",
        Refusal::MemoryNotFound(_) => "not found",
        Refusal::ContentChanged { .. } => "stale",
        Refusal::PathOccupied { .. } => "taken",
        _ => "something else",
    }
}

/// Carries out one step and compares what it did with what it may do.
fn take(model: &mut Model, step: &Step) {
    let Some(command) = step.command(model) else { return };
    let before = model.clone();
    let result = model.run(&command);
    let versions = model.versions.len() - before.versions.len();
    if let Some(expected) = update_comes_to(&before, &command) {
        let seen = result.as_ref().map(|decision| !decision.writes.is_empty()).map_err(name);
        assert_eq!(seen, expected, "{command:?}");
    }
    match &result {
        Err(_) => {
            assert_eq!(versions, 0, "a refusal writes nothing");
            assert_eq!(model.store, before.store);
        }
        Ok(Decision { writes, .. }) if writes.is_empty() => {
            assert_eq!(versions, 0);
            assert_eq!((&model.store, &model.memories), (&before.store, &before.memories));
        }
        Ok(_) => {
            let writes_one = !matches!(command, Command::ArchiveStore | Command::RedactVersion { .. });
            assert_eq!(versions, usize::from(writes_one), "{command:?}");
            assert_eq!(model.marks.len() - before.marks.len(), usize::from(!writes_one), "{command:?}");
            assert!(model.store().changed_at > before.store().changed_at);
        }
    }
    for (old, now) in before.versions.iter().zip(&model.versions) {
        let redacted =
            matches!(&command, Command::RedactVersion { version, .. } if *version == old.version.id);
        assert!(old == now || redacted, "a version changes only by its redaction");
    }
    holds(model);
}

proptest! {
    #[test]
    fn whatever_is_asked_the_invariants_hold(steps in proptest::collection::vec(step(), 1..80)) {
        let mut model = Model::with_limits(Limits { memories_per_store: CAP, ..Limits::default() });
        for step in &steps {
            take(&mut model, step);
        }
    }

    #[test]
    fn a_clock_that_jumps_back_never_reorders_history(jumps in proptest::collection::vec(-1_000_000i64..1_000, 1..40)) {
        let mut model = Model::new();
        let id = model.create("/a", "start");
        for (n, jump) in jumps.into_iter().enumerate() {
            model.now += jump;
            model.write(&update(id).content(&n.to_string()).command());
        }
        holds(&model);
    }
}
