//! Backups and restores of the embedded database, by the built binary: drills, damage, and kills half way.

mod kit;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use kit::{Server, admin_key, dir, stele, words};
use serde_json::{Value, json};

/// An installation with one store, served.
struct World {
    home: tempfile::TempDir,
    server: Server,
    key: String,
    store: String,
}

impl World {
    fn new() -> Self {
        let home = dir();
        fs::create_dir(home.path().join("data")).expect("a directory");
        // Plain contents can be searched for in files.
        fs::write(home.path().join("data/stele.toml"), "compression = \"off\"\n").expect("written");
        let server = Server::start(&home.path().join("data"), None);
        let key = admin_key(&home.path().join("data"));
        let made = server.post(&key, "/v1/memory_stores", &json!({"name": "Notes"}));
        let store = made["id"].as_str().expect("an id").to_owned();
        Self { home, server, key, store }
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn backups(&self) -> PathBuf {
        self.home.path().join("backups")
    }

    fn memories(&self) -> String {
        format!("/v1/memory_stores/{}/memories", self.store)
    }

    fn write(&self, path: &str, content: &str) -> Value {
        self.server.post(&self.key, &self.memories(), &json!({"path": path, "content": content}))
    }

    /// Writes so much that a backup takes a while.
    fn fill(&self, memories: usize) {
        for number in 0..memories {
            self.write(&format!("/filling/{number}.md"), &noise(number as u64, 60_000));
        }
    }

    fn stop(&mut self) {
        self.server.kill();
    }

    fn start(&mut self) {
        self.server = Server::start(&self.data(), None);
    }

    /// A command on this data directory and its server.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = stele(&self.data());
        command.args(arguments).env("STELE_URL", format!("http://{}", self.server.address));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        words(&output)
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", words(&output));
        words(&output)
    }

    /// Makes a backup and answers with its directory.
    fn back_up(&self) -> PathBuf {
        let made = self.done(&["backup", "--to", text(&self.backups()), "--json"]);
        let made: Value = serde_json::from_str(&made).expect("JSON");
        PathBuf::from(made["path"].as_str().expect("a path"))
    }

    fn paths(&self) -> Vec<String> {
        self.server.paths(&self.key, &self.store)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Text that does not compress, the same for the same seed.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).expect("below 90"))
    };
    (0..length).map(|_| step()).collect()
}

/// All files below a directory with their bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}

