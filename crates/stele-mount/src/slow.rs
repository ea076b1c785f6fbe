//! Answers that have to wait, for the server or for their turn.
//!
//! The kernel lets nobody go, not even a killed process, whose request has been taken and is not answered. So each
//! such answer is watched: after [`PATIENCE`] it is ETIMEDOUT, and EINTR as soon as who asked is being killed (fuser
//! hears of no interrupts; the pending signals of the asking thread say the same). Whoever has the answer later finds
//! it given, and what was asked for stands or falls on its own.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fuser::{Errno, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite};
use parking_lot::{Condvar, Mutex};

/// Longest time until an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(14);
/// How often the pending ones are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// An answer that can be an error.
pub(crate) trait Reply: Send + 'static {
    /// Answers with an error.
    fn refuse(self, errno: Errno);
}

macro_rules! reply {
    ($($name:ident)*) => {$(
        impl Reply for $name {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        }
    )*};
}
reply!(ReplyAttr ReplyCreate ReplyData ReplyEmpty ReplyEntry ReplyOpen ReplyWrite);

/// An answer that is still owed.
pub(crate) struct Owed<R: Reply> {
    reply: Arc<Mutex<Option<R>>>,
    number: u64,
}

impl<R: Reply> Owed<R> {
    /// Watches the answer to the thread `pid`.
    pub(crate) fn new(reply: R, pid: u32) -> Self {
        let reply = Arc::new(Mutex::new(Some(reply)));
        let watched = reply.clone();
        let refuse = move |errno| {
            if let Some(reply) = watched.lock().take() {
                reply.refuse(errno);
            }
        };
        let number = Watcher::get().add(Watched { since: Instant::now(), pid, refuse: Box::new(refuse) });
        Self { reply, number }
    }

    /// Whether somebody still waits.
    pub(crate) fn is_due(&self) -> bool {
        self.reply.lock().is_some()
    }

    /// Answers, if nobody did.
    pub(crate) fn answer(self, with: impl FnOnce(R)) {
        if let Some(reply) = self.reply.lock().take() {
            with(reply);
        }
    }
}

impl Owed<ReplyEmpty> {
    /// Answers with success or an error.
    pub(crate) fn settle(self, result: Result<(), Errno>) {
        self.answer(|reply| match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        });
    }
}

impl<R: Reply> Drop for Owed<R> {
    fn drop(&mut self) {
        Watcher::get().remove(self.number);
        // Whoever was to answer went away without a word: a fault of ours, but never a hang.
        if let Some(reply) = self.reply.lock().take() {
            reply.refuse(Errno::EIO);
        }
    }
}

struct Watched {
    since: Instant,
    pid: u32,
    refuse: Box<dyn Fn(Errno) + Send>,
}

#[derive(Default)]
struct Watcher {
    pending: Mutex<(u64, HashMap<u64, Watched>)>,
    some: Condvar,
}

impl Watcher {
    fn get() -> &'static Self {
        static WATCHER: OnceLock<Watcher> = OnceLock::new();
        static STARTED: OnceLock<bool> = OnceLock::new();
        let watcher = WATCHER.get_or_init(Self::default);
        STARTED.get_or_init(|| {
            std::thread::Builder::new().name("stele-watch".into()).spawn(|| Self::get().watch()).is_ok()
        });
        watcher
    }

    fn add(&self, watched: Watched) -> u64 {
        let mut pending = self.pending.lock();
        pending.0 += 1;
        let number = pending.0;
        pending.1.insert(number, watched);
        if pending.1.len() == 1 {
            self.some.notify_one();
        }
        number
    }

    fn remove(&self, number: u64) {
        self.pending.lock().1.remove(&number);
    }

    fn watch(&self) {
        let mut pending = self.pending.lock();
        loop {
            if pending.1.is_empty() {
                self.some.wait(&mut pending);
            }
            drop(pending);
            std::thread::sleep(LOOK);
            pending = self.pending.lock();
            for watched in pending.1.values().filter(|watched| watched.since.elapsed() >= LOOK) {
                if watched.since.elapsed() >= PATIENCE {
                    (watched.refuse)(Errno::ETIMEDOUT);
                } else if is_being_killed(watched.pid) {
                    (watched.refuse)(Errno::EINTR);
                }
            }
        }
    }
}

/// Whether SIGKILL is pending for a thread: also every other signal that ends a process is one by then.
fn is_being_killed(pid: u32) -> bool {
    const KILL: u64 = 1 << (9 - 1);
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let masks = status.lines().filter_map(|line| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    masks.into_iter().any(|mask| mask & KILL != 0)
}
