//! How well the search finds what answers a question: recall and nDCG over a corpus of conversations with annotated
//! questions in the format of LoCoMo, through the index directly.
//!
//! ```text
//! cargo run --release -p stele-core --example retrieval -- locomo10.json [--session] [--scan]
//! ```
//!
//! Documents, gold and measures are those of Stele's acceptance script for search: a memory per turn or session, one
//! store per conversation, the first ten results, categories 1 to 4.

#![allow(clippy::print_stdout, reason = "an example prints its figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use stele_core::id::MemoryId;
use stele_core::search::{Document, Index, Query, Request, Scan};
use stele_core::time::Timestamp;

/// Results looked at.
const K: usize = 10;

/// A conversation: its memories by path, and what is asked about it.
#[derive(Default)]
struct Store {
    memories: BTreeMap<String, String>,
    questions: Vec<Question>,
}

struct Question {
    text: String,
    gold: BTreeSet<String>,
    category: u64,
}

/// Sums over questions.
#[derive(Default)]
struct Figures {
    questions: usize,
    recall: f64,
    ndcg: f64,
}

impl Figures {
    fn add(&mut self, ranked: &[String], gold: &BTreeSet<String>) {
        let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
        let hits: Vec<usize> = (0..ranked.len()).filter(|rank| gold.contains(&ranked[*rank])).collect();
        let ideal: f64 = (0..gold.len().min(K)).map(gain).sum();
        self.questions += 1;
        self.recall += hits.len() as f64 / gold.len() as f64;
        self.ndcg += hits.into_iter().map(gain).sum::<f64>() / ideal;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let file = arguments.iter().find(|argument| !argument.starts_with("--")).expect("the path of the data");
    let data = std::fs::read(file).expect("the data can be read");
    let data: Vec<Value> = serde_json::from_slice(&data).expect("the data is JSON");

    let mut figures: BTreeMap<u64, Figures> = BTreeMap::new();
    let (mut building, mut searching, mut asked) = (Duration::ZERO, Duration::ZERO, 0);
    for conversation in &data {
        let store = store(conversation, has("--session"));
        let begun = Instant::now();
        let index = Index::build(1, documents(&store));
        building += begun.elapsed();
        for question in &store.questions {
            let request = Request { prefix: None, after: None, limit: K, nearness: None };
            let begun = Instant::now();
            let query = Query::parse(&question.text);
            let found = if has("--scan") {
                let mut scan = Scan::new(query.clone());
                scan.read(documents(&store));
                scan.answer(&request).unwrap_or_else(|| index.search(&query, &request))
            } else {
                index.search(&query, &request)
            };
            searching += begun.elapsed();
            asked += 1;
            let ranked: Vec<String> = found.hits.iter().map(|hit| hit.path.to_string()).collect();
            figures.entry(question.category).or_default().add(&ranked, &question.gold);
            if question.category != 5 {
                figures.entry(0).or_default().add(&ranked, &question.gold);
            }
        }
        println!("{:>6} memories, {:>9} bytes of index", index.len(), index.size_bytes());
    }
    println!("{:>12} {:>6} {:>7} {:>8}", "category", "n", "R@10", "nDCG@10");
    for (category, f) in &figures {
        let name = if *category == 0 { "1 to 4".to_owned() } else { category.to_string() };
        let mean = |sum: f64| 100.0 * sum / f.questions as f64;
        println!("{name:>12} {:>6} {:>7.2} {:>8.2}", f.questions, mean(f.recall), mean(f.ndcg));
    }
    println!("built in {building:?}; {:?} a query", searching / asked.max(1));
}

fn documents(store: &Store) -> impl Iterator<Item = Document<'_>> + Clone {
    store.memories.iter().zip(0_u64..).map(|((path, content), number)| Document {
        memory: MemoryId::mint(Timestamp::from_micros(0), number),
        path,
        summary: "",
        content,
        updated_at: Timestamp::from_micros(0),
    })
}

/// Every `D3:7` in the strings of evidence, also where they are written carelessly (`D:11:26`, `D8:6; D9:17`).
fn evidence(strings: &Value) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for text in strings.as_array().into_iter().flatten().filter_map(Value::as_str) {
        for piece in text.split('D').skip(1) {
            let mut numbers = piece.trim_start_matches(':').split(|c: char| c != ':' && !c.is_ascii_digit());
            let Some((session, turn)) = numbers.next().and_then(|both| both.split_once(':')) else {
                continue;
            };
            if let (Ok(session), Ok(turn)) = (session.parse(), turn.split(':').next().unwrap_or(turn).parse())
            {
                found.push((session, turn));
            }
        }
    }
    found
}

fn store(conversation: &Value, by_session: bool) -> Store {
    let id = conversation["sample_id"].as_str().expect("a conversation has an id");
    let talk = conversation["conversation"].as_object().expect("a conversation has sessions");
    let path = |(session, turn): (usize, usize)| {
        if by_session {
            format!("/{id}/s{session:02}.md")
        } else {
            format!("/{id}/s{session:02}/t{turn:03}.md")
        }
    };
    let mut store = Store::default();
    let mut known = BTreeSet::new();
    for (key, turns) in talk {
        let Some(session) = key.strip_prefix("session_").and_then(|number| number.parse::<usize>().ok())
        else {
            continue;
        };
        let when =
            talk.get(&format!("session_{session}_date_time")).and_then(Value::as_str).unwrap_or_default();
        for turn in turns.as_array().into_iter().flatten() {
            let at = evidence(&Value::Array(vec![turn["dia_id"].clone()]))[0];
            let text = |key: &str| turn[key].as_str().unwrap_or_default();
            let image = match text("blip_caption") {
                "" => String::new(),
                caption => format!(" [shares an image: {caption}]"),
            };
            let line = format!("{}: {}{image}", text("speaker"), text("text"));
            known.insert(at);
            let memory = store.memories.entry(path(at)).or_insert_with(|| format!("[{when}]"));
            memory.push(if by_session { '\n' } else { ' ' });
            memory.push_str(&line);
        }
    }
    for question in conversation["qa"].as_array().into_iter().flatten() {
        let gold: BTreeSet<String> =
            evidence(&question["evidence"]).into_iter().filter(|at| known.contains(at)).map(path).collect();
        if !gold.is_empty() {
            let text =
                question["question"].as_str().map_or_else(|| question["question"].to_string(), str::to_owned);
            store.questions.push(Question {
                text,
                gold,
                category: question["category"].as_u64().unwrap_or(0),
            });
        }
    }
    store
}
