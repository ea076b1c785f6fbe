//! A memory store as a directory: a FUSE file system over `stele-client`. DESIGN 9.
//!
//! ```text
//! kernel <-> fs        one FUSE mount per store; what the mirror knows is answered at once
//!             |-> lane     every change of the store in its order, one at a time, on a thread of its own
//!             |-> contents texts by version, in batches, within a budget of bytes
//! server -> feed -> tree   the mirror of the store's tree; what moved is told to the kernel by `notify`
//! ```

mod commit;
mod draft;
mod feed;
mod fetch;
mod fs;
mod moves;
mod names;
mod notify;
mod options;
mod server;
mod shared;
mod slow;
mod tree;

pub use options::{Access, MountError, Options, Owner, Status};

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Notifier, Session, SessionACL};
use stele_client::{Client, ClientError};
use stele_core::id::StoreId;

use crate::shared::{Ended, Shared, Task};

/// Longest time for reading a store's tree at the start.
const START: Duration = Duration::from_secs(60);
/// How often temporary files are looked at that may have to become memories.
const LOOK: Duration = Duration::from_secs(5);
/// How long the kernel may take to let go of a mount that nobody uses.
const LET_GO: Duration = Duration::from_secs(2);

/// A mounted store.
pub struct Mount {
    shared: Arc<Shared>,
}

impl Mount {
    /// Mounts a store; returns once the kernel has accepted the mount and the tree is complete.
    ///
    /// # Errors
    /// The store cannot be read, or the operating system refuses.
    pub fn start(client: Arc<Client>, options: Options) -> Result<Self, MountError> {
        let unreadable = |source: ClientError| MountError::Store { store: options.store.clone(), source };
        let store = StoreId::parse(&options.store).ok_or_else(|| {
            unreadable(ClientError::Strange { url: options.store.clone(), cause: "the id is no UUID".into() })
        })?;
        let (lane, tasks) = channel();
        let shared = Arc::new(Shared::new(client, options.clone(), *store.as_bytes(), lane));
        shared.begin().map_err(unreadable)?;
        let refused = |source| MountError::System {
            store: options.store.clone(),
            dir: options.dir.display().to_string(),
            source,
        };
        let session = Session::new(fs::Fs { shared: shared.clone() }, &options.dir, &config(&options));
        let session = session.map_err(refused)?;
        let notifier = session.notifier();
        shared.run(tasks, notifier).map_err(refused)?;
        let of = shared.clone();
        let serve = move || {
            if let Err(error) = session.run() {
                tracing::error!(store.id = %of.options.store, %error, "the kernel cut the mount off");
            }
            of.finish();
        };
        spawn("stele-mount", serve).map_err(refused)?;
        Ok(Self { shared })
    }

    /// How the mount is doing.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Whether the kernel still asks this mount. False once somebody unmounted it.
    pub fn is_alive(&self) -> bool {
        !self.shared.over.load(Ordering::Relaxed)
    }

    /// Commits what open files hold, and makes the temporary files memories that are due. The number of files whose
    /// changes could not be committed.
    pub fn commit_all(&self) -> usize {
        let (sender, receiver) = channel();
        self.shared.queue(move |shared| {
            // Whoever asked may have gone.
            let _ = sender.send(shared.commit_everything());
        });
        receiver.recv().unwrap_or_default()
    }

    /// Commits what open files hold, then takes the mount away, also from under open files. The number of files whose
    /// changes could not be committed.
    ///
    /// # Errors
    /// The operating system does not let go of the mount.
    pub fn unmount(self) -> io::Result<usize> {
        let failed = self.commit_all();
        self.shared.ending.store(true, Ordering::Relaxed);
        self.shared.turned.notify_all();
        if self.is_alive() {
            detach(&self.shared.options.dir)?;
        }
        // Open files keep the kernel's side of a mount alive; the end of this process ends that too.
        let until = Instant::now() + LET_GO;
        while self.is_alive() && Instant::now() < until {
            self.shared.state().wait(Duration::from_millis(50));
        }
        Ok(failed)
    }

