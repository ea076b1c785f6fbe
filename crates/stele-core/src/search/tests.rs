mod properties;

use super::*;

/// A memory of a test: its number, path, summary and content.
#[derive(Clone, Debug)]
pub(super) struct Memory(u64, String, String, String);

pub(super) fn memory(number: u64, path: &str, summary: &str, content: &str) -> Memory {
    Memory(number, path.to_owned(), summary.to_owned(), content.to_owned())
}

fn id(number: u64) -> MemoryId {
    MemoryId::mint(Timestamp::from_micros(0), number)
}

fn document(memory: &Memory) -> Document<'_> {
    let updated_at = Timestamp::from_micros(7);
    Document { memory: id(memory.0), path: &memory.1, summary: &memory.2, content: &memory.3, updated_at }
}

pub(super) fn documents(memories: &[Memory]) -> impl Iterator<Item = Document<'_>> + Clone {
    memories.iter().map(document)
}

const ALL: Request<'_> = Request { prefix: None, after: None, limit: 1000, nearness: None };

/// What a scan answers that reads the documents in parts; where it has no answer, that of the index.
fn scanned<'a>(documents: impl Iterator<Item = Document<'a>> + Clone, query: &Query) -> Found {
    let mut scan = Scan::new(query.clone());
    for document in documents.clone() {
        scan.read([document]);
    }
    scan.answer(&ALL).unwrap_or_else(|| {
        let found = Index::build(1, documents).search(query, &ALL);
        assert!(found.total_matches == 0 || found.terms != Terms::default(), "a correction has terms");
        found
    })
}

/// What the query finds among these contents, best first, as their numbers; the scan must agree.
fn found(contents: &[&str], query: &str) -> Vec<usize> {
    let memories: Vec<_> =
        contents.iter().zip(0..).map(|(text, n)| memory(n, &format!("/{n:03}"), "", text)).collect();
    let query = Query::parse(query);
    let found = Index::build(1, documents(&memories)).search(&query, &ALL);
    assert_eq!(found, scanned(documents(&memories), &query));
    assert_eq!(found.total_matches, found.hits.len());
    found.hits.iter().map(|hit| hit.path[1..].parse().expect("a number")).collect()
}

#[test]
fn a_question_of_many_words_is_not_an_and_of_them() {
    let contents = ["the user likes tea with milk", "deploys happen on Fridays", "what when which is it"];
    assert_eq!(found(&contents, "What was it that the user usually likes to drink in the morning?"), [0]);
}

#[test]
fn function_words_count_only_where_there_is_nothing_else() {
    let contents = ["the band is called The Who", "a cat", "who are you"];
    assert_eq!(found(&contents, "who is the cat"), [1]);
    assert_eq!(found(&contents, "the who"), [0, 2]);
}

#[test]
fn more_and_rarer_words_rank_higher() {
    let contents = ["red", "red fox", "red deer", "red hat", "brown fox jumps"];
    assert_eq!(found(&contents, "red fox")[..2], [1, 4]);
}

#[test]
fn inflected_and_irregular_forms_are_found() {
    let contents = ["she bought two houses", "running daily", "a child"];
    assert_eq!(found(&contents, "buying a house "), [0]);
    assert_eq!(found(&contents, "runs "), [1]);
    assert_eq!(found(&contents, "children "), [2]);
}

#[test]
fn the_spelling_that_was_asked_for_ranks_first_among_equal_stems() {
    let contents = ["the universe", "the universities", "the universal"];
    assert_eq!(found(&contents, "universities ")[0], 1);
}

#[test]
fn case_and_accents_do_not_matter() {
    let contents = ["Café Zürich", "CAFE\u{301}", "Москва", "straße"];
    assert_eq!(found(&contents, "cafe zurich"), [0, 1]);
    assert_eq!(found(&contents, "МОСКВА"), [2]);
    assert_eq!(found(&contents, "STRASSE"), [3]);
}

