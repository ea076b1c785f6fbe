//! The socket by which a running mount is asked how it is doing, and stopped.
//!
//! It lies with a file that says which mount it is of in a directory that this user alone may enter: the runtime
//! directory of the session (`XDG_RUNTIME_DIR`), `/run/stele` as root, else one below `/tmp`. A client sends a line,
//! `status` or `stop`, and gets a line of JSON.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stele_core::hash::Sha256;
use stele_mount::Status;

use super::launch::plain;
use super::setup::Setup;
use super::worker::{Stop, Waiting};
use super::{place, table};
use crate::config::process_env;
use crate::failure::{Class, fail};
use crate::output::{complain, count, print, print_json, print_table, say};

/// Longest name of a socket's place, in bytes. unix(7).
const LONGEST: usize = 100;
/// How long a mount may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(40);

/// Which mount a socket is of.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    dir: PathBuf,
    points: Vec<PathBuf>,
    pid: u32,
    supervisor: Option<u32>,
}

/// Where this user's running mounts are known.
fn runtime_dir() -> anyhow::Result<PathBuf> {
    let uid = rustix::process::geteuid();
    let own = process_env("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("stele"));
    let own =
        own.filter(|dir| dir.as_os_str().len() + 30 < LONGEST && dir.parent().is_some_and(Path::is_dir));
    let run = Some(PathBuf::from("/run/stele")).filter(|_| uid.is_root() && Path::new("/run").is_dir());
    let dir = own.or(run).unwrap_or_else(|| PathBuf::from(format!("/tmp/stele-{}", uid.as_raw())));
    match DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {}", dir.display()));
        }
        _ => {}
    }
    // Below /tmp anybody might have made it before us.
    let meta = dir.symlink_metadata()?;
    let safe = meta.is_dir() && meta.uid() == uid.as_raw() && meta.mode().trailing_zeros() >= 6;
    ensure!(safe, "{} does not belong to this user alone: remove it", dir.display());
    Ok(dir)
}

/// A file of the mount at `dir`.
fn file(dir: &Path, ending: &str) -> anyhow::Result<PathBuf> {
    let name = Sha256::of(dir.as_os_str().as_encoded_bytes()).to_string();
    Ok(runtime_dir()?.join(format!("{}.{ending}", &name[..16])))
}

/// The socket of a running mount.
pub(super) struct Control {
    socket: PathBuf,
}

impl Control {
    /// Opens the socket, and answers on a thread of its own.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn open(
        setup: &Setup,
        statuses: impl Fn() -> Vec<Status> + Send + 'static,
        wishes: Sender<Stop>,
    ) -> anyhow::Result<Self> {
        let socket = file(&setup.dir, "sock")?;
        let card = Card {
            dir: setup.dir.clone(),
            points: setup.stores.iter().map(|store| store.dir.clone()).collect(),
            pid: std::process::id(),
            supervisor: setup.supervisor,
        };
        let named = || format!("cannot make {}", socket.display());
        remove(&socket);
        let listener = UnixListener::bind(&socket).with_context(named)?;
        std::fs::set_permissions(&socket, Permissions::from_mode(0o600)).with_context(named)?;
        let place = file(&setup.dir, "json")?;
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&place);
        written.and_then(|mut file| file.write_all(&serde_json::to_vec(&card)?)).with_context(named)?;
        let url = setup.url.clone();
        let answer = move |stream: UnixStream| answer(stream, &card, &url, &statuses, &wishes);
        std::thread::Builder::new().name("control".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever asks and goes away is none of our business.
                let _ = answer(stream);
            }
        })?;
        Ok(Self { socket })
    }

    /// Takes the socket away.
    pub(super) fn close(self) {
        remove(&self.socket);
    }
}

fn answer(
    mut stream: UnixStream,
    card: &Card,
    url: &str,
    statuses: &impl Fn() -> Vec<Status>,
    wishes: &Sender<Stop>,
) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    // Dropped when the answer is out.
    let (_told, told) = channel::<()>();
    let said = match line.trim() {
        "status" => {
            json!({"dir": card.dir, "pid": card.pid, "supervisor_pid": card.supervisor, "url": url, "stores": statuses()})
        }
        "stop" => {
            let (left, ended) = channel();
            wishes.send(Some(Waiting { left, told })).map_err(|_| anyhow::anyhow!("the mount is ending"))?;
            json!({"uncommitted": ended.recv().unwrap_or(0)})
        }
        _ => json!({"error": "say status or stop"}),
    };
    stream.write_all(format!("{said}\n").as_bytes())?;
    Ok(())
}

fn remove(file: &Path) {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            complain(&format!("cannot remove {}: {error}", file.display()));
        }
        _ => {}
    }
}

/// Removes what tells of the mount at `dir`.
pub(super) fn forget(dir: &Path) {
    for ending in ["sock", "json", "log"] {
        if let Ok(file) = file(dir, ending) {
            remove(&file);
        }
    }
}

