use std::io::Read;

use stele_core::feed::Past;
use stele_core::hash::Sha256;
use stele_core::id::{Epoch, KeyId, MemoryId, OrganizationId, StoreId, VersionId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::model::{
    Actor, Counters, Mark, MarkKind, Memory, Operation, Origin, Recorded, Redaction, Store, Version,
    VersionText,
};
use stele_core::path::MemoryPath;
use stele_core::text::{Description, Metadata, Name, Summary};
use stele_core::time::Timestamp;

use crate::{ArchiveError, Bounds, ENTRY, End, IndexRow, Item, Manifest, Reader, Writer, groups};

const AUTHOR: Actor = Actor::ApiKey(KeyId::from_bytes([7; 16]));
const STORE: StoreId = StoreId::from_bytes([1; 16]);

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn bounds() -> Bounds {
    Bounds { limits: Limits::default(), unpacked_bytes: 64 << 20 }
}

fn store() -> Store {
    Store {
        id: STORE,
        workspace: WorkspaceId::from_bytes([2; 16]),
        name: Name::parse("Notes é").expect("legal"),
        slug: "notes-2".to_owned(),
        description: Description::parse("what we know").expect("legal"),
        metadata: Metadata::from_trusted([("team".to_owned(), "core".to_owned())].into()),
        origin: Origin::Reflection,
        agent: None,
        created_by: AUTHOR,
        created_at: at(1_000_000),
        updated_at: at(2_000_000),
        changed_at: at(9_000_000),
        archived_at: None,
        counters: Counters::default(),
    }
}

/// A live memory with its version of this sequence.
fn memory(path: &str, text: &str, sequence: u8) -> (IndexRow, Past) {
    let id = MemoryId::from_bytes([sequence + 100; 16]);
    let version = VersionId::from_bytes([sequence; 16]);
    let (sha256, created_at) = (Sha256::of(text.as_bytes()), at(i64::from(sequence) * 1_000_001));
    let path = MemoryPath::parse(path).expect("legal");
    let summary = Summary::parse("about\nit", 512).expect("legal");
    let memory = Memory {
        id,
        store: STORE,
        path: path.clone(),
        version,
        content_sha256: sha256,
        size_bytes: text.len() as u64,
        created_at,
        updated_at: created_at,
    };
    let recorded = Some(Recorded { content_sha256: sha256, size_bytes: text.len() as u64 });
    let version = Version {
        id: version,
        store: STORE,
        memory: id,
        sequence: sequence.into(),
        operation: Operation::Created,
        created_at,
        author: AUTHOR,
        path: Some(path),
        recorded,
        redaction: None,
    };
    let text = VersionText {
        version,
        summary: Some(summary.clone()),
        reason: Some("why".to_owned()),
        content: Some(text.to_owned().into()),
    };
    (IndexRow { memory, summary }, Past::Version(Box::new(text)))
}

/// A redacted version, a deletion, a mark.
fn history() -> Vec<Past> {
    let (_, Past::Version(text)) = memory("/gone", "secret", 1) else { unreachable!() };
    let redaction = Some(Redaction { at: at(8_000_000), by: AUTHOR });
    let redacted = Version { redaction, recorded: None, path: None, ..text.version.clone() };
    let deleted = Version {
        id: VersionId::from_bytes([2; 16]),
        sequence: 2,
        operation: Operation::Deleted,
        created_at: at(2_000_002),
        recorded: None,
        ..text.version.clone()
    };
    let bare = |version| {
        Past::Version(Box::new(VersionText { version, summary: None, reason: None, content: None }))
    };
    let kind = MarkKind::Redacted { memory: text.version.memory, version: text.version.id };
    let mark = Mark { store: STORE, sequence: 3, kind, created_at: at(8_000_000), author: AUTHOR };
    vec![bare(redacted), bare(deleted), Past::Mark(mark)]
}

fn archive(memories: &[(&str, &str)]) -> (Vec<u8>, Manifest, Vec<IndexRow>, Vec<Past>) {
    let all: Vec<_> = memories.iter().zip(10..).map(|((path, text), n)| memory(path, text, n)).collect();
    let rows: Vec<_> = all.iter().map(|(row, _)| row.clone()).collect();
    let live: Vec<_> = rows.iter().map(|row| row.memory.clone()).collect();
    let past: Vec<_> = history().into_iter().chain(all.into_iter().map(|(_, past)| past)).collect();
    let place = (OrganizationId::from_bytes([3; 16]), Epoch::from_bytes([4; 16]));
    let manifest = Manifest::of(place, &store(), 9, &live);
    let mut writer = Writer::archive(&manifest).expect("memory is enough");
    let mut bytes = writer.take();
    for group in groups(&live) {
        writer.index(&rows[group.clone()]).expect("it is written");
        for at in group {
            writer.content(&live[at], memories[at].1.as_bytes()).expect("it is written");
            bytes.extend(writer.take());
        }
    }
    past.iter().for_each(|past| writer.past(past).expect("it is written"));
    bytes.extend(writer.end_archive(5).expect("it ends"));
    (bytes, manifest, rows, past)
}

fn read(bytes: &[u8], bounds: &Bounds) -> Result<Vec<Item>, ArchiveError> {
    let mut reader = Reader::new(bytes, bounds)?;
    let mut items = Vec::new();
    while let Some(item) = reader.next()? {
        items.push(item);
    }
    Ok(items)
}

fn problems(items: &[Item]) -> Vec<String> {
    let problem = |item: &Item| match item {
        Item::Bad(problem) => Some(format!("{}: {}", problem.path, problem.what)),
        _ => None,
    };
    items.iter().filter_map(problem).collect()
}

const LONG: &str = "/a-directory-with-a-name/that-is-rather-long/é/and-goes-on/and-on-and-on-and-on-and-on/for-more-than-100-bytes.md";

#[test]
fn an_archive_gives_back_all_that_went_in() {
    let texts = [("/a.md", "---\nsummary: x\n---\nbody\r\n"), ("/dir/b", ""), (LONG, "é🧠")];
    let (bytes, manifest, rows, past) = archive(&texts);
    assert_eq!(bytes, archive(&texts).0, "the same store gives the same bytes");
    let mut items = read(&bytes, &bounds()).expect("it reads").into_iter();
    assert!(matches!(items.next(), Some(Item::Manifest(read)) if *read == manifest));
    let workspace = WorkspaceId::from_bytes([9; 16]);
    let described = manifest.store(workspace).expect("a store");
    let counters = Counters { sequence: 9, memories: 3, bytes: 31, ..Counters::default() };
    assert_eq!(described, Store { workspace, counters, ..store() });
    for ((_, text), row) in texts.iter().zip(&rows) {
        let Some(Item::Memory(found)) = items.next() else { panic!("a memory") };
        assert_eq!((found.row.as_ref(), &**found.content.bytes()), (Some(row), text.as_bytes()));
        assert_eq!((&found.path, found.summary.as_ref()), (&row.memory.path, Some(&row.summary)));
    }
    for wrote in &past {
        assert!(matches!(items.next(), Some(Item::Past(read)) if read == *wrote), "{wrote:?}");
    }
    assert!(matches!(items.next(), Some(Item::End(End { versions: 5, marks: 1, floor: 5 }))));
    assert!(items.next().is_none());
}

#[test]
fn an_archive_of_an_empty_store_reads() {
    let manifest =
        Manifest::of((OrganizationId::from_bytes([3; 16]), Epoch::from_bytes([4; 16])), &store(), 0, &[]);
    let bytes = Writer::archive(&manifest).and_then(|writer| writer.end_archive(0)).expect("it is written");
    let items = read(&bytes, &bounds()).expect("it reads");
    assert!(matches!(items[..], [Item::Manifest(_), Item::End(End { versions: 0, marks: 0, floor: 0 })]));
}

#[test]
fn a_sequence_is_one_of_jsons_whole_numbers() {
    let place = (OrganizationId::from_bytes([3; 16]), Epoch::from_bytes([4; 16]));
    let described = |sequence| Manifest::of(place, &store(), sequence, &[]).store(store().workspace);
    assert_eq!(described(1 << 53).expect("a store").counters.sequence, 1 << 53);
    for sequence in [(1 << 53) + 1, 9_000_000_000_000_000_000, u64::MAX] {
        let wrong = described(sequence).expect_err("beyond what an archive may claim");
        assert!(wrong.contains("beyond 2^53") && wrong.contains(&sequence.to_string()), "{wrong}");
    }
}

#[test]
fn a_cut_archive_is_named_so_wherever_it_was_cut() {
    let (bytes, ..) = archive(&[("/a.md", "text"), ("/b", &"long ".repeat(5_000))]);
    for cut in [1, 20, bytes.len() / 2, bytes.len() - 5, bytes.len() - 1] {
        assert!(read(&bytes[..cut], &bounds()).is_err(), "{cut} bytes");
    }
    assert!(matches!(read(&bytes[..bytes.len() - 1], &bounds()), Err(ArchiveError::Truncated)));
}

/// The archive unpacked, changed, and packed again.
fn changed(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "the sizes in headers stay");
    let mut tar = zstd::decode_all(bytes).expect("zstd");
    let found = tar.windows(from.len()).position(|window| window == from.as_bytes()).expect("it is there");
    tar[found..found + to.len()].copy_from_slice(to.as_bytes());
    if found % 512 == 0 {
        // The name in a header.
        let mut header = tar::Header::from_byte_slice(&tar[found..found + 512]).clone();
        header.set_cksum();
        tar[found..found + 512].copy_from_slice(header.as_bytes());
    }
    zstd::encode_all(&tar[..], 1).expect("zstd")
}

