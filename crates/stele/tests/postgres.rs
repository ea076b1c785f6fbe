//! The built binary on a throw-away PostgreSQL: several servers, faults, and copies either way.

mod kit;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{Server, admin_key, dir, stele, words};
use serde_json::{Value, json};
use stele_core::clock::System;
use stele_core::id::WorkspaceId;
use stele_core::limits::Limits;
use stele_core::list::Created;
use stele_core::records::{Entry, EntryQuery, Kind, Order, Record, RecordQuery, RecordWrite, Records, Tag};
use stele_core::time::Timestamp;
use store_sqlite::{Config, SqliteStorage};
use throwaway_postgres::{Cluster, Database};

/// Two servers that started together on an empty database, the one with the admin key first.
fn two_servers() -> (Database, [(tempfile::TempDir, Server); 2], String) {
    let database = Cluster::shared().empty("");
    let url = database.url();
    let dirs = [dir(), dir()];
    let [one, two] = std::thread::scope(|scope| {
        let start = |n: usize| {
            let (dir, url) = (&dirs[n], &url);
            scope.spawn(move || Server::start(dir.path(), Some(url)))
        };
        [start(0), start(1)].map(|thread| thread.join().expect("it starts"))
    });
    let [first, second] = dirs;
    let mut servers = [(first, one), (second, two)];
    let kept = servers.each_ref().map(|(dir, _)| dir.path().join("admin-key").exists());
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 1, "one of them keeps a key");
    if kept[1] {
        servers.reverse();
    }
    let key = admin_key(servers[0].0.path());
    (database, servers, key)
}

#[test]
fn a_server_without_its_database_says_so_and_ends() {
    let dir = dir();
    for (url, what) in [
        (
            "postgres://stele:secret@127.0.0.1:1/stele".to_owned(),
            "cannot reach the database at postgres://stele:***@",
        ),
        (Cluster::shared().url("no_such_database"), "no_such_database"),
        ("postgres://stele:secret@127.0.0.1/stele?sslmode=perhaps".to_owned(), "sslmode must be"),
    ] {
        let output = stele(dir.path()).args(["serve", "--database-url", &url]).output().expect("it runs");
        assert!(!output.status.success());
        let words = words(&output);
        assert!(words.contains(what) && !words.contains("secret"), "{words}");
    }
    assert!(!dir.path().join("stele.db").exists(), "the embedded database is not made instead");
}

