//! Several servers on one database, with not one rule weaker. cases/storage-postgres.yaml PQ-03.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stele_core::clock::{Clock, System};
use stele_core::command::Command;
use stele_core::id::OrganizationId;
use stele_core::records::Records;
use stele_core::refusal::Refusal;
use stele_core::storage::{Error, MemoryRef, Storage, StorageError};
use store_postgres::PostgresStorage;
use throwaway_postgres::{Cluster, Database};

mod kit;
use kit::*;

async fn two_servers() -> (Database, [Arc<PostgresStorage>; 2]) {
    let database = Cluster::shared().migrated(migrate);
    let servers = [open(&database.url()).await, open(&database.url()).await];
    (database, servers)
}

async fn at_once<T: Send + 'static>(
    jobs: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = jobs.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.expect("the task does not panic"));
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_writers_with_one_precondition_over_two_servers_one_wins_every_time() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    let memory = written(&servers[0], &store, create("/a.md", "0")).await.id;
    for round in 0..50 {
        let jobs = (1..=20).map(|n| {
            let (server, store) = (servers[n % 2].clone(), store.clone());
            async move { change(&server, &store, update(memory, &n.to_string(), Some("0"))).await }
        });
        let answers = at_once(jobs).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "round {round}");
        for answer in answers.into_iter().filter_map(Result::err) {
            assert!(
                matches!(answer, Error::Refused { refusal: Refusal::ContentChanged { .. }, .. }),
                "{answer:?}"
            );
        }
        let seen = at_once(servers.iter().cloned().map(|server| {
            let store = store.clone();
            async move { text(&server, &store, MemoryRef::Id(memory)).await.expect("a read") }
        }));
        let seen: BTreeSet<_> = seen.await.into_iter().collect();
        assert_eq!(seen.len(), 1, "both servers see the winner");
        written(&servers[round % 2], &store, update(memory, "0", None)).await;
    }
    is_sound(&servers[1], &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_and_a_directory_of_one_name_never_both_live() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    for round in 0..30 {
        let jobs = ["", "/b", "/b/c", "", "/d", "/b"].into_iter().enumerate().map(|(n, rest)| {
            let (server, store) = (servers[n % 2].clone(), store.clone());
            async move { change(&server, &store, create(&format!("/a{round}{rest}"), rest)).await.is_ok() }
        });
        assert!(at_once(jobs).await.contains(&true));
    }
    let paths: Vec<_> =
        memories(&servers[0], &store).await.into_iter().map(|(memory, _)| memory.path).collect();
    for (n, path) in paths.iter().enumerate() {
        assert!(!paths[n + 1..].iter().any(|other| other.overlaps(path)), "{path}");
    }
    is_sound(&servers[0], &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_sees_what_the_other_has_answered() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    let memory = written(&servers[0], &store, create("/n", "0")).await.id;
    for n in 1..=100 {
        written(&servers[n % 2], &store, update(memory, &n.to_string(), Some(&(n - 1).to_string()))).await;
        let seen = text(&servers[(n + 1) % 2], &store, MemoryRef::Id(memory)).await.expect("a read");
        assert_eq!(seen, Some(n.to_string()));
    }
    change(&servers[0], &store, Command::DeleteStore).await.expect("it is deleted");
    assert_eq!(servers[1].store_by_id(workspace, store.id).await.expect("a read"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_servers_that_start_together_on_an_empty_database_one_installs() {
    let database = Cluster::shared().empty("");
    let url = database.url();
    let servers = at_once((0..4).map(|_| {
        let url = url.clone();
        async move { open(&url).await }
    }))
    .await;
    assert_eq!(servers.iter().filter(|server| server.is_new()).count(), 1, "one migrates");
    let mine: Vec<_> = (0..4).map(|n| OrganizationId::mint(System.now(), n)).collect();
    let jobs = servers.iter().cloned().zip(mine.clone()).map(|(server, organization)| async move {
        let (workspace, key, secret) = new_workspace();
        let made = server.install(organization, workspace, key).await.expect("it installs");
        (made, server.key_by_hash(secret.hash()).await.expect("a read").is_some())
    });
    let answers = at_once(jobs).await;
    let winner = answers[0].0.organization;
    assert!(answers.iter().all(|(made, _)| made.organization == winner));
    let kept: Vec<bool> = answers.iter().map(|(_, kept)| *kept).collect();
    assert_eq!(kept, mine.iter().map(|organization| *organization == winner).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_purge_each_deleted_store_once() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    for n in 0..8 {
        let store = new_store(&servers[0], workspace, "Notes").await;
        for m in 0..5 {
            written(&servers[n % 2], &store, create(&format!("/{m}"), "text")).await;
        }
        change(&servers[1], &store, Command::DeleteStore).await.expect("it is deleted");
    }
    let jobs = (0..6).map(|n| {
        let server = servers[n % 2].clone();
        async move { server.purge().await.expect("a purge").stores }
    });
    assert_eq!(at_once(jobs).await.into_iter().sum::<u64>(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_that_is_gone_was_putting_back_may_be_put_back_a_little_later() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    change(&servers[0], &store, Command::DeleteStore).await.expect("it is deleted");
    servers[0].purge().await.expect("a purge");
    servers[0].restore_begin(store.clone()).await.expect("it is not there");
    // The first one says nothing more: to the other one it may as well be gone.
    assert_eq!(servers[1].purge().await.expect("a purge").stores, 0);
    let refused = servers[1].restore_begin(store.clone()).await.expect_err("it has the other one's lease");
    match refused {
        Error::Failed(StorageError::Restoring { store: named, secs: 1..=60 }) => assert_eq!(named, store.id),
        other => panic!("{other:?}"),
    }
    servers[0].restore_abandon((workspace, store.id)).await.expect("its lease ends");
    assert_eq!(servers[1].purge().await.expect("a purge").stores, 1);
    servers[1].restore_begin(store).await.expect("nothing of it is left");
}

/// Waits for the next announcement; however long a busy machine takes, it comes.
async fn woken(watch: &mut stele_core::watch::Watch) -> u64 {
    tokio::time::timeout(Duration::from_secs(60), watch.changed()).await.expect("woken")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_commits_wakes_who_waits_on_another_and_is_told_there_whole() {
    let (_database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    let readers = servers.clone().map(|server| {
        let id = store.id;
        tokio::spawn(async move {
            let (mut told, mut watch) = (0, server.watches().subscribe(*id.as_bytes()));
            loop {
                let page = server.changes(workspace, id, told, 9).await.expect("a read").expect("known");
                for change in &page.told {
                    assert_eq!(change.sequence(), told + 1, "nothing is missed or told twice");
                    told += 1;
                }
                if page.told.is_empty() && page.store.is_none() {
                    return told;
                }
                if page.told.is_empty() {
                    woken(&mut watch).await;
                }
            }
        })
    });
    let jobs = (0..6).map(|n| {
        let (server, store) = (servers[n % 2].clone(), store.clone());
        async move {
            for m in 0..20 {
                written(&server, &store, create(&format!("/{n}/{m}"), "text")).await;
            }
        }
    });
    at_once(jobs).await;
    change(&servers[1], &store, Command::DeleteStore).await.expect("it is deleted");
    for reader in readers {
        let told = tokio::time::timeout(Duration::from_secs(60), reader).await.expect("it ends");
        assert_eq!(told.expect("no panic"), 121);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_notification_is_made_good_by_looking() {
    let (database, servers) = two_servers().await;
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    let mut watch = servers[1].watches().subscribe(*store.id.as_bytes());
    // A change that nobody notifies of.
    database.sql("UPDATE stele.stores SET changed_at = changed_at + 1");
    let now = store.changed_at.as_micros().unsigned_abs() + 1;
    while woken(&mut watch).await < now {}
    let log = [0xCD; 16];
    let mut watch = servers[1].watches().subscribe(log);
    let id = "cd".repeat(16);
    database.sql(&format!("INSERT INTO stele.logs (workspace, id, last) VALUES ('{workspace}', '{id}', 7)"));
    while woken(&mut watch).await < 7 {}
    database.sql(&format!("UPDATE stele.logs SET dropped = true WHERE id = '{id}'"));
    while woken(&mut watch).await < 8 {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_alone_wakes_who_waits_for_what_no_look_finds() {
    let (database, servers) = two_servers().await;
    let mut watch = servers[0].watches().subscribe([0xAB; 16]);
    let topic = "ab".repeat(16);
    // Until it listens, nothing is heard.
    let heard = async {
        for position in 1u64.. {
            database.sql(&format!("SELECT pg_notify('stele', '{topic}{position:016x}')"));
            let wait = tokio::time::timeout(Duration::from_millis(200), watch.changed());
            if matches!(wait.await, Ok(position) if position > 0) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), heard).await.expect("heard");
    database.sql("SELECT pg_notify('stele', 'all')");
    woken(&mut watch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_hold_over_two_servers() {
    let database = Cluster::shared().migrated(migrate);
    let limited = || {
        let mut config = config(&database.url());
        config.limits.memories_per_store = 10;
        try_open(config)
    };
    let servers = [limited().await.expect("it opens"), limited().await.expect("it opens")];
    let workspace = install(&servers[0]).await.first_workspace;
    let store = new_store(&servers[0], workspace, "Notes").await;
    let jobs = (0..40).map(|n| {
        let (server, store) = (servers[n % 2].clone(), store.clone());
        async move { change(&server, &store, create(&format!("/{n}"), "")).await.is_ok() }
    });
    assert_eq!(at_once(jobs).await.into_iter().filter(|won| *won).count(), 10);
    is_sound(&servers[0], &store).await;
}
