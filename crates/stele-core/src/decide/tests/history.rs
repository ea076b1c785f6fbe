//! Rules about restoring and redacting versions. spec/anthropic.md 4.4, spec/recursion.md 7.4 and 7.5.

use super::model::*;
use crate::decide::*;

/// A version that no store has.
fn unknown(like: &Version) -> Version {
    Version { id: VersionId::mint(like.created_at, 42), ..like.clone() }
}

#[test]
fn over_a_live_memory_text_and_summary_come_back_and_the_path_stays() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(id).path("/b.md").content("two").summary("other").command());
    let version = model.write(&restore(&first));
    let current = model.live(id).expect("live");
    assert_eq!((version.operation, &current.summary), (Operation::Updated, &summary("about it")));
    assert_eq!((current.memory.path.as_str(), current.memory.version), ("/b.md", version.id));
    assert_eq!(current.memory.created_at, first.created_at);
    assert_eq!(model.texts[&version.id], text("one"));
}

#[test]
fn a_restore_records_itself_also_when_the_text_is_the_same() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let head = model.newest().clone();
    let version = model.write(&restore(&head));
    assert_eq!((version.operation, version.memory), (Operation::Updated, id));
}

#[test]
fn a_deleted_memory_comes_back_under_its_id_at_the_versions_path() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(id).path("/b.md").content("two").command());
    model.write(&delete(id));
    let version = model.write(&restore(&first));
    let memory = &model.live(id).expect("live again").memory;
    assert_eq!((version.operation, version.memory), (Operation::Recreated, id));
    assert_eq!((memory.path.as_str(), memory.created_at), ("/a.md", version.created_at));
    assert_eq!(model.store().counters.memories, 1);
}

#[test]
fn a_deleted_memory_does_not_come_back_onto_a_taken_path_or_into_a_full_store() {
    let mut model = Model::with_limits(Limits { memories_per_store: 1, ..Limits::default() });
    let id = model.create("/a/b", "one");
    let first = model.newest().clone();
    model.write(&delete(id));
    let other = model.create("/a", "new");
    assert_eq!(
        model.refused(&restore(&first)),
        Refusal::PathOccupied { wanted: path("/a/b"), by: other, at: path("/a") }
    );
    model.write(&update(other).path("/z").command());
    assert_eq!(model.refused(&restore(&first)), Refusal::MemoryLimit { limit: 1 });
}

#[test]
fn deletions_redacted_versions_and_unknown_ones_are_not_restored() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(id).content("two").command());
    let deletion = model.write(&delete(id));
    model.run(&redact(&first, RedactedPath::Keep)).expect("not the head");
    for version in [&first, &deletion] {
        assert_eq!(model.refused(&restore(version)), Refusal::VersionNotRestorable(version.id));
    }
    let unknown = unknown(&first);
    assert_eq!(model.refused(&restore(&unknown)), Refusal::VersionNotFound(unknown.id));
    assert_eq!(model.refused(&redact(&unknown, RedactedPath::Keep)), Refusal::VersionNotFound(unknown.id));
}

#[test]
fn the_head_is_not_redacted_while_its_memory_lives() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let head = model.newest().clone();
    for path in [RedactedPath::Keep, RedactedPath::Scrub] {
        assert_eq!(model.refused(&redact(&head, path)), Refusal::VersionIsHead(head.id));
    }
    let deletion = model.write(&delete(id));
    model.run(&redact(&head, RedactedPath::Scrub)).expect("no longer live");
    model.run(&redact(&deletion, RedactedPath::Scrub)).expect("no longer live");
}

#[test]
fn a_redaction_takes_text_hash_and_size_and_keeps_who_and_when() {
    for (kept, how) in [(true, RedactedPath::Keep), (false, RedactedPath::Scrub)] {
        let mut model = Model::new();
        let id = model.create("/a.md", "one");
        let first = model.newest().clone();
        model.write(&update(id).content("two").command());
        let counters = Counters { sequence: 3, ..model.store().counters };
        model.actor = actor(9);
        model.now += 500;
        let decision = model.run(&redact(&first, how)).expect("not the head");
        let at = Timestamp::from_micros(model.now);
        let expected = Version {
            path: first.path.clone().filter(|_| kept),
            recorded: None,
            redaction: Some(Redaction { at, by: actor(9) }),
            ..first.clone()
        };
        let stored = model.version(first.id).expect("kept");
        assert_eq!(decision.outcome, Outcome::Version(Box::new(expected.clone())));
        assert_eq!((&stored.version, &stored.summary), (&expected, &None));
        assert_eq!(model.store().counters, counters, "no version is written");
    }
}

#[test]
fn a_second_redaction_keeps_the_first_stamps_and_may_still_scrub_the_path() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(id).content("two").command());
    model.run(&redact(&first, RedactedPath::Keep)).expect("not the head");
    let once = model.version(first.id).expect("kept").version.clone();
    model.now += 1_000;
    model.actor = actor(9);
    let again = model.run(&redact(&first, RedactedPath::Keep)).expect("idempotent");
    assert_eq!((again.writes, again.outcome), (vec![], Outcome::Version(Box::new(once.clone()))));
    model.run(&redact(&first, RedactedPath::Scrub)).expect("idempotent");
    let scrubbed = model.version(first.id).expect("kept").version.clone();
    assert_eq!(scrubbed, Version { path: None, ..once });
    for path in [RedactedPath::Scrub, RedactedPath::Keep] {
        assert_eq!(model.run(&redact(&first, path)).expect("idempotent").writes, []);
    }
}