fn holds(dir: &Path, canary: &str) -> bool {
    files(dir).values().any(|bytes| bytes.windows(canary.len()).any(|window| window == canary.as_bytes()))
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What lies in a data directory beside the log and its index, which come and go with whoever reads.
fn lasting(dir: &Path) -> Vec<String> {
    names(dir).into_iter().filter(|name| !name.starts_with("stele.db-")).collect()
}

/// storage-sqlite SQ-04.
#[test]
fn a_backup_of_a_running_server_is_restored_only_offline_and_is_all_there_is_then() {
    let mut world = World::new();
    world.write("/old.md", "old");
    let backup = world.back_up();
    world.write("/new.md", "newer data");
    let epoch = world.server.epoch(&world.key);
    let refused = world.refused(&["restore", text(&backup), "--yes"]);
    let holder = world.server.child.id().to_string();
    assert!(refused.contains("running") && refused.contains(&holder), "{refused}");
    assert_eq!(world.paths(), ["/new.md", "/old.md"]);
    world.stop();
    assert!(world.data().join("stele.db-wal").exists(), "a killed server leaves its log");
    assert!(world.refused(&["restore", text(&backup)]).contains("--yes"));
    world.done(&["restore", text(&backup), "--yes"]);
    assert_eq!(names(&world.data()), ["admin-key", "stele.db", "stele.lock", "stele.toml"]);
    assert!(!holds(&world.data(), "newer data"));
    world.start();
    assert_eq!(world.paths(), ["/old.md"]);
    assert_ne!(world.server.epoch(&world.key), epoch, "who follows the feed must list again");
    // The restored one knows the backup that it came from.
    assert!(world.done(&["backup", "list"]).contains(text(&backup)));
}

/// storage-sqlite SQ-03.
#[test]
fn a_damaged_or_foreign_backup_is_refused_before_anything_is_touched() {
    let mut world = World::new();
    world.fill(20);
    let good = world.back_up();
    let other = World::new();
    let foreign = other.back_up();
    world.stop();
    let spoiled = |name: &str, spoil: &dyn Fn(&Path)| {
        let dir = world.home.path().join(name);
        copy_dir(&good, &dir);
        spoil(&dir);
        dir
    };
    let overwritten = spoiled("overwritten", &|dir| {
        let file = fs::OpenOptions::new().write(true).open(dir.join("stele.db")).expect("a file");
        let middle = file.metadata().expect("its length").len() / 2;
        file.write_all_at(&[0x5A; 4096], middle).expect("written");
    });
    let cut = spoiled("cut", &|dir| {
        let file = fs::OpenOptions::new().write(true).open(dir.join("stele.db")).expect("a file");
        file.set_len(file.metadata().expect("its length").len() / 2).expect("cut");
    });
    let bare = spoiled("bare", &|dir| fs::remove_file(dir.join("manifest.json")).expect("removed"));
    let newer = spoiled("newer", &|dir| {
        let manifest = fs::read_to_string(dir.join("manifest.json")).expect("a manifest");
        fs::write(dir.join("manifest.json"), manifest.replace("\"format\": 1", "\"format\": 2"))
            .expect("written");
    });
    let swapped = spoiled("swapped", &|dir| {
        fs::copy(foreign.join("stele.db"), dir.join("stele.db")).expect("copied");
    });
    let unfinished = spoiled("unfinished.partial", &|_| {});
    let before = files(&world.data());
    for (backup, verifies, what) in [
        (&overwritten, false, "damaged"),
        (&cut, false, "damaged"),
        (&bare, false, "manifest.json"),
        (&newer, false, "newer"),
        (&swapped, false, "damaged"),
        (&unfinished, false, "unfinished"),
        (&foreign, true, "another installation"),
        (&world.home.path().join("nowhere"), false, "no backup"),
    ] {
        if !verifies {
            assert!(
                world.refused(&["backup", "verify", text(backup)]).contains(what),
                "{}",
                backup.display()
            );
        }
        let refused = world.refused(&["restore", text(backup), "--yes"]);
        assert!(refused.contains(what) && refused.contains("nothing was restored"), "{refused}");
        let mut after = files(&world.data());
        // Who holds the directory stands in it, and an index of the log is made by whoever reads that.
        for name in ["stele.lock", "stele.db-shm"] {
            after.insert(world.data().join(name), before[&world.data().join(name)].clone());
        }
        assert!(after == before, "{} was touched", world.data().display());
    }
    // A file in the backup stands for it.
    assert!(world.done(&["backup", "verify", text(&good.join("stele.db"))]).contains("sound"));
}

/// A backup whose own database is sound but for one content, manifest and all, is not called good either.
#[test]
fn a_backup_is_not_made_of_a_damaged_database() {
    let mut world = World::new();
    world.write("/a.md", &"abcdefgh".repeat(400));
    world.stop();
    world.done(&["db", "check"]);
    let path = world.data().join("stele.db");
    let bytes = fs::read(&path).expect("a file");
    let canary = b"abcdefghabcdefgh";
    let at = bytes.windows(canary.len()).position(|window| window == canary).expect("a plain content");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.write_all_at(b"X", at as u64).expect("written");
    let refused = world.refused(&["backup", "--to", text(&world.backups())]);
    assert!(refused.contains("no backup was made") && refused.contains("hash"), "{refused}");
    assert!(!world.backups().exists(), "what was made for it is gone");
}

/// history-redact HR-08.
#[test]
fn old_backups_do_not_bring_redacted_text_back() {
    let mut world = World::new();
    let memory = world.write("/k.md", "canary-9c2");
    world.write("/other.md", "stays");
    let (id, version) =
        (memory["id"].as_str().expect("an id"), memory["memory_version_id"].as_str().expect("an id"));
    let backup = world.back_up();
    let elsewhere = world.home.path().join("elsewhere");
    copy_dir(&backup, &elsewhere);
    world.server.post(&world.key, &format!("{}/{id}", world.memories()), &json!({"content": "clean"}));
    assert!(world.done(&["backup", "list"]).contains("clean"));
    let redacted = world.done(&["redact", &world.store, version, "--yes"]);
    assert!(redacted.contains("still be held") && redacted.contains(text(&backup)), "{redacted}");
    assert!(world.done(&["backup", "list"]).contains("may hold 1 redacted"));
    assert!(holds(&world.backups(), "canary-9c2"), "it is in the backup");
    // A backup made now does not hold it, nor is it said to.
    std::thread::sleep(Duration::from_millis(1));
    let second = world.back_up();
    assert!(!holds(&second, "canary-9c2"));
    assert!(world.done(&["backup", "scrub"]).contains(text(&backup)));
    assert!(!holds(&world.backups(), "canary-9c2"), "it is in no managed backup");
    let listed = world.done(&["backup", "list"]);
    assert!(!listed.contains("may hold"), "{listed}");
    world.done(&["backup", "verify"]);
    assert!(world.done(&["backup", "scrub"]).contains("no backup holds"));

    world.stop();
    let restored = world.done(&["restore", text(&elsewhere), "--yes"]);
    assert!(restored.contains("carried out: 1") && restored.contains("memories deleted"), "{restored}");
    assert!(!holds(&world.data(), "canary-9c2"));
    world.done(&["db", "check"]);
    world.start();
    let path = format!("/v1/memory_stores/{}/memory_versions/{version}", world.store);
    let read = world.server.get(&world.key, &path);
    assert!(read["redacted_at"].is_string() && read["content"].is_null(), "{read}");
    assert_eq!(world.paths(), ["/other.md"]);
    // A scrubbed backup can be restored as well.
    world.stop();
    world.done(&["restore", text(&backup), "--yes"]);
    world.start();
    assert_eq!(world.paths(), ["/other.md"]);
}

/// The rows of a table that has outgrown its first page are moved by SQLite; no text may stay where the oldest were.
#[test]
fn of_redacted_text_nothing_is_left_between_the_pages_of_a_restored_database() {
    let mut world = World::new();
    let secrets: Vec<String> = (0..8).map(|number| format!("canary-{number}-9c2")).collect();
    let written: Vec<Value> = secrets
        .iter()
        .enumerate()
        .map(|(number, secret)| world.write(&format!("/k{number}.md"), secret))
        .collect();
    for number in 0..60 {
        world.write(&format!("/filling/{number}.md"), &noise(number, 500));
    }
    let backup = world.back_up();
    let elsewhere = world.home.path().join("elsewhere");
    copy_dir(&backup, &elsewhere);
    for memory in &written {
        let path = format!("{}/{}", world.memories(), memory["id"].as_str().expect("an id"));
        world.server.post(&world.key, &path, &json!({"content": "clean"}));
        let version = memory["memory_version_id"].as_str().expect("an id");
        let redact = format!("/v1/memory_stores/{}/memory_versions/{version}/redact", world.store);
        world.server.post(&world.key, &redact, &json!({}));
    }
    world.done(&["backup", "scrub"]);
    world.stop();
    world.done(&["restore", text(&elsewhere), "--yes"]);
    for secret in &secrets {
        assert!(holds(&elsewhere, secret), "it was in the backup");
        assert!(!holds(&backup, secret), "{secret} is not in the scrubbed one");
        assert!(!holds(&world.data(), secret), "{secret} is not in the restored database");
    }
}

/// What only the replaced database knows is not lost because that could not be read just then.
#[test]
fn a_database_that_is_out_of_reach_is_not_replaced_and_a_damaged_one_only_when_that_is_asked_for() {
    let mut world = World::new();
    let memory = world.write("/k.md", "canary-9c2");
    let backup = world.back_up();
    let path = format!("{}/{}", world.memories(), memory["id"].as_str().expect("an id"));
    world.server.post(&world.key, &path, &json!({"content": "clean"}));
    let version = memory["memory_version_id"].as_str().expect("an id");
    world.done(&["redact", &world.store, version, "--yes"]);
    world.stop();
    let restore = ["restore", text(&backup), "--yes"];
    let (file, index) = (world.data().join("stele.db"), world.data().join("stele.db-shm"));
    let before = fs::read(&file).expect("a file");

    fs::remove_file(&index).expect("removed");
    std::os::unix::fs::symlink(world.home.path().join("nowhere/at-all"), &index).expect("a link");
    let refused = world.refused(&restore);
    assert!(refused.contains("nothing was restored") && refused.contains("No such file"), "{refused}");
    fs::remove_file(&index).expect("removed");

    let busy = fs::OpenOptions::new().write(true).open(&file).expect("a file");
    let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&busy, exclusive).expect("nobody else has it");
    for more in [None, Some("--replace-unreadable")] {
        let refused = world.refused(&restore.into_iter().chain(more).collect::<Vec<_>>());
        assert!(refused.contains("nothing was restored") && refused.contains("locked"), "{refused}");
    }
    drop(busy);

    let saved = world.home.path().join("saved.db");
    fs::rename(&file, &saved).expect("moved");
    std::os::unix::fs::symlink(&file, &file).expect("a link to itself");
    let refused = world.refused(&restore);
    assert!(refused.contains("nothing was restored") && refused.contains("symbolic link"), "{refused}");
    fs::remove_file(&file).expect("removed");
    fs::rename(&saved, &file).expect("moved");
    assert_eq!(fs::read(&file).expect("a file"), before);

    let damaged = fs::OpenOptions::new().write(true).open(&file).expect("a file");
    damaged.write_all_at(&[0x5A; 4096], 0).expect("written");
    let before = fs::read(&file).expect("a file");
    let refused = world.refused(&restore);
    assert!(refused.contains("damaged") && refused.contains("--replace-unreadable"), "{refused}");
    assert_eq!(fs::read(&file).expect("a file"), before);
    let restored = world.done(&["restore", text(&backup), "--replace-unreadable"]);
    assert!(restored.contains("not known"), "{restored}");
    world.start();
    assert_eq!(world.paths(), ["/k.md"]);
}

