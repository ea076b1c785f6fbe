//! Lists of memories: order, prefixes, depth, keysets. spec/anthropic.md 3.7, spec/recursion.md 6.2, DESIGN 3.11.

use bytes::Bytes;
use stele_core::command::Command;
use stele_core::list::{Depth, Detail, MemoryEntry, MemoryQuery};
use stele_core::storage::MemoryRef;

use crate::StoreFactory;
use crate::world::*;

async fn filled(world: &World, paths: &[&str]) -> Handle {
    let store = world.store("Notes").await;
    for at in paths {
        store.create(at, at).await;
    }
    store
}

fn from(below: &str, depth: Depth, after: Option<&str>, limit: usize) -> MemoryQuery {
    let after = after.map(str::to_owned);
    MemoryQuery { prefix: prefix(below), depth, detail: Detail::Basic, after, limit }
}

fn names(entries: &[MemoryEntry]) -> Vec<&str> {
    entries.iter().map(MemoryEntry::path).collect()
}

pub(crate) async fn order_is_by_bytes_whatever_the_locale(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let expected = [
        "/A.md", "/Zoo.md", "/a.md", "/a/b.md", "/a0.md", "/a_z.md", "/ab.md", "/z.md", "/é.md", "/Ａ.md",
        "/😀.md",
    ];
    let mut shuffled = expected;
    shuffled.reverse();
    let store = filled(&world, &shuffled).await;
    for limit in [1, 2, 3, 10, 11, 12] {
        assert_eq!(store.walk("/", Depth::All, limit).await, expected, "pages of {limit}");
    }
}

pub(crate) async fn a_directory_sorts_at_its_own_path_and_appears_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/p.md", "/p0.md", "/q/x.md", "/q/y/z.md"]).await;
    for n in 0..12 {
        store.create(&format!("/p/{n:02}.md"), "").await;
    }
    for limit in [1, 2, 3, 4, 5] {
        let walked = store.walk("/", Depth::One, limit).await;
        assert_eq!(walked, ["/p.md", "/p/", "/p0.md", "/q/"], "pages of {limit}");
    }
    assert_eq!(store.walk("/p/", Depth::One, 5).await.len(), 12);
    assert_eq!(store.walk("/q/", Depth::One, 1).await, ["/q/x.md", "/q/y/"]);
    assert_eq!(store.walk("/q/", Depth::All, 1).await, ["/q/x.md", "/q/y/z.md"]);
}

pub(crate) async fn a_prefix_is_whole_segments_taken_literally(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let all = [
        "/notes/todo.md",
        "/notes-archive/todo.md",
        "/notes2",
        "/n_tes/a",
        "/100%/a",
        "/100x/a",
        "/NOTES/b",
        "/é/a",
        "/é/é",
        "/f/z",
        "/*/s",
        "/a\\b/c",
    ];
    let store = filled(&world, &all).await;
    let cases: [(&str, &[&str]); 8] = [
        ("/notes/", &["/notes/todo.md"]),
        ("/n_tes/", &["/n_tes/a"]),
        ("/100%/", &["/100%/a"]),
        ("/é/", &["/é/a", "/é/é"]),
        ("/*/", &["/*/s"]),
        ("/a\\b/", &["/a\\b/c"]),
        ("/notes/todo.md/", &[]),
        ("/none/", &[]),
    ];
    for (below, expected) in cases {
        for depth in [Depth::All, Depth::One] {
            for limit in [1, 2, 10] {
                assert_eq!(store.walk(below, depth, limit).await, expected, "{below} {depth:?} {limit}");
            }
        }
    }
}

pub(crate) async fn an_empty_store_and_an_exact_last_page(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    for depth in [Depth::All, Depth::One] {
        let page = store.list(from("/", depth, None, 20)).await;
        assert_eq!((page.items, page.more), (vec![], false));
    }
    for n in 0..20 {
        store.create(&format!("/m{n:02}"), "").await;
    }
    for depth in [Depth::All, Depth::One] {
        for (limit, more) in [(19, true), (20, false), (21, false)] {
            assert_eq!(store.list(from("/", depth, None, limit)).await.more, more, "limit {limit}");
        }
        let last = store.list(from("/", depth, Some("/m09"), 10)).await;
        assert_eq!((last.items.len(), last.more), (10, false));
    }
}

