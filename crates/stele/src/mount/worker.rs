//! The process that holds the mounts.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use stele_client::{Client, ClientError};
use stele_mount::{Access, Mount, MountError, Options, Owner, Status};
use tracing::level_filters::LevelFilter;

use super::control::Control;
use super::launch::READY;
use super::place::Place;
use super::setup::{Setup, StoreSetup};
use super::{control, table};
use crate::config::process_env;
use crate::failure::{Class, fail};
use crate::output::{complain, count, print};
use crate::{log, signals};

/// How often it is looked whether somebody unmounted the stores.
const LOOK: Duration = Duration::from_secs(1);

/// The stores of this process; those that were unmounted are taken out.
type Mounts = Arc<Mutex<Vec<Mount>>>;

/// A wish to end; of one who waits for how it ended, or of nobody in particular.
pub(super) type Stop = Option<Waiting>;

/// Who waits for the end of the mounts.
pub(super) struct Waiting {
    /// Takes how many files could not be committed.
    pub(super) left: Sender<usize>,
    /// Says, or is closed, when that was passed on.
    pub(super) told: Receiver<()>,
}

pub(super) fn run(setup: Setup) -> anyhow::Result<()> {
    let level = process_env("STELE_LOG").and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::WARN);
    let logs = log::start(level);
    let (wishes, wanted) = channel();
    stop_on_signals(wishes.clone())?;
    let alone = setup.supervisor.is_none();
    let mut place = if alone { Some(Place::prepare(&setup)?) } else { None };
    let result = serve(&setup, place.as_ref(), wishes, &wanted);
    if let Some(supervisor) = setup.supervisor.filter(|id| *id != std::os::unix::process::parent_id()) {
        complain(&format!("the supervisor {supervisor} is gone: this process clears away by itself"));
        place = Some(Place::inherit(&setup));
    }
    if let Some(place) = &mut place {
        place.take_away();
        control::forget(&setup.dir);
    }
    drop(logs);
    result
}

fn stop_on_signals(wishes: Sender<Stop>) -> anyhow::Result<()> {
    let stops = signals::on_stop(1)?;
    std::thread::spawn(move || {
        for stop in stops {
            if stop.recv().is_ok() {
                let _ = wishes.send(None);
            }
        }
    });
    Ok(())
}

fn serve(
    setup: &Setup,
    place: Option<&Place>,
    wishes: Sender<Stop>,
    wanted: &Receiver<Stop>,
) -> anyhow::Result<()> {
    if setup.again {
        answers(setup)?;
    }
    let mounts: Mounts = Arc::new(Mutex::new(mount_all(setup)?));
    let seen = Arc::clone(&mounts);
    let statuses = move || -> Vec<Status> { lock(&seen).iter().map(Mount::status).collect() };
    let control = Control::open(setup, statuses, wishes);
    if let Some(place) = place {
        place.seal();
    }
    let served = announce(setup).and_then(|()| match control {
        Ok(control) => {
            let wish = wait(&mounts, wanted);
            let left = unmount_all(&mounts);
            control.close();
            if let Some(Some(waiting)) = wish {
                let _ = waiting.left.send(left);
                let _ = waiting.told.recv_timeout(LOOK);
            }
            judge(left)
        }
        Err(error) => Err(error),
    });
    unmount_all(&mounts);
    served
}

fn lock(mounts: &Mounts) -> std::sync::MutexGuard<'_, Vec<Mount>> {
    mounts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn announce(setup: &Setup) -> anyhow::Result<()> {
    for store in &setup.stores {
        let access = if store.read_only { "read-only" } else { "read-write" };
        let line = format!("mounted {} at {}, {access}", store.name, store.dir.display());
        // A starter that went away, as the supervisor may have, is no reason not to serve.
        let _ = print(&line);
    }
    let _ = print(READY);
    if setup.daemon { control::detach(&setup.dir) } else { Ok(()) }
}