#[test]
fn where_no_database_is_replaced_redactions_come_from_a_named_one_and_else_it_is_said() {
    let mut world = World::new();
    let memory = world.write("/k.md", "canary-9c2");
    let backup = world.back_up();
    let (id, version) =
        (memory["id"].as_str().expect("an id"), memory["memory_version_id"].as_str().expect("an id"));
    world.server.post(&world.key, &format!("{}/{id}", world.memories()), &json!({"content": "clean"}));
    world.done(&["redact", &world.store, version, "--yes"]);
    let newer = world.back_up();
    world.stop();
    let restore = |name: &str, more: &[&str]| {
        let dir = world.home.path().join(name);
        let mut arguments = vec!["restore", text(&backup), "--data-dir", text(&dir)];
        arguments.extend(more);
        (world.done(&arguments), holds(&dir, "canary-9c2"))
    };
    let (said, held) = restore("one", &[]);
    assert!(said.contains("not known") && said.contains("--redactions-from") && held, "{said}");
    let (said, held) = restore("two", &["--redactions-from", text(&world.data())]);
    assert!(said.contains("carried out: 1") && !held, "{said}");
    let (said, held) = restore("three", &["--redactions-from", text(&newer)]);
    assert!(said.contains("carried out: 1") && !held, "{said}");
}

