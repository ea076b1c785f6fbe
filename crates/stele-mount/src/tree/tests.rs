//! The mirror against a plain map from paths to texts, and the turns that have a case of their own.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn memory(n: u8) -> MemoryId {
    MemoryId::from_bytes([n; 16])
}

fn head(text: &str, version: u64) -> Head {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&version.to_be_bytes());
    Head {
        version: VersionId::from_bytes(bytes),
        hash: Sha256::of(text.as_bytes()),
        size: text.len() as u64,
        mtime: SystemTime::UNIX_EPOCH + Duration::from_micros(version),
    }
}

fn stands(tree: &mut Tree, n: u8, path: &str, text: &str, version: u64) {
    tree.told(Told { memory: memory(n), now: Some((path.into(), head(text, version))) });
}

fn deleted(tree: &mut Tree, n: u8) {
    tree.told(Told { memory: memory(n), now: None });
}

/// What a walk through the tree finds: files with the hash of their text, and directories.
fn walk(tree: &mut Tree) -> BTreeMap<String, Option<Sha256>> {
    let mut found = BTreeMap::new();
    let mut open = vec![ROOT];
    while let Some(ino) = open.pop() {
        for listed in tree.listing(ino).expect("a directory").iter() {
            let path = tree.path(listed.ino).expect("linked");
            if listed.directory {
                open.push(listed.ino);
                found.insert(path, None);
            } else {
                let file = tree.file(listed.ino).expect("a file");
                found.insert(path, file.head.as_ref().map(|head| head.hash));
            }
        }
    }
    found
}

fn files(tree: &mut Tree) -> Vec<String> {
    walk(tree).into_iter().filter(|(_, hash)| hash.is_some()).map(|(path, _)| path).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Stand { n: u8, path: String },
    Delete { n: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = prop::collection::vec("[ab]", 1..4).prop_map(|names| format!("/{}", names.join("/")));
    let stand = (0..6u8, path).prop_map(|(n, path)| Step::Stand { n, path });
    prop::collection::vec(prop_oneof![3 => stand, 1 => (0..6u8).prop_map(|n| Step::Delete { n })], 0..60)
}

/// The steps that a store would take: a path is a memory or a directory, and has one memory.
fn legal(live: &BTreeMap<u8, String>, n: u8, path: &str) -> bool {
    live.iter().filter(|(other, _)| **other != n).all(|(_, other)| {
        let below =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        other != path && !below(path, other) && !below(other, path)
    })
}

proptest! {
    #[test]
    fn the_mirror_shows_what_the_store_holds(steps in steps(), relist in any::<bool>()) {
        let (mut tree, mut live) = (Tree::new(), BTreeMap::<u8, String>::new());
        let mut texts = BTreeMap::new();
        for (at, step) in steps.iter().enumerate() {
            let version = at as u64 + 1;
            match step {
                Step::Stand { n, path } if legal(&live, *n, path) => {
                    let text = format!("{version}");
                    stands(&mut tree, *n, path, &text, version);
                    live.insert(*n, path.clone());
                    texts.insert(*n, (text, version));
                }
                Step::Delete { n } if live.remove(n).is_some() => deleted(&mut tree, *n),
                _ => {}
            }
        }
        if relist {
            let all = live.iter().map(|(n, path)| (memory(*n), path.clone(), head(&texts[n].0, texts[n].1)));
            let (all, mut fresh) = (all.collect::<Vec<_>>(), Tree::new());
            stands(&mut fresh, 9, "/a", "other", 1);
            fresh.replace(all);
            prop_assert_eq!(walk(&mut fresh), walk(&mut tree));
        }
        let mut expected = BTreeMap::new();
        for (n, path) in &live {
            expected.insert(path.clone(), Some(Sha256::of(texts[n].0.as_bytes())));
            for (at, _) in path.match_indices('/').skip(1) {
                expected.insert(path[..at].to_owned(), None);
            }
        }
        prop_assert_eq!(walk(&mut tree), expected);
        prop_assert_eq!(tree.memories.len(), live.len());
    }
}

#[test]
fn old_news_changes_nothing() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/b", "new", 5);
    tree.take_news();
    stands(&mut tree, 1, "/a", "old", 4);
    assert_eq!(files(&mut tree), ["/b"]);
    assert!(tree.take_news().is_empty());
}

#[test]
fn a_memory_that_was_moved_before_this_mount_wrote_to_it_is_shown_where_it_is() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/a", "old", 1);
    let ino = tree.find("/a").expect("there");
    // Written here as version 3, while version 2 moved it and another memory took its place: none of that is told yet.
    tree.file_mut(ino).expect("there").head = Some(head("mine", 3));
    stands(&mut tree, 1, "/b", "old", 2);
    stands(&mut tree, 2, "/a", "other", 4);
    stands(&mut tree, 1, "/b", "mine", 3);
    assert_eq!(files(&mut tree), ["/a", "/b"]);
    assert_eq!(tree.find("/b"), Some(ino));
}

#[test]
fn what_is_deleted_here_does_not_come_back_with_older_news_but_with_a_restore() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/a", "one", 1);
    let ino = tree.find("/a").expect("there");
    tree.remove(ino);
    tree.dead.insert(memory(1));
    stands(&mut tree, 1, "/a", "two", 2);
    assert!(files(&mut tree).is_empty());
    deleted(&mut tree, 1);
    stands(&mut tree, 1, "/a", "two", 4);
    assert_eq!(files(&mut tree), ["/a"]);
}

