//! The file system as the kernel asks for it. What the mirror knows is answered at once, under its lock, so that no
//! answer is older than what the kernel was told before; what has to wait is answered from other threads.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use rustix::fs::OFlags;

use crate::draft::{self, Draft, Shape};
use crate::fetch::Fetchers;
use crate::moves::Place;
use crate::names::{self, Made};
use crate::options::Access;
use crate::shared::{Counters, Handle, LONG, Shared, State};
use crate::slow::{Owed, Reply};
use crate::tree::{self, Head, Ino, ROOT};

/// Most bytes of a scratch file, and of one request to write.
const SCRATCH_BYTES: usize = 16 * 1024 * 1024;
const WRITE_BYTES: u32 = 128 * 1024;
/// Longest name: what is longer cannot be part of a path of 1,024 bytes.
const NAME_BYTES: u32 = 1023;
/// The kernel keeps listings of directories that have not changed for so long.
const QUIET: Duration = Duration::from_secs(1);
/// Blocks of 4,096 bytes that a memory may take.
const BLOCKS: u64 = 25;

/// One mounted store.
pub(crate) struct Fs {
    pub(crate) shared: Arc<Shared>,
}

/// How a file is opened.
#[derive(Clone, Copy)]
struct Opening {
    write: bool,
    append: bool,
    truncate: bool,
    opener: u32,
}

impl Opening {
    fn of(flags: i32, opener: u32) -> Self {
        Self {
            opener,
            write: OpenFlags(flags).acc_mode() != OpenAccMode::O_RDONLY,
            append: has(flags, OFlags::APPEND),
            truncate: has(flags, OFlags::TRUNC),
        }
    }
}

/// What is to be made.
#[derive(Clone)]
struct Making {
    place: Place,
    scratch: Option<names::Scratch>,
    exclusive: bool,
    opening: Opening,
}

fn has(flags: i32, flag: OFlags) -> bool {
    OFlags::from_bits_retain(flags.cast_unsigned()).contains(flag)
}

fn utf8(name: &OsStr) -> Result<&str, Errno> {
    name.to_str().ok_or(Errno::EILSEQ)
}

impl Fs {
    fn state(&self) -> crate::shared::Guard<'_> {
        self.shared.state()
    }

    fn place(&self, parent: INodeNo, name: &OsStr) -> Result<Place, Errno> {
        Ok(Place { parent: parent.0, name: utf8(name)?.to_owned() })
    }

    /// Queues what changes the store, and answers when it is done.
    fn queue(
        &self,
        req: &Request,
        reply: ReplyEmpty,
        task: impl FnOnce(&Arc<Shared>) -> Result<(), Errno> + Send + 'static,
    ) {
        let owed = Owed::new(reply, req.pid());
        self.shared.queue(move |shared| {
            // Nobody was told that it is done, so it need not be.
            if owed.is_due() {
                let result = task(shared);
                owed.settle(result);
            }
        });
    }

    /// Answers `reply` once the server is known to be there: now, or from another thread.
    fn when_there<R: Reply>(
        &self,
        req: &Request,
        reply: R,
        then: impl FnOnce(&Arc<Shared>, R) + Send + 'static,
    ) {
        if self.state().is_fresh() {
            then(&self.shared, reply);
            return;
        }
        let (owed, shared) = (Owed::new(reply, req.pid()), self.shared.clone());
        Fetchers::get().run(Box::new(move || {
            let there = shared.probe();
            owed.answer(|reply| match there {
                Ok(()) => then(&shared, reply),
                Err(errno) => reply.refuse(errno),
            });
        }));
    }

    fn make(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<Making, Errno> {
        let place = self.place(parent, name)?;
        let exclusive = has(flags, OFlags::EXCL);
        let made = if exclusive && mode & 0o777 == 0o600 { Made::Exclusively } else { Made::Plainly };
        let scratch = names::scratch(&place.name, made);
        let state = self.state();
        state.check_writable(&self.shared.options)?;
        let directory = state.tree.path(place.parent).ok_or(Errno::ESTALE)?;
        if scratch.is_none() {
            state.check_room()?;
            let path = names::path(&directory, &place.name)?;
            let known = state.tree.child(place.parent, &place.name).is_some()
                || state.tree.parked_at(&path).is_some();
            if !known && state.is_full() {
                return Err(Errno::ENOSPC);
            }
        }
        Ok(Making { place, scratch, exclusive, opening: Opening::of(flags, req.pid()) })
    }

    fn read_now(&self, ino: Ino, offset: u64, size: u32, reply: ReplyData, req: &Request) {
        let mut state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        let Some(file) = state.tree.file(ino) else { return reply.error(Errno::ESTALE) };
        if let Some(draft) = &file.draft {
            return reply.data(slice(&draft.bytes, offset, size));
        }
        let Some(head) = file.head.clone() else { return reply.data(&[]) };
        if let Some(text) = self.shared.text_here(&head) {
            Counters::one(&self.shared.count.hits);
            return reply.data(slice(&text, offset, size));
        }
        let owed = Owed::new(reply, req.pid());
        let then = move |_: &Arc<Shared>, text: Result<Arc<[u8]>, Errno>| {
            owed.answer(|reply| match text {
                Ok(text) => reply.data(slice(&text, offset, size)),
                Err(errno) => reply.error(errno),
            });
        };
        self.shared.fetch(&mut state, ino, &head, Box::new(then));
    }
}

