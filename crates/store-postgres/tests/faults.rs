//! Faults: databases that will not do, that go away, that are full of connections. Nothing acknowledged is lost, and
//! nothing is half there. cases/storage-postgres.yaml PQ-01, PQ-02.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::id::WorkspaceId;
use stele_core::refusal::Refusal;
use stele_core::storage::{Error, MemoryRef, Storage, StorageError};
use store_postgres::{OpenError, PostgresStorage};
use throwaway_postgres::Cluster;

mod kit;
use kit::*;

async fn refused(url: &str) -> OpenError {
    match try_open(config(url)).await {
        Ok(_) => panic!("it opens"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_database_that_is_gone_or_will_not_do_is_named_at_the_start() {
    let cluster = Cluster::shared();
    let nowhere = refused("postgres://stele:secret@127.0.0.1:1/stele").await;
    assert!(matches!(nowhere, OpenError::Unreachable { .. }), "{nowhere:?}");
    assert!(nowhere.to_string().contains("postgres://stele:***@127.0.0.1:1/stele"), "{nowhere}");
    let missing = refused(&cluster.url("no_such_database")).await;
    assert!(matches!(missing, OpenError::Unreachable { .. }), "{missing:?}");
    let foreign = cluster.empty("ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0");
    assert!(
        matches!(refused(&foreign.url()).await, OpenError::Encoding(encoding) if encoding == "SQL_ASCII")
    );
    let standby = cluster.empty("");
    standby.sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", standby.name()));
    assert!(matches!(refused(&standby.url()).await, OpenError::ReadOnly));
}

#[tokio::test]
async fn a_schema_that_is_newer_or_not_ours_is_refused_and_left_alone() {
    let database = Cluster::shared().migrated(migrate);
    database.sql("UPDATE stele.migrations SET sha256 = '\\x00' WHERE number = 1");
    assert!(matches!(refused(&database.url()).await, OpenError::ForeignSchema { number: 1 }));
    let newer = Cluster::shared().migrated(migrate);
    newer.sql("INSERT INTO stele.migrations SELECT max(number) + 1, '\\x01' FROM stele.migrations");
    assert!(matches!(refused(&newer.url()).await, OpenError::NewerSchema));
    assert!(store_postgres::migrate(&newer.url().parse().expect("an address")).await.is_err());
    assert_eq!(newer.sql("SELECT count(*) FROM stele.stores"), "0");
}

/// Writers that write until they are told to stop, and what was acknowledged.
struct Writers {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    ended: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

fn write_on(server: &Arc<PostgresStorage>, stores: &[stele_core::model::Store]) -> Writers {
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let ended = Arc::new(AtomicBool::new(false));
    let writer = |n: usize| {
        let (server, store) = (server.clone(), stores[n % stores.len()].clone());
        let (acknowledged, ended) = (acknowledged.clone(), ended.clone());
        tokio::spawn(async move {
            let mut m = 0;
            while !ended.load(Ordering::SeqCst) {
                m += 1;
                let path = format!("/{n}/{m}");
                match change(&server, &store, create(&path, &path)).await {
                    Ok(_) => {
                        acknowledged.lock().expect("no panic").insert(format!("{}{path}", store.id));
                    }
                    Err(Error::Failed(StorageError::Unavailable(_) | StorageError::Overloaded)) => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    Err(other) => panic!("neither done nor out of reach: {other:?}"),
                }
            }
        })
    };
    Writers { tasks: (0..24).map(writer).collect(), acknowledged, ended }
}

impl Writers {
    fn count(&self) -> usize {
        self.acknowledged.lock().expect("no panic").len()
    }

    async fn wait_for(&self, more: usize) {
        let goal = self.count() + more;
        while self.count() < goal {
            assert!(!self.tasks.iter().any(|task| task.is_finished()), "a writer failed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(self) -> BTreeSet<String> {
        self.ended.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.expect("a writer does not panic");
        }
        std::mem::take(&mut *self.acknowledged.lock().expect("no panic"))
    }
}

async fn all_are_there(
    server: &PostgresStorage,
    stores: &[stele_core::model::Store],
    acknowledged: &BTreeSet<String>,
) {
    let mut there = BTreeSet::new();
    for store in stores {
        is_sound(server, store).await;
        for (memory, text) in memories(server, store).await {
            assert_eq!(memory.path.as_str(), text);
            there.insert(format!("{}{text}", store.id));
        }
    }
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_under_writers_heals_and_loses_nothing_acknowledged() {
    let cluster = Cluster::start(&["max_connections=60"]);
    cluster.sql("postgres", "CREATE DATABASE stele");
    let server = open(&cluster.url("stele")).await;
    let workspace = install(&server).await.first_workspace;
    let mut stores = Vec::new();
    for n in 0..3 {
        stores.push(new_store(&server, workspace, &format!("store {n}")).await);
    }
    let writers = write_on(&server, &stores);
    for _ in 0..3 {
        writers.wait_for(100).await;
        cluster.stop("QUIT");
        let kept = stores[0].clone();
        let read =
            text(&server, &kept, MemoryRef::Path(stele_core::path::MemoryPath::parse("/x").expect("legal")));
        let read = read.await;
        assert!(matches!(read, Err(StorageError::Unavailable(_))), "neither missing nor empty: {read:?}");
        let list = server.store_list(workspace, Default::default(), None, 10).await;
        assert!(matches!(list, Err(StorageError::Unavailable(_))), "{list:?}");
        cluster.run();
    }
    writers.wait_for(100).await;
    let acknowledged = writers.end().await;
    reads_are_back(&server, workspace).await;
    all_are_there(&server, &stores, &acknowledged).await;
}

/// Waits until each of the connections that reads share has found the database again; writers may be faster.
async fn reads_are_back(server: &PostgresStorage, workspace: WorkspaceId) {
    let (mut in_a_row, mut failed) = (0, 0);
    while in_a_row < 50 {
        match server.store_list(workspace, Default::default(), None, 10).await {
            Ok(_) => in_a_row += 1,
            Err(StorageError::Unavailable(_)) if failed < 500 => {
                (in_a_row, failed) = (0, failed + 1);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("not back: {error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_under_writers_and_readers_cost_no_read_and_no_acknowledged_write() {
    let database = Cluster::shared().migrated(migrate);
    let server = open(&database.url()).await;
    let workspace = install(&server).await.first_workspace;
    let stores = [new_store(&server, workspace, "Notes").await, new_store(&server, workspace, "Notes").await];
    let memory = written(&server, &stores[0], create("/kept", "kept")).await.id;
    let writers = write_on(&server, &stores[1..]);
    for _ in 0..10 {
        writers.wait_for(20).await;
        database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        let read = text(&server, &stores[0], MemoryRef::Id(memory)).await;
        assert_eq!(read.expect("read on a fresh connection"), Some("kept".to_owned()));
    }
    let acknowledged = writers.end().await;
    all_are_there(&server, &stores[1..], &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_role_is_enough_and_at_its_limit_of_connections_requests_are_put_off_not_lost() {
    let database = Cluster::shared().empty("");
    let name = database.name().to_owned();
    database.sql(&format!(
        "CREATE ROLE {name} LOGIN CONNECTION LIMIT 4; ALTER DATABASE {name} OWNER TO {name}; \
         REVOKE ALL ON SCHEMA public FROM PUBLIC"
    ));
    let mut wanted = config(&database.url().replace("stele@", &format!("{name}@")));
    wanted.readers = 1;
    let server = try_open(wanted).await.expect("it opens");
    let workspace = install(&server).await.first_workspace;
    let mut stores = Vec::new();
    for n in 0..12 {
        stores.push(new_store(&server, workspace, &format!("store {n}")).await);
    }
    let writers = write_on(&server, &stores);
    writers.wait_for(300).await;
    let acknowledged = writers.end().await;
    all_are_there(&server, &stores, &acknowledged).await;
    drop(server);
    database.sql(&format!("ALTER DATABASE {name} OWNER TO stele; REASSIGN OWNED BY {name} TO stele"));
    database.sql(&format!("DROP ROLE {name}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_one_command_touches_only_itself() {
    let database = Cluster::shared().migrated(migrate);
    let server = open(&database.url()).await;
    let workspace = install(&server).await.first_workspace;
    let store = new_store(&server, workspace, "Notes").await;
    let memory = written(&server, &store, create("/damaged", "whole")).await;
    // Something that decide cannot know of stops one command in the middle of its writes.
    database.sql("ALTER TABLE stele.memories ADD CONSTRAINT none CHECK (path NOT LIKE '/bad%')");
    for round in 0..5 {
        let jobs = (0..40).map(|n| {
            let (server, store) = (server.clone(), store.clone());
            let path = if n % 8 == 3 { format!("/bad{round}-{n}") } else { format!("/good{round}-{n}") };
            tokio::spawn(async move { (n, change(&server, &store, create(&path, &path)).await) })
        });
        for job in jobs.collect::<Vec<_>>() {
            let (n, answer) = job.await.expect("no panic");
            match answer {
                Ok(_) => assert_ne!(n % 8, 3),
                Err(Error::Failed(StorageError::Internal(_))) => assert_eq!(n % 8, 3),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    is_sound(&server, &store).await;
    database
        .sql("ALTER TABLE stele.versions DISABLE TRIGGER ALL; UPDATE stele.versions SET content = 'other'");
    let read = text(&server, &store, MemoryRef::Id(memory.id)).await;
    assert!(matches!(read, Err(StorageError::Corrupt(_))), "{read:?}");
    let missing = change(&server, &store, update(memory.id, "new", Some("stale"))).await;
    assert!(matches!(missing, Err(Error::Refused { refusal: Refusal::ContentChanged { .. }, .. })));
}
