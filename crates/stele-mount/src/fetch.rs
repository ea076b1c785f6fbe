//! Texts of versions: out of the cache, else from the server, many at once. A version never changes, so what was
//! fetched is good for ever.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fuser::Errno;
use parking_lot::Mutex;
use stele_client::Failure;
use stele_core::hash::Sha256;
use stele_core::id::VersionId;

use crate::server::{Cause, Verdict, WRITE, WRITE_BLIND, judge};
use crate::shared::{Counters, Shared, State};
use crate::tree::{Head, Ino};

/// Threads that fetch, for all mounts of a process together.
const FETCHERS: usize = 3;
/// Texts that are fetched along with the first one missed, and most with any.
const AHEAD: (usize, usize) = (32, 512);
/// Most bytes fetched at once.
const AHEAD_BYTES: u64 = 4 * 1024 * 1024;
/// Misses that follow each other so closely are one walk through the tree.
const WALK: Duration = Duration::from_secs(2);
/// For so long after a text could not be had another read fails without a try: the kernel asks twice for what one
/// `read` wants, and both together may take no longer than one.
const UNREAD: Duration = Duration::from_secs(1);

/// What is to be done with a text that was fetched.
pub(crate) type Waiter = Box<dyn FnOnce(&Arc<Shared>, Result<Arc<[u8]>, Errno>) + Send>;

/// How many texts to fetch along with one.
#[derive(Debug)]
pub(crate) struct Ahead(usize);

impl Default for Ahead {
    fn default() -> Self {
        Self(AHEAD.0)
    }
}

impl Shared {
    /// The text of a version, if it is here.
    pub(crate) fn text_here(&self, head: &Head) -> Option<Arc<[u8]>> {
        if head.size == 0 {
            return Some(Arc::from([]));
        }
        self.texts.get(&head.hash)
    }

    /// Calls `then` with the text of a version, from another thread once it is here. Fetches also what a walk through
    /// the tree would read next.
    pub(crate) fn fetch(self: &Arc<Self>, state: &mut State, ino: Ino, head: &Head, then: Waiter) {
        Counters::one(&self.count.misses);
        if let Some(waiters) = state.fetching.get_mut(&head.version) {
            waiters.push(then);
            return;
        }
        state.unread.retain(|_, (at, _)| at.elapsed() < UNREAD);
        if let Some((_, errno)) = state.unread.get(&head.version) {
            let (shared, errno) = (self.clone(), *errno);
            // From another thread, since the state is locked here.
            return Fetchers::get().run(Box::new(move || then(&shared, Err(errno))));
        }
        let walking = state.last_miss.is_some_and(|at| at.elapsed() < WALK);
        state.ahead = Ahead(if walking { (state.ahead.0 * 2).min(AHEAD.1) } else { AHEAD.0 });
        state.last_miss = Some(Instant::now());
        let mut wanted = vec![(head.version, head.hash)];
        state.fetching.insert(head.version, vec![then]);
        let most = AHEAD_BYTES.min(self.options.cache_bytes as u64 / 4);
        let mut bytes = head.size;
        // Some of what follows may be here already.
        for next in state.tree.following(ino, state.ahead.0 * 4) {
            let Some(head) = state.tree.file(next).and_then(|file| file.head.clone()) else { continue };
            if wanted.len() > state.ahead.0 || bytes + head.size > most {
                break;
            }
            if self.text_here(&head).is_none() && !state.fetching.contains_key(&head.version) {
                bytes += head.size;
                wanted.push((head.version, head.hash));
                state.fetching.insert(head.version, Vec::new());
            }
        }
        let shared = self.clone();
        Fetchers::get().run(Box::new(move || shared.fetch_now(wanted)));
    }

    /// The text of a version, waited for. For the lane.
    pub(crate) fn text(self: &Arc<Self>, head: &Head) -> Result<Arc<[u8]>, Errno> {
        if let Some(text) = self.text_here(head) {
            return Ok(text);
        }
        Counters::one(&self.count.misses);
        let mut found = Err(Errno::EIO);
        self.fetch_each(vec![(head.version, head.hash)], |_, text| found = text);
        found
    }