#[test]
fn a_key_that_one_server_revokes_stops_working_at_the_other() {
    let (_database, [(_, one), (_, two)], key) = two_servers();
    let made = one.post(&key, "/stele/v1/api_keys", &json!({"name": "short", "role": "developer"}));
    let secret = made["key"].as_str().expect("a secret").to_owned();
    for server in [&one, &two] {
        server.get(&secret, "/v1/memory_stores");
    }
    let id = made["api_key_id"].as_str().expect("an id");
    let (status, _) =
        one.ask(&key, "DELETE", &format!("/stele/v1/api_keys/{id}"), &Value::Null).expect("an answer");
    assert_eq!(status, 204);
    let status =
        |server: &Server| server.ask(&secret, "GET", "/v1/memory_stores", &Value::Null).expect("an answer").0;
    assert_eq!(status(&one), 401, "at once where it was revoked");
    while status(&two) != 401 {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_killed_in_the_middle_of_writes_loses_nothing_that_it_answered() {
    let (_database, [(_, mut one), (_, two)], key) = two_servers();
    let stores: Vec<String> = (0..3)
        .map(|n| two.post(&key, "/v1/memory_stores", &json!({"name": format!("store {n}")})))
        .map(|store| store["id"].as_str().expect("an id").to_owned())
        .collect();
    let (answered, ended, count) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for n in 0..12 {
            let server = if n % 4 == 0 { &two } else { &one };
            let (address, store) = (server.address.clone(), &stores[n % stores.len()]);
            let (answered, ended, count, key) = (&answered, &ended, &count, &key);
            scope.spawn(move || {
                let client = Server { child: Command::new("true").spawn().expect("it runs"), address };
                for m in 0.. {
                    let path = format!("/{n}/{m}");
                    let body = json!({"path": path, "content": path});
                    let answer =
                        client.ask(key, "POST", &format!("/v1/memory_stores/{store}/memories"), &body);
                    match answer {
                        Some((200, _)) => {
                            answered.lock().expect("no panic").insert(format!("{store}{path}"));
                            count.fetch_add(1, Ordering::SeqCst);
                        }
                        Some((status, body)) => panic!("{status}: {body}"),
                        None => break,
                    }
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        while count.load(Ordering::SeqCst) < 300 {
            std::thread::sleep(Duration::from_millis(2));
        }
        one.child.kill().expect("it can be killed");
        let before = count.load(Ordering::SeqCst);
        while count.load(Ordering::SeqCst) < before + 60 {
            std::thread::sleep(Duration::from_millis(2));
        }
        ended.store(true, Ordering::SeqCst);
    });
    one.kill();
    let mut there = BTreeSet::new();
    for store in &stores {
        let list = |what: &str| {
            let (mut all, mut page) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/memory_stores/{store}/{what}?limit=100&view=full{page}");
                let answer = two.get(&key, &path);
                all.extend(answer["data"].as_array().expect("a list").clone());
                match answer["next_page"].as_str() {
                    Some(next) => page = format!("&page={next}"),
                    None => return all,
                }
            }
        };
        let (memories, versions) = (list("memories"), list("memory_versions"));
        assert_eq!(memories.len(), versions.len(), "every change has its version");
        for memory in memories {
            assert_eq!(memory["content"], memory["path"], "no half write");
            there.insert(format!("{store}{}", memory["path"].as_str().expect("a path")));
        }
    }
    let answered = answered.into_inner().expect("no panic");
    assert_eq!(answered.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// A store with a history of every kind, through a server.
fn fill(server: &Server, key: &str) {
    let store = server.post(key, "/v1/memory_stores", &json!({"name": "Notes", "metadata": {"a": "é"}}));
    let at = format!("/v1/memory_stores/{}", store["id"].as_str().expect("an id"));
    let long = "a text long enough to be compressed ".repeat(300);
    let memory = server.post(key, &format!("{at}/memories"), &json!({"path": "/b/ü.md", "content": long}));
    let memory = memory["id"].as_str().expect("an id").to_owned();
    for n in 0..40 {
        server.post(key, &format!("{at}/memories"), &json!({"path": format!("/n{n}"), "content": ""}));
    }
    for content in ["second", "third"] {
        server.post(key, &format!("{at}/memories/{memory}"), &json!({"content": content}));
    }
    server.post(key, &format!("{at}/memories/{memory}"), &json!({"path": "/moved.md"}));
    let versions = server.get(key, &format!("{at}/memory_versions?memory_id={memory}"));
    let old = versions["data"][2]["id"].as_str().expect("an id").to_owned();
    server.post(key, &format!("{at}/memory_versions/{old}/redact"), &json!({}));
    let made = server.post(key, &format!("{at}/memories"), &json!({"path": "/gone", "content": "gone"}));
    let gone = made["id"].as_str().expect("an id");
    let (status, _) =
        server.ask(key, "DELETE", &format!("{at}/memories/{gone}"), &Value::Null).expect("an answer");
    assert!(status < 300);
    let archived = server.post(key, "/v1/memory_stores", &json!({"name": "Archived"}));
    server.post(
        key,
        &format!("/v1/memory_stores/{}/archive", archived["id"].as_str().expect("an id")),
        &json!({}),
    );
    server.post(key, "/stele/v1/workspaces", &json!({"name": "second"}));
    let short = server.post(key, "/stele/v1/api_keys", &json!({"name": "revoked", "role": "reader"}));
    let id = short["api_key_id"].as_str().expect("an id");
    server.ask(key, "DELETE", &format!("/stele/v1/api_keys/{id}"), &Value::Null).expect("an answer");
}

/// All that a server shows.
fn everything(server: &Server, key: &str) -> Vec<Value> {
    let stores = server.get(key, "/v1/memory_stores?include_archived=true&limit=100");
    let mut all =
        vec![server.get(key, "/stele/v1/api_keys"), server.get(key, "/stele/v1/workspaces"), stores.clone()];
    for store in stores["data"].as_array().expect("a list") {
        let at = format!("/v1/memory_stores/{}", store["id"].as_str().expect("an id"));
        for what in ["memories", "memory_versions"] {
            all.push(server.get(key, &format!("{at}/{what}?limit=100&view=full")));
        }
    }
    all
}

fn copy(from: &str, to: &str) -> Output {
    stele(dir().path()).args(["db", "copy", "--from", from, "--to", to]).output().expect("it runs")
}

/// Runs something on the storage of a data directory that no server holds.
fn on_storage<T, F: Future<Output = T>>(data_dir: &Path, work: impl FnOnce(Arc<SqliteStorage>) -> F) -> T {
    let config = Config::new(data_dir, Limits::default());
    let storage = SqliteStorage::open(config, Arc::new(System), Arc::new(System)).expect("it opens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = runtime.block_on(work(storage.clone()));
    storage.close();
    done
}

const KIND: Kind = Kind(7);

/// Records, a log of them, and one that is dropped.
fn fill_records(data_dir: &Path) {
    let workspace = WorkspaceId::from_bytes([5; 16]);
    let record = |n: u8| Record {
        workspace,
        kind: KIND,
        id: [n; 16],
        revision: 1,
        created_at: Timestamp::from_micros(i64::from(n) / 2),
        due_at: n.is_multiple_of(2).then_some(Timestamp::from_micros(-1)),
        key: n.is_multiple_of(3).then_some([n; 32]),
        tags: (0..n % 4).map(|name| Tag { name: name.into(), value: vec![n; usize::from(name)] }).collect(),
        body: vec![n; usize::from(n) * 50].into(),
    };
    let entry = |sequence: u64| Entry {
        sequence,
        id: [sequence as u8; 16],
        at: Timestamp::from_micros(7),
        kind: "user.message".into(),
        body: "words".into(),
    };
    let append = |log: u8| {
        let entries = (1..=600).map(entry).collect();
        RecordWrite::Append { workspace, log: [log; 16], entries }
    };
    let mut writes: Vec<_> = (1..=255).map(|n| RecordWrite::Put(record(n))).collect();
    writes.push(RecordWrite::Put(Record { revision: 2, ..record(9) }));
    writes.extend([append(1), append(2), append(3), RecordWrite::DropLog { workspace, log: [2; 16] }]);
    on_storage(data_dir, |storage| async move { storage.commit(writes).await.expect("it is written") });
}

/// All records, and the log, as the port tells them.
fn all_records(data_dir: &Path) -> (Vec<Record>, Vec<Record>, Vec<Entry>) {
    on_storage(data_dir, |storage| async move {
        let workspace = WorkspaceId::from_bytes([5; 16]);
        let mut query = RecordQuery {
            workspace,
            kind: KIND,
            tag: None,
            created: Created::default(),
            order: Order::OldestFirst,
            after: None,
            limit: 1_000,
        };
        let all = storage.record_list(query.clone()).await.expect("a list").items;
        query.tag = Some(Tag { name: 0, value: Vec::new() });
        let tagged = storage.record_list(query).await.expect("a list").items;
        let log = EntryQuery {
            workspace,
            log: [1; 16],
            kinds: vec!["user.message".into()],
            at: Created::default(),
            order: Order::OldestFirst,
            after: None,
            limit: 1_000,
        };
        (all, tagged, storage.entries(log).await.expect("a log").items)
    })
}

#[test]
fn everything_is_copied_to_postgres_and_back_and_looks_the_same() {
    let (first, postgres, back) = (dir(), Cluster::shared().empty(""), dir());
    let server = Server::start(first.path(), None);
    let key = admin_key(first.path());
    fill(&server, &key);
    let before = everything(&server, &key);
    let in_use = copy(first.path().to_str().expect("a path"), &postgres.url());
    assert!(!in_use.status.success() && words(&in_use).contains("in use"), "{}", words(&in_use));
    drop(server);
    fill_records(first.path());
    let records = all_records(first.path());
    assert_eq!((records.0.len(), records.1.len(), records.2.len()), (255, 192, 600));
    let forth = copy(first.path().to_str().expect("a path"), &postgres.url());
    assert!(forth.status.success(), "{}", words(&forth));
    let server = Server::start(dir().path(), Some(&postgres.url()));
    assert_eq!(everything(&server, &key), before);
    drop(server);
    let again = copy(first.path().to_str().expect("a path"), &postgres.url());
    assert!(!again.status.success() && words(&again).contains("already"), "{}", words(&again));
    let return_trip = copy(&postgres.url(), back.path().to_str().expect("a path"));
    assert!(return_trip.status.success(), "{}", words(&return_trip));
    let server = Server::start(back.path(), None);
    assert_eq!(everything(&server, &key), before);
    server.post(&key, "/v1/memory_stores", &json!({"name": "it goes on"}));
    drop(server);
    assert_eq!(all_records(back.path()), records);
    let check = stele(back.path()).args(["db", "check"]).output().expect("it runs");
    assert!(check.status.success(), "{}", words(&check));
    postgres.sql("DELETE FROM stele.entries WHERE sequence = 300");
    let check = stele(dir().path()).args(["db", "check", "--database-url", &postgres.url()]).output();
    let check = check.expect("it runs");
    assert!(!check.status.success() && words(&check).contains("entries are missing"), "{}", words(&check));
    let refused = copy(&postgres.url(), dir().path().to_str().expect("a path"));
    assert!(!refused.status.success() && words(&refused).contains("damaged"), "{}", words(&refused));
}

#[test]
fn what_is_damaged_is_not_copied_and_leaves_nothing_behind() {
    let (first, postgres, to) = (dir(), Cluster::shared().empty(""), dir());
    let server = Server::start(first.path(), Some(&postgres.url()));
    fill(&server, &admin_key(first.path()));
    drop(server);
    postgres.sql("UPDATE stele.versions SET content = '\\x00', encoding = 0 WHERE sequence = 9");
    let check = || {
        stele(to.path()).args(["db", "check", "--database-url", &postgres.url()]).output().expect("it runs")
    };
    let found = check();
    assert!(!found.status.success() && words(&found).contains("recorded hash"), "{}", words(&found));
    let refused = copy(&postgres.url(), to.path().to_str().expect("a path"));
    assert!(!refused.status.success() && words(&refused).contains("damaged"), "{}", words(&refused));
    let left: Vec<_> = std::fs::read_dir(to.path()).expect("a directory").flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() == "stele.lock"), "{left:?}");
    let empty = Cluster::shared().empty("");
    let refused = copy(&postgres.url(), &empty.url());
    assert!(!refused.status.success(), "{}", words(&refused));
    assert_eq!(empty.sql("SELECT count(*) FROM stele.stores"), "0");
    postgres.sql("UPDATE stele.versions SET content = '', encoding = 0, size_bytes = 0, content_sha256 = sha256('') WHERE sequence = 9");
    assert!(check().status.success(), "{}", words(&check()));
    let copied = copy(&postgres.url(), &empty.url());
    assert!(copied.status.success(), "{}", words(&copied));
}

#[test]
fn the_schema_is_migrated_and_looked_at_by_command() {
    let (dir, postgres) = (dir(), Cluster::shared().empty(""));
    let db = |what: &str| {
        stele(dir.path()).args(["db", what, "--database-url", &postgres.url()]).output().expect("it runs")
    };
    assert!(!db("status").status.success(), "nothing is applied yet");
    assert!(db("migrate").status.success());
    assert!(db("status").status.success());
    let scrubbed =
        stele(dir.path()).args(["scrub", "--database-url", &postgres.url()]).output().expect("it runs");
    assert!(scrubbed.status.success(), "{}", words(&scrubbed));
}

fn run(dir: &Path, arguments: &[&str]) -> (bool, String) {
    let output = stele(dir).args(arguments).output().expect("it runs");
    (output.status.success(), words(&output))
}

fn done(dir: &Path, arguments: &[&str]) -> String {
    let (ended_well, said) = run(dir, arguments);
    assert!(ended_well, "{arguments:?}: {said}");
    said
}

/// Whether a file of the backups in a directory holds these bytes.
fn held(dir: &Path, canary: &str) -> bool {
    let backups = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = backups.map(|backup| std::fs::read(backup.join("stele.db")).expect("a database file"));
    let mut files = files.into_iter();
    files.any(|bytes| bytes.windows(canary.len()).any(|window| window == canary.as_bytes()))
}

/// history-redact HR-08, on PostgreSQL: backups are made beside running servers, by them or by the command itself.
#[test]
fn backups_of_a_postgresql_are_scrubbed_and_restored_into_either_back_end() {
    let (database, servers, key) = two_servers();
    let (one, two) = (&servers[0].1, &servers[1].1);
    let store = one.post(&key, "/v1/memory_stores", &json!({"name": "Notes"}))["id"].clone();
    let store = store.as_str().expect("an id");
    let memories = format!("/v1/memory_stores/{store}/memories");
    let memory = one.post(&key, &memories, &json!({"path": "/k.md", "content": "canary-9c2"}));
    two.post(&key, &memories, &json!({"path": "/other.md", "content": "stays"}));
    let home = dir();
    let (to, url) = (home.path().join("backups"), database.url());
    let to = to.to_str().expect("UTF-8");
    done(home.path(), &["backup", "--to", to, "--database-url", &url]);
    let by_server = |arguments: &[&str]| {
        let address = format!("http://{}", two.address);
        let mut command = stele(home.path());
        let output = command.args(arguments).args(["--url", &address]).env("STELE_API_KEY", &key).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", words(&output));
        words(&output)
    };
    by_server(&["backup", "--to", to]);
    let backups: Vec<_> = std::fs::read_dir(to).expect("a directory").collect();
    assert_eq!(backups.len(), 2);
    let backup = backups[0].as_ref().expect("an entry").path();
    let backup = backup.to_str().expect("UTF-8");
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    for file in ["stele.db", "manifest.json"] {
        std::fs::copy(Path::new(backup).join(file), elsewhere.join(file)).expect("copied");
    }
    let elsewhere = elsewhere.to_str().expect("UTF-8");

    let id = memory["id"].as_str().expect("an id");
    one.post(&key, &format!("{memories}/{id}"), &json!({"content": "clean"}));
    let version = memory["memory_version_id"].as_str().expect("an id");
    one.post(&key, &format!("/v1/memory_stores/{store}/memory_versions/{version}/redact"), &json!({}));
    assert!(held(Path::new(to), "canary-9c2"), "it is in the backups");
    assert_eq!(by_server(&["backup", "list"]).matches("may hold 1 redacted").count(), 2);
    by_server(&["backup", "scrub", backup]);
    done(home.path(), &["backup", "scrub", "--database-url", &url]);
    assert!(!held(Path::new(to), "canary-9c2"), "it is in no managed backup");
    let listed = done(home.path(), &["backup", "list", "--database-url", &url]);
    assert_eq!(listed.matches("clean").count(), 2, "{listed}");
    done(home.path(), &["backup", "verify", "--database-url", &url]);

    let (ended_well, said) = run(home.path(), &["restore", elsewhere, "--database-url", &url, "--yes"]);
    assert!(!ended_well && said.contains("nothing was restored") && said.contains("already"), "{said}");
    let empty = Cluster::shared().empty("");
    let restore = ["restore", elsewhere, "--database-url", &empty.url(), "--redactions-from", &url];
    assert!(done(home.path(), &restore).contains("carried out: 1"));
    let restored = Server::start(servers[0].0.path(), Some(&empty.url()));
    assert_ne!(restored.epoch(&key), one.epoch(&key));
    let data = home.path().join("data");
    let restore =
        ["restore", elsewhere, "--data-dir", data.to_str().expect("UTF-8"), "--redactions-from", &url];
    done(home.path(), &restore);
    let embedded = Server::start(&data, None);
    for server in [&restored, &embedded] {
        assert_eq!(server.paths(&key, store), ["/other.md"]);
        let read = server.get(&key, &format!("/v1/memory_stores/{store}/memory_versions/{version}"));
        assert!(read["redacted_at"].is_string() && read["content"].is_null(), "{read}");
    }
    done(home.path(), &["db", "check", "--database-url", &empty.url()]);
    // And back: a backup of the embedded database into a PostgreSQL.
    drop(embedded);
    let third = Cluster::shared().empty("");
    let again = home.path().join("again");
    let again = again.to_str().expect("UTF-8");
    done(home.path(), &["backup", "--to", again, "--data-dir", data.to_str().expect("UTF-8")]);
    let made =
        std::fs::read_dir(again).expect("a directory").next().expect("a backup").expect("an entry").path();
    let said = done(home.path(), &["restore", made.to_str().expect("UTF-8"), "--database-url", &third.url()]);
    assert!(said.contains("not known"), "{said}");
    let server = Server::start(servers[0].0.path(), Some(&third.url()));
    assert_eq!(server.paths(&key, store), ["/other.md"]);
}

#[test]
fn a_backup_or_restore_of_a_postgresql_that_fails_leaves_nothing() {
    let home = dir();
    let nowhere = Cluster::shared().empty("");
    let to = home.path().join("backups");
    let to = to.to_str().expect("UTF-8");
    let (ended_well, said) = run(home.path(), &["backup", "--to", to, "--database-url", &nowhere.url()]);
    assert!(!ended_well && said.contains("no Stele database"), "{said}");
    let data = home.path().join("data");
    drop(Server::start(&data, None));
    let data = data.to_str().expect("UTF-8");
    done(home.path(), &["backup", "--to", to, "--data-dir", data]);
    let backup =
        std::fs::read_dir(to).expect("a directory").next().expect("a backup").expect("an entry").path();
    let file = std::fs::OpenOptions::new().write(true).open(backup.join("stele.db")).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5A; 4096], 16_384).expect("written");
    let backup = backup.to_str().expect("UTF-8");
    let (ended_well, said) = run(home.path(), &["restore", backup, "--database-url", &nowhere.url()]);
    assert!(!ended_well && said.contains("damaged"), "{said}");
    let (_, said) = run(home.path(), &["db", "status", "--database-url", &nowhere.url()]);
    assert!(said.contains("0 of"), "nothing was made in the database: {said}");
}

/// A whole database stands on the disk meanwhile: where only its owner may read it, and the next restore finds it.
#[test]
fn a_restore_into_a_postgresql_that_is_killed_leaves_only_what_the_next_one_removes() {
    use std::os::unix::fs::PermissionsExt;
    let home = dir();
    let (data, to) = (home.path().join("data"), home.path().join("backups"));
    let (left, temporary) = (home.path().join("restore-into-postgres.partial"), home.path().join("tmp"));
    std::fs::create_dir(&temporary).expect("a directory");
    drop(Server::start(&data, None));
    let (data, to) = (data.to_str().expect("UTF-8"), to.to_str().expect("UTF-8"));
    done(home.path(), &["backup", "--to", to, "--data-dir", data]);
    let backup =
        std::fs::read_dir(to).expect("a directory").next().expect("a backup").expect("an entry").path();
    let restore = |url: &str| {
        let mut command = stele(home.path());
        command.arg("restore").arg(&backup).args(["--database-url", url]).env("TMPDIR", &temporary);
        command
    };
    for after in [30, 60, 90, 120] {
        let target = Cluster::shared().empty("");
        let mut child = restore(&target.url()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(after));
        let _ = child.kill();
        child.wait().expect("it ends");
        assert_eq!(std::fs::read_dir(&temporary).expect("a directory").count(), 0);
        if left.exists() {
            assert_eq!(std::fs::metadata(&left).expect("a directory").permissions().mode() & 0o777, 0o700);
        }
    }
    std::fs::create_dir_all(left.join("draft")).expect("a directory");
    std::fs::write(left.join("draft/stele.db"), "of an earlier one").expect("written");
    let target = Cluster::shared().empty("");
    let output = restore(&target.url()).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    assert!(!left.exists(), "nothing is left of it or of those before");
}
