//! What all threads of one mount share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use parking_lot::{Condvar, Mutex, MutexGuard};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use stele_client::Client;
use stele_core::hash::Sha256;
use stele_core::id::{MemoryId, VersionId, base58};

use crate::fetch::Waiter;
use crate::options::{Access, Options};
use crate::tree::{Ino, Kind, Listed, News, Tree};

/// How long the kernel may believe what it was told: until it is told otherwise.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);
/// After so long without an answer from the server, an open for writing asks first whether it is there.
const FRESH: Duration = Duration::from_millis(5);
/// For so long after the server's disk was full, opening for writing fails without another try.
const FULL: Duration = Duration::from_secs(2);

/// Something to be done to the store, in its turn.
pub(crate) type Task = Box<dyn FnOnce(&Arc<Shared>) + Send>;

pub(crate) struct Shared {
    pub(crate) client: Arc<Client>,
    pub(crate) options: Options,
    /// The store's id in the Anthropic dialect.
    pub(crate) store: String,
    state: Mutex<State>,
    /// A change of the store has been answered, or the feed has read its page.
    pub(crate) turned: Condvar,
    pub(crate) lane: Sender<Task>,
    pub(crate) texts: Cache<Sha256, Arc<[u8]>, Weight>,
    pub(crate) count: Counters,
    /// Whether the mount is being taken away.
    pub(crate) ending: AtomicBool,
    /// Whether the kernel has let go of it.
    pub(crate) over: AtomicBool,
}

/// The weight of a text: its bytes, and what it costs to keep one.
#[derive(Clone)]
pub(crate) struct Weight;

impl Weighter<Sha256, Arc<[u8]>> for Weight {
    fn weight(&self, _: &Sha256, text: &Arc<[u8]>) -> u64 {
        text.len() as u64 + 128
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) polls: AtomicU64,
    pub(crate) opens: AtomicU64,
    pub(crate) commits: AtomicU64,
}

impl Counters {
    pub(crate) fn one(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why a mount shows nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The session is over, or the key revoked.
    Credential,
    /// The store is deleted.
    Deleted,
}

impl Ended {
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Credential => Errno::EACCES,
            Self::Deleted => Errno::ESTALE,
        }
    }
}

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) ino: Ino,
    /// The thread that opened it.
    pub(crate) opener: u32,
    pub(crate) append: bool,
    /// How many changes had been made elsewhere when it was opened.
    pub(crate) foreign: u64,
    /// Whether it made or cut the file, and that is not committed.
    pub(crate) touched: bool,
    /// Whether it has written something that is not committed.
    pub(crate) wrote: bool,
    /// What was refused through it: nothing of it is committed any more.
    pub(crate) spoilt: Option<Errno>,
    /// Why the last commit failed, if nothing was written since.
    pub(crate) failed: Option<Errno>,
}

/// The change of the store that is on its way.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    pub(crate) memories: HashSet<MemoryId>,
    pub(crate) paths: HashSet<String>,
}

/// A text on its way.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) memory: MemoryId,
    pub(crate) hash: Sha256,
    /// Whether a version of the memory with this text has come since.
    pub(crate) arrived: bool,
}

pub(crate) struct State {
    pub(crate) tree: Tree,
    pub(crate) handles: HashMap<u64, Handle>,
    pub(crate) listings: HashMap<u64, Arc<[Listed]>>,
    pub(crate) last_handle: u64,
    pub(crate) sequence: u64,
    pub(crate) epoch: String,
    /// Whether the store's changes are being followed.
    pub(crate) live: bool,
    pub(crate) archived: bool,
    pub(crate) ended: Option<Ended>,
    /// When the server last said that its disk is full, unless it has taken something since.
    pub(crate) disk_full: Option<Instant>,
    pub(crate) max_memories: u64,
    pub(crate) in_flight: Option<InFlight>,
    /// The text that was sent last for a memory: if an answer is lost, its version shows what became of it.
    pub(crate) sent: Option<Sent>,
    /// Whether the feed waits for what is in flight, so that nothing new may begin.
    pub(crate) feed_waits: bool,
    pub(crate) fetching: HashMap<VersionId, Vec<Waiter>>,
    /// Texts that could not be had a moment ago, and why.
    pub(crate) unread: HashMap<VersionId, (Instant, Errno)>,
    pub(crate) ahead: crate::fetch::Ahead,
    pub(crate) contact: Option<Instant>,
    /// What the kernel is to be told, by the thread that does so.
    pub(crate) news: VecDeque<News>,
    pub(crate) last_miss: Option<Instant>,
}

impl Shared {
    pub(crate) fn new(client: Arc<Client>, options: Options, store: [u8; 16], lane: Sender<Task>) -> Self {
        let texts = (options.cache_bytes / 4096).max(64);
        let bytes = options.cache_bytes as u64;
        Self {
            client,
            store: format!("memstore_01{}", base58(store)),
            state: Mutex::new(State {
                tree: Tree::new(),
                handles: HashMap::new(),
                listings: HashMap::new(),
                last_handle: 0,
                sequence: 0,
                epoch: String::new(),
                live: false,
                archived: false,
                ended: None,
                disk_full: None,
                max_memories: u64::MAX,
                in_flight: None,
                sent: None,
                feed_waits: false,
                fetching: HashMap::new(),
                unread: HashMap::new(),
                ahead: crate::fetch::Ahead::default(),
                contact: None,
                news: VecDeque::new(),
                last_miss: None,
            }),
            turned: Condvar::new(),
            lane,
            texts: Cache::with_weighter(texts, bytes, Weight),
            count: Counters::default(),
            ending: AtomicBool::new(false),
            over: AtomicBool::new(false),
            options,
        }
    }