/// From here on the process speaks into a file: whoever started it goes on without it.
pub(super) fn detach(dir: &Path) -> anyhow::Result<()> {
    let place = file(dir, "log")?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&place);
    let log = log.with_context(|| format!("cannot write {}", place.display()))?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

fn ask(socket: &Path, what: &str, patience: Duration) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    writeln!(stream, "{what}")?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Whether a process serves a mount at `dir`.
pub(super) fn is_served(dir: &Path) -> bool {
    file(dir, "sock").is_ok_and(|socket| ask(&socket, "status", PATIENCE).is_ok())
}

/// The mounts that are known here, by directory.
fn cards() -> anyhow::Result<Vec<Card>> {
    let mut cards = Vec::new();
    for entry in std::fs::read_dir(runtime_dir()?)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            let card =
                std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Card>(&bytes).ok());
            cards.extend(card);
        }
    }
    cards.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(cards)
}

/// `stele mount status`.
pub(super) fn status(dir: Option<&Path>, as_json: bool) -> anyhow::Result<()> {
    let dir = dir.map(plain).transpose()?;
    let wanted = |card: &Card| dir.as_ref().is_none_or(|dir| card.dir == *dir || card.points.contains(dir));
    let cards: Vec<Card> = cards()?.into_iter().filter(wanted).collect();
    if let (Some(dir), true) = (&dir, cards.is_empty()) {
        return Err(fail(Class::NotFound, format!("nothing of Stele is mounted at {}", dir.display())));
    }
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for card in cards {
        match ask(&file(&card.dir, "sock")?, "status", PATIENCE) {
            Ok(mut mount) => {
                mount["state"] = "running".into();
                let stores = mount["stores"].as_array().cloned().unwrap_or_default();
                rows.extend(stores.iter().map(row));
                found.push(mount);
            }
            Err(error) => {
                let state = if error.kind() == ErrorKind::WouldBlock { "silent" } else { "dead" };
                rows.extend(card.points.iter().map(|point| {
                    let mut row = [const { String::new() }; 8];
                    (row[0], row[3]) = (point.display().to_string(), state.to_owned());
                    row
                }));
                found.push(json!({"dir": card.dir, "pid": card.pid, "supervisor_pid": card.supervisor, "state": state, "stores": []}));
            }
        }
    }
    if as_json {
        return print_json(&json!({"data": found}));
    }
    print_table(
        ["DIR", "STORE", "ACCESS", "SERVER", "SEQUENCE", "MEMORIES", "UNCOMMITTED", "CACHE HITS"],
        &rows,
    )
}

fn row(store: &Value) -> [String; 8] {
    let text = |name: &str| match &store[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let server = match (store["ended"].as_str(), store["server_reachable"].as_bool()) {
        (Some(ended), _) => ended.to_owned(),
        (None, Some(true)) => "reachable".into(),
        _ => "out of reach".into(),
    };
    let (hits, misses) =
        (store["cache_hits"].as_u64().unwrap_or(0), store["cache_misses"].as_u64().unwrap_or(0));
    let hits = format!("{hits} of {}", hits + misses);
    [
        text("dir"),
        text("name"),
        text("access"),
        server,
        text("last_sequence"),
        text("memories"),
        text("dirty_files"),
        hits,
    ]
}

/// `stele mount stop`.
pub(super) fn stop(dir: &Path) -> anyhow::Result<()> {
    let dir = plain(dir)?;
    let card = cards()?.into_iter().find(|card| card.dir == dir || card.points.contains(&dir));
    let Some(card) = card else { return stop_unknown(&dir) };
    let uncommitted = match ask(&file(&card.dir, "sock")?, "stop", END) {
        Ok(said) => said["uncommitted"].as_u64().unwrap_or(0),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
            return stop_dead(&card);
        }
        Err(error) => {
            return Err(error).with_context(|| format!("the mount at {} does not end", card.dir.display()));
        }
    };
    // The last thing that its processes do is to remove the card.
    let (end, place) = (Instant::now() + PATIENCE, file(&card.dir, "json")?);
    while place.exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    if uncommitted > 0 {
        let files = count(usize::try_from(uncommitted).unwrap_or(usize::MAX), "file", "files");
        return Err(fail(
            Class::Unavailable,
            format!("unmounted; changes of {files} could not be committed and are lost"),
        ));
    }
    print(&format!("unmounted {}", card.dir.display()))
}

/// A mount whose processes are gone.
fn stop_dead(card: &Card) -> anyhow::Result<()> {
    for point in &card.points {
        table::clear(point)?;
    }
    if place::is_ours(&card.dir)? {
        table::take_away(&card.dir)?;
    }
    forget(&card.dir);
    say(&format!("unmounted {}, whose process was gone", card.dir.display()));
    Ok(())
}

/// A mount that is known to the kernel only.
fn stop_unknown(dir: &Path) -> anyhow::Result<()> {
    let before = table::at(dir)?.len();
    if table::clear(dir)? || before == table::at(dir)?.len() {
        return Err(fail(Class::NotFound, format!("nothing of Stele is mounted at {}", dir.display())));
    }
    print(&format!("unmounted {}, whose process was gone", dir.display()))
}
