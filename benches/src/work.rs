//! The work that is measured.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use stele_archive::Writer;
use stele_core::path::MemoryPath;
use stele_core::time::Timestamp;
use tokio::runtime::Runtime;

use crate::load::{self, Connection, Figures, request};
use crate::report::Row;
use crate::server::Server;
use crate::texts::{Seeded, Texts};
use crate::{bare, fresh, probes};

const TIME: Duration = Duration::from_secs(2);
const SHORT: Duration = Duration::from_secs(1);
/// Memories of the store that is listed and read.
const STORE: usize = 10_000;

/// The figures of one round.
pub(crate) struct Round {
    pub(crate) pressure: Option<f64>,
    pub(crate) fdatasync: Figures,
    pub(crate) hello: Figures,
    pub(crate) hello_one: Figures,
    pub(crate) bare: Figures,
    pub(crate) creates: Figures,
    pub(crate) create_one: Figures,
    pub(crate) updates: Figures,
    pub(crate) read_cached: Figures,
    pub(crate) read_uncached: Figures,
    pub(crate) list_first: Figures,
    pub(crate) list_last: Figures,
    /// Files a second of an import.
    pub(crate) imported: f64,
}

/// One store alone, and the same store beside a fleet.
pub(crate) struct Fleet {
    alone: Four,
    beside: Four,
    ready_after: Duration,
    resident_mb: f64,
}

/// Creates, cached reads, updates and lists.
struct Four {
    creates: Figures,
    reads: Figures,
    updates: Figures,
    list: Figures,
}

impl Fleet {
    pub(crate) fn rows(&self) -> Vec<Row> {
        let slower = |alone: Figures, beside: Figures| alone.rate / beside.rate;
        vec![
            Row::single(
                "creates: alone / beside 1,000 stores",
                "<= 1.2",
                slower(self.alone.creates, self.beside.creates),
            ),
            Row::single(
                "reads: alone / beside 1,000 stores",
                "<= 1.2",
                slower(self.alone.reads, self.beside.reads),
            ),
            Row::single(
                "updates: alone / beside 1,000 stores",
                "<= 1.2",
                slower(self.alone.updates, self.beside.updates),
            ),
            Row::single(
                "lists: alone / beside 1,000 stores",
                "<= 1.2",
                slower(self.alone.list, self.beside.list),
            ),
            Row::single("start to ready beside 1,000 stores, s", "< 0.5", self.ready_after.as_secs_f64()),
            Row::single("resident memory after that start, MB", "< 40", self.resident_mb),
        ]
    }
}

/// A store with memories in it.
pub(crate) struct Filled {
    store: String,
    /// Ids and hashes of its memories, by path.
    memories: Rc<Vec<(String, String)>>,
}

/// Measures.
pub(crate) struct Works<'a> {
    binary: &'a Path,
    seed: u64,
    hello: SocketAddr,
    texts: Texts,
}

impl<'a> Works<'a> {
    pub(crate) fn new(binary: &'a Path, seed: u64, hello: SocketAddr) -> Self {
        Self { binary, seed, hello, texts: Texts::new(seed) }
    }

    pub(crate) fn round(&self, runtime: &Runtime) -> anyhow::Result<Round> {
        let scratch = tempfile::tempdir()?;
        let server = fresh(self.binary, &[])?;
        let filled = runtime.block_on(self.fill(&server, STORE))?;
        let last_page = runtime.block_on(last_page(&server, &filled.store))?;
        let uncached = fresh(self.binary, &[("STELE_BODY_CACHE_BYTES", "0")])?;
        let cold = runtime.block_on(self.fill(&uncached, STORE))?;
        let hello = request("GET", "/hello", "", "");
        let hellos = |connections, time| {
            let hello = hello.clone();
            runtime.block_on(load::run(self.hello, connections, time, |_| {
                let hello = hello.clone();
                move || Some(hello.clone())
            }))
        };
        Ok(Round {
            fdatasync: probes::fdatasync(scratch.path(), TIME)?,
            bare: bare::creates(scratch.path(), 64, TIME, self.seed)?,
            creates: runtime.block_on(self.creates(&server, 64, 1, TIME))?,
            hello: hellos(32, TIME)?,
            read_cached: runtime.block_on(self.reads(&server, &filled, TIME))?,
            read_uncached: runtime.block_on(self.reads(&uncached, &cold, TIME))?,
            updates: runtime.block_on(self.updates(&server, &filled, TIME))?,
            hello_one: hellos(1, SHORT)?,
            create_one: runtime.block_on(self.creates(&server, 1, 1, SHORT))?,
            list_first: runtime.block_on(list(&server, &filled.store, "", SHORT))?,
            list_last: runtime.block_on(list(&server, &filled.store, &last_page, SHORT))?,
            imported: self.import(&server, scratch.path(), runtime)?,
            pressure: probes::cpu_pressure(),
        })
    }