fn slice(bytes: &[u8], offset: u64, size: u32) -> &[u8] {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = begin.saturating_add(size as usize).min(bytes.len());
    &bytes[begin..end]
}

/// Answers with a node and how long it may be believed.
fn entry(shared: &Shared, state: &State, ino: Ino, reply: ReplyEntry) {
    match state.attributes(ino, &shared.options) {
        Some((attributes, generation)) => {
            let parent = state.tree.nodes.get(&ino).map_or(ROOT, |node| node.parent);
            let (name, node) = (name_lifetime(state, parent), state.lifetime(ino));
            reply.entry_with_ttls(&node, &name, &attributes, generation);
        }
        None => reply.error(Errno::ESTALE),
    }
}

fn name_lifetime(state: &State, parent: Ino) -> Duration {
    let stale = state.tree.nodes.get(&parent).is_none_or(|node| node.stale > 0);
    if state.live && !stale { LONG } else { Duration::ZERO }
}

/// A name that is not there, which the kernel may remember.
fn nothing(state: &State, parent: Ino, reply: ReplyEntry) {
    let lifetime = name_lifetime(state, parent);
    if lifetime.is_zero() {
        return reply.error(Errno::ENOENT);
    }
    let attributes = FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: SystemTime::UNIX_EPOCH,
        mtime: SystemTime::UNIX_EPOCH,
        ctime: SystemTime::UNIX_EPOCH,
        crtime: SystemTime::UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    };
    reply.entry(&lifetime, &attributes, Generation(0));
}

