//! The bare loop: rusqlite on Stele's own schema, one writer thread, group commit, and nothing else.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use sha2::Digest;

use crate::load::Figures;
use crate::texts::{Seeded, Texts};

const SCHEMA: &str = include_str!("../../crates/store-sqlite/migrations/0001_start.sql");
const BATCH: usize = 256;

struct Job {
    number: u64,
    text: String,
    reply: mpsc::SyncSender<()>,
}

fn open(dir: &Path) -> anyhow::Result<Connection> {
    let connection = Connection::open(dir.join("bare.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.execute_batch(SCHEMA)?;
    connection.execute(
        "INSERT INTO stores VALUES (1, x'01', x'02', 's', 's', '', '{}', 0, NULL, 1, x'03', 0, 0, 0, NULL, NULL, \
         0, 0, 0, 0)",
        [],
    )?;
    Ok(connection)
}

fn write(connection: &Connection, job: &Job) -> anyhow::Result<()> {
    let id = u128::from(job.number).to_be_bytes();
    let hash: [u8; 32] = sha2::Sha256::digest(job.text.as_bytes()).into();
    let content = zstd::bulk::compress(job.text.as_bytes(), 3)?;
    let path = format!("/bench/{:08}.md", job.number);
    let size = job.text.len() as i64;
    connection
        .prepare_cached(
            "INSERT INTO versions (store, sequence, id, memory_id, operation, created_at, author_kind, author, \
             content_sha256, size_bytes, path, summary, encoding, content) \
             VALUES (1, ?1, ?2, ?2, 1, ?1, 1, x'03', ?3, ?4, ?5, '', 1, ?6)",
        )?
        .execute(params![job.number as i64, id, hash, size, path, content])?;
    connection
        .prepare_cached(
            "INSERT INTO memories (store, id, path, head, version_id, content_sha256, size_bytes, created_at, \
             updated_at) VALUES (1, ?2, ?5, ?1, ?2, ?3, ?4, ?1, ?1)",
        )?
        .execute(params![job.number as i64, id, hash, size, path])?;
    connection
        .prepare_cached("UPDATE stores SET changed_at = ?1, sequence = ?1, memories = ?1, versions = ?1")?
        .execute([job.number as i64])?;
    Ok(())
}

fn writer(connection: &Connection, jobs: &mpsc::Receiver<Job>) -> anyhow::Result<()> {
    while let Ok(first) = jobs.recv() {
        let batch: Vec<Job> = std::iter::once(first).chain(jobs.try_iter().take(BATCH - 1)).collect();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for job in &batch {
            connection.prepare_cached("SAVEPOINT job")?.execute([])?;
            write(connection, job)?;
            connection.prepare_cached("RELEASE job")?.execute([])?;
        }
        connection.execute_batch("COMMIT")?;
        for job in batch {
            // A client that ended its round needs no answer.
            let _ = job.reply.send(());
        }
    }
    Ok(())
}

/// Creates by `clients` closed loops for `time`.
pub(crate) fn creates(dir: &Path, clients: u64, time: Duration, seed: u64) -> anyhow::Result<Figures> {
    let connection = open(dir)?;
    let (queue, jobs) = mpsc::channel();
    let texts = Texts::new(seed);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let loops: Vec<_> = (0..clients)
            .map(|client| {
                let (queue, texts) = (queue.clone(), texts.clone());
                scope.spawn(move || {
                    let mut seeded = Seeded::new(seed + client);
                    let (reply, answer) = mpsc::sync_channel(1);
                    let (mut number, mut times) = (client + 1, Vec::new());
                    while began.elapsed() < time {
                        let job =
                            Job { number, text: texts.pick(&mut seeded).to_owned(), reply: reply.clone() };
                        let sent = Instant::now();
                        if queue.send(job).is_err() || answer.recv().is_err() {
                            break;
                        }
                        times.push(sent.elapsed().as_secs_f64());
                        number += clients;
                    }
                    times
                })
            })
            .collect();
        drop(queue);
        writer(&connection, &jobs)?;
        let times = loops.into_iter().flat_map(|client| client.join().unwrap_or_default()).collect();
        Ok(Figures::of(times, began.elapsed()))
    })
}

/// Inserts `count` versions with their memories in one transaction.
pub(crate) fn inserts(dir: &Path, count: u64, seed: u64) -> anyhow::Result<Duration> {
    let connection = open(dir)?;
    let (texts, mut seeded) = (Texts::new(seed), Seeded::new(seed));
    let (reply, _) = mpsc::sync_channel(1);
    let began = Instant::now();
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for number in 1..=count {
        let text = texts.pick(&mut seeded).to_owned();
        write(&connection, &Job { number, text, reply: reply.clone() })?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(began.elapsed())
}