/// Redactions outlive what they were made on: a store that was deleted since, a version that retention removed.
#[test]
fn redactions_of_deleted_stores_are_remembered() {
    let mut world = World::new();
    let memory = world.write("/k.md", "canary-9c2");
    let backup = world.back_up();
    let (id, version) =
        (memory["id"].as_str().expect("an id"), memory["memory_version_id"].as_str().expect("an id"));
    world.server.post(&world.key, &format!("{}/{id}", world.memories()), &json!({"content": "clean"}));
    world.done(&["redact", &world.store, version, "--yes"]);
    world.done(&["store", "delete", &world.store, "--yes"]);
    assert!(world.done(&["backup", "list"]).contains("may hold 1 redacted"));
    world.stop();
    world.done(&["restore", text(&backup), "--yes"]);
    assert!(!holds(&world.data(), "canary-9c2"));
}

#[test]
fn what_is_written_during_a_backup_is_in_it_up_to_one_moment() {
    let world = World::new();
    world.fill(100);
    let answered = std::sync::atomic::AtomicUsize::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (before, backup) = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                world.write(&format!("/counted/{number:06}.md"), &noise(number, 2_000));
                answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        while answered.load(std::sync::atomic::Ordering::SeqCst) < 5 {
            std::thread::yield_now();
        }
        let before = answered.load(std::sync::atomic::Ordering::SeqCst);
        let backup = world.back_up();
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        (before, backup)
    });
    let dir = world.home.path().join("restored");
    world.done(&["restore", text(&backup), "--data-dir", text(&dir)]);
    world.done(&["db", "check", "--data-dir", text(&dir)]);
    assert_ne!(admin_key(&dir), world.key, "the directory has an admin key of its own");
    let server = Server::start(&dir, None);
    assert_eq!(server.get(&admin_key(&dir), "/v1/memory_stores")["data"][0]["id"], *world.store);
    drop(server);
    let server = Server::start(&dir, None);
    let paths = server.paths(&world.key, &world.store);
    let counted: Vec<&String> = paths.iter().filter(|path| path.starts_with("/counted/")).collect();
    assert!(counted.len() >= before, "all that was answered before is there");
    for (number, path) in counted.iter().enumerate() {
        assert_eq!(**path, format!("/counted/{number:06}.md"), "none is missing before the last one");
    }
}