/// Opens a node; the number of the handle and what the kernel may keep.
fn open(
    shared: &Shared,
    state: &mut State,
    ino: Ino,
    opening: Opening,
) -> Result<(FileHandle, FopenFlags), Errno> {
    if opening.write {
        state.check_writable(&shared.options)?;
    }
    let stale = state.tree.nodes.get(&ino).ok_or(Errno::ESTALE)?.stale > 0;
    let file = state.tree.file_mut(ino).ok_or(Errno::EISDIR)?;
    let keep = !stale && file.draft.is_none();
    file.opens += 1;
    let touched = opening.write && opening.truncate;
    if touched {
        truncate(file);
    }
    let foreign = file.foreign;
    state.last_handle += 1;
    let number = state.last_handle;
    let handle = Handle {
        ino,
        opener: opening.opener,
        append: opening.append,
        foreign,
        touched,
        wrote: false,
        spoilt: None,
        failed: None,
    };
    state.handles.insert(number, handle);
    Counters::one(&shared.count.opens);
    let mut flags = if keep { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
    if !opening.write {
        // Who only reads commits nothing when he closes: one message less for each file.
        flags |= FopenFlags::FOPEN_NOFLUSH;
    }
    Ok((FileHandle(number), flags))
}

fn truncate(file: &mut crate::tree::File) {
    let edition = file.draft.as_ref().map_or(0, |draft| draft.edition + 1);
    let mut draft = Draft::whole(file.head.as_ref(), file.foreign);
    draft.edition = edition;
    file.draft = Some(draft);
    file.touched = tree::now();
}

/// Makes a file, or opens the one that somebody made meanwhile.
fn create(shared: &Arc<Shared>, making: &Making, reply: ReplyCreate) {
    let mut state = shared.state();
    let result = state.check_writable(&shared.options).and_then(|()| {
        state.tree.directory(making.place.parent).ok_or(Errno::ENOENT)?;
        match state.tree.child(making.place.parent, &making.place.name) {
            Some(_) if making.exclusive => Err(Errno::EEXIST),
            Some(ino) => open(shared, &mut state, ino, making.opening).map(|opened| (ino, opened)),
            None => {
                let ino = state.tree.make_file(making.place.parent, &making.place.name, making.scratch);
                let opened = open(shared, &mut state, ino, making.opening)?;
                if let Some(handle) = state.handles.get_mut(&opened.0.0) {
                    handle.touched = true;
                }
                Ok((ino, opened))
            }
        }
    });
    let made = result
        .and_then(|(ino, opened)| Ok((state.attributes(ino, &shared.options).ok_or(Errno::ESTALE)?, opened)));
    match made {
        Ok(((attributes, generation), (handle, flags))) => {
            let lifetime = name_lifetime(&state, making.place.parent);
            reply.created(&lifetime, &attributes, generation, handle, flags);
        }
        Err(errno) => reply.error(errno),
    }
}

/// What came of a write.
enum Written {
    Done,
    /// The text that it changes has to be fetched first.
    Needs(Head),
}

/// What is written or cut.
#[derive(Clone)]
enum Change {
    Write { offset: u64, data: Arc<[u8]> },
    Resize(u64),
}

/// Changes the draft of a file, which begins with the text that it has.
fn change(
    shared: &Shared,
    state: &mut State,
    ino: Ino,
    number: Option<u64>,
    change: &Change,
) -> Result<Written, Errno> {
    state.check_writable(&shared.options)?;
    let handle = number.and_then(|number| state.handles.get(&number).cloned());
    if let Some(errno) = handle.as_ref().and_then(|handle| handle.spoilt) {
        return Err(errno);
    }
    let file = state.tree.file(ino).ok_or(Errno::ESTALE)?;
    let is_scratch = file.scratch.is_some();
    let append = handle.as_ref().is_some_and(|handle| handle.append);
    let whole = matches!(&file.draft, Some(draft) if draft.shape == Shape::Whole);
    let cut = matches!(change, Change::Resize(0));
    let elsewhere = handle.as_ref().is_some_and(|handle| handle.foreign != file.foreign);
    if elsewhere && !append && !whole && !cut {
        return Err(Errno::ESTALE);
    }
    if let Change::Write { data, .. } = change
        && !is_scratch
    {
        draft::check_written(data)?;
    }
    if file.draft.is_none()
        && !cut
        && let Some(head) = &file.head
    {
        let Some(text) = shared.text_here(head) else { return Ok(Written::Needs(head.clone())) };
        let draft = Draft::over(Some(head), &text, file.foreign);
        if let Some(file) = state.tree.file_mut(ino) {
            file.draft = Some(draft);
        }
    }
    let most = if is_scratch { SCRATCH_BYTES } else { draft::most_bytes() };
    let file = state.tree.file_mut(ino).ok_or(Errno::ESTALE)?;
    file.touched = tree::now();
    let mut moved = false;
    if cut {
        truncate(file);
    } else {
        let (head, foreign) = (file.head.clone(), file.foreign);
        let draft = file.draft.get_or_insert_with(|| Draft::whole(head.as_ref(), foreign));
        match change {
            Change::Write { offset, data } if append => {
                // The kernel has put it where it believed the end to be.
                moved = *offset != draft.bytes.len() as u64;
                draft.append(data, most)?;
            }
            Change::Write { offset, data } => draft.write(*offset, data, most)?,
            Change::Resize(size) => draft.resize(*size, most)?,
        }
    }
    if moved {
        state.tree.news_of(ino);
    }
    if let Some(handle) = number.and_then(|number| state.handles.get_mut(&number)) {
        if cut {
            handle.touched = true;
        } else {
            handle.wrote = true;
        }
        handle.failed = None;
    }
    Ok(Written::Done)
}

/// As [`change`]; what is refused spoils the handle.
fn change_or_spoil(
    shared: &Shared,
    state: &mut State,
    ino: Ino,
    number: Option<u64>,
    what: &Change,
) -> Result<Written, Errno> {
    let result = change(shared, state, ino, number, what);
    let scratch = state.tree.file(ino).is_some_and(|file| file.scratch.is_some());
    if let (Err(errno), Some(number)) = (&result, number.filter(|_| !scratch)) {
        state.spoil(number, *errno);
    }
    result
}

impl Fs {
    /// Changes a draft, from another thread where its text has to be fetched first.
    fn change<R: Reply>(
        &self,
        req: &Request,
        ino: Ino,
        number: Option<u64>,
        what: Change,
        reply: R,
        then: impl FnOnce(&Arc<Shared>, &mut State, R) + Send + 'static,
    ) {
        let mut state = self.state();
        match change_or_spoil(&self.shared, &mut state, ino, number, &what) {
            Ok(Written::Done) => then(&self.shared, &mut state, reply),
            Err(errno) => reply.refuse(errno),
            Ok(Written::Needs(head)) => {
                let owed = Owed::new(reply, req.pid());
                let job = move |shared: &Arc<Shared>, state: &mut State, changed: Result<(), Errno>| {
                    owed.answer(|reply| match changed {
                        Ok(()) => then(shared, state, reply),
                        Err(errno) => reply.refuse(errno),
                    });
                };
                change_later(&self.shared, &mut state, (ino, number), what, head, Box::new(job));
            }
        }
    }
}

type Changed = Box<dyn FnOnce(&Arc<Shared>, &mut State, Result<(), Errno>) + Send>;

/// Changes a draft once the text of `head` is here; again if there is another text by then.
fn change_later(
    shared: &Arc<Shared>,
    state: &mut State,
    (ino, number): (Ino, Option<u64>),
    what: Change,
    head: Head,
    then: Changed,
) {
    let of = head.clone();
    let waiter = move |shared: &Arc<Shared>, text: Result<Arc<[u8]>, Errno>| {
        let mut state = shared.state();
        let text = match text {
            Ok(text) => text,
            Err(errno) => return then(shared, &mut state, Err(errno)),
        };
        // The cache may have let go of it again already.
        if let Some(file) = state.tree.file_mut(ino)
            && file.draft.is_none()
            && file.head.as_ref() == Some(&head)
        {
            file.draft = Some(Draft::over(Some(&head), &text, file.foreign));
        }
        match change_or_spoil(shared, &mut state, ino, number, &what) {
            Ok(Written::Done) => then(shared, &mut state, Ok(())),
            Err(errno) => then(shared, &mut state, Err(errno)),
            Ok(Written::Needs(head)) => change_later(shared, &mut state, (ino, number), what, head, then),
        }
    };
    shared.fetch(state, ino, &of, Box::new(waiter));
}

impl Filesystem for Fs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ];
        for capability in wanted {
            // Older kernels lack some; then they ask more often.
            let _ = config.add_capabilities(capability);
        }
        let _ = config.set_max_write(WRITE_BYTES);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        match utf8(name).ok().and_then(|name| state.tree.child(parent.0, name)) {
            Some(ino) => entry(&self.shared, &state, ino, reply),
            None => nothing(&state, parent.0, reply),
        }
    }

    fn forget(&self, _: &Request, _: INodeNo, _: u64) {}

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        match state.attributes(ino.0, &self.shared.options) {
            Some((attributes, _)) => reply.attr(&state.lifetime(ino.0), &attributes),
            None => reply.error(Errno::ESTALE),
        }
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let ino = ino.0;
        let show = move |shared: &Shared, state: &State, reply: ReplyAttr| match state
            .attributes(ino, &shared.options)
        {
            // Modes, owners and times stay what they are, whatever the kernel has put in its own copy.
            Some((attributes, _)) => reply.attr(&Duration::ZERO, &attributes),
            None => reply.error(Errno::ESTALE),
        };
        let Some(size) = size else {
            let state = self.state();
            return match state.check_writable(&self.shared.options) {
                Ok(()) => show(&self.shared, &state, reply),
                Err(errno) => reply.error(errno),
            };
        };
        let number = fh.map(|fh| fh.0);
        let (pid, queued) = (req.pid(), number.is_none());
        self.change(req, ino, number, Change::Resize(size), reply, move |shared, state, reply| {
            if !queued {
                return show(shared, state, reply);
            }
            // truncate(2): no handle will be closed.
            let owed = Owed::new(reply, pid);
            shared.queue(move |shared| {
                let result = shared.commit(ino);
                if result.is_err() {
                    shared.state().drop_draft(ino);
                }
                owed.answer(|reply| match result {
                    Ok(()) => show(shared, &shared.state(), reply),
                    Err(errno) => reply.error(errno),
                });
            });
        });
    }

    fn readlink(&self, _: &Request, _: INodeNo, reply: ReplyData) {
        reply.error(Errno::EINVAL);
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        const REGULAR: u32 = 0o100_000;
        if mode & 0o170_000 != REGULAR {
            return reply.error(Errno::EPERM);
        }
        let making = match self.place(parent, name) {
            Ok(place) => place,
            Err(errno) => return reply.error(errno),
        };
        let mut state = self.state();
        let made = state.check_writable(&self.shared.options).and_then(|()| {
            let directory = state.tree.path(making.parent).ok_or(Errno::ESTALE)?;
            let scratch = names::scratch(&making.name, Made::Plainly);
            if scratch.is_none() {
                names::path(&directory, &making.name)?;
                if state.is_full() {
                    return Err(Errno::ENOSPC);
                }
            }
            if state.tree.child(making.parent, &making.name).is_some() {
                return Err(Errno::EEXIST);
            }
            Ok(state.tree.make_file(making.parent, &making.name, scratch))
        });
        match made {
            Ok(ino) => {
                self.shared.queue(move |shared| shared.closed(ino, None));
                entry(&self.shared, &state, ino, reply);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let mut state = self.state();
        let made = state.check_writable(&self.shared.options).and_then(|()| {
            let name = utf8(name)?;
            let directory = state.tree.path(parent.0).ok_or(Errno::ESTALE)?;
            names::path(&directory, name)?;
            if state.tree.child(parent.0, name).is_some() {
                return Err(Errno::EEXIST);
            }
            Ok(state.tree.make_directory(parent.0, name))
        });
        match made {
            Ok(ino) => entry(&self.shared, &state, ino, reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.place(parent, name) {
            Ok(place) => self.queue(req, reply, move |shared| shared.unlink(&place)),
            Err(errno) => reply.error(errno),
        }
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.place(parent, name) {
            Ok(place) => self.queue(req, reply, move |shared| shared.rmdir(&place)),
            Err(errno) => reply.error(errno),
        }
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        match (self.place(parent, name), self.place(newparent, newname)) {
            (Ok(from), Ok(to)) => self.queue(req, reply, move |shared| shared.rename(&from, &to, flags)),
            (Err(errno), _) | (_, Err(errno)) => reply.error(errno),
        }
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let (ino, opening) = (ino.0, Opening::of(flags.0, req.pid()));
        let go = move |shared: &Arc<Shared>, reply: ReplyOpen| {
            let mut state = shared.state();
            let opened = state.check_open().and_then(|()| open(shared, &mut state, ino, opening));
            match opened {
                Ok((handle, flags)) => reply.opened(handle, flags),
                Err(errno) => reply.error(errno),
            }
        };
        let local = {
            let state = self.state();
            let scratch = state.tree.file(ino).is_some_and(|file| file.scratch.is_some());
            let may = match (opening.write, scratch) {
                (false, _) => state.check_open(),
                (true, true) => state.check_writable(&self.shared.options),
                (true, false) => state.check_writable(&self.shared.options).and_then(|()| state.check_room()),
            };
            if let Err(errno) = may {
                return reply.error(errno);
            }
            !opening.write || scratch
        };
        if local {
            go(&self.shared, reply);
        } else {
            self.when_there(req, reply, go);
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make(req, parent, name, mode, flags) {
            Ok(making) if making.scratch.is_some() => create(&self.shared, &making, reply),
            Ok(making) => self.when_there(req, reply, move |shared, reply| create(shared, &making, reply)),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        req: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.read_now(ino.0, offset, size, reply, req);
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size = data.len() as u32;
        let what = Change::Write { offset, data: data.into() };
        self.change(req, ino.0, Some(fh.0), what, reply, move |_, _, reply| reply.written(size));
    }

    fn flush(&self, req: &Request, ino: INodeNo, fh: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let (ino, number) = (ino.0, fh.0);
        let pid = req.pid();
        let handle = self.state().handles.get(&number).cloned();
        let Some(handle) = handle else { return reply.ok() };
        if let Some(errno) = handle.spoilt {
            return reply.error(errno);
        }
        if handle.wrote {
            return self.queue(req, reply, move |shared| commit_handle(shared, ino, number));
        }
        // Made or cut, and nothing written: that counts at the last close, which often can be told here already.
        if handle.touched && handle.opener == pid {
            return self.queue(req, reply, move |shared| {
                let name = shared.state().tree.nodes.get(&ino).map(|node| node.name.clone());
                let last = name.is_some_and(|name| !is_held(pid, &name));
                if last { commit_handle(shared, ino, number) } else { Ok(()) }
            });
        }
        reply.ok();
    }

    fn fsync(&self, req: &Request, ino: INodeNo, fh: FileHandle, _: bool, reply: ReplyEmpty) {
        let (ino, number) = (ino.0, fh.0);
        if let Some(errno) = self.state().handles.get(&number).and_then(|handle| handle.spoilt) {
            return reply.error(errno);
        }
        self.queue(req, reply, move |shared| commit_handle(shared, ino, number));
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let ino = ino.0;
        let handle = {
            let mut state = self.state();
            if let Some(file) = state.tree.file_mut(ino) {
                file.opens = file.opens.saturating_sub(1);
                if file.scratch.is_some() {
                    file.touched = tree::now();
                }
            }
            state.handles.remove(&fh.0)
        };
        reply.ok();
        let changed =
            handle.as_ref().is_some_and(|handle| handle.touched || handle.wrote || handle.spoilt.is_some());
        if changed {
            let failed = handle.and_then(|handle| handle.failed);
            self.shared.queue(move |shared| shared.closed(ino, failed));
        } else {
            self.state().tree.drop_unused(ino);
        }
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel then asks no more, and keeps listings by itself.
        if self.shared.options.access == Access::ReadOnly {
            return reply.error(Errno::ENOSYS);
        }
        let mut state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        let Some(listing) = state.tree.listing(ino.0) else { return reply.error(Errno::ESTALE) };
        state.last_handle += 1;
        let number = state.last_handle;
        state.listings.insert(number, listing);
        // Of several that read a directory while it changes, the kernel may put the older listing under the newer time.
        let quiet = state
            .tree
            .directory(ino.0)
            .is_some_and(|directory| directory.mtime.elapsed().is_ok_and(|age| age >= QUIET));
        let keep = quiet && state.live && state.tree.nodes.get(&ino.0).is_some_and(|node| node.stale == 0);
        let flags = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
        reply.opened(FileHandle(number), if keep { flags } else { FopenFlags::empty() });
    }

    fn readdir(&self, _: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        let Some(listing) = listing(&mut state, ino.0, fh.0, offset) else {
            return reply.error(Errno::ESTALE);
        };
        let parent = state.tree.nodes.get(&ino.0).map_or(ROOT, |node| node.parent);
        for (at, name, dot) in [(1, ".", ino.0), (2, "..", parent.max(ROOT))] {
            if offset < at && reply.add(INodeNo(dot), at, FileType::Directory, name) {
                return reply.ok();
            }
        }
        let begin = listing.partition_point(|listed| listed.cookie <= offset);
        for listed in &listing[begin..] {
            let kind = if listed.directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(listed.ino), listed.cookie, kind, &*listed.name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut state = self.state();
        if let Err(errno) = state.check_open() {
            return reply.error(errno);
        }
        let Some(listing) = listing(&mut state, ino.0, fh.0, offset) else {
            return reply.error(Errno::ESTALE);
        };
        let parent = state.tree.nodes.get(&ino.0).map_or(ROOT, |node| node.parent);
        let options = &self.shared.options;
        for (at, name, dot) in [(1, ".", ino.0), (2, "..", parent.max(ROOT))] {
            let Some((attributes, generation)) = state.attributes(dot, options) else { continue };
            if offset < at && reply.add(INodeNo(dot), at, name, &Duration::ZERO, &attributes, generation) {
                return reply.ok();
            }
        }
        let names = name_lifetime(&state, ino.0);
        let begin = listing.partition_point(|listed| listed.cookie <= offset);
        for listed in &listing[begin..] {
            // What is gone since the listing was made would come to life again.
            let there = state
                .tree
                .nodes
                .get(&listed.ino)
                .is_some_and(|node| node.parent == ino.0 && node.name == listed.name);
            let Some((attributes, generation)) = state.attributes(listed.ino, options).filter(|_| there)
            else {
                continue;
            };
            let lifetime = names.min(state.lifetime(listed.ino));
            if reply.add(
                INodeNo(listed.ino),
                listed.cookie,
                &*listed.name,
                &lifetime,
                &attributes,
                generation,
            ) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.state().listings.remove(&fh.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let state = self.state();
        let used = state.tree.memories.len() as u64;
        let cap = state.max_memories.min(u64::MAX / BLOCKS / 2).max(used);
        let free = cap - used;
        let blocks = if state.disk_full.is_some() { 0 } else { free * BLOCKS };
        let none = state.archived || state.ended.is_some();
        let (blocks, free) = if none { (0, 0) } else { (blocks, free) };
        reply.statfs(cap * BLOCKS, blocks, blocks, cap, free, 4096, NAME_BYTES, 4096);
    }

    fn setxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        // The kernel takes this for EOPNOTSUPP and asks no more, as ls -l would for each file.
        reply.error(Errno::ENOSYS);
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        if size == 0 { reply.size(0) } else { reply.data(&[]) }
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        // The kernel judges by owner and mode itself.
        reply.ok();
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        // The kernel then seeks by the size, as in a file without holes.
        reply.error(Errno::ENOSYS);
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: fuser::CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The kernel then copies by itself.
        reply.error(Errno::EOPNOTSUPP);
    }
}

/// What a handle lists: a snapshot of when it was read from the beginning. Not of when it was opened: the kernel keeps
/// what it reads for good under the time that the directory has when the reading begins.
fn listing(state: &mut State, ino: Ino, handle: u64, offset: u64) -> Option<Arc<[crate::tree::Listed]>> {
    if offset == 0
        && let Some(now) = state.tree.listing(ino)
    {
        if let Some(kept) = state.listings.get_mut(&handle) {
            kept.clone_from(&now);
        }
        return Some(now);
    }
    match state.listings.get(&handle) {
        Some(listing) => Some(listing.clone()),
        None => state.tree.listing(ino),
    }
}

/// Whether a process that waits in close() has a file of this name open still, as far as can be seen: shells and
/// `touch` close a copy of a descriptor that they go on using. No look at the file itself, which would ask us.
fn is_held(pid: u32, name: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    descriptors.flatten().any(|descriptor| {
        let target = std::fs::read_link(descriptor.path());
        target.is_ok_and(|target| target.file_name().is_some_and(|last| last == name))
    })
}

/// Commits what was written through a handle, and remembers why it could not be.
fn commit_handle(shared: &Arc<Shared>, ino: Ino, number: u64) -> Result<(), Errno> {
    let result = shared.commit(ino);
    if let (Err(errno), Some(handle)) = (&result, shared.state().handles.get_mut(&number)) {
        handle.failed = Some(*errno);
    }
    result
}