#[test]
fn lies_are_found() {
    let (bytes, manifest, ..) = archive(&[("/a.md", "the text"), ("/b", "other")]);
    let malformed = |from: &str, to: &str| match read(&changed(&bytes, from, to), &bounds()) {
        Err(ArchiveError::Malformed(what)) => what,
        other => panic!("{other:?}"),
    };
    assert!(malformed("\"memories\": 2", "\"memories\": 3").contains("counts other memories"));
    let tree = manifest.tree_sha256;
    assert!(malformed(&tree, &Sha256::of(b"").to_string()).contains("another hash of the tree"));
    assert!(malformed("\"versions\":4", "\"versions\":5").contains("its end counts"));
    assert!(malformed("\"sequence\":2,", "\"sequence\":7,").contains("history has another hash"));
    assert!(malformed("memories/b", "memories/c").contains("belongs"));
    assert!(malformed("history/", "histery/").contains("does not belong"));
    // The first occurrence is the file of the tree.
    let items = read(&changed(&bytes, "the text", "The text"), &bounds()).expect("it reads to its end");
    assert_eq!(problems(&items), ["/a.md: its content has another hash or size than the index says"]);
    let newer = changed(&bytes, "\"version\": 1", "\"version\": 2");
    assert!(matches!(read(&newer, &bounds()), Err(ArchiveError::Newer(2))));
}