/// Kills a command after ever longer times, until it ends before that.
fn kill_at_every_moment(mut command: impl FnMut() -> Command, mut look: impl FnMut(bool)) {
    let mut after = Duration::from_millis(5);
    loop {
        let mut child =
            command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
        std::thread::sleep(after);
        let ended = child.try_wait().expect("its state").is_some();
        if !ended {
            child.kill().expect("it can be killed");
        }
        let status = child.wait().expect("it ends");
        look(ended && status.success());
        if ended {
            return;
        }
        after = after * 5 / 4 + Duration::from_millis(2);
    }
}

#[test]
fn a_backup_killed_half_way_leaves_only_what_the_next_one_removes() {
    let mut world = World::new();
    world.fill(60);
    world.stop();
    fs::create_dir(world.backups()).expect("a directory");
    let to = world.backups();
    kill_at_every_moment(
        || world.command(&["backup", "--to", text(&to)]),
        |_| {
            for name in names(&to) {
                if !name.ends_with(".partial") {
                    assert!(world.done(&["backup", "verify", text(&to.join(name))]).contains("sound"));
                }
            }
            world.done(&["db", "check"]);
        },
    );
    world.back_up();
    assert!(names(&to).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(&to));
    // Every whole one is known; what is known and was killed before its last step is said to be missing.
    let listed = world.done(&["backup", "list"]);
    for name in names(&to) {
        assert!(listed.contains(&name), "{listed}");
    }
}

#[test]
fn a_backup_of_a_server_killed_half_way_is_no_backup() {
    let mut world = World::new();
    world.fill(60);
    fs::create_dir(world.backups()).expect("a directory");
    let body = json!({"to": text(&world.backups())});
    let begun = world.server.post(&world.key, "/stele/v1/backups", &body);
    assert_eq!(begun["state"], "making");
    world.stop();
    world.start();
    for name in names(&world.backups()) {
        if !name.ends_with(".partial") {
            world.done(&["backup", "verify", text(&world.backups().join(name))]);
        }
    }
    world.back_up();
    assert!(names(&world.backups()).iter().all(|name| !name.ends_with(".partial")));
}

#[test]
fn a_restore_killed_half_way_leaves_the_old_database_or_the_new_one() {
    let mut world = World::new();
    world.fill(60);
    let backup = world.back_up();
    world.write("/newer.md", "newer");
    world.stop();
    let saved = world.home.path().join("saved");
    copy_dir(&world.data(), &saved);
    kill_at_every_moment(
        || {
            fs::remove_dir_all(world.data()).expect("removed");
            copy_dir(&saved, &world.data());
            world.command(&["restore", text(&backup), "--yes"])
        },
        |ended| {
            // A killed one may stand anywhere; what is there is whole, and is one of the two.
            world.done(&["db", "check"]);
            let server = Server::start(&world.data(), None);
            let paths = server.paths(&world.key, &world.store).len();
            assert!(paths == 60 || (paths == 61 && !ended), "{paths} memories");
            assert!(!world.data().join("restore.partial").exists(), "a server removes what was left");
        },
    );
}