pub(crate) async fn a_page_that_ends_with_a_directory_knows_whether_more_follows(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a", "/d/1", "/d/2", "/d/3"]).await;
    let page = store.list(from("/", Depth::One, None, 2)).await;
    assert_eq!((names(&page.items), page.more), (vec!["/a", "/d/"], false), "the rest lies in /d/");
    store.create("/e", "").await;
    let page = store.list(from("/", Depth::One, None, 2)).await;
    assert_eq!((names(&page.items), page.more), (vec!["/a", "/d/"], true));
}

pub(crate) async fn each_detail_brings_as_much_as_was_asked_for(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.create("/d/b.md", "two").await;
    let about = Some(summary("about it"));
    let cases = [
        (Detail::Basic, None, None),
        (Detail::Summary, about.clone(), None),
        (Detail::Full, about, Some(Bytes::from("one"))),
    ];
    for (detail, summary, content) in cases {
        for depth in [Depth::All, Depth::One] {
            let page = store.list(MemoryQuery { detail, ..from("/", depth, None, 10) }).await;
            let expected = MemoryEntry::Memory {
                memory: memory.clone(),
                summary: summary.clone(),
                content: content.clone(),
            };
            assert_eq!(page.items[0], expected, "{detail:?} {depth:?}");
            assert_eq!(page.items.len(), 2);
        }
    }
}

pub(crate) async fn lists_show_heads_as_they_are_now(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a", "/b", "/c"]).await;
    let entries = store.list(everything()).await.items;
    let MemoryEntry::Memory { memory, .. } = &entries[0] else { panic!("a memory: {entries:?}") };
    let current = store.write(edit(memory.id).path("/z").content("new").summary("other")).await;
    let entries = store.list(everything()).await.items;
    assert_eq!(names(&entries), ["/b", "/c", "/z"]);
    let (summary, content) = (Some(current.summary), Some(Bytes::from("new")));
    assert_eq!(entries[2], MemoryEntry::Memory { memory: current.memory, summary, content });
}

pub(crate) async fn a_list_goes_on_where_its_last_memory_was_deleted(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(store.create(&format!("/m{n:02}"), "").await.id);
    }
    for depth in [Depth::All, Depth::One] {
        let first = store.list(from("/", depth, None, 10)).await;
        assert_eq!(names(&first.items).last(), Some(&"/m09"));
    }
    for n in [9, 10] {
        store.apply(delete(ids[n])).await;
    }
    for depth in [Depth::All, Depth::One] {
        let next = store.list(from("/", depth, Some("/m09"), 10)).await;
        let expected: Vec<_> = (11..21).map(|n| format!("/m{n:02}")).collect();
        assert_eq!(names(&next.items), expected, "{depth:?}");
    }
}

pub(crate) async fn a_list_goes_on_after_a_directory_that_is_gone_or_grew(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a", "/d/5", "/e"]).await;
    let after_directory = || from("/", Depth::One, Some("/d/"), 10);
    store.create("/d/9", "").await;
    store.create("/d/1/deep", "").await;
    assert_eq!(names(&store.list(after_directory()).await.items), ["/e"]);
    for entry in store.list(from("/d/", Depth::All, None, 10)).await.items {
        let MemoryEntry::Memory { memory, .. } = entry else { panic!("depth 0 has no directories") };
        store.apply(delete(memory.id)).await;
    }
    assert_eq!(names(&store.list(after_directory()).await.items), ["/e"]);
    store.create("/d", "now a memory").await;
    assert_eq!(names(&store.list(after_directory()).await.items), ["/e"]);
}