#[test]
fn a_slug_that_is_none_is_refused() {
    let (_, mut manifest, ..) = archive(&[]);
    let workspace = WorkspaceId::from_bytes([9; 16]);
    for slug in ["", "-", "Notes", "a b", &StoreId::from_bytes([8; 16]).to_string()[..]] {
        slug.clone_into(&mut manifest.store.slug);
        let taken = manifest.store(workspace);
        // An id reads as a slug too.
        let legal = !slug.is_empty() && stele_core::text::slug(slug) == slug;
        assert_eq!(taken.is_ok(), legal, "{slug:?}");
    }
    manifest.store.slug = STORE.to_string();
    assert!(manifest.store(workspace).is_ok(), "a store whose name has no letters has its id");
}

#[test]
fn nothing_stands_behind_the_end() {
    let tree = tar(&[("a.md", tar::EntryType::Regular, b"x")]);
    let (whole, ..) = archive(&[("/a.md", "x")]);
    for bytes in [tree, whole] {
        let padded = [bytes.clone(), zstd::encode_all(&[0; 9_000][..], 1).expect("zstd")].concat();
        let count = |bytes: &[u8]| read(bytes, &bounds()).expect("it reads").len();
        assert_eq!(count(&padded), count(&bytes));
        let dirty = [padded, zstd::encode_all(&b"\x01"[..], 1).expect("zstd")].concat();
        for longer in [[&bytes[..], &bytes].concat(), dirty] {
            let refused = read(&longer, &bounds());
            assert!(
                matches!(&refused, Err(ArchiveError::Malformed(what)) if what.contains("behind its end"))
            );
        }
    }
}

#[test]
fn a_tree_whose_first_file_could_be_an_archives_reads_as_a_tree() {
    let (archived, ..) = archive(&[]);
    let tar = zstd::decode_all(&archived[..]).expect("zstd");
    let mut unpacked = tar::Archive::new(&tar[..]);
    let manifest = unpacked.entries().expect("a tar").next().expect("an entry");
    let mut whole = String::new();
    manifest.expect("it reads").read_to_string(&mut whole).expect("text");
    for text in [whole.as_str(), r#"{"format":"stele-archive"}"#, r#"{"format":"stele-archive","version":9}"#]
    {
        let mut writer = Writer::tree().expect("memory is enough");
        let path = MemoryPath::parse(&format!("/{ENTRY}")).expect("legal");
        writer.file(&path, at(1), text).expect("it is written");
        let items = read(&writer.end_tree().expect("it ends"), &bounds()).expect("it reads");
        let [Item::Memory(found)] = &items[..] else { panic!("a memory: {items:?}") };
        assert_eq!((&found.path, &**found.content.bytes()), (&path, text.as_bytes()));
    }
}

fn tar(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut out = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).expect("zstd"));
    for (name, kind, body) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(body.len() as u64);
        header.set_cksum();
        out.append(&header, *body).expect("it is written");
    }
    out.into_inner().and_then(zstd::Encoder::finish).expect("it ends")
}