/// Files may not grow beyond 512 kB: writes fail as on a full disk.
#[test]
fn a_restore_that_fails_leaves_nothing_and_says_where_room_is_needed() {
    let mut world = World::new();
    world.fill(30);
    let backup = world.back_up();
    world.stop();
    world.done(&["db", "check"]);
    let before = lasting(&world.data());
    let small = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} restore {} --yes",
        env!("CARGO_BIN_EXE_stele"),
        text(&backup)
    );
    let mut command = Command::new("sh");
    command.args(["-c", &small]).env_clear().env("HOME", world.home.path());
    let output = command.env("STELE_DATA_DIR", world.data()).output().expect("a shell");
    let said = words(&output);
    assert!(!output.status.success() && said.contains("nothing was restored"), "{said}");
    assert!(said.contains(text(&world.data())) && said.contains("make room"), "{said}");
    assert_eq!(lasting(&world.data()), before);
    world.done(&["db", "check"]);
}

#[test]
fn a_new_data_directory_is_its_owners_only_and_what_cannot_be_used_is_called_what_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let backup = world.back_up();
    let dir = world.home.path().join("one/two");
    world.done(&["restore", text(&backup), "--data-dir", text(&dir)]);
    let mode = fs::metadata(&dir).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let file = world.home.path().join("file");
    fs::write(&file, "x").expect("written");
    let refused = world.refused(&["restore", text(&backup), "--data-dir", text(&file)]);
    assert!(refused.contains("Not a directory") && !refused.contains("running"), "{refused}");
    let link = world.home.path().join("link");
    std::os::unix::fs::symlink(&link, &link).expect("a link to itself");
    for arguments in
        [&["backup", "verify", text(&link)][..], &["restore", text(&link), "--data-dir", text(&dir)]]
    {
        let refused = world.refused(arguments);
        assert!(refused.contains("cannot read") && !refused.contains("no backup"), "{refused}");
    }
}

#[test]
fn a_backup_does_not_go_into_the_data_directory() {
    let mut world = World::new();
    let below = world.data().join("backups");
    for running in [true, false] {
        if !running {
            world.stop();
            world.done(&["db", "check"]);
        }
        let before = lasting(&world.data());
        for to in [&world.data(), &below] {
            let refused = world.refused(&["backup", "--to", text(to)]);
            assert!(refused.contains("data directory"), "{refused}");
        }
        assert_eq!(lasting(&world.data()), before);
    }
}

#[test]
fn a_data_directory_that_is_named_lends_its_key_also_to_a_server_that_is_named() {
    let world = World::new();
    let backup = world.back_up();
    let mut command = stele(&world.home.path().join("elsewhere"));
    let url = format!("http://{}", world.server.address);
    command.args(["backup", "list", "--data-dir", text(&world.data()), "--url", &url]);
    let output = command.output().expect("it runs");
    assert!(output.status.success() && words(&output).contains(text(&backup)), "{}", words(&output));
}

