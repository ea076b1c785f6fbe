//! Searches over a back end, also from several servers on it. DESIGN 8.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use stele_core::command::RedactedPath;
use stele_core::embedder::{EmbedError, Embedder};
use stele_core::refusal::Refusal;
use stele_core::search::Query;
use stele_core::searcher::{Question, SearchPage, Searcher};
use stele_core::storage::Answer;

use crate::StoreFactory;
use crate::work::Inline;
use crate::world::*;

/// Room for every index of a case.
const ROOM: usize = 64 << 20;

fn searcher(world: &World, budget: usize) -> Arc<Searcher> {
    Searcher::new(world.storage.clone(), Arc::new(Inline), None, budget)
}

fn question(query: &str) -> Question {
    Question { query: Query::parse(query), prefix: None, after: None, limit: 100 }
}

impl Handle {
    async fn try_search(&self, searcher: &Arc<Searcher>, query: &str) -> Result<SearchPage, Refusal> {
        let found = searcher.search(self.world.workspace, self.id, &question(query)).await;
        Ok(verdict(found)?.value)
    }

    async fn search(&self, searcher: &Arc<Searcher>, query: &str) -> SearchPage {
        self.try_search(searcher, query).await.expect("the store is there")
    }

    /// The paths of what is found, best first.
    async fn finds(&self, searcher: &Arc<Searcher>, query: &str) -> Vec<String> {
        let page = self.search(searcher, query).await;
        assert_eq!(page.total_matches, page.hits.len());
        page.hits.into_iter().map(|hit| hit.path.into()).collect()
    }
}

const NOTHING: [&str; 0] = [];

/// A word of letters alone, which no other one begins or is a part of.
fn word(n: usize) -> String {
    let letter = |n: usize| char::from(b"bcdfghjklm"[n % 10]);
    ['z', letter(n / 1000), letter(n / 100), letter(n / 10), letter(n)].into_iter().collect()
}

pub(crate) async fn a_search_sees_every_write_that_was_answered(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, searcher) = (world.store("Notes").await, searcher(&world, ROOM));
    assert_eq!(store.finds(&searcher, "otter").await, NOTHING);
    let a = store.create("/a", "an otter swims").await;
    assert_eq!(store.finds(&searcher, "otter").await, ["/a"]);
    store.write(edit(a.id).content("a heron stands")).await;
    assert_eq!(store.finds(&searcher, "otter").await, NOTHING);
    assert_eq!(store.finds(&searcher, "heron").await, ["/a"]);
    store.write(edit(a.id).path("/moved")).await;
    assert_eq!(store.finds(&searcher, "heron").await, ["/moved"]);
    store.write(edit(a.id).summary("birds by the river")).await;
    assert_eq!(store.finds(&searcher, "river").await, ["/moved"]);
    store.apply(delete(a.id)).await;
    assert_eq!(store.finds(&searcher, "heron").await, NOTHING);
    for n in 0..700 {
        store.create(&format!("/many/{n}"), &format!("{} and an otter", word(n))).await;
    }
    assert_eq!(store.finds(&searcher, &word(699)).await, ["/many/699"]);
    assert_eq!(store.search(&searcher, "otter").await.total_matches, 700);
}

pub(crate) async fn a_redaction_leaves_nothing_to_be_found(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, searcher) = (world.store("Notes").await, searcher(&world, ROOM));
    let leaked = store.create("/a", "the password is swordfish").await;
    assert_eq!(store.finds(&searcher, "swordfish").await, ["/a"]);
    store.write(edit(leaked.id).content("the password is elsewhere")).await;
    store.redact(leaked.version, RedactedPath::Scrub).await;
    assert_eq!(store.finds(&searcher, "swordfish").await, NOTHING);
    let page = store.search(&searcher, "password").await;
    assert_eq!(page.hits[0].snippet.text, "the password is elsewhere");
}

/// The answers to questions of several kinds.
async fn answers(store: &Handle, searcher: &Arc<Searcher>) -> Vec<SearchPage> {
    let mut answers = Vec::new();
    for query in ["otter", "word7 river", "\"by the river\"", "riv", "ottre", "who swims by the river?"] {
        answers.push(store.search(searcher, query).await);
    }
    answers
}