    fn fetch_now(self: &Arc<Self>, wanted: Vec<(VersionId, Sha256)>) {
        self.fetch_each(wanted, |version, text| {
            let waiters = {
                let mut state = self.state();
                if let Err(errno) = &text {
                    state.unread.insert(version, (Instant::now(), *errno));
                }
                state.fetching.remove(&version).unwrap_or_default()
            };
            for waiter in waiters {
                waiter(self, text.clone());
            }
        });
    }

    /// Fetches, and calls `each` once for every version wanted.
    fn fetch_each(
        &self,
        wanted: Vec<(VersionId, Sha256)>,
        mut each: impl FnMut(VersionId, Result<Arc<[u8]>, Errno>),
    ) {
        let mut missing: HashMap<VersionId, Sha256> = wanted.iter().copied().collect();
        let mut ids: Vec<String> = wanted.iter().map(|(version, _)| version.to_string()).collect();
        let mut failed = Errno::EIO;
        while !ids.is_empty() {
            let texts = match self.fetch_once(&ids) {
                Ok(texts) => texts,
                Err(errno) => {
                    failed = errno;
                    break;
                }
            };
            for text in texts.contents {
                let Some(version) = VersionId::parse(&text.memory_version_id) else { continue };
                let Some(hash) = missing.get(&version).copied() else { continue };
                let Some(content) = text.content.filter(|content| Sha256::of(content.as_bytes()) == hash)
                else {
                    continue;
                };
                missing.remove(&version);
                let content: Arc<[u8]> = content.into_bytes().into();
                self.texts.insert(hash, content.clone());
                each(version, Ok(content));
            }
            // An answer holds at least one text, so that this ends.
            let rest = texts.remaining.memory_version_ids;
            ids = if rest.len() < ids.len() { rest } else { Vec::new() };
        }
        for version in missing.into_keys() {
            tracing::warn!(version.id = %version, "the text of a version is not to be had");
            each(version, Err(failed));
        }
    }

    fn fetch_once(&self, ids: &[String]) -> Result<stele_client::VersionTexts, Errno> {
        let live = self.state().live;
        let until = Instant::now() + if live { WRITE } else { WRITE_BLIND };
        let mut pause = Duration::from_millis(50);
        loop {
            let patience = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
            Counters::one(&self.count.requests);
            let failure: Failure = match self.client.version_texts_once(&self.options.store, ids, patience) {
                Ok(texts) => {
                    self.state().contact = Some(Instant::now());
                    return Ok(texts);
                }
                Err(failure) => failure,
            };
            let epoch = self.state().epoch.clone();
            let verdict = judge(&failure, &epoch);
            let errno = match verdict {
                Verdict::Busy(after) => {
                    pause = after;
                    Errno::ETIMEDOUT
                }
                Verdict::Unclear(Cause::Away) => Errno::ETIMEDOUT,
                Verdict::Unclear(Cause::Fault) | Verdict::DiskFull | Verdict::Expired | Verdict::Archived => {
                    Errno::EIO
                }
                Verdict::Refused(errno) => return Err(Errno::from_i32(errno)),
                Verdict::Credential | Verdict::Moved => {
                    self.heed(verdict);
                    return Err(self.state().check_open().err().unwrap_or(Errno::EIO));
                }
            };
            if self.is_ending() || Instant::now() + pause >= until {
                return Err(errno);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The threads that wait for the server in the place of those that answer the kernel.
pub(crate) struct Fetchers(Mutex<Sender<Job>>);

impl Fetchers {
    pub(crate) fn get() -> &'static Self {
        static FETCHERS_: OnceLock<Fetchers> = OnceLock::new();
        FETCHERS_.get_or_init(|| {
            let (sender, receiver) = channel::<Job>();
            let receiver = Arc::new(Mutex::new(receiver));
            for number in 0..FETCHERS {
                let receiver: Arc<Mutex<Receiver<Job>>> = receiver.clone();
                let work = move || {
                    loop {
                        let job = receiver.lock().recv();
                        let Ok(job) = job else { return };
                        job();
                    }
                };
                let started = std::thread::Builder::new().name(format!("stele-fetch-{number}")).spawn(work);
                if let Err(error) = started {
                    tracing::error!(%error, "cannot start a thread");
                }
            }
            Self(Mutex::new(sender))
        })
    }

    pub(crate) fn run(&self, job: Job) {
        // The receivers live as long as the process.
        let _ = self.0.lock().send(job);
    }
}
