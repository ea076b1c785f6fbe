//! The mirror of a store's tree, with what lives on this mount only: scratch files, empty directories, new files.
//!
//! Pure: it is told what the server says and what the kernel asks for, and collects what the kernel must be told
//! ([`News`]). A *node* is what the kernel knows by a number; a memory is shown by one node. A node keeps its number as
//! long as it lives, also when the memory that it shows becomes another (a rename onto a memory).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::Errno;
use stele_core::hash::Sha256;
use stele_core::id::{MemoryId, VersionId};

use crate::draft::{Draft, Shape};
use crate::names::Scratch;

/// The number of a node.
pub(crate) type Ino = u64;
/// The number of the root.
pub(crate) const ROOT: Ino = 1;
/// The first two places of a listing are `.` and `..`.
const FIRST_COOKIE: u64 = 3;

/// The version that is a memory's current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) version: VersionId,
    pub(crate) hash: Sha256,
    pub(crate) size: u64,
    pub(crate) mtime: SystemTime,
}

/// Something that the kernel must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Attributes and contents of a node, or the listing of a directory, are not what they were.
    Node(Ino),
    /// A name in a directory means something else, or nothing any more.
    Name(Ino, Arc<str>),
}

/// A file or a directory.
#[derive(Debug)]
pub(crate) struct Node {
    /// The directory it is in; 0 where it is in none any more.
    pub(crate) parent: Ino,
    pub(crate) name: Arc<str>,
    /// Its place in listings: grows with each name that comes into a directory.
    cookie: u64,
    /// Tells nodes apart that had the same number one after the other.
    pub(crate) generation: u64,
    /// How much news about it the kernel has not heard yet.
    pub(crate) stale: u32,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Directory(Directory),
    File(Box<File>),
}

#[derive(Debug)]
pub(crate) struct Directory {
    names: HashMap<Arc<str>, Ino>,
    order: BTreeMap<u64, Ino>,
    listing: Option<Arc<[Listed]>>,
    pub(crate) subdirectories: u32,
    /// Whether it stays when it is empty: somebody here made or emptied it.
    pub(crate) held: bool,
    pub(crate) mtime: SystemTime,
}

/// A name in a listing.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) cookie: u64,
    pub(crate) ino: Ino,
    pub(crate) name: Arc<str>,
    pub(crate) directory: bool,
}

#[derive(Debug)]
pub(crate) struct File {
    /// The memory that it shows; none for new files, scratch files, and what is deleted.
    pub(crate) memory: Option<MemoryId>,
    /// The version that it shows where there is no draft.
    pub(crate) head: Option<Head>,
    pub(crate) draft: Option<Draft>,
    pub(crate) scratch: Option<Scratch>,
    /// The store's path of a memory that was renamed to a scratch name.
    pub(crate) parked: Option<String>,
    /// Why a commit has nowhere to go.
    pub(crate) gone: Option<Gone>,
    /// How many handles are open.
    pub(crate) opens: u32,
    /// The texts that were sent since the last commit and of which nobody knows whether they arrived: hash and length.
    pub(crate) sent: Vec<(Sha256, usize)>,
    /// How many changes were made elsewhere.
    pub(crate) foreign: u64,
    /// When it was last written here, or closed: for scratch files and drafts.
    pub(crate) touched: SystemTime,
}

/// Why a file is in no directory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Removed or replaced through this mount: what is still written to it goes nowhere, as on any disk.
    Here,
    /// Deleted elsewhere.
    Elsewhere,
    /// A directory was made elsewhere where it was to be.
    Directory,
}