/// Whether the server answers, before dead mounts are taken away: while they stand nobody writes into a plain directory.
fn answers(setup: &Setup) -> anyhow::Result<()> {
    let client = Client::new(&setup.url, setup.credential.as_str());
    if let Some(store) = setup.stores.first() {
        client.get(&format!("/v1/memory_stores/{}/memories?limit=1", store.id))?;
    }
    Ok(())
}

fn mount_all(setup: &Setup) -> anyhow::Result<Vec<Mount>> {
    let mut mounts = Vec::new();
    for store in &setup.stores {
        match mount(setup, store) {
            Ok(mount) => mounts.push(mount),
            Err(error) => {
                for mount in mounts {
                    let _ = mount.unmount();
                }
                return Err(error);
            }
        }
    }
    Ok(mounts)
}

fn mount(setup: &Setup, store: &StoreSetup) -> anyhow::Result<Mount> {
    let named = || format!("cannot mount {} ({}) at {}", store.name, store.id, store.dir.display());
    if table::clear(&store.dir).with_context(named)? {
        return Err(fail(Class::Conflict, format!("{}: something is mounted there", named())));
    }
    let options = Options {
        store: store.uuid.clone(),
        name: store.name.clone(),
        access: if store.read_only { Access::ReadOnly } else { Access::ReadWrite },
        dir: store.dir.clone(),
        owner: Owner { uid: setup.uid, gid: setup.gid },
        allow_other: setup.allow_other,
        cache_bytes: Options::CACHE_BYTES,
    };
    // A connection of its own, so that a store that is read much holds up no other.
    let client = Arc::new(Client::new(&setup.url, setup.credential.as_str()));
    Mount::start(client, options).map_err(|error| refused(setup, store, &named(), error))
}

/// What a person can do about a refused mount.
fn refused(setup: &Setup, store: &StoreSetup, named: &str, error: MountError) -> anyhow::Error {
    match error {
        MountError::Store { source: ClientError::Refused { status: 404, .. }, .. } => {
            fail(Class::NotFound, format!("{named}: there is no such store"))
        }
        MountError::Store { source, .. } => anyhow::Error::from(source).context(named.to_owned()),
        MountError::System { source, .. } => {
            let root = rustix::process::geteuid().is_root();
            let help = match (root, setup.allow_other) {
                (false, true) => {
                    ". Other users may enter only if /etc/fuse.conf says user_allow_other; leave out --allow-other and --uid, or \
                     run as root"
                }
                _ => "; `stele mount --check` says what this machine lacks, `stele sync` does without FUSE",
            };
            let shown = store.dir.display();
            fail(
                Class::Other,
                format!("{named}: the mount of /dev/fuse at {shown} is refused: {source}{help}"),
            )
        }
    }
}

/// Waits for a wish to end; `None` where somebody unmounted the stores.
fn wait(mounts: &Mounts, wanted: &Receiver<Stop>) -> Option<Stop> {
    loop {
        match wanted.recv_timeout(LOOK) {
            Ok(wish) => return Some(wish),
            Err(RecvTimeoutError::Timeout) if lock(mounts).iter().any(Mount::is_alive) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Unmounts all stores at once; how many files could not be committed.
fn unmount_all(mounts: &Mounts) -> usize {
    let taken: Vec<Mount> = std::mem::take(&mut *lock(mounts));
    std::thread::scope(|scope| {
        let threads: Vec<_> = taken.into_iter().map(|mount| scope.spawn(|| unmount(mount))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    })
}

fn unmount(mount: Mount) -> usize {
    let dir = mount.status().dir;
    match mount.unmount() {
        Ok(left) => left,
        Err(error) => {
            complain(&format!("cannot unmount {}: {error}", dir.display()));
            force(&dir);
            0
        }
    }
}

fn force(dir: &Path) {
    if let Err(error) = table::take_away(dir) {
        complain(&format!("{error:#}"));
    }
}

fn judge(left: usize) -> anyhow::Result<()> {
    match left {
        0 => Ok(()),
        left => {
            let files = count(left, "file", "files");
            Err(fail(Class::Unavailable, format!("changes of {files} could not be committed and are lost")))
        }
    }
}