#[test]
fn a_directory_goes_with_its_last_memory_unless_it_was_emptied_here() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/d/e/a", "x", 1);
    stands(&mut tree, 2, "/k/a", "x", 1);
    deleted(&mut tree, 1);
    assert_eq!(tree.find("/d"), None);
    let ino = tree.find("/k/a").expect("there");
    tree.remove(ino);
    assert!(tree.find("/k").is_some());
}

#[test]
fn a_new_file_becomes_the_memory_that_somebody_else_makes_there() {
    let mut tree = Tree::new();
    let ino = tree.make_file(ROOT, "a", None);
    stands(&mut tree, 1, "/a", "theirs", 1);
    let file = tree.file(ino).expect("the same node");
    assert_eq!((file.memory, file.foreign), (Some(memory(1)), 1));
    assert!(file.draft.is_some());
}

#[test]
fn a_new_file_gives_way_to_a_directory_and_says_so() {
    let mut tree = Tree::new();
    let ino = tree.make_file(ROOT, "a", None);
    tree.file_mut(ino).expect("there").opens = 1;
    stands(&mut tree, 1, "/a/b", "x", 1);
    assert_eq!(files(&mut tree), ["/a/b"]);
    assert_eq!(tree.file(ino).and_then(|file| file.gone), Some(Gone::Directory));
}

#[test]
fn a_rename_onto_a_memory_keeps_the_moving_node_and_the_memory_of_the_place() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/draft", "new", 1);
    stands(&mut tree, 2, "/plan", "old", 2);
    let (draft, plan) = (tree.find("/draft").expect("there"), tree.find("/plan").expect("there"));
    tree.file_mut(plan).expect("there").opens = 1;
    tree.rename(draft, ROOT, "plan");
    tree.adopt(draft, memory(2));
    assert_eq!(tree.find("/plan"), Some(draft));
    assert_eq!(tree.memories.get(&memory(2)), Some(&draft));
    assert_eq!(tree.memories.get(&memory(1)), None);
    // Who has the old file open goes on reading the old text.
    let old = tree.file(plan).expect("open");
    assert_eq!(old.head.as_ref().map(|head| head.hash), Some(Sha256::of(b"old")));
}

#[test]
fn a_parked_memory_keeps_its_place_in_the_store() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/d/a.md", "x", 1);
    let (ino, directory) = (tree.find("/d/a.md").expect("there"), tree.find("/d").expect("there"));
    tree.park(ino, "/d/a.md".into(), directory, "a.md~", Scratch::Litter);
    assert_eq!((tree.find("/d/a.md"), tree.parked_at("/d/a.md")), (None, Some(ino)));
    // Somebody else changes it: it stays put aside, with the new text.
    stands(&mut tree, 1, "/d/a.md", "y", 2);
    assert_eq!(tree.find("/d/a.md"), None);
    let new = tree.make_file(directory, "a.md", None);
    tree.adopt(new, memory(1));
    assert_eq!(tree.parked_at("/d/a.md"), None);
    assert_eq!(tree.memories.get(&memory(1)), Some(&new));
}

#[test]
fn listings_show_what_stays_once_whatever_else_changes() {
    let mut tree = Tree::new();
    for n in 0..20 {
        stands(&mut tree, n, &format!("/keep-{n:02}"), "x", 1);
    }
    let seen: Vec<u64> = tree.listing(ROOT).expect("the root").iter().map(|listed| listed.cookie).collect();
    deleted(&mut tree, 3);
    stands(&mut tree, 30, "/new", "x", 1);
    let rest: Vec<String> = tree
        .listing(ROOT)
        .expect("the root")
        .iter()
        .filter(|listed| listed.cookie > seen[9])
        .map(|listed| listed.name.to_string())
        .collect();
    let expected: Vec<String> = (10..20).map(|n| format!("keep-{n:02}")).chain(["new".into()]).collect();
    assert_eq!(rest, expected);
}

#[test]
fn the_time_of_a_directory_moves_on_with_every_name() {
    let mut tree = Tree::new();
    let mut last = tree.directory(ROOT).expect("the root").mtime;
    for n in 0..50 {
        stands(&mut tree, n, &format!("/{n}"), "x", 1);
        let now = tree.directory(ROOT).expect("the root").mtime;
        assert!(now > last);
        last = now;
    }
}

#[test]
fn the_kernel_is_told_of_what_moved_and_keeps_nothing_until_it_has_heard() {
    let mut tree = Tree::new();
    stands(&mut tree, 1, "/d/a", "x", 1);
    tree.begin();
    let (ino, directory) = (tree.find("/d/a").expect("there"), tree.find("/d").expect("there"));
    stands(&mut tree, 1, "/d/b", "y", 2);
    let news = tree.take_news();
    for piece in [News::Name(directory, "a".into()), News::Name(directory, "b".into()), News::Node(ino)] {
        assert!(news.contains(&piece), "{piece:?}");
    }
    assert!(tree.nodes[&ino].stale > 0 && tree.nodes[&directory].stale > 0);
    for piece in &news {
        tree.heard(piece);
    }
    assert!(tree.nodes.values().all(|node| node.stale == 0));
}