#[test]
fn identifiers_are_found_whole_and_by_part() {
    let contents = [
        "fn parse_user_id()",
        "class HttpServerError",
        "kebab-case-name",
        "error[E0277]: trait bound",
        "see src/net/tcp.rs",
        "std::collections::HashMap",
    ];
    let cases = [
        ("parse_user_id", 0),
        ("parseUserId", 0),
        ("user_id", 0),
        ("HttpServerError", 1),
        ("httpservererror", 1),
        ("http_server_error", 1),
        ("server", 1),
        ("kebab-case-name", 2),
        ("kebabcasename", 2),
        ("E0277", 3),
        ("e0277", 3),
        ("0277", 3),
        ("src/net/tcp.rs", 4),
        ("tcp.rs", 4),
        ("net", 4),
        ("std::collections::HashMap", 5),
        ("hashmap", 5),
        ("hash map", 5),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&contents, query).first(), Some(&expected), "{query}");
    }
}

#[test]
fn a_whole_identifier_ranks_before_its_scattered_parts() {
    let contents = ["user of an id and a user and an id", "the user_id column", "id id user user user"];
    assert_eq!(found(&contents, "user_id")[0], 1);
}

#[test]
fn the_last_word_is_also_a_beginning_unless_something_follows() {
    let contents = ["kubernetes cluster", "a deployment", "deploy"];
    assert_eq!(found(&contents, "kuber"), [0]);
    assert_eq!(found(&contents, "a deploym"), [1]);
    assert_eq!(found(&contents, "kubern cluster"), [0]);
    assert_eq!(found(&["clustering", "clump"], "clu?"), [1_usize; 0]);
}

#[test]
fn a_word_itself_ranks_before_words_that_it_begins() {
    assert_eq!(found(&["catalogue of things", "cat of things"], "cat"), [1, 0]);
}

#[test]
fn a_quoted_phrase_must_be_there_word_by_word() {
    let contents = ["the red fox", "a fox that is red", "red, fox", "to be or not to be"];
    assert_eq!(found(&contents, "\"red fox\""), [2, 0]);
    assert_eq!(found(&contents, "“red fox” the"), [2, 0]);
    assert_eq!(found(&contents, "\"not to be\""), [3]);
    assert_eq!(found(&contents, "\"fox red\""), [0_usize; 0]);
}

#[test]
fn a_phrase_that_is_nowhere_leaves_its_words_to_the_rest_of_the_query() {
    assert_eq!(found(&["a fox that is red", "snow"], "\"red fox\" in snow "), [0, 1]);
}

#[test]
fn a_lonely_quote_is_nothing_special() {
    assert_eq!(found(&["five inches", "six"], "five\" "), [0]);
}

#[test]
fn typing_errors_are_forgiven_only_when_nothing_matches() {
    let contents = ["kubernetes", "a cluster", "the deployment"];
    assert_eq!(found(&contents, "kuberntes "), [0]);
    assert_eq!(found(&contents, "deplyoment "), [2]);
    assert_eq!(found(&contents, "clutser kubernetse "), [0, 1]);
    assert_eq!(found(&contents, "kuberntes cluster "), [1]);
    assert_eq!(found(&["E0277"], "E0278"), [0_usize; 0]);
    assert_eq!(found(&["cat"], "car "), [0_usize; 0]);
}

#[test]
fn scripts_without_spaces_are_found_by_substring() {
    let contents =
        ["東京都に住んでいます", "京都に行きました", "สวัสดีครับ", "我的护照号码", "서울에서 만나요", "猫"];
    assert_eq!(found(&contents, "東京"), [0]);
    assert_eq!(found(&contents, "東京都"), [0]);
    assert_eq!(found(&contents, "京都"), [1, 0]);
    assert_eq!(found(&contents, "東京都 京都"), [0, 1]);
    assert_eq!(found(&contents, "\"東京都\" 東京都"), [0]);
    assert_eq!(found(&contents, "猫"), [5]);
    assert_eq!(found(&contents, "都"), [1, 0]);
    assert_eq!(found(&contents, "สวัสดี"), [2]);
    assert_eq!(found(&contents, "护照号码是什么"), [3]);
    assert_eq!(found(&contents, "서울"), [4]);
}