    /// The state, locked. What the tree has to tell the kernel is queued when the guard goes.
    pub(crate) fn state(&self) -> Guard<'_> {
        Guard { state: self.state.lock(), turned: &self.turned }
    }

    /// Puts a task behind those that wait for their turn.
    pub(crate) fn queue(&self, task: impl FnOnce(&Arc<Shared>) + Send + 'static) {
        // The lane lives as long as the mount; behind its end whoever waits is answered by his guard.
        let _ = self.lane.send(Box::new(task));
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }
}

/// The locked state.
pub(crate) struct Guard<'a> {
    state: MutexGuard<'a, State>,
    turned: &'a Condvar,
}

impl Guard<'_> {
    /// Lets go of the state until something has turned, or so long.
    pub(crate) fn wait(&mut self, most: Duration) {
        self.publish();
        self.turned.wait_for(&mut self.state, most);
    }

    fn publish(&mut self) {
        let news = self.state.tree.take_news();
        if !news.is_empty() {
            self.state.news.extend(news);
            self.turned.notify_all();
        }
    }
}

impl std::ops::Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl std::ops::DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl State {
    /// Why nothing can be read.
    pub(crate) fn check_open(&self) -> Result<(), Errno> {
        self.ended.map_or(Ok(()), |ended| Err(ended.errno()))
    }

    /// Why nothing can be written.
    pub(crate) fn check_writable(&self, options: &Options) -> Result<(), Errno> {
        self.check_open()?;
        let read_only = self.archived || options.access == Access::ReadOnly;
        if read_only { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Why a file cannot be made or opened for writing now, though it may be later.
    pub(crate) fn check_room(&self) -> Result<(), Errno> {
        let full = self.disk_full.is_some_and(|at| at.elapsed() < FULL);
        if full { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// Whether the server has just answered.
    pub(crate) fn is_fresh(&self) -> bool {
        self.live && self.contact.is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Whether another memory would be one too many.
    pub(crate) fn is_full(&self) -> bool {
        let memories = self.tree.memories.len() as u64;
        if memories + self.handles.len() as u64 <= self.max_memories.saturating_sub(1) {
            return false;
        }
        let new = self.tree.nodes.values().filter(|node| match &node.kind {
            Kind::File(file) => file.is_new() && node.parent != 0,
            Kind::Directory(_) => false,
        });
        memories + new.count() as u64 >= self.max_memories
    }

    /// How long the kernel may believe what it is told about a node.
    pub(crate) fn lifetime(&self, ino: Ino) -> Duration {
        let Some(node) = self.tree.nodes.get(&ino) else { return Duration::ZERO };
        let draft = matches!(&node.kind, Kind::File(file) if file.draft.is_some());
        if self.live && node.stale == 0 && !draft { LONG } else { Duration::ZERO }
    }

    /// What `stat` shows of a node.
    pub(crate) fn attributes(&self, ino: Ino, options: &Options) -> Option<(FileAttr, Generation)> {
        let node = self.tree.nodes.get(&ino)?;
        let (size, mtime, kind, perm, nlink) = match &node.kind {
            Kind::File(file) => {
                let links = u32::from(node.parent != 0);
                (file.size(), file.mtime(), FileType::RegularFile, 0o644, links)
            }
            Kind::Directory(directory) => {
                (4096, directory.mtime, FileType::Directory, 0o755, 2 + directory.subdirectories)
            }
        };
        let attributes = FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: mtime,
            mtime,
            ctime: mtime,
            crtime: mtime,
            kind,
            perm,
            nlink,
            uid: options.owner.uid,
            gid: options.owner.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        Some((attributes, Generation(node.generation)))
    }

    /// Spoils a handle, and with it the draft that it wrote to; whoever else wrote to that is told too.
    pub(crate) fn spoil(&mut self, number: u64, errno: Errno) {
        let Some(ino) = self.handles.get_mut(&number).map(|handle| {
            handle.spoilt = Some(errno);
            handle.ino
        }) else {
            return;
        };
        for other in self.handles.values_mut().filter(|other| other.ino == ino && other.wrote) {
            other.spoilt = Some(errno);
        }
        self.drop_draft(ino);
    }

    /// Shows the store's text of a file again.
    pub(crate) fn drop_draft(&mut self, ino: Ino) {
        if let Some(file) = self.tree.file_mut(ino).filter(|file| file.scratch.is_none()) {
            file.draft = None;
            self.tree.news_of(ino);
        }
    }

    /// Forgets a new file that nothing came of.
    pub(crate) fn drop_barren(&mut self, ino: Ino) {
        let barren = self.tree.file(ino).is_some_and(|file| {
            file.opens == 0 && file.draft.is_none() && file.memory.is_none() && file.scratch.is_none()
        });
        if barren {
            self.tree.vanish(ino);
        }
    }

    /// Tells whoever looks that everything is different now.
    pub(crate) fn everything_is_news(&mut self) {
        let all: Vec<Ino> = self.tree.nodes.keys().copied().collect();
        for ino in all {
            self.tree.news_of(ino);
        }
        let names: Vec<_> = self
            .tree
            .nodes
            .values()
            .filter(|node| !node.name.is_empty())
            .map(|node| (node.parent, node.name.clone()))
            .collect();
        for (parent, name) in names {
            self.tree.name_news(parent, &name);
        }
    }
}