#[test]
fn a_tree_of_files_is_read_with_what_cannot_be_taken() {
    use tar::EntryType as E;
    let large = vec![b'x'; 102_401];
    let entries: &[(&str, E, &[u8])] = &[
        ("./", E::Directory, b""),
        ("./fine.md", E::Regular, b"---\nsummary: it is\n---\ntext"),
        ("../out", E::Regular, b"x"),
        ("/etc/passwd", E::Regular, b"x"),
        ("a//b", E::Regular, b"x"),
        ("link", E::Symlink, b""),
        ("hard", E::Link, b""),
        ("null", E::Char, b""),
        ("pipe", E::Fifo, b""),
        ("large", E::Regular, &large),
        ("nul", E::Regular, b"a\0b"),
        ("latin", E::Regular, b"caf\xe9"),
        (ENTRY, E::Regular, b"{}"),
    ];
    let items = read(&tar(entries), &bounds()).expect("it reads");
    assert_eq!(
        problems(&items),
        [
            "../out: its path must not have a . or .. segment",
            "/etc/passwd: its name is absolute",
            "a//b: its path must not have an empty segment (no //, no trailing /, not / alone)",
            "link: it is a link: only files are taken",
            "hard: it is a link: only files are taken",
            "null: it is a device: only files are taken",
            "pipe: it is a pipe: only files are taken",
            "large: its content must be at most 102400 bytes of UTF-8, has 102401",
            "nul: its content must not hold NUL (U+0000)",
            "latin: its text is not UTF-8",
        ]
    );
    let Item::Memory(found) = &items[0] else { panic!("a memory first: {items:?}") };
    assert_eq!((found.path.as_str(), &**found.content.bytes()), ("/fine.md", &b"text"[..]));
    assert_eq!(found.summary.as_ref().map(Summary::as_str), Some("it is"));
    assert!(
        matches!(items.last(), Some(Item::Memory(found)) if found.path.as_str() == "/stele-archive.json")
    );
}

#[test]
fn a_bomb_is_not_unpacked() {
    let bomb = zstd::encode_all(std::io::repeat(0).take(65 << 20), 1).expect("zstd");
    assert!(bomb.len() < 100_000);
    assert!(matches!(read(&bomb, &bounds()), Err(ArchiveError::Malformed(_))));
    let large = vec![0; 65 << 20];
    let entry = tar(&[("zeroes", tar::EntryType::Regular, &large)]);
    assert!(matches!(read(&entry, &bounds()), Err(ArchiveError::TooLarge)));
}

#[test]
fn what_is_no_archive_is_named_so() {
    assert!(matches!(read(b"PK\x03\x04 a zip", &bounds()), Err(ArchiveError::Unreadable(_))));
    assert!(read(b"", &bounds()).is_err());
    let text = zstd::encode_all(&[b'x'; 2000][..], 1).expect("zstd");
    assert!(matches!(read(&text, &bounds()), Err(ArchiveError::Malformed(_))));
}

#[test]
fn a_tree_written_here_is_one_that_everybody_reads() {
    let mut writer = Writer::tree().expect("memory is enough");
    let paths = ["/plain.md", LONG];
    for path in paths {
        let path = MemoryPath::parse(path).expect("legal");
        writer.file(&path, at(1_790_604_131_123_456), path.as_str()).expect("it is written");
    }
    let bytes = writer.end_tree().expect("it ends");
    let tar = zstd::decode_all(&bytes[..]).expect("zstd");
    let mut read = tar::Archive::new(&tar[..]);
    for (entry, path) in read.entries().expect("a tar").zip(paths) {
        let mut entry = entry.expect("an entry");
        assert_eq!(*entry.path_bytes(), path.as_bytes()[1..]);
        assert_eq!(entry.header().mtime().expect("a time"), 1_790_604_131);
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        assert_eq!(text, path);
    }
    let items = self::read(&bytes, &bounds()).expect("it reads");
    let found = items.iter().map(|item| match item {
        Item::Memory(found) => found.path.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(found.collect::<Vec<_>>(), paths);
}
