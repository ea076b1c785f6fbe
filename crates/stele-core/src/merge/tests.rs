//! Cases and properties of three-way merges.

use proptest::prelude::*;

use super::*;

const LABELS: Labels<'_> = Labels { ours: "ours", base: "base", theirs: "theirs" };

fn merged(base: &str, ours: &str, theirs: &str) -> Merged {
    merge(base, ours, theirs, LABELS)
}

#[test]
fn edits_at_different_places_are_both_applied() {
    let merged = merged("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nd\ne");
    assert_eq!(merged, Merged { text: "A\nb\nc\nd\ne".into(), conflicts: 0 });
}

#[test]
fn an_overlap_stands_between_markers_and_the_rest_is_merged() {
    let merged = merged("a\nb\nc\nd\n", "a\nours\nc\nd\n", "a\ntheirs\nc\nD");
    let text = "a\n<<<<<<< ours\nours\n||||||| base\nb\n=======\ntheirs\n>>>>>>> theirs\nc\nD";
    assert_eq!(merged, Merged { text: text.into(), conflicts: 1 });
    assert!(has_markers(&merged.text));
}

#[test]
fn a_side_without_a_last_newline_gets_its_markers_on_lines_of_their_own() {
    let text = merged("a", "b", "c").text;
    assert_eq!(text, "<<<<<<< ours\nb\n||||||| base\na\n=======\nc\n>>>>>>> theirs\n");
}

#[test]
fn markers_end_as_the_texts_lines_do() {
    let text = merged("a\r\n", "b\r\n", "c\r\n").text;
    assert!(text.split_inclusive('\n').all(|line| line.ends_with("\r\n")), "{text:?}");
}

#[test]
fn two_insertions_at_one_place_conflict_unless_they_are_the_same() {
    assert_eq!(merged("a\nb\n", "a\nx\nb\n", "a\ny\nb\n").conflicts, 1);
    assert_eq!(merged("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"), Merged { text: "a\nx\nb\n".into(), conflicts: 0 });
}

/// Few different lines, so that diffs have something to get wrong.
fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof!["a\n", "b\n", "c\n", "\n", "d\r\n"], 0..12)
        .prop_flat_map(|lines| ("[ab]?").prop_map(move |tail| lines.concat() + &tail))
}

proptest! {
    #[test]
    fn a_side_that_changed_nothing_gives_way(base in text(), other in text()) {
        let expected = Merged { text: other.clone(), conflicts: 0 };
        prop_assert_eq!(merged(&base, &base, &other), expected.clone());
        prop_assert_eq!(merged(&base, &other, &base), expected);
    }

    #[test]
    fn identical_edits_merge(base in text(), both in text()) {
        prop_assert_eq!(merged(&base, &both, &both), Merged { text: both, conflicts: 0 });
    }

    #[test]
    fn sides_may_change_places(base in text(), ours in text(), theirs in text()) {
        let (one, other) = (merged(&base, &ours, &theirs), merged(&base, &theirs, &ours));
        prop_assert_eq!(one.conflicts, other.conflicts);
        if one.conflicts == 0 {
            prop_assert_eq!(one.text, other.text);
        }
    }

    #[test]
    fn edits_of_distant_lines_equal_both_applied(
        count in 3..30usize, mine in "[x-z\n]{0,6}", other in "[x-z\n]{0,6}", at in any::<[prop::sample::Index; 2]>(),
    ) {
        // Every line of the base is different, and a line in between stays.
        let lines: Vec<String> = (0..count).map(|n| format!("line {n}\n")).collect();
        let first = at[0].index(count - 2);
        let second = first + 2 + at[1].index(count - first - 2);
        let with = |edits: &[(usize, &str)]| -> String {
            let line = |n: usize| edits.iter().find(|(at, _)| *at == n).map(|(_, text)| format!("{text}\n"));
            (0..count).map(|n| line(n).unwrap_or_else(|| lines[n].clone())).collect()
        };
        let merged = merged(&lines.concat(), &with(&[(first, &mine)]), &with(&[(second, &other)]));
        prop_assert_eq!(merged, Merged { text: with(&[(first, &mine), (second, &other)]), conflicts: 0 });
    }

    #[test]
    fn nothing_that_a_side_added_is_lost(base in text(), ours in text(), theirs in text()) {
        let merged = merged(&base, &format!("{ours}only ours\n"), &format!("{theirs}only theirs\n"));
        prop_assert!(merged.text.contains("only ours\n") && merged.text.contains("only theirs\n"));
    }
}