#[test]
fn right_to_left_text_is_found() {
    assert_eq!(found(&["שלום עולם", "مرحبا بالعالم"], "שָׁלוֹם"), [0]);
    assert_eq!(found(&["שלום עולם", "مرحبا بالعالم"], "مرحبا"), [1]);
}

#[test]
fn a_query_without_a_word_is_looked_for_as_literal_text() {
    let contents = ["50% off", "a -> b", "party 🎉🎉", "❤️ you", "a - b > c", "''"];
    assert_eq!(found(&contents, "%"), [0]);
    assert_eq!(found(&contents, "->"), [1]);
    assert_eq!(found(&contents, "🎉"), [2]);
    assert_eq!(found(&contents, "❤"), [3]);
    assert_eq!(found(&contents, "''"), [5]);
    assert_eq!(found(&contents, "\""), [0_usize; 0]);
    assert_eq!(found(&contents, "🎉 party"), [2]);
}

#[test]
fn a_query_of_nothing_finds_nothing() {
    for query in ["", "   ", "\n\t"] {
        assert!(Query::parse(query).is_empty());
        assert_eq!(found(&["anything"], query), [0_usize; 0]);
    }
    assert!(!Query::parse("%").is_empty());
}

#[test]
fn characters_without_a_form_are_looked_for_where_there_is_nothing_else() {
    let contents = ["zero\u{200b}width", "soft\u{ad}hyphen", "neither", "\u{200b} and \u{ad}"];
    assert_eq!(found(&contents, "\u{200b}"), [0, 3]);
    assert_eq!(found(&contents, " \u{ad}\u{200b} "), [3]);
    assert_eq!(found(&contents, "\u{2060}"), [0_usize; 0]);
    assert_eq!(found(&contents, "zerowi\u{200b}dth"), [0]);
    assert_eq!(found(&["❤", "❤\u{fe0f}"], "❤\u{fe0f}"), [0, 1]);
    assert_eq!(highlighted(&snippet_of("a\u{200b}b", "\u{200b}")), ["\u{200b}"]);
}

#[test]
fn a_query_of_any_size_has_few_terms() {
    let words: String = (0..20_000).map(|n| format!("w{n} ")).collect();
    for query in
        [words, "\"".repeat(100_000), "東京".repeat(20_000), "%$".repeat(50_000), "a".repeat(100_000)]
    {
        let query = Query::parse(&query);
        assert!(query.clauses.len() <= query::MAX_CLAUSES);
        assert!(query.pairs.len() <= 2048);
    }
}

#[test]
fn path_and_summary_weigh_more_than_the_content() {
    let memories = [
        memory(0, "/a.md", "", "billing of things and of others"),
        memory(1, "/b.md", "billing", "things and others of that kind"),
        memory(2, "/billing.md", "", "things and others of that kind"),
    ];
    let index = Index::build(1, documents(&memories));
    let paths: Vec<_> =
        index.search(&Query::parse("billing"), &ALL).hits.into_iter().map(|h| h.path).collect();
    assert_eq!(paths.iter().map(|p| &**p).collect::<Vec<_>>(), ["/billing.md", "/b.md", "/a.md"]);
}

#[test]
fn equal_scores_come_in_the_order_of_their_paths() {
    assert_eq!(found(&["otter"; 30], "otter"), (0..30).collect::<Vec<_>>());
}

#[test]
fn a_prefix_leaves_out_what_is_not_below_it() {
    let memories =
        [memory(0, "/a/x", "", "otter"), memory(1, "/ab/x", "", "otter"), memory(2, "/a/y/z", "", "otter")];
    let index = Index::build(1, documents(&memories));
    let prefix = PathPrefix::parse("/a/").expect("a prefix");
    let found = index.search(&Query::parse("otter"), &Request { prefix: Some(&prefix), ..ALL });
    assert_eq!(found.hits.iter().map(|hit| &*hit.path).collect::<Vec<_>>(), ["/a/x", "/a/y/z"]);
    assert_eq!(found.total_matches, 2);
}

