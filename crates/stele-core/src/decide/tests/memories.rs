//! Rules about creating, changing and deleting memories. spec/anthropic.md 3.3 to 3.6 and 5.

use super::model::*;
use crate::decide::*;
use crate::hash::Sha256;

#[test]
fn a_new_memory_is_its_own_head_and_its_times_are_one() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let memory = &model.live(id).expect("live").memory;
    let version = model.newest();
    assert_eq!((memory.version, memory.created_at), (version.id, memory.updated_at));
    assert_eq!((version.operation, version.sequence), (Operation::Created, 1));
    assert_eq!(version.path.as_ref(), Some(&memory.path));
    assert_eq!((memory.content_sha256, memory.size_bytes), (Sha256::of(b"one"), 3));
}

#[test]
fn creating_at_above_or_below_a_live_path_names_what_is_in_the_way() {
    let mut model = Model::new();
    let y = model.create("/d/y", "");
    model.create("/d/z", "");
    for (wanted, at) in [("/d/y", "/d/y"), ("/d", "/d/y"), ("/d/y/below", "/d/y")] {
        let refusal = model.refused(&create(wanted, "x"));
        assert_eq!(refusal, Refusal::PathOccupied { wanted: path(wanted), by: y, at: path(at) });
    }
    for free in ["/d/yy", "/d_y", "/d/Y", "/dd/y"] {
        model.create(free, "");
    }
}

#[test]
fn a_deleted_path_is_free_at_once_for_a_new_memory() {
    let mut model = Model::new();
    let old = model.create("/a", "one");
    model.write(&delete(old));
    assert_eq!(model.refused(&delete(old)), Refusal::MemoryNotFound(old));
    assert_ne!(model.create("/a/b", "one"), old);
}

#[test]
fn what_changed_decides_the_operation_and_the_id_stays() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let created_at = model.live(id).expect("live").memory.created_at;
    let cases = [
        (update(id).content("two"), Operation::Updated),
        (update(id).summary("new"), Operation::Updated),
        (update(id).path("/b.md"), Operation::Renamed),
        (update(id).path("/c.md").content("three"), Operation::Updated),
        (update(id).path("/d.md").summary("newer"), Operation::Updated),
        (update(id).path("/e.md").content("three"), Operation::Renamed),
    ];
    for (change, operation) in cases {
        let version = model.write(&change.command());
        let memory = &model.live(id).expect("live").memory;
        assert_eq!((version.operation, version.memory), (operation, id));
        assert_eq!((memory.version, memory.updated_at), (version.id, version.created_at));
        assert_eq!(memory.created_at, created_at);
    }
    assert_eq!(model.memories.keys().map(MemoryPath::as_str).collect::<Vec<_>>(), ["/e.md"]);
    assert_eq!(model.live(id).expect("live").summary, summary("newer"));
}

#[test]
fn an_update_that_changes_nothing_succeeds_even_with_a_stale_hash() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    let before = model.live(id).expect("live").clone();
    model.now += 1_000;
    let same = [
        update(id).command(),
        update(id).content("one").command(),
        update(id).content("one").path("/a.md").summary("about it").expecting("stale").command(),
        Command::UpdateMemory {
            memory: id.into(),
            path: None,
            summary: None,
            content: None,
            expected: Expected::Impossible,
        },
    ];
    for command in same {
        let decision = model.run(&command).expect("a repeated success");
        let expected = (vec![], Outcome::Memory(Box::new(before.clone())), 1);
        assert_eq!((decision.writes, decision.outcome, decision.sequence), expected);
    }
}

#[test]
fn a_stale_hash_refuses_whatever_would_change_and_names_the_current_one() {
    let mut model = Model::new();
    let id = model.create("/a.md", "one");
    model.create("/taken", "");
    let stale = Refusal::ContentChanged { memory: id, actual: Sha256::of(b"one") };
    let commands = [
        update(id).content("two").expecting("stale").command(),
        update(id).summary("new").expecting("stale").command(),
        update(id).path("/b.md").expecting("stale").command(),
        // The hash comes before the path.
        update(id).path("/taken").expecting("stale").command(),
        Command::DeleteMemory {
            memory: id.into(),
            expected: Expected::Content(Sha256::of(b"stale")),
            on_archived: OnArchived::Refuse,
        },
        Command::DeleteMemory {
            memory: id.into(),
            expected: Expected::Impossible,
            on_archived: OnArchived::Refuse,
        },
    ];
    for command in commands {
        assert_eq!(model.refused(&command), stale, "{command:?}");
    }
    assert!(matches!(
        model.refused(&update(id).path("/taken").expecting("one").command()),
        Refusal::PathOccupied { .. }
    ));
    model.write(&update(id).path("/b.md").expecting("one").command());
}

#[test]
fn of_many_updates_with_one_precondition_exactly_one_wins() {
    let mut model = Model::new();
    let id = model.create("/plan.md", "base");
    let attempts = (0..50).map(|n| update(id).content(&format!("edit {n}")).expecting("base").command());
    let results: Vec<_> = attempts.map(|command| model.run(&command)).collect();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let changed = |result: &&Result<_, Refusal>| matches!(result, Err(Refusal::ContentChanged { .. }));
    assert_eq!(results.iter().filter(changed).count(), 49);
}

#[test]
fn a_rename_below_or_above_its_own_path_moves_away_first() {
    let mut model = Model::new();
    let id = model.create("/a", "one");
    for to in ["/a/b", "/a/b/c", "/a"] {
        assert_eq!(model.write(&update(id).path(to).command()).operation, Operation::Renamed);
    }
    model.create("/x/y", "two");
    assert!(matches!(model.refused(&update(id).path("/x").command()), Refusal::PathOccupied { .. }));
}

#[test]
fn a_full_store_takes_no_new_memory_but_every_other_change() {
    let mut model = Model::with_limits(Limits { memories_per_store: 2, ..Limits::default() });
    let a = model.create("/a", "one");
    model.create("/b", "two");
    assert_eq!(model.refused(&create("/c", "x")), Refusal::MemoryLimit { limit: 2 });
    assert!(
        matches!(model.refused(&create("/a", "x")), Refusal::PathOccupied { .. }),
        "the path comes first"
    );
    model.write(&update(a).path("/c").content("longer than before").command());
    model.write(&delete(a));
    model.create("/a", "room at once");
}

#[test]
fn a_cap_on_bytes_refuses_only_growth() {
    let mut model = Model::with_limits(Limits { store_bytes: Some(10), ..Limits::default() });
    let a = model.create("/a", "123456");
    let full = Refusal::StoreBytesLimit { limit: 10 };
    assert_eq!(model.refused(&create("/b", "12345")), full);
    model.create("/b", "1234");
    assert_eq!(model.refused(&update(a).content("1234567").command()), full);
    model.limits.store_bytes = Some(3);
    model.write(&update(a).content("12345").command());
    model.write(&update(a).path("/c").command());
    model.write(&delete(a));
    assert_eq!(model.store().counters.bytes, 4);
}

#[test]
fn a_cap_on_versions_leaves_deletions_and_no_ops() {
    let mut model = Model::with_limits(Limits { versions_per_store: Some(1), ..Limits::default() });
    let a = model.create("/a", "one");
    let first = model.newest().clone();
    let full = Refusal::VersionLimit { limit: 1 };
    for command in [create("/b", ""), update(a).content("two").command(), restore(&first)] {
        assert_eq!(model.refused(&command), full, "{command:?}");
    }
    model.run(&update(a).content("one").command()).expect("changes nothing");
    model.write(&delete(a));
    assert_eq!(model.refused(&restore(&first)), full);
}