impl File {
    fn new() -> Self {
        Self {
            memory: None,
            head: None,
            draft: None,
            scratch: None,
            parked: None,
            gone: None,
            opens: 0,
            sent: Vec::new(),
            foreign: 0,
            touched: now(),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match (&self.draft, &self.head) {
            (Some(draft), _) => draft.bytes.len() as u64,
            (None, Some(head)) => head.size,
            (None, None) => 0,
        }
    }

    pub(crate) fn mtime(&self) -> SystemTime {
        match (&self.draft, &self.head) {
            (None, Some(head)) => head.mtime,
            _ => self.touched,
        }
    }

    /// A text that was sent has become the version `head` after all: only what was written since is to be sent yet.
    fn arrived(&mut self, head: Head) {
        let sent = std::mem::take(&mut self.sent).into_iter().find(|(hash, _)| *hash == head.hash);
        if let (Some((hash, length)), Some(draft)) = (sent, &mut self.draft)
            && draft.bytes.get(..length).is_some_and(|sent| Sha256::of(sent) == hash)
        {
            draft.base = Some(hash);
            if let Shape::Append { from } = &mut draft.shape {
                *from = length;
            }
        }
        self.head = Some(head);
    }

    /// Whether it is to become a memory, and is none yet.
    pub(crate) fn is_new(&self) -> bool {
        self.memory.is_none() && self.scratch.is_none() && self.gone.is_none()
    }
}

/// A change of one memory, as the server tells it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) memory: MemoryId,
    /// The path and the version; `None` where it is deleted.
    pub(crate) now: Option<(String, Head)>,
}