pub(crate) async fn a_walk_during_writes_shows_each_untouched_entry_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let mut expected = Vec::new();
    for n in 0..20 {
        let at = format!("/d{n:02}/x");
        store.create(&at, "").await;
        store.create(&format!("/m{n:02}"), "").await;
        expected.push(format!("/d{n:02}/"));
        expected.push(format!("/m{n:02}"));
    }
    expected.sort();
    let writer = store.clone();
    let writes = tokio::spawn(async move {
        for n in 0..60 {
            // Around every place that the walk may stand at, without touching what is expected.
            let made = writer.create(&format!("/d{:02}/passing{n}", n % 20), "").await;
            let other = writer.create(&format!("/m{:02}!", n % 20), "").await;
            writer.write(edit(other.id).path(&format!("/passing{n}"))).await;
            writer.apply(delete(made.id)).await;
            writer.apply(delete(other.id)).await;
        }
    });
    let mut walks = 0;
    while walks < 3 || !writes.is_finished() {
        let mut seen = store.walk("/", Depth::One, 1 + walks % 3).await;
        seen.retain(|name| !name.contains('!') && !name.contains("passing"));
        assert_eq!(seen, expected, "walk {walks}");
        walks += 1;
    }
    writes.await.expect("the writer does not panic");
}

pub(crate) async fn every_full_entry_is_whole_while_writers_write(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a", "/b", "/c", "/d/e"]).await;
    let writer = store.clone();
    let writes = tokio::spawn(async move {
        let entries = writer.list(everything()).await.items;
        for n in 0..120 {
            let MemoryEntry::Memory { memory, .. } = &entries[n % 4] else { panic!("a memory") };
            let text = format!("{n} ").repeat(1 + n % 40);
            writer.write(edit(memory.id).content(&text).summary(&text.len().to_string())).await;
        }
    });
    while !writes.is_finished() {
        for entry in store.list(everything()).await.items {
            let MemoryEntry::Memory { memory, summary, content: Some(content) } = entry else {
                panic!("a memory with its content: {entry:?}")
            };
            let hash = stele_core::hash::Sha256::of(&content);
            assert_eq!((memory.content_sha256, memory.size_bytes), (hash, content.len() as u64));
            let summary = summary.expect("a full list brings the summary");
            assert!(summary.as_str() == "about it" || summary.as_str() == content.len().to_string());
        }
    }
    writes.await.expect("the writer does not panic");
}

pub(crate) async fn an_archived_store_is_listed_as_before(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a", "/d/b"]).await;
    let before = store.list(everything()).await;
    store.apply(Command::ArchiveStore).await;
    assert_eq!(store.list(everything()).await, before);
}

pub(crate) async fn a_directory_counts_what_lies_beneath_it_where_summaries_are_asked_for(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let store = filled(&world, &["/a/1", "/a/b/2", "/a/b/3", "/a/bc/4", "/a0", "/é/x", "/z/y/x/w"]).await;
    let counts = async |below: &str, limit| {
        let (mut counts, mut after) = (Vec::new(), None);
        loop {
            let query =
                MemoryQuery { detail: Detail::Summary, ..from(below, Depth::One, after.as_deref(), limit) };
            let page = store.list(query).await;
            after = page.items.last().map(|entry| entry.path().to_owned());
            counts.extend(page.items.into_iter().filter_map(|entry| match entry {
                MemoryEntry::Directory { path, count } => Some((path, count.expect("counted"))),
                MemoryEntry::Memory { summary, .. } => {
                    assert!(summary.is_some());
                    None
                }
            }));
            if !page.more {
                return counts;
            }
        }
    };
    let all = [("/a/", 4), ("/z/", 1), ("/é/", 1)].map(|(path, count)| (path.to_owned(), count));
    for limit in [1, 2, 3, 10] {
        assert_eq!(counts("/", limit).await, all, "pages of {limit}");
    }
    assert_eq!(counts("/a/", 10).await, [("/a/b/".to_owned(), 2), ("/a/bc/".to_owned(), 1)]);
    let gone = store.read(MemoryRef::Path(path("/a/b/2"))).await.expect("live").memory.id;
    store.apply(delete(gone)).await;
    assert_eq!(counts("/a/", 10).await, [("/a/b/".to_owned(), 1), ("/a/bc/".to_owned(), 1)]);
    let uncounted = store.list(from("/", Depth::One, None, 10)).await;
    assert!(uncounted.items.iter().all(|e| !matches!(e, MemoryEntry::Directory { count: Some(_), .. })));
}
