//! Rules about stores themselves. spec/anthropic.md 2.3, spec/recursion.md 5.

use super::model::*;
use crate::decide::*;

fn named(name: &str) -> Command {
    let name = crate::text::Name::parse(name).expect("a legal name");
    Command::UpdateStore { name: Some(name), description: None, metadata: metadata(&[]) }
}

fn patched(pairs: &[(&str, Option<&str>)]) -> Command {
    Command::UpdateStore { name: None, description: None, metadata: metadata(pairs) }
}

fn judge(new: &NewStore, stores: u64, limits: &Limits) -> Result<Store, Refusal> {
    let situation = WorkspaceSituation { workspace: workspace(), stores };
    let now = Timestamp::from_micros(START);
    decide_store(&situation, new, &Context { actor: actor(3), reason: None, now, random: [1, 2], limits })
}

#[test]
fn a_new_store_is_empty_and_its_times_are_one() {
    let store = judge(&new_store("Release policy"), 5, &Limits::default()).expect("a legal store");
    assert_eq!(store.slug, "release-policy");
    assert_eq!(store.counters, Counters::default());
    assert_eq!((store.created_at, store.changed_at), (store.updated_at, store.updated_at));
    assert_eq!((store.origin, store.archived_at, store.created_by), (Origin::Curated, None, actor(3)));
}

#[test]
fn a_name_without_letters_or_digits_gives_the_id_as_slug() {
    let store = judge(&new_store("日本"), 0, &Limits::default()).expect("a legal store");
    assert_eq!(store.slug, store.id.to_string());
}

#[test]
fn the_cap_on_stores_is_exact_and_metadata_is_bounded() {
    let limits = Limits { stores_per_workspace: Some(3), ..Limits::default() };
    assert!(judge(&new_store("third"), 2, &limits).is_ok());
    assert_eq!(judge(&new_store("fourth"), 3, &limits), Err(Refusal::StoreLimit { limit: 3 }));
    let keys: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (key.as_str(), Some("v"))).collect();
    let crowded = NewStore { metadata: metadata(&pairs), ..new_store("crowded") };
    let refusal = judge(&crowded, 0, &limits).expect_err("17 pairs");
    assert!(matches!(refusal, Refusal::Invalid { field, .. } if field == "metadata"));
}

#[test]
fn an_update_moves_updated_at_and_one_that_changes_nothing_does_not() {
    let mut model = Model::new();
    model.now += 50;
    model.run(&named("Other")).expect("not refused");
    let changed = model.store().clone();
    assert_eq!(changed.name.as_str(), "Other");
    assert_eq!(changed.slug, "notes", "the slug stays");
    assert_eq!((changed.updated_at.as_micros(), changed.changed_at), (START + 50, changed.updated_at));
    model.now += 50;
    for command in [named("Other"), patched(&[]), patched(&[("absent", None)])] {
        let decision = model.run(&command).expect("not refused");
        assert_eq!(decision.writes, []);
        assert_eq!(decision.outcome, Outcome::Store(Box::new(changed.clone())));
    }
}

#[test]
fn memory_writes_do_not_move_a_stores_updated_at() {
    let mut model = Model::new();
    let before = model.store().clone();
    model.now += 50;
    model.create("/a.md", "one");
    assert_eq!(model.store().updated_at, before.updated_at);
    assert!(model.store().changed_at > before.changed_at);
}

#[test]
fn metadata_is_patched_and_bounded_after_the_patch() {
    let mut model = Model::new();
    model.run(&patched(&[("a", Some("1")), ("b", Some("2"))])).expect("not refused");
    model.run(&patched(&[("a", None), ("c", Some(""))])).expect("not refused");
    let pairs: Vec<_> = model.store().metadata.pairs().iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(pairs, [("b", "2"), ("c", "")]);
    let keys: Vec<String> = (0..15).map(|n| n.to_string()).collect();
    let more: Vec<_> = keys.iter().map(|key| (key.as_str(), Some("v"))).collect();
    assert!(matches!(model.refused(&patched(&more)), Refusal::Invalid { field, .. } if field == "metadata"));
}

#[test]
fn archiving_stamps_once_and_for_good() {
    let mut model = Model::new();
    model.now += 50;
    model.run(&Command::ArchiveStore).expect("not refused");
    let archived = model.store().clone();
    assert_eq!(archived.archived_at, Some(archived.updated_at));
    model.now += 50;
    let again = model.run(&Command::ArchiveStore).expect("idempotent");
    assert_eq!((again.writes, model.store()), (vec![], &archived));
}

#[test]
fn an_archived_store_takes_redactions_its_deletion_and_deletions_where_the_dialect_allows() {
    let mut model = Model::new();
    let memory = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(memory).content("two").command());
    model.run(&Command::ArchiveStore).expect("not refused");
    let closed = Refusal::StoreArchived(model.store().id);
    let refused = [
        named("Other"),
        named("Notes"),
        create("/b.md", "x"),
        update(memory).content("three").command(),
        update(memory).content("two").command(),
        delete(memory),
        restore(&first),
    ];
    for command in refused {
        assert_eq!(model.refused(&command), closed, "{command:?}");
    }
    model.run(&redact(&first, RedactedPath::Scrub)).expect("redaction goes on");
    let allowed = Command::DeleteMemory {
        memory: memory.into(),
        expected: Expected::Anything,
        on_archived: OnArchived::Allow,
    };
    assert_eq!(model.write(&allowed).operation, Operation::Deleted);
    model.run(&Command::DeleteStore).expect("deletion is allowed");
    assert!(model.store.is_none());
}

#[test]
fn a_learned_store_refuses_every_edit_but_redaction() {
    let mut model = Model::new();
    let memory = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.write(&update(memory).content("two").command());
    model.store.as_mut().expect("the store").origin = Origin::Reflection;
    let learned = Refusal::StoreLearned(model.store().id);
    let refused = [
        named("Other"),
        Command::ArchiveStore,
        Command::DeleteStore,
        create("/b.md", "x"),
        update(memory).content("three").command(),
        Command::DeleteMemory {
            memory: memory.into(),
            expected: Expected::Anything,
            on_archived: OnArchived::Allow,
        },
        restore(&first),
    ];
    for command in refused {
        assert_eq!(model.refused(&command), learned, "{command:?}");
    }
    model.run(&redact(&first, RedactedPath::Keep)).expect("redaction goes on");
}

#[test]
fn a_store_that_is_not_there_refuses_everything_by_its_id() {
    let mut model = Model::new();
    let memory = model.create("/a.md", "one");
    let first = model.newest().clone();
    model.run(&Command::DeleteStore).expect("not refused");
    let commands = [
        named("Other"),
        Command::ArchiveStore,
        Command::DeleteStore,
        create("/b.md", "x"),
        update(memory).command(),
        delete(memory),
        restore(&first),
        redact(&first, RedactedPath::Keep),
    ];
    for command in commands {
        assert!(matches!(model.refused(&command), Refusal::StoreNotFound(_)), "{command:?}");
    }
}
