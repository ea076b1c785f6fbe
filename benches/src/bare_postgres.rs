//! The bare loops on PostgreSQL: tokio-postgres on Stele's own schema, and nothing else.
//!
//! A create locks the store's row, looks who is at the path, and sends the writes with COMMIT in one round, as Stele
//! does; each loop has a connection of its own. Reads share two connections, one behind the other.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use sha2::Digest;
use tokio::task::LocalSet;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

use crate::load::Figures;
use crate::texts::{Seeded, Texts};

/// The workspace of all rows.
const WORKSPACE: u128 = 1;
/// Who wrote them.
const AUTHOR: u128 = 2;

/// Sixteen bytes as PostgreSQL's uuid.
#[derive(Clone, Copy, Debug)]
struct Id(u128);

impl ToSql for Id {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(tokio_postgres::types::IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A connection with its statements.
struct Session {
    client: Client,
    lock: Statement,
    look: Statement,
    version: Statement,
    memory: Statement,
    count: Statement,
    read: Statement,
}

async fn connect(url: &str) -> anyhow::Result<Session> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // It ends with the client, which is where its errors show.
    tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SET search_path = stele").await?;
    let lock = "SELECT id, name, sequence, memories, bytes, versions FROM stores WHERE workspace = $1 AND id = $2 \
                FOR UPDATE";
    let look = "SELECT id, path FROM memories WHERE workspace = $1 AND store = $2 AND path = $3";
    let version = "INSERT INTO versions (workspace, store, sequence, id, memory_id, operation, created_at, author_kind, \
                   author, content_sha256, size_bytes, path, summary, encoding, content) \
                   VALUES ($1, $2, $3, $4, $4, 1, $3, 1, $5, $6, $7, $8, '', 1, $9)";
    let memory = "INSERT INTO memories (workspace, store, id, path, head, version_id, content_sha256, size_bytes, \
                  created_at, updated_at) VALUES ($1, $2, $4, $5, $3, $4, $6, $7, $3, $3)";
    let count = "UPDATE stores SET changed_at = $3, sequence = $3, memories = $3, versions = $3, bytes = $4 \
                 WHERE workspace = $1 AND id = $2";
    let read = "SELECT m.path, m.version_id, m.content_sha256, m.size_bytes, m.created_at, m.updated_at, v.encoding, \
                v.content FROM memories m JOIN versions v ON v.workspace = m.workspace AND v.store = m.store \
                AND v.sequence = m.head WHERE m.workspace = $1 AND m.store = $2 AND m.id = $3";
    Ok(Session {
        lock: client.prepare(lock).await?,
        look: client.prepare(look).await?,
        version: client.prepare(version).await?,
        memory: client.prepare(memory).await?,
        count: client.prepare(count).await?,
        read: client.prepare(read).await?,
        client,
    })
}

impl Session {
    async fn add_store(&self, store: u128) -> anyhow::Result<()> {
        let sql = "INSERT INTO stores (workspace, id, name, slug, description, metadata, origin, created_by_kind, \
                   created_by, created_at, updated_at, changed_at, sequence, memories, bytes, versions) \
                   VALUES ($1, $2, 's', $3, '', '{}', 0, 1, $4, $5, 0, 0, 0, 0, 0, 0)";
        let (slug, number) = (store.to_string(), i64::try_from(store)?);
        self.client.execute(sql, &[&Id(WORKSPACE), &Id(store), &slug, &Id(AUTHOR), &number]).await?;
        Ok(())
    }

    async fn create(&self, store: u128, id: u128, path: &str, text: &str) -> anyhow::Result<()> {
        let (workspace, place, id) = (Id(WORKSPACE), Id(store), Id(id));
        let began = self.client.batch_execute("BEGIN");
        let parameters: [&(dyn ToSql + Sync); 2] = [&workspace, &place];
        let locked = self.client.query_one(&self.lock, &parameters);
        let (began, locked) = tokio::join!(began, locked);
        began?;
        let sequence = locked?.try_get::<_, i64>(2)? + 1;
        let taken = self.client.query_opt(&self.look, &[&workspace, &place, &path]).await?;
        anyhow::ensure!(taken.is_none(), "the path is taken");
        let hash: [u8; 32] = sha2::Sha256::digest(text.as_bytes()).into();
        let content = zstd::bulk::compress(text.as_bytes(), 3)?;
        let (hash, size) = (&hash[..], i64::try_from(text.len())?);
        let author = Id(AUTHOR);
        let version: [&(dyn ToSql + Sync); 9] =
            [&workspace, &place, &sequence, &id, &author, &hash, &size, &path, &content];
        let memory: [&(dyn ToSql + Sync); 7] = [&workspace, &place, &sequence, &id, &path, &hash, &size];
        let count: [&(dyn ToSql + Sync); 4] = [&workspace, &place, &sequence, &size];
        let (one, two, three, committed) = tokio::join!(
            self.client.execute(&self.version, &version),
            self.client.execute(&self.memory, &memory),
            self.client.execute(&self.count, &count),
            self.client.batch_execute("COMMIT"),
        );
        one?;
        two?;
        three?;
        Ok(committed?)
    }