async fn filled(world: &World, mark: &str) -> Handle {
    let store = world.store(mark).await;
    for n in 0..40 {
        let text =
            format!("{mark} word{n}: {} by the river", if n % 3 == 0 { "an otter" } else { "a heron" });
        store.create(&format!("/{n}"), &text).await;
    }
    store
}

pub(crate) async fn an_index_that_was_dropped_answers_as_before(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let stores = [filled(&world, "one").await, filled(&world, "two").await, filled(&world, "three").await];
    let roomy = searcher(&world, ROOM);
    let mut expected = Vec::new();
    for store in &stores {
        expected.push(answers(store, &roomy).await);
    }
    // Room for one of the three, so that each search drops the others.
    let tight = searcher(&world, roomy.figures().bytes / 2);
    for _ in 0..2 {
        for (store, expected) in stores.iter().zip(&expected) {
            assert_eq!(answers(store, &tight).await, *expected);
        }
    }
    assert_eq!((roomy.figures().indexes, tight.figures().indexes), (3, 1));
}

pub(crate) async fn a_budget_too_small_for_an_index_changes_no_answer(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = filled(&world, "one").await;
    let (roomy, none) = (searcher(&world, ROOM), searcher(&world, 1));
    let expected = answers(&store, &roomy).await;
    for _ in 0..2 {
        assert_eq!(answers(&store, &none).await, expected);
    }
    assert_eq!(none.figures().indexes, 0);
}

pub(crate) async fn two_servers_see_each_others_writes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let servers = [searcher(&world, ROOM), searcher(&world, ROOM)];
    for n in 0..20 {
        let memory = store.create(&format!("/{n}"), &format!("note {}", word(n))).await;
        for server in &servers {
            assert_eq!(store.finds(server, &word(n)).await, [format!("/{n}")]);
        }
        if n % 2 == 0 {
            store.apply(delete(memory.id)).await;
            assert_eq!(store.search(&servers[n / 2 % 2], &format!("\"{}\"", word(n))).await.hits, []);
        }
    }
    let [here, there] = &servers;
    assert_eq!(store.search(here, "note").await, store.search(there, "note").await);
}

pub(crate) async fn searches_beside_writers_see_what_was_answered_before(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let servers = [searcher(&world, ROOM), searcher(&world, ROOM)];
    let write_and_look = |writer: usize, store: Handle, servers: [Arc<Searcher>; 2]| async move {
        for n in 0..15 {
            let word = word(100 * writer + n);
            store.create(&format!("/{writer}/{n}"), &format!("note {word}")).await;
            assert_eq!(store.finds(&servers[n % 2], &word).await, [format!("/{writer}/{n}")]);
        }
    };
    at_once((0..6).map(|writer| write_and_look(writer, store.clone(), servers.clone()))).await;
    assert_eq!(store.search(&servers[0], "note").await.total_matches, 90);
}

pub(crate) async fn a_foreign_store_is_not_searched(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, searcher) = (world.store("Notes").await, searcher(&world, ROOM));
    store.create("/a", "an otter").await;
    // The first search reads the store, and the second waits for the index.
    for _ in 0..2 {
        assert_eq!(store.finds(&searcher, "otter").await, ["/a"]);
    }
    let foreign = store.seen_from(&world.elsewhere().await);
    assert_eq!(foreign.try_search(&searcher, "otter").await, Err(Refusal::StoreNotFound(store.id)));
    assert_eq!(searcher.figures().indexes, 1, "who asks for a foreign store takes nothing from its owner");
    let unknown = world.handle(unknown_store());
    assert_eq!(unknown.try_search(&searcher, "otter").await, Err(Refusal::StoreNotFound(unknown.id)));
}

/// A model that knows two meanings, and counts the passages that it was given.
#[derive(Default)]
struct Model {
    is_down: AtomicBool,
    passages: AtomicUsize,
}

impl Model {
    fn vector(text: &str) -> Vec<f32> {
        let mean = |words: &[&str]| words.iter().filter(|word| text.contains(*word)).count() as f32;
        vec![mean(&["dog", "puppy", "hound"]), mean(&["car", "automobile", "vehicle"]), 0.1]
    }