    /// Files a second that `stele import` takes out of an archive of 10,000 Markdown files, its own start included.
    fn import(&self, server: &Server, scratch: &Path, runtime: &Runtime) -> anyhow::Result<f64> {
        let (mut writer, mut seeded) = (Writer::tree()?, Seeded::new(self.seed));
        let at = Timestamp::from_micros(0);
        for number in 0..STORE {
            let path = MemoryPath::parse(&format!("/import/{number:08}.md"))?;
            writer.file(&path, at, self.texts.pick(&mut seeded))?;
        }
        let file = scratch.join("files.tar.zst");
        std::fs::write(&file, writer.end_tree()?)?;
        let store = runtime.block_on(self.fill_only(server, 1))?;
        let mut import = std::process::Command::new(self.binary);
        import
            .arg("import")
            .arg(&file)
            .args(["--store", &store, "--url"])
            .arg(format!("http://{}", server.address));
        let began = std::time::Instant::now();
        let done = import.env("STELE_API_KEY", &server.key).output()?;
        let took = began.elapsed();
        anyhow::ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(STORE as f64 / took.as_secs_f64())
    }

    /// The same four works on one store, alone and beside 1,000 stores of 200 memories.
    pub(crate) fn fleet(&self, runtime: &Runtime) -> anyhow::Result<Fleet> {
        let server = fresh(self.binary, &[])?;
        let filled = runtime.block_on(self.fill(&server, STORE))?;
        let alone = runtime.block_on(self.four(&server, &filled))?;
        for _ in 0..1_000 {
            runtime.block_on(self.fill(&server, 200))?;
        }
        let server = server.restart()?;
        let (ready_after, resident_mb) = (server.ready_after, server.resident_mb()?);
        let filled = runtime.block_on(self.fill(&server, STORE))?;
        let beside = runtime.block_on(self.four(&server, &filled))?;
        Ok(Fleet { alone, beside, ready_after, resident_mb })
    }

    async fn four(&self, server: &Server, filled: &Filled) -> anyhow::Result<Four> {
        Ok(Four {
            reads: self.reads(server, filled, TIME).await?,
            list: list(server, &filled.store, "", TIME).await?,
            updates: self.updates(server, filled, TIME).await?,
            creates: self.creates(server, 64, 1, TIME).await?,
        })
    }

    /// Makes a store of `count` memories, over 64 connections; answers with its id.
    pub(crate) async fn fill_only(&self, server: &Server, count: usize) -> anyhow::Result<String> {
        let mut connection = Connection::open(server.address).await?;
        let body = "{\"name\": \"bench\"}";
        let made: Value = serde_json::from_slice(
            connection.call(&request("POST", "/v1/memory_stores", &server.key, body)).await?,
        )?;
        let store = made["id"].as_str().context("an id")?.to_owned();
        let path = format!("/v1/memory_stores/{store}/memories");
        let (loops, key, seed) = (64.min(count), server.key.clone(), self.seed);
        load::run(server.address, loops, Duration::from_secs(600), |number| {
            let texts = self.texts.clone();
            let (mut seeded, mut at, path, key) =
                (Seeded::new(seed + number as u64), number, path.clone(), key.clone());
            move || {
                let body = format!(
                    "{{\"path\": \"/fill/{at:08}.md\", \"content\": \"{}\"}}",
                    texts.pick(&mut seeded)
                );
                at += loops;
                (at - loops < count).then(|| request("POST", &path, &key, &body))
            }
        })
        .await?;
        Ok(store)
    }

    /// Makes a store of `count` memories, and lists them.
    pub(crate) async fn fill(&self, server: &Server, count: usize) -> anyhow::Result<Filled> {
        let store = self.fill_only(server, count).await?;
        let (mut connection, key) = (Connection::open(server.address).await?, &server.key);
        let mut memories = Vec::with_capacity(count);
        let mut page = String::new();
        loop {
            let path = format!("/v1/memory_stores/{store}/memories?limit=100{page}");
            let answer: Value =
                serde_json::from_slice(connection.call(&request("GET", &path, key, "")).await?)?;
            for memory in answer["data"].as_array().into_iter().flatten() {
                let text = |name: &str| memory[name].as_str().unwrap_or_default().to_owned();
                memories.push((text("id"), text("content_sha256")));
            }
            match answer["next_page"].as_str() {
                Some(next) => page = format!("&page={next}"),
                None => break,
            }
        }
        Ok(Filled { store, memories: Rc::new(memories) })
    }