    /// Inserts the version and memory of this number.
    async fn insert(&self, number: usize, text: &str) -> anyhow::Result<()> {
        let hash: [u8; 32] = sha2::Sha256::digest(text.as_bytes()).into();
        let content = zstd::bulk::compress(text.as_bytes(), 3)?;
        let (hash, size) = (&hash[..], i64::try_from(text.len())?);
        let (sequence, path) = (i64::try_from(number)? + 1, format!("/bench/{number:08}.md"));
        let (workspace, place, author) = (Id(WORKSPACE), Id(7), Id(AUTHOR));
        let id = Id((9 << 64) + number as u128);
        let version: [&(dyn ToSql + Sync); 9] =
            [&workspace, &place, &sequence, &id, &author, &hash, &size, &path, &content];
        let memory: [&(dyn ToSql + Sync); 7] = [&workspace, &place, &sequence, &id, &path, &hash, &size];
        let (one, two) = tokio::join!(
            self.client.execute(&self.version, &version),
            self.client.execute(&self.memory, &memory)
        );
        one?;
        two?;
        Ok(())
    }

    async fn read(&self, store: u128, id: u128) -> anyhow::Result<usize> {
        let row = self.client.query_one(&self.read, &[&Id(WORKSPACE), &Id(store), &Id(id)]).await?;
        Ok(row.try_get::<_, &[u8]>(7)?.len())
    }
}

/// Runs closed loops for `time`; the n-th one does what `make(n)` does, one after the other.
async fn loops<F, D>(count: usize, time: Duration, make: impl Fn(usize) -> D) -> anyhow::Result<Figures>
where
    F: Future<Output = anyhow::Result<()>>,
    D: FnMut() -> F + 'static,
{
    let (local, began) = (LocalSet::new(), Instant::now());
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let mut once = make(number);
            local.spawn_local(async move {
                let mut times = Vec::new();
                while began.elapsed() < time {
                    let sent = Instant::now();
                    once().await?;
                    times.push(sent.elapsed().as_secs_f64());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    local.await;
    let took = began.elapsed();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(Figures::of(times, took))
}

/// Creates by `connections` loops, spread over `stores` stores.
pub(crate) async fn creates(
    url: &str,
    connections: usize,
    stores: usize,
    time: Duration,
    seed: u64,
) -> anyhow::Result<Figures> {
    let texts = Texts::new(seed);
    let mut sessions = Vec::with_capacity(connections);
    for _ in 0..connections {
        sessions.push(Rc::new(connect(url).await?));
    }
    let first = sessions.first().context("a connection")?;
    let base = 1_000_000 * stores as u128;
    for store in 0..stores {
        first.add_store(base + store as u128).await?;
    }
    loops(connections, time, |number| {
        let (session, texts) = (sessions[number].clone(), texts.clone());
        let (mut seeded, mut at) = (Seeded::new(seed + number as u64), number as u128);
        move || {
            let (session, text) = (session.clone(), texts.pick(&mut seeded).to_owned());
            at += connections as u128;
            let (id, store) = ((base << 64) + at, base + (number % stores) as u128);
            async move { session.create(store, id, &format!("/bench/{id:08}.md"), &text).await }
        }
    })
    .await
}

/// Inserts `count` versions with their memories in one transaction, many of them on their way at any time.
pub(crate) async fn inserts(url: &str, count: usize, seed: u64) -> anyhow::Result<Duration> {
    const IN_FLIGHT: usize = 128;
    let (session, texts) = (Rc::new(connect(url).await?), Texts::new(seed));
    session.add_store(7).await?;
    let began = Instant::now();
    session.client.batch_execute("BEGIN").await?;
    let local = LocalSet::new();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|first| {
            let (session, texts) = (session.clone(), texts.clone());
            local.spawn_local(async move {
                let mut seeded = Seeded::new(seed + first as u64);
                for number in (first..count).step_by(IN_FLIGHT) {
                    session.insert(number, texts.pick(&mut seeded)).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    local.await;
    for task in tasks {
        task.await??;
    }
    session.client.batch_execute("COMMIT").await?;
    let took = began.elapsed();
    // Reads are planned by how much there is.
    session.client.batch_execute("ANALYZE stores, memories, versions").await?;
    Ok(took)
}

/// Reads by `loops` over two shared connections of memories that [`inserts`] made.
pub(crate) async fn reads(
    url: &str,
    count: usize,
    readers: usize,
    time: Duration,
    seed: u64,
) -> anyhow::Result<Figures> {
    let sessions = [Rc::new(connect(url).await?), Rc::new(connect(url).await?)];
    loops(readers, time, |number| {
        let (session, mut seeded) = (sessions[number % 2].clone(), Seeded::new(seed + number as u64));
        move || {
            let (session, id) = (session.clone(), (9 << 64) + seeded.below(count) as u128);
            async move { session.read(7, id).await.map(drop) }
        }
    })
    .await
}