    fn answer<T>(&self, vectors: T) -> Result<T, EmbedError> {
        if self.is_down.load(Ordering::Relaxed) { Err(EmbedError::Unavailable) } else { Ok(vectors) }
    }
}

impl Embedder for Model {
    fn passage_chars(&self) -> usize {
        200
    }

    fn passages(&self, passages: Vec<String>) -> Answer<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        self.passages.fetch_add(passages.len(), Ordering::Relaxed);
        let vectors = passages.iter().map(|text| Self::vector(text)).collect();
        Box::pin(async move { self.answer(vectors) })
    }

    fn query(&self, query: String) -> Answer<'_, Result<Vec<f32>, EmbedError>> {
        Box::pin(async move { self.answer(Self::vector(&query)) })
    }
}

fn meaning(world: &World) -> (Arc<Searcher>, Arc<Model>) {
    let model = Arc::new(Model::default());
    (Searcher::new(world.storage.clone(), Arc::new(Inline), Some(model.clone()), ROOM), model)
}

/// Waits until all vectors are there.
async fn embedded(searcher: &Searcher, memories: usize) {
    for _ in 0..2_000 {
        let figures = searcher.figures();
        if figures.wanting == 0 && figures.vectors >= memories {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the vectors never came: {:?}", searcher.figures());
}

pub(crate) async fn a_meaning_is_found_once_its_vector_is_there(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, (searcher, model)) = (world.store("Notes").await, meaning(&world));
    let dog = store.create("/pets/rex", "Rex is a puppy").await;
    store.create("/garage", "the automobile stands outside").await;
    store.create("/shopping", "bread and butter").await;
    assert_eq!(
        store.finds(&searcher, "hound").await,
        NOTHING,
        "words alone, as long as there are no vectors"
    );
    // A vector for each content, and one for their summary, which is the same.
    embedded(&searcher, 4).await;
    assert_eq!(store.finds(&searcher, "hound").await, ["/pets/rex"]);
    assert_eq!(store.finds(&searcher, "vehicle").await, ["/garage"]);
    assert_eq!(store.finds(&searcher, "\"vehicle\"").await, NOTHING, "a phrase must be there");
    assert_eq!(store.finds(&searcher, "butter hound").await, ["/shopping", "/pets/rex"]);
    let given = model.passages.load(Ordering::Relaxed);
    store.write(edit(dog.id).path("/moved")).await;
    assert_eq!(store.finds(&searcher, "hound").await, ["/moved"]);
    assert_eq!(model.passages.load(Ordering::Relaxed), given, "a rename asks for no vector");
    store.write(edit(dog.id).content("Rex has a new car")).await;
    assert_eq!(store.finds(&searcher, "puppy").await, NOTHING, "the vector of an old text is gone at once");
    embedded(&searcher, 4).await;
    assert_eq!(store.finds(&searcher, "automobile").await, ["/garage", "/moved"]);
    store.apply(delete(dog.id)).await;
    assert_eq!(store.finds(&searcher, "vehicle").await, ["/garage"]);
    assert_eq!(searcher.figures().vectors, 3);
}

pub(crate) async fn a_model_that_fails_leaves_the_words(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, (searcher, model)) = (filled(&world, "one").await, meaning(&world));
    model.is_down.store(true, Ordering::Relaxed);
    let plain = Searcher::new(world.storage.clone(), Arc::new(Inline), None, ROOM);
    for query in ["otter", "word7 river", "\"by the river\"", "ottre", "hound"] {
        assert_eq!(store.finds(&searcher, query).await, store.finds(&plain, query).await, "{query}");
    }
    let page = store.search(&searcher, "otter").await;
    assert!(page.hits.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
    model.is_down.store(false, Ordering::Relaxed);
    store.search(&searcher, "otter").await;
    embedded(&searcher, 41).await;
    store.search(&searcher, "otter").await;
    model.is_down.store(true, Ordering::Relaxed);
    for query in ["heron", "word9 river"] {
        assert_eq!(store.finds(&searcher, query).await, store.finds(&plain, query).await, "{query}");
    }
}