    /// Creates spread over as many new stores.
    pub(crate) async fn creates(
        &self,
        server: &Server,
        connections: usize,
        stores: usize,
        time: Duration,
    ) -> anyhow::Result<Figures> {
        let mut paths = Vec::with_capacity(stores);
        for _ in 0..stores {
            let store = self.fill_only(server, 1).await?;
            paths.push(format!("/v1/memory_stores/{store}/memories"));
        }
        let (key, seed) = (server.key.clone(), self.seed);
        load::run(server.address, connections, time, |number| {
            let texts = self.texts.clone();
            let (mut seeded, mut at, path, key) =
                (Seeded::new(seed + number as u64), number, paths[number % stores].clone(), key.clone());
            move || {
                let body = format!(
                    "{{\"path\": \"/new/{at:08}.md\", \"content\": \"{}\"}}",
                    texts.pick(&mut seeded)
                );
                at += connections;
                Some(request("POST", &path, &key, &body))
            }
        })
        .await
    }

    pub(crate) async fn reads(
        &self,
        server: &Server,
        filled: &Filled,
        time: Duration,
    ) -> anyhow::Result<Figures> {
        let requests: Rc<Vec<Vec<u8>>> = Rc::new(
            filled
                .memories
                .iter()
                .map(|(id, _)| {
                    request(
                        "GET",
                        &format!("/v1/memory_stores/{}/memories/{id}", filled.store),
                        &server.key,
                        "",
                    )
                })
                .collect(),
        );
        // Once over all of them first, so that what can be cached is.
        let warm = requests.clone();
        load::run(server.address, 32, Duration::from_secs(600), |number| {
            let (mut at, warm) = (number, warm.clone());
            move || {
                at += 32;
                warm.get(at - 32).cloned()
            }
        })
        .await?;
        load::run(server.address, 32, time, |number| {
            let (mut seeded, requests) = (Seeded::new(self.seed + number as u64), requests.clone());
            move || requests.get(seeded.below(requests.len())).cloned()
        })
        .await
    }

    /// Updates with a precondition, each connection on memories of its own.
    async fn updates(&self, server: &Server, filled: &Filled, time: Duration) -> anyhow::Result<Figures> {
        let (store, key, seed) = (filled.store.clone(), server.key.clone(), self.seed + 1_000);
        let memories = filled.memories.clone();
        load::run(server.address, 64, time, |number| {
            let texts = self.texts.clone();
            let (mut seeded, mut at) = (Seeded::new(seed + number as u64), number);
            let (store, key, memories) = (store.clone(), key.clone(), memories.clone());
            move || {
                // Each memory is changed once, so that its hash is the one that was listed.
                let (id, hash) = memories.get(at)?;
                at += 64;
                let body = format!(
                    "{{\"content\": \"{}\", \"precondition\": {{\"type\": \"content_sha256\", \
                     \"content_sha256\": \"{hash}\"}}}}",
                    texts.pick(&mut seeded)
                );
                Some(request("POST", &format!("/v1/memory_stores/{store}/memories/{id}"), &key, &body))
            }
        })
        .await
    }
}

async fn list(server: &Server, store: &str, page: &str, time: Duration) -> anyhow::Result<Figures> {
    let one = request("GET", &format!("/v1/memory_stores/{store}/memories?limit=100{page}"), &server.key, "");
    load::run(server.address, 1, time, |_| {
        let one = one.clone();
        move || Some(one.clone())
    })
    .await
}

/// The cursor of the last page, as a query parameter.
async fn last_page(server: &Server, store: &str) -> anyhow::Result<String> {
    let mut connection = Connection::open(server.address).await?;
    let (mut page, mut last) = (String::new(), String::new());
    loop {
        let path = format!("/v1/memory_stores/{store}/memories?limit=100{page}");
        let answer: Value =
            serde_json::from_slice(connection.call(&request("GET", &path, &server.key, "")).await?)?;
        match answer["next_page"].as_str() {
            Some(next) => {
                page = format!("&page={next}");
                last.clone_from(&page);
            }
            None => return Ok(last),
        }
    }
}
