//! Random trees: every walk of every prefix in every page size is what the definition says. spec/anthropic.md 3.7.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stele_core::list::Depth;
use stele_core::path::MemoryPath;

use crate::StoreFactory;
use crate::world::*;

/// Runs `test` on random values, blocking the case's own thread; a panic is shrunk and reported.
pub(crate) fn check<S: Strategy>(cases: u32, values: &S, mut test: impl AsyncFnMut(S::Value)) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let handle = tokio::runtime::Handle::current();
    let test = std::cell::RefCell::new(&mut test);
    let result = tokio::task::block_in_place(|| {
        TestRunner::new(config).run(values, |value| {
            handle.block_on((test.borrow_mut())(value));
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Segments that sort around `/` and around each other.
const SEGMENTS: [&str; 12] = ["a", "a!", "a.b", "a0", "ab", "A", "é", "z", "_", "%", "日本", "a\u{10ffff}"];

fn some_path() -> impl Strategy<Value = String> {
    proptest::collection::vec(0..SEGMENTS.len(), 1..4)
        .prop_map(|segments| segments.iter().map(|n| format!("/{}", SEGMENTS[*n])).collect())
}

/// What a list shows, by its definition.
fn listed(paths: &BTreeSet<String>, below: &str, depth: Depth) -> Vec<String> {
    let shown = paths.iter().filter(|path| path.starts_with(below)).map(|path| match depth {
        Depth::All => path.clone(),
        Depth::One => match path[below.len()..].find('/') {
            Some(slash) => path[..=below.len() + slash].to_owned(),
            None => path.clone(),
        },
    });
    let shown: BTreeSet<String> = shown.collect();
    shown.into_iter().collect()
}

pub(crate) async fn every_walk_shows_what_lies_below_its_prefix(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let trees = (proptest::collection::vec(some_path(), 1..25), 1usize..5);
    check(24, &trees, async |(wanted, limit)| {
        let store = world.store("tree").await;
        let mut paths: BTreeSet<String> = BTreeSet::new();
        for at in wanted {
            let overlaps = |other: &String| path(other).overlaps(&path(&at));
            let free = !paths.iter().any(overlaps);
            assert_eq!(store.change(create(&at, "")).await.is_ok(), free, "{at} beside {paths:?}");
            if free {
                paths.insert(at);
            }
        }
        let all: Vec<MemoryPath> = paths.iter().map(|at| path(at)).collect();
        let above: BTreeSet<String> = all
            .iter()
            .flat_map(|at| at.ancestors().map(|dir| format!("{dir}/")).collect::<Vec<_>>())
            .collect();
        for below in above.iter().map(String::as_str).chain(["/", "/none/"]) {
            for depth in [Depth::All, Depth::One] {
                let expected = listed(&paths, below, depth);
                assert_eq!(store.walk(below, depth, limit).await, expected, "{below} {depth:?} by {limit}");
            }
        }
    });
}
