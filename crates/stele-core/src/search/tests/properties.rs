use proptest::prelude::*;

use super::*;

/// Words that share stems, beginnings, parts and typing errors, so that random texts meet random queries.
const WORDS: &[&str] = &[
    "fox",
    "foxes",
    "red",
    "user_id",
    "userId",
    "user",
    "HttpServer",
    "http",
    "server",
    "E0277",
    "deploy",
    "deployment",
    "deployed",
    "went",
    "go",
    "goes",
    "children",
    "child",
    "skies",
    "sky",
    "lying",
    "lie",
    "the",
    "of",
    "who",
    "東京都",
    "京都",
    "猫",
    "->",
    "🎉",
    "%",
    "café",
    "cafe",
    "node.js",
    "don't",
    "Anna's",
    "a",
    "src/main.rs",
    "kubernetes",
    "ying",
];

fn text(words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS), words).prop_map(|words| words.join(" "))
}

fn corpus() -> impl Strategy<Value = Vec<Memory>> {
    let memory = (text(0..3), text(0..3), text(0..12));
    proptest::collection::vec(memory, 0..25).prop_map(|memories| {
        let numbered = memories.into_iter().zip(0_u64..);
        numbered
            .map(|((path, summary, content), n)| Memory(n, format!("/{path}/{n}"), summary, content))
            .collect()
    })
}

fn query() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => text(1..5),
        1 => text(1..4).prop_map(|words| format!("\"{words}\"")),
        1 => (text(1..3), text(1..3)).prop_map(|(a, b)| format!("\"{a}\" {b}")),
        1 => (text(1..3), text(1..3)).prop_map(|(a, b)| format!("{a} \"{b}\" ")),
        2 => "[a-z]{1,10}",
        1 => Just("kuberntes deplyo".to_owned()),
        1 => Just("deploym".to_owned()),
        1 => any::<String>(),
    ]
}

proptest! {
    #[test]
    fn the_scan_answers_as_the_index_does(memories in corpus(), query in query()) {
        let query = Query::parse(&query);
        let index = Index::build(1, documents(&memories)).search(&query, &ALL);
        prop_assert_eq!(index, scanned(documents(&memories), &query));
    }

    #[test]
    fn an_index_that_followed_changes_answers_as_a_fresh_one(
        steps in proptest::collection::vec((0..12_u64, proptest::option::of((text(0..3), text(0..8)))), 0..150),
        query in query(),
    ) {
        let mut followed = Index::default();
        let mut heads: std::collections::BTreeMap<u64, Memory> = std::collections::BTreeMap::new();
        for ((number, head), sequence) in steps.into_iter().zip(1..) {
            match head {
                Some((summary, content)) => {
                    let memory = Memory(number, format!("/{number}"), summary, content);
                    followed.apply(sequence, Change::Upsert(document(&memory)));
                    heads.insert(number, memory);
                }
                None => {
                    followed.apply(sequence, Change::Remove(id(number)));
                    heads.remove(&number);
                }
            }
        }
        let fresh = Index::build(1, heads.values().map(document));
        let query = Query::parse(&query);
        prop_assert_eq!(followed.search(&query, &ALL), fresh.search(&query, &ALL));
        prop_assert_eq!(followed.len(), heads.len());
    }

    #[test]
    fn pages_put_together_are_one_large_page(memories in corpus(), query in query(), limit in 1..6_usize) {
        let index = Index::build(1, documents(&memories));
        let query = Query::parse(&query);
        let whole = index.search(&query, &ALL);
        let mut hits = Vec::new();
        let mut after = None;
        loop {
            let page = index.search(&query, &Request { prefix: None, after: after.as_ref(), limit, nearness: None });
            prop_assert!(page.hits.len() <= limit);
            prop_assert_eq!(page.total_matches, whole.total_matches);
            hits.extend(page.hits);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        prop_assert_eq!(hits, whole.hits);
    }

    #[test]
    fn hits_are_in_one_total_order_with_scores_above_zero(memories in corpus(), query in query()) {
        let hits = Index::build(1, documents(&memories)).search(&Query::parse(&query), &ALL).hits;
        prop_assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.score.is_finite()));
        let ordered = |pair: &[Hit]| {
            pair[0].score > pair[1].score || (pair[0].score == pair[1].score && pair[0].path < pair[1].path)
        };
        prop_assert!(hits.windows(2).all(ordered));
    }

    #[test]
    fn no_text_and_no_query_makes_it_panic(contents in proptest::collection::vec(any::<String>(), 0..6), query: String) {
        let memories: Vec<_> = contents.iter().zip(0..).map(|(c, n)| memory(n, "/p", c, c)).collect();
        let index = Index::build(1, documents(&memories));
        for query in contents.iter().chain([&query]) {
            let parsed = Query::parse(query);
            let found = index.search(&parsed, &ALL);
            prop_assert_eq!(&found, &scanned(documents(&memories), &parsed));
            for content in &contents {
                Snippets::of(&found.terms).cut(content);
            }
        }
    }

    #[test]
    fn blended_scores_keep_the_order_of_words_where_no_nearness_is_known(memories in corpus(), query in query()) {
        let query = Query::parse(&query);
        let index = Index::build(1, documents(&memories));
        let nothing = Nearness::default();
        let (words, blended) = (index.search(&query, &ALL), index.search(&query, &Request { nearness: Some(&nothing), ..ALL }));
        prop_assert_eq!(words.total_matches, blended.total_matches);
        prop_assert!(blended.hits.iter().all(|hit| hit.score > 0.0 && hit.score < 1.0 + 1e-6));
        let score = |path: &str| words.hits.iter().find(|hit| &*hit.path == path).map(|hit| hit.score);
        let scores: Vec<_> = blended.hits.iter().map(|hit| score(&hit.path)).collect();
        prop_assert!(scores.iter().all(Option::is_some));
        // Scores that differ in their last bits only may have become the same.
        let sinks = |pair: &[Option<f32>]| pair[0].unwrap_or(0.0) * (1.0 + 1e-5) >= pair[1].unwrap_or(0.0);
        prop_assert!(scores.windows(2).all(sinks));
    }

    #[test]
    fn snippets_are_bounded_parts_of_the_content(content in "(\\PC|[a-z ]{0,30}|\n|fox ){0,120}", query in query()) {
        let shown = snippet_of(&content, &format!("{query} fox"));
        prop_assert!(content.contains(&shown.text));
        let chars = shown.text.chars().count();
        prop_assert!(chars <= MAX_SNIPPET_CHARS);
        let mut last = 0;
        for range in &shown.highlights {
            prop_assert!(range.start >= last && range.end > range.start && range.end <= chars);
            last = range.end;
        }
    }
}