/// The tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: HashMap<Ino, Node>,
    pub(crate) memories: HashMap<MemoryId, Ino>,
    /// Memories that were deleted here, and of whose deletion the feed has not told yet.
    pub(crate) dead: HashSet<MemoryId>,
    /// Every node that has, or had, a scratch name.
    scratch: HashSet<Ino>,
    births: u64,
    news: Vec<News>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let mut tree = Self {
            nodes: HashMap::new(),
            memories: HashMap::new(),
            dead: HashSet::new(),
            scratch: HashSet::new(),
            births: FIRST_COOKIE,
            news: Vec::new(),
        };
        tree.nodes.insert(
            ROOT,
            Node {
                parent: ROOT,
                name: "".into(),
                cookie: 0,
                generation: 0,
                stale: 0,
                kind: Kind::Directory(Directory::new()),
            },
        );
        tree
    }

    /// Forgets what the kernel would have to be told: it knows nothing yet.
    pub(crate) fn begin(&mut self) {
        self.news.clear();
        for node in self.nodes.values_mut() {
            node.stale = 0;
        }
    }

    /// Takes what the kernel must be told.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    pub(crate) fn directory(&self, ino: Ino) -> Option<&Directory> {
        match &self.nodes.get(&ino)?.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::File(_) => None,
        }
    }

    fn directory_mut(&mut self, ino: Ino) -> Option<&mut Directory> {
        match &mut self.nodes.get_mut(&ino)?.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::File(_) => None,
        }
    }

    pub(crate) fn file(&self, ino: Ino) -> Option<&File> {
        match &self.nodes.get(&ino)?.kind {
            Kind::File(file) => Some(file),
            Kind::Directory(_) => None,
        }
    }

    pub(crate) fn file_mut(&mut self, ino: Ino) -> Option<&mut File> {
        match &mut self.nodes.get_mut(&ino)?.kind {
            Kind::File(file) => Some(file),
            Kind::Directory(_) => None,
        }
    }

    /// The node of a name.
    pub(crate) fn child(&self, parent: Ino, name: &str) -> Option<Ino> {
        self.directory(parent)?.names.get(name).copied()
    }

    /// The path of a node; `None` where it is in no directory any more.
    pub(crate) fn path(&self, ino: Ino) -> Option<String> {
        if ino == ROOT {
            return Some("/".into());
        }
        let mut names = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let node = self.nodes.get(&at)?;
            names.push(&*node.name);
            at = node.parent;
        }
        names.push("");
        names.reverse();
        Some(names.join("/"))
    }

    /// Whether a directory is in another, or is it.
    pub(crate) fn is_within(&self, ino: Ino, ancestor: Ino) -> bool {
        let mut at = ino;
        loop {
            if at == ancestor {
                return true;
            }
            match self.nodes.get(&at) {
                Some(node) if at != ROOT => at = node.parent,
                _ => return false,
            }
        }
    }

    /// The names in a directory as they are now, in the order in which they came.
    pub(crate) fn listing(&mut self, ino: Ino) -> Option<Arc<[Listed]>> {
        if let Some(listing) = &self.directory(ino)?.listing {
            return Some(listing.clone());
        }
        let listed = |(cookie, ino): (&u64, &Ino)| {
            let node = self.nodes.get(ino)?;
            let directory = matches!(node.kind, Kind::Directory(_));
            Some(Listed { cookie: *cookie, ino: *ino, name: node.name.clone(), directory })
        };
        let listing: Arc<[Listed]> = self.directory(ino)?.order.iter().filter_map(listed).collect();
        self.directory_mut(ino)?.listing = Some(listing.clone());
        Some(listing)
    }

    /// Files behind a file as a walk through the tree meets them.
    pub(crate) fn following(&self, ino: Ino, most: usize) -> Vec<Ino> {
        let mut found = Vec::new();
        let mut at = ino;
        while let Some(node) = self.nodes.get(&at).filter(|_| at != ROOT && found.len() < most) {
            let Some(directory) = self.directory(node.parent) else { break };
            for sibling in directory.order.range(node.cookie + 1..).map(|(_, ino)| *ino) {
                self.collect(sibling, most, &mut found);
            }
            at = node.parent;
        }
        found
    }

    fn collect(&self, ino: Ino, most: usize, found: &mut Vec<Ino>) {
        if found.len() >= most {
            return;
        }
        match self.nodes.get(&ino).map(|node| &node.kind) {
            Some(Kind::File(_)) => found.push(ino),
            Some(Kind::Directory(directory)) => {
                for child in directory.order.values() {
                    self.collect(*child, most, found);
                }
            }
            None => {}
        }
    }

    /// Every file in and below a directory, or the file itself.
    pub(crate) fn files_below(&self, ino: Ino) -> Vec<Ino> {
        let mut found = Vec::new();
        self.collect(ino, usize::MAX, &mut found);
        found
    }

    /// Scratch files.
    pub(crate) fn scratch_files(&self) -> impl Iterator<Item = (Ino, &File)> {
        let files = self.scratch.iter().filter_map(|ino| Some((*ino, self.file(*ino)?)));
        files.filter(|(_, file)| file.scratch.is_some())
    }

    /// Makes a file a scratch file, or lets it be none any more.
    pub(crate) fn set_scratch(&mut self, ino: Ino, scratch: Option<Scratch>) {
        if let Some(file) = self.file_mut(ino) {
            file.scratch = scratch;
            if scratch.is_some() {
                self.scratch.insert(ino);
            } else {
                self.scratch.remove(&ino);
            }
        }
    }

    /// Gives a memory a scratch name here; the store knows it by `path` still.
    pub(crate) fn park(&mut self, ino: Ino, path: String, parent: Ino, name: &str, scratch: Scratch) {
        self.rename(ino, parent, name);
        if let Some(file) = self.file_mut(ino) {
            file.parked = Some(path);
        }
        self.set_scratch(ino, Some(scratch));
    }

    /// The node of the parked memory that the store has at `path`.
    pub(crate) fn parked_at(&self, path: &str) -> Option<Ino> {
        let parked = self.scratch_files().find(|(_, file)| file.parked.as_deref() == Some(path));
        parked.map(|(ino, _)| ino)
    }

    // ---- what happens here

    /// Makes a file with nothing in it.
    pub(crate) fn make_file(&mut self, parent: Ino, name: &str, scratch: Option<Scratch>) -> Ino {
        let mut file = File::new();
        file.draft = Some(Draft::whole(None, 0));
        self.births += 1;
        let ino = self.free_number(mix(self.births));
        self.insert(ino, Kind::File(Box::new(file)));
        self.set_scratch(ino, scratch);
        self.link(parent, name, ino);
        ino
    }

    /// Makes an empty directory that stays.
    pub(crate) fn make_directory(&mut self, parent: Ino, name: &str) -> Ino {
        let ino = self.add_directory(parent, name);
        if let Some(directory) = self.directory_mut(ino) {
            directory.held = true;
        }
        ino
    }

    /// Takes a node out of its directory, which stays even if it is empty now.
    pub(crate) fn remove(&mut self, ino: Ino) {
        let Some(parent) = self.nodes.get(&ino).map(|node| node.parent) else { return };
        if let Some(directory) = self.directory_mut(parent) {
            directory.held = true;
        }
        self.unlink(ino);
        if let Some(file) = self.file_mut(ino) {
            file.gone = Some(Gone::Here);
            file.parked = None;
            if let Some(memory) = file.memory.take() {
                self.memories.remove(&memory);
            }
        }
        self.drop_unused(ino);
    }

    /// Gives a node another name; what had that name is removed first.
    pub(crate) fn rename(&mut self, ino: Ino, parent: Ino, name: &str) {
        if let Some(there) = self.child(parent, name).filter(|there| *there != ino) {
            self.remove(there);
        }
        let from = self.nodes.get(&ino).map(|node| node.parent);
        if let Some(directory) = from.and_then(|from| self.directory_mut(from)) {
            directory.held = true;
        }
        self.unlink(ino);
        self.link(parent, name, ino);
    }

    /// Lets a node show another memory: what was written to it went there.
    pub(crate) fn adopt(&mut self, ino: Ino, memory: MemoryId) {
        if let Some(before) = self.memories.insert(memory, ino).filter(|before| *before != ino)
            && let Some(file) = self.file_mut(before)
        {
            file.memory = None;
            file.parked = None;
        }
        self.set_scratch(ino, None);
        let Some(file) = self.file_mut(ino) else { return };
        file.parked = None;
        if let Some(other) = file.memory.replace(memory).filter(|other| *other != memory) {
            self.memories.remove(&other);
        }
    }

    /// Lets a name disappear of which the kernel does not know that it is to.
    pub(crate) fn vanish(&mut self, ino: Ino) {
        self.take_out(ino);
        self.drop_unused(ino);
    }

    /// Forgets a file that nobody can reach: in no directory, and not open.
    pub(crate) fn drop_unused(&mut self, ino: Ino) {
        let unused = self.nodes.get(&ino).is_some_and(|node| match &node.kind {
            Kind::File(file) => node.parent == 0 && file.opens == 0 && file.memory.is_none(),
            Kind::Directory(directory) => node.parent == 0 && directory.names.is_empty(),
        });
        if unused {
            self.nodes.remove(&ino);
            self.scratch.remove(&ino);
        }
    }

    // ---- what happens elsewhere

    /// Takes in a change that the server tells of, unless it is known already.
    pub(crate) fn told(&mut self, told: Told) {
        match told.now {
            None => {
                self.dead.remove(&told.memory);
                self.deleted(told.memory);
            }
            Some(_) if self.dead.contains(&told.memory) => {}
            Some((path, head)) => self.stands(told.memory, &path, head),
        }
    }

    /// A memory is deleted.
    fn deleted(&mut self, memory: MemoryId) {
        let Some(ino) = self.memories.remove(&memory) else { return };
        let Some(file) = self.file_mut(ino) else { return };
        file.memory = None;
        if file.parked.take().is_some() {
            return;
        }
        file.gone = Some(Gone::Elsewhere);
        self.take_out(ino);
        self.drop_unused(ino);
    }

    /// A memory is at `path` with the version `head`.
    fn stands(&mut self, memory: MemoryId, path: &str, head: Head) {
        let Some(ino) = self.memories.get(&memory).copied() else {
            self.appears(memory, path, head);
            return;
        };
        let Some(file) = self.file_mut(ino) else { return };
        let known = file.head.as_ref().map(|known| (known.version, known.hash));
        match known {
            Some((version, _)) if version > head.version => return,
            // What this mount did itself: news only if the memory had been moved elsewhere before, unseen from here.
            Some((version, _)) if version == head.version => {
                let same = file.head.as_ref() == Some(&head);
                file.head = Some(head);
                if same && (file.parked.is_some() || self.path(ino).as_deref() == Some(path)) {
                    return;
                }
            }
            Some((_, hash)) if hash == head.hash => file.head = Some(head),
            _ if file.sent.iter().any(|(hash, _)| *hash == head.hash) => file.arrived(head),
            _ => {
                file.head = Some(head);
                file.foreign += 1;
            }
        }
        let Some(file) = self.file_mut(ino) else { return };
        let parked = file.parked.is_some();
        if parked {
            file.parked = Some(path.to_owned());
        } else if self.path(ino).as_deref() != Some(path) {
            self.take_out(ino);
            self.put(ino, path);
        }
        self.news_of(ino);
    }

    /// A memory is there that was not known.
    fn appears(&mut self, memory: MemoryId, path: &str, head: Head) {
        // A file that is being written here under this name becomes the memory: the last writer wins.
        let here = self.find(path).filter(|ino| self.file(*ino).is_some_and(File::is_new));
        if let Some(ino) = here {
            self.memories.insert(memory, ino);
            if let Some(file) = self.file_mut(ino) {
                file.memory = Some(memory);
                file.head = Some(head);
                file.foreign += 1;
            }
            self.news_of(ino);
            return;
        }
        let mut file = File::new();
        file.memory = Some(memory);
        file.head = Some(head);
        let ino = self.free_number(number_of(memory));
        self.insert(ino, Kind::File(Box::new(file)));
        self.memories.insert(memory, ino);
        self.put(ino, path);
    }

    /// Replaces what is known of the store by a whole tree of it.
    pub(crate) fn replace(&mut self, all: Vec<(MemoryId, String, Head)>) {
        self.dead.clear();
        let there: HashSet<MemoryId> = all.iter().map(|(memory, ..)| *memory).collect();
        let lost: Vec<MemoryId> = self.memories.keys().filter(|id| !there.contains(id)).copied().collect();
        for memory in lost {
            self.deleted(memory);
        }
        for (memory, path, head) in all {
            // The tree counts, also where it is older than what was known: the database was restored.
            if let Some(ino) = self.memories.get(&memory).copied()
                && let Some(file) = self.file_mut(ino)
                && file.head.as_ref().is_some_and(|known| known.version > head.version)
                && let Some(known) = &mut file.head
            {
                known.version = VersionId::from_bytes([0; 16]);
            }
            self.stands(memory, &path, head);
        }
    }

    // ---- below

    /// The node at a path.
    pub(crate) fn find(&self, path: &str) -> Option<Ino> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |at, name| self.child(at, name))
    }

    /// Puts a node that is in no directory where the store says; what only this mount knows gives way.
    fn put(&mut self, ino: Ino, path: &str) {
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        let mut at = ROOT;
        while let Some(name) = names.next() {
            let there = self.child(at, name);
            if names.peek().is_none() {
                if let Some(there) = there {
                    self.give_way(there, Gone::Here);
                }
                self.link(at, name, ino);
                self.name_news(at, name);
                return;
            }
            at = match there {
                Some(there) if self.directory(there).is_some() => there,
                Some(there) => {
                    self.give_way(there, Gone::Directory);
                    self.announce_directory(at, name)
                }
                None => self.announce_directory(at, name),
            };
        }
    }

    fn announce_directory(&mut self, parent: Ino, name: &str) -> Ino {
        let ino = self.add_directory(parent, name);
        self.name_news(parent, name);
        ino
    }

    fn give_way(&mut self, ino: Ino, why: Gone) {
        for file in self.files_below(ino) {
            if let Some(file) = self.file_mut(file)
                && file.memory.is_none()
            {
                file.gone = Some(why);
            }
        }
        self.unlink(ino);
        self.drop_unused(ino);
    }

    /// Takes a node out of its directory because the store says so; directories that are empty then go too.
    fn take_out(&mut self, ino: Ino) {
        let Some((mut parent, name)) = self.nodes.get(&ino).map(|node| (node.parent, node.name.clone()))
        else {
            return;
        };
        if parent == 0 {
            return;
        }
        self.unlink(ino);
        self.name_news(parent, &name);
        while parent != ROOT
            && let Some(node) = self.nodes.get(&parent)
            && let Kind::Directory(directory) = &node.kind
            && directory.names.is_empty()
            && !directory.held
        {
            let (above, name) = (node.parent, node.name.clone());
            self.unlink(parent);
            self.drop_unused(parent);
            self.name_news(above, &name);
            parent = above;
        }
    }

    /// The kernel is to be told that a name means something else.
    pub(crate) fn name_news(&mut self, parent: Ino, name: &str) {
        let news = News::Name(parent, name.into());
        self.news.push(news.clone());
        self.touch(news);
    }

    /// The kernel is to be told about a node.
    pub(crate) fn news_of(&mut self, ino: Ino) {
        self.news.push(News::Node(ino));
        self.touch(News::Node(ino));
    }

    /// What the kernel asks about this is not to be kept until it has heard.
    fn touch(&mut self, news: News) {
        let (News::Node(ino) | News::Name(ino, _)) = news;
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.stale += 1;
        }
    }

    /// The kernel has heard.
    pub(crate) fn heard(&mut self, news: &News) {
        let (News::Node(ino) | News::Name(ino, _)) = news;
        if let Some(node) = self.nodes.get_mut(ino) {
            node.stale = node.stale.saturating_sub(1);
        }
    }

    fn insert(&mut self, ino: Ino, kind: Kind) {
        self.births += 1;
        let generation = self.births;
        self.nodes.insert(ino, Node { parent: 0, name: "".into(), cookie: 0, generation, stale: 0, kind });
    }

    fn add_directory(&mut self, parent: Ino, name: &str) -> Ino {
        let seed = self
            .path(parent)
            .unwrap_or_default()
            .bytes()
            .chain(name.bytes())
            .fold(7, |sum: u64, byte| mix(sum ^ u64::from(byte)));
        let ino = self.free_number(seed);
        self.insert(ino, Kind::Directory(Directory::new()));
        self.link(parent, name, ino);
        ino
    }

    fn free_number(&self, seed: u64) -> Ino {
        let mut ino = seed & (u64::MAX >> 1);
        while ino <= ROOT || self.nodes.contains_key(&ino) {
            ino = mix(ino + 1) & (u64::MAX >> 1);
        }
        ino
    }

    fn link(&mut self, parent: Ino, name: &str, ino: Ino) {
        self.births += 1;
        let (cookie, name): (u64, Arc<str>) = (self.births, name.into());
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        let is_directory = matches!(node.kind, Kind::Directory(_));
        (node.parent, node.name, node.cookie) = (parent, name.clone(), cookie);
        let Some(directory) = self.directory_mut(parent) else { return };
        directory.names.insert(name, ino);
        directory.order.insert(cookie, ino);
        directory.subdirectories += u32::from(is_directory);
        directory.moved();
    }

    fn unlink(&mut self, ino: Ino) {
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        let is_directory = matches!(node.kind, Kind::Directory(_));
        let (parent, name, cookie) = (std::mem::take(&mut node.parent), node.name.clone(), node.cookie);
        let Some(directory) = self.directory_mut(parent) else { return };
        directory.names.remove(&name);
        directory.order.remove(&cookie);
        directory.subdirectories -= u32::from(is_directory);
        directory.moved();
    }
}

impl Directory {
    fn new() -> Self {
        Self {
            names: HashMap::new(),
            order: BTreeMap::new(),
            listing: None,
            subdirectories: 0,
            held: false,
            mtime: now(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Its time always moves on, since the kernel takes a listing for good while it does not.
    fn moved(&mut self) {
        self.listing = None;
        self.mtime = now().max(self.mtime + Duration::from_nanos(1));
    }
}

/// The time by the system's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "what stat shows of files that no server knows; no rule depends on it"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The number of a memory's node: the random bits of its id, so that it stays over remounts.
fn number_of(memory: MemoryId) -> Ino {
    let bytes = memory.as_bytes();
    bytes[8..].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Scatters bits (splitmix64).
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The errno of a file that is in no directory any more; `None` where what is written to it simply goes nowhere.
pub(crate) fn errno_of(gone: Gone) -> Option<Errno> {
    match gone {
        Gone::Here => None,
        Gone::Elsewhere => Some(Errno::ESTALE),
        Gone::Directory => Some(Errno::EISDIR),
    }
}

#[cfg(test)]
mod tests;