    /// Waits until the mount is gone: somebody unmounted it.
    pub fn wait(&self) {
        while self.is_alive() {
            self.shared.state().wait(Duration::from_secs(60));
        }
    }
}

/// Takes a mount away, from under open files too: as root, else through `fusermount3`.
fn detach(dir: &Path) -> io::Result<()> {
    let Err(error) = rustix::mount::unmount(dir, rustix::mount::UnmountFlags::DETACH) else { return Ok(()) };
    let output = Command::new("fusermount3").args(["-u", "-z", "--"]).arg(dir).output()?;
    if output.status.success() { Ok(()) } else { Err(error.into()) }
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    let read_only = options.access == Access::ReadOnly;
    config.mount_options = vec![
        MountOption::FSName("stele".into()),
        MountOption::Subtype("stele".into()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoAtime,
        if read_only { MountOption::RO } else { MountOption::RW },
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(|_| ())
}

impl Shared {
    /// Reads the store and its tree for the first time.
    fn begin(&self) -> Result<(), ClientError> {
        // A session's token may not look at the store itself. Its first write is told of an archived store.
        let archived = match self.client.store_now(&self.store, START) {
            Ok(store) => store.value.archived_at.is_some(),
            Err(failure) if failure.error.status() == Some(403) => false,
            Err(failure) => return Err(failure.error),
        };
        self.relist(START).map_err(|failure| failure.error)?;
        let mut state = self.state();
        state.tree.begin();
        state.archived = archived;
        state.live = true;
        Ok(())
    }

    /// Starts the threads of the mount.
    fn run(self: &Arc<Self>, tasks: Receiver<Task>, notifier: Notifier) -> io::Result<()> {
        let (of, lane, feed) = (self.clone(), self.clone(), self.clone());
        spawn("stele-notify", move || notify::tell(&of, &notifier))?;
        spawn("stele-lane", move || work(&lane, &tasks))?;
        spawn("stele-feed", move || feed::follow(&feed))
    }

    /// The kernel asks nothing any more.
    pub(crate) fn finish(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.over.store(true, Ordering::Relaxed);
        drop(self.state());
        self.turned.notify_all();
    }

    fn status(&self) -> Status {
        let state = self.state();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let dirty = |file: &tree::File| file.draft.is_some() && file.scratch.is_none();
        let files = state.tree.nodes.keys().filter_map(|ino| state.tree.file(*ino));
        Status {
            store: self.options.store.clone(),
            name: self.options.name.clone(),
            dir: self.options.dir.clone(),
            access: self.options.access,
            server_reachable: state.live,
            archived: state.archived,
            ended: state.ended.map(|ended| match ended {
                Ended::Credential => "credential",
                Ended::Deleted => "store_deleted",
            }),
            last_sequence: state.sequence,
            epoch: state.epoch.clone(),
            memories: state.tree.memories.len() as u64,
            dirty_files: files.filter(|file| dirty(file)).count() as u64,
            scratch_files: state.tree.scratch_files().count() as u64,
            cache_hits: count(&self.count.hits),
            cache_misses: count(&self.count.misses),
            cache_bytes: self.texts.weight(),
            requests: count(&self.count.requests),
            polls: count(&self.count.polls),
            opens: count(&self.count.opens),
            commits: count(&self.count.commits),
        }
    }
}

/// Does what changes the store, one after the other, until the mount is gone.
fn work(shared: &Arc<Shared>, tasks: &Receiver<Task>) {
    loop {
        let task = if shared.has_temporaries() {
            tasks.recv_timeout(LOOK)
        } else {
            tasks.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match task {
            Ok(task) => task(shared),
            Err(RecvTimeoutError::Timeout) => shared.keep_left_over(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
    }
}