#[test]
fn the_index_follows_every_change_and_ignores_what_it_holds() {
    let mut index = Index::default();
    let finds = |index: &Index, query: &str| -> Vec<String> {
        index.search(&Query::parse(query), &ALL).hits.iter().map(|hit| hit.path.to_string()).collect()
    };
    index.apply(3, Change::Upsert(document(&memory(0, "/a.md", "", "the word zebrafish"))));
    assert_eq!(finds(&index, "zebrafish"), ["/a.md"]);
    index.apply(4, Change::Upsert(document(&memory(0, "/a.md", "", "the word kingfisher"))));
    assert_eq!(finds(&index, "zebrafish "), [""; 0]);
    index.apply(5, Change::Upsert(document(&memory(0, "/moved.md", "", "the word kingfisher"))));
    assert_eq!(finds(&index, "kingfisher"), ["/moved.md"]);
    index.apply(5, Change::Remove(id(0)));
    assert_eq!(finds(&index, "kingfisher"), ["/moved.md"]);
    index.apply(6, Change::Remove(id(0)));
    assert_eq!(finds(&index, "kingfisher"), [""; 0]);
    index.apply(9, Change::Nothing);
    assert_eq!((index.sequence(), index.len(), index.is_empty()), (9, 0, true));
}

#[test]
fn an_index_that_is_rewritten_again_and_again_stays_small() {
    let mut index = Index::default();
    let mut largest_early = 0;
    for sequence in 1..5000_u64 {
        let text = format!("note {sequence} says word{} and word{}", sequence * 7, sequence * 13);
        index.apply(sequence, Change::Upsert(document(&memory(sequence % 20, "/p", "", &text))));
        if sequence < 500 {
            largest_early = largest_early.max(index.size_bytes());
        }
    }
    assert!(index.size_bytes() <= 2 * largest_early, "{} {largest_early}", index.size_bytes());
}

fn snippet_of(content: &str, query: &str) -> Snippet {
    let memories = [memory(0, "/a", "", content)];
    let found = Index::build(1, documents(&memories)).search(&Query::parse(query), &ALL);
    Snippets::of(&found.terms).cut(content)
}

fn highlighted(snippet: &Snippet) -> Vec<String> {
    let cut = |at: &std::ops::Range<usize>| snippet.text.chars().skip(at.start).take(at.len()).collect();
    snippet.highlights.iter().map(cut).collect()
}

#[test]
fn a_snippet_shows_the_passage_with_most_of_the_query() {
    let content =
        format!("fox\n{}the quick red foxes ran\n{}", "lorem ipsum é ".repeat(60), "dolor ".repeat(90));
    let snippet = snippet_of(&content, "red fox");
    assert!(snippet.text.contains("quick red foxes ran"), "{snippet:?}");
    assert!(snippet.text.chars().count() <= MAX_SNIPPET_CHARS);
    assert_eq!(highlighted(&snippet), ["red", "foxes"]);
}

#[test]
fn highlights_count_characters_and_mark_what_was_found() {
    let cases = [
        ("Ünï 🎉 wörd_count <b>", "word_count", vec!["wörd_count"]),
        ("я живу в Москве, не в Риге", "риге", vec!["Риге"]),
        ("東京都に住む", "東京", vec!["東京"]),
        ("an kubernetes pod", "kubernets ", vec!["kubernetes"]),
        ("party 🎉!", "🎉", vec!["🎉"]),
        ("a deployment", "deploym", vec!["deployment"]),
        ("parseUserId here", "user", vec!["User"]),
    ];
    for (content, query, expected) in cases {
        let snippet = snippet_of(content, query);
        assert_eq!(highlighted(&snippet), expected, "{content} {query}");
        assert_eq!(snippet.text, content);
    }
}

#[test]
fn a_snippet_without_a_hit_is_the_beginning() {
    let content = "word ".repeat(200);
    let terms = Terms::default();
    let snippet = Snippets::of(&terms).cut(&content);
    assert!(snippet.highlights.is_empty());
    assert_eq!(snippet.text, "word ".repeat(48).trim_end());
    assert_eq!(Snippets::of(&terms).cut(""), Snippet::default());
}
