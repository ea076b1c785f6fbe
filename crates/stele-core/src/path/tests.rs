use proptest::prelude::*;

use super::*;

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a legal path")
}

#[test]
fn what_breaks_a_rule_is_refused_and_named() {
    use PathError::*;
    let cases = [
        ("", NotAbsolute),
        ("a.md", NotAbsolute),
        ("\\a.md", NotAbsolute),
        ("C:\\a.md", NotAbsolute),
        ("/", EmptySegment),
        ("//", EmptySegment),
        ("/a//b", EmptySegment),
        ("/a/", EmptySegment),
        ("/./a", DotSegment),
        ("/a/..", DotSegment),
        ("/a\tb", ForbiddenCharacter('\t')),
        ("/a\0b", ForbiddenCharacter('\0')),
        ("/a\u{7f}b", ForbiddenCharacter('\u{7f}')),
        ("/a\u{85}b", ForbiddenCharacter('\u{85}')),
        ("/a\u{200b}b", ForbiddenCharacter('\u{200b}')),
        ("/a\u{feff}b", ForbiddenCharacter('\u{feff}')),
        ("/a\u{ad}b", ForbiddenCharacter('\u{ad}')),
        ("/a\u{2028}b", ForbiddenCharacter('\u{2028}')),
        ("/a\u{2029}b", ForbiddenCharacter('\u{2029}')),
        ("/cafe\u{301}.md", NotNfc),
        ("/\u{212b}ngstrom", NotNfc),
    ];
    for (text, error) in cases {
        assert_eq!(MemoryPath::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn length_counts_bytes_and_depth_counts_segments() {
    assert!(MemoryPath::parse(&format!("/{}", "a".repeat(1023))).is_ok());
    assert_eq!(MemoryPath::parse(&format!("/{}", "a".repeat(1024))), Err(PathError::TooLong(1025)));
    assert!(MemoryPath::parse(&format!("/{}", "€".repeat(341))).is_ok());
    assert_eq!(MemoryPath::parse(&format!("/{}", "€".repeat(342))), Err(PathError::TooLong(1027)));
    assert!(MemoryPath::parse(&"/d".repeat(20)).is_ok());
    assert_eq!(MemoryPath::parse(&"/e".repeat(21)), Err(PathError::TooDeep(21)));
}

#[test]
fn whatever_no_rule_forbids_is_legal() {
    for text in [
        "/ ",
        "/...",
        "/a..b",
        "/100%_*?[x]",
        "/back\\slash",
        "/日本語/メモ.md",
        "/caf\u{e9}",
        "/🧠",
        "/~",
        "/a:b",
    ] {
        assert_eq!(path(text).as_str(), text);
    }
}

#[test]
fn ancestors_come_from_the_root() {
    assert_eq!(path("/a/b/c").ancestors().collect::<Vec<_>>(), ["/a", "/a/b"]);
    assert_eq!(path("/a").ancestors().count(), 0);
}

#[test]
fn prefixes_are_directories() {
    assert_eq!(PathPrefix::parse("/a"), Err(PathError::NotADirectory));
    assert_eq!(PathPrefix::parse("a/"), Err(PathError::NotADirectory));
    assert_eq!(PathPrefix::parse("//"), Err(PathError::EmptySegment));
    assert_eq!(PathPrefix::parse("/a\0/"), Err(PathError::ForbiddenCharacter('\0')));
    let notes = PathPrefix::parse("/notes/").expect("a prefix");
    assert_eq!(notes.child_directory("/notes/a/b"), Some("/notes/a/"));
    assert_eq!(notes.child_directory("/notes/a"), None);
    assert_eq!(PathPrefix::root().child_directory("/notes/a"), Some("/notes/"));
}

prop_compose! {
    fn any_path()(segments in prop::collection::vec("[a-c]{1,2}", 1..5)) -> MemoryPath {
        path(&format!("/{}", segments.join("/")))
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_keeps_the_text(text in "\\PC*|[/.a\u{301}\u{200b}]{0,12}") {
        if let Ok(path) = MemoryPath::parse(&text) {
            prop_assert_eq!(path.as_str(), text);
        }
    }

    #[test]
    fn two_paths_overlap_exactly_when_one_is_the_other_or_above_it(a in any_path(), b in any_path()) {
        let above = |x: &MemoryPath, y: &MemoryPath| y.ancestors().any(|p| p == x.as_str());
        prop_assert_eq!(a.overlaps(&b), a == b || above(&a, &b) || above(&b, &a));
    }

    #[test]
    fn what_lies_below_starts_with_the_directory(a in any_path(), b in any_path()) {
        let below = b.as_str().starts_with(&a.as_directory());
        prop_assert_eq!(below, b.ancestors().any(|p| p == a.as_str()));
    }
}