/// It is remembered before it gets its name.
#[test]
fn a_backup_killed_before_its_last_step_is_forgotten_by_the_next_one() {
    let world = World::new();
    let backup = world.back_up();
    // One that was to change places with a whole one is no reason to forget that.
    let scrubbed = world.back_up();
    copy_dir(&scrubbed, Path::new(&format!("{}.partial", text(&scrubbed))));
    fs::rename(&backup, format!("{}.partial", text(&backup))).expect("renamed");
    assert!(world.done(&["backup", "list"]).contains("missing"));
    world.back_up();
    let listed = world.done(&["backup", "list"]);
    assert!(!listed.contains("missing") && listed.contains(text(&scrubbed)), "{listed}");
    let listed: Value = serde_json::from_str(&world.done(&["backup", "list", "--json"])).expect("JSON");
    assert_eq!(listed["backups"].as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(names(&world.backups()).len(), 2, "{:?}", names(&world.backups()));
    world.done(&["backup", "verify"]);
}

#[test]
fn a_target_that_cannot_take_it_leaves_nothing_and_harms_nobody() {
    let mut world = World::new();
    world.fill(30);
    let file = world.home.path().join("file");
    fs::write(&file, "x").expect("written");
    let refused = world.refused(&["backup", "--to", text(&file)]);
    assert!(refused.contains(text(&file)), "{refused}");
    world.stop();
    world.done(&["db", "check"]);
    // Files may not grow beyond 512 kB: writes fail as on a full disk.
    let small = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} backup --to {}",
        env!("CARGO_BIN_EXE_stele"),
        text(&world.backups())
    );
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(small)
        .env_clear()
        .env("HOME", world.home.path())
        .env("STELE_DATA_DIR", world.data());
    let output = command.output().expect("a shell");
    assert!(!output.status.success() && words(&output).contains("no backup was made"), "{}", words(&output));
    assert!(!world.backups().exists(), "what was made for it is gone");
    assert_eq!(world.done(&["backup", "list"]), "");
    world.done(&["db", "check"]);
}

#[test]
fn backups_are_the_business_of_admins_of_the_first_workspace() {
    let world = World::new();
    let made =
        world.server.post(&world.key, "/stele/v1/api_keys", &json!({"name": "d", "role": "developer"}));
    let developer = made["key"].as_str().expect("a key");
    let other = world.server.post(&world.key, "/stele/v1/workspaces", &json!({"name": "Other"}));
    let elsewhere = other["key"].as_str().expect("a key");
    let unknown = "/stele/v1/backups/00000000-0000-7000-8000-000000000000";
    for key in [developer, elsewhere] {
        for (method, path, body) in [
            ("GET", "/stele/v1/backups", Value::Null),
            ("POST", "/stele/v1/backups", json!({"to": "/tmp"})),
            ("GET", unknown, Value::Null),
            ("DELETE", unknown, Value::Null),
        ] {
            let (status, answer) = world.server.ask(key, method, path, &body).expect("an answer");
            assert_eq!(status, 403, "{method} {path}: {answer}");
        }
    }
    for to in ["relative", "/nowhere/at/all"] {
        let asked = world.server.ask(&world.key, "POST", "/stele/v1/backups", &json!({"to": to}));
        let (status, answer) = asked.expect("an answer");
        assert_eq!((status, answer["details"]["field"].as_str()), (400, Some("to")), "{answer}");
    }
    for (method, path) in
        [("GET", unknown.to_owned()), ("DELETE", unknown.to_owned()), ("POST", format!("{unknown}/scrub"))]
    {
        let (status, answer) = world.server.ask(&world.key, method, &path, &Value::Null).expect("an answer");
        assert_eq!(status, 404, "{method} {path}: {answer}");
    }
    // A developer's redaction goes well, though they may not see the backups.
    let memory = world.write("/a.md", "one");
    let path = format!("{}/{}", world.memories(), memory["id"].as_str().expect("an id"));
    world.server.post(&world.key, &path, &json!({"content": "two"}));
    let version = memory["memory_version_id"].as_str().expect("an id");
    let mut command = world.command(&["redact", &world.store, version, "--yes"]);
    let output = command.env("STELE_API_KEY", developer).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
}

#[test]
fn a_backup_that_is_gone_is_said_to_be_and_can_be_forgotten() {
    let world = World::new();
    let memory = world.write("/k.md", "canary");
    let backup = world.back_up();
    let path = format!("{}/{}", world.memories(), memory["id"].as_str().expect("an id"));
    world.server.post(&world.key, &path, &json!({"content": "clean"}));
    let version = memory["memory_version_id"].as_str().expect("an id");
    world.done(&["redact", &world.store, version, "--yes"]);
    fs::remove_dir_all(&backup).expect("removed");
    assert!(world.done(&["backup", "list"]).contains("missing"));
    let refused = world.refused(&["backup", "scrub"]);
    assert!(refused.contains("was not scrubbed") && refused.contains("no backup"), "{refused}");
    world.done(&["backup", "forget", text(&backup)]);
    assert_eq!(world.done(&["backup", "list"]), "");
    assert!(world.done(&["backup", "scrub"]).contains("no backup holds"));
}
