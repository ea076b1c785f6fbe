//! Syncing again and again: the store is followed by its feed, the folder is looked at.
//!
//! The folder is looked at rather than watched: looking works on every file system and in every sandbox, takes no
//! inotify instance (of which a user has 128), and for 10,000 files costs some 40 ms, which the pause grows with.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use stele_client::{Client, ClientError};

use crate::pass::{Moment, Sync};
use crate::report::{Done, Left, Report};
use crate::{SyncError, remote};

/// How long the server may wait for a change.
const WAIT_SECS: u64 = 25;
/// Shortest pause between two looks at the folder.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest one, and before a server that does not answer is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longest time to ask who it is that refuses.
const ASK: Duration = Duration::from_secs(10);
/// A look may take this part of the time.
const SHARE: u32 = 40;
/// How long a first change waits for those that come with it.
const GATHER: Duration = Duration::from_millis(100);

/// What there is to say while a folder is watched.
#[derive(Debug)]
pub enum Event<'a> {
    /// A pass did something; what stays different is told once.
    Passed(&'a Report),
    /// The server does not answer; it is asked again.
    Away(&'a SyncError),
    /// It answers again.
    Back,
}

enum Wake {
    Changed,
    Stop,
}

/// Syncs until `stop` brings something or is closed; then a last time, with nothing waiting for a later pass.
///
/// # Errors
/// The store is gone, the key no longer works, the folder cannot be used; at the end also that no server answers.
pub fn watch(sync: &mut Sync, stop: Receiver<()>, mut tell: impl FnMut(Event<'_>)) -> Result<(), SyncError> {
    let (wakes, woken) = mpsc::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let for_stop = wakes.clone();
    thread::spawn(move || {
        let _ = stop.recv();
        let _ = for_stop.send(Wake::Stop);
    });
    let ended = watch_until_stopped(sync, &wakes, &woken, &stopped, &mut tell);
    stopped.store(true, Ordering::Relaxed);
    ended
}

fn watch_until_stopped(
    sync: &mut Sync,
    wakes: &Sender<Wake>,
    woken: &Receiver<Wake>,
    stopped: &Arc<AtomicBool>,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<(), SyncError> {
    let mut told = Told::default();
    let (mut away, mut followed, mut changed) = (0_u32, false, true);
    loop {
        let began = Instant::now();
        let passed = if changed || away > 0 || sync.has_work(Moment::InUse)? {
            sync.pass(Moment::InUse).map(Some)
        } else {
            Ok(None)
        };
        let pause = match passed {
            Ok(report) => {
                if std::mem::take(&mut away) > 0 {
                    tell(Event::Back);
                }
                changed = report.as_ref().is_some_and(Report::raced);
                if let Some(news) = report.map(|report| told.news(report)).filter(|it| !it.items.is_empty()) {
                    tell(Event::Passed(&news));
                }
                if let (false, Some((after, epoch))) = (followed, sync.stands()) {
                    follow(sync, after, epoch, wakes.clone(), stopped.clone());
                    followed = true;
                }
                (began.elapsed() * SHARE).clamp(PAUSE, LONGEST_PAUSE)
            }
            Err(error) if error.passes() || is_a_strangers(&error, sync) => {
                if away == 0 {
                    tell(Event::Away(&error));
                }
                away += 1;
                PAUSE * 2_u32.pow(away.min(4)).min(10)
            }
            Err(error) => return Err(error),
        };
        match woken.recv_timeout(pause.min(LONGEST_PAUSE)) {
            Ok(Wake::Changed) => {
                changed = true;
                thread::sleep(GATHER);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => break,
        }
        // Changes that came together are one reason to look.
        if woken.try_iter().any(|wake| matches!(wake, Wake::Stop)) {
            break;
        }
    }
    for _ in 0..3 {
        let report = sync.pass(Moment::AtRest)?;
        let again = report.raced();
        tell(Event::Passed(&told.news(report)));
        if !again {
            break;
        }
    }
    Ok(())
}

/// Whether an error was said by another server in the place of the one that is followed: only the database that was
/// seen before can say that a key is none, or that the store is not there.
fn is_a_strangers(error: &SyncError, sync: &Sync) -> bool {
    let denied = matches!(
        error,
        SyncError::StoreGone { .. } | SyncError::Client(ClientError::Refused { status: 401 | 404, .. })
    );
    let Some((_, epoch)) = sync.stands().filter(|_| denied) else { return false };
    match sync.client.snapshot(&sync.options.store_uuid, ASK) {
        Ok(_) => true,
        Err(failure) => {
            let said_again = matches!(failure.error.status(), Some(401 | 404));
            !said_again || failure.epoch.as_deref() != Some(epoch.as_str())
        }
    }
}

/// What was told of paths that stay different.
#[derive(Default)]
struct Told(BTreeMap<String, Left>);

impl Told {
    fn news(&mut self, mut report: Report) -> Report {
        let before = std::mem::take(&mut self.0);
        report.items.retain(|item| match &item.done {
            Done::Left(Left::Settling) => false,
            Done::Left(left) => {
                self.0.insert(item.path.clone(), left.clone());
                before.get(&item.path) != Some(left)
            }
            _ => true,
        });
        report
    }
}

/// Wakes the watcher at each change of the store, on a thread of its own.
fn follow(sync: &Sync, after: u64, epoch: String, wakes: Sender<Wake>, stopped: Arc<AtomicBool>) {
    let (client, store) = (Arc::clone(&sync.client), sync.options.store.clone());
    let uuid = sync.options.store_uuid.clone();
    let mut feed = Feed { client, store, uuid, after, epoch };
    thread::spawn(move || {
        let mut tries = 0;
        while !stopped.load(Ordering::Relaxed) {
            match feed.wait() {
                Ok(false) => tries = 0,
                Ok(true) => {
                    tries = 0;
                    if wakes.send(Wake::Changed).is_err() {
                        return;
                    }
                }
                Err(_) => {
                    // The watcher looks for itself, and meets the same error if it stays.
                    if wakes.send(Wake::Changed).is_err() {
                        return;
                    }
                    tries += 1;
                    thread::sleep((PAUSE * 2_u32.pow(tries.min(4))).min(LONGEST_PAUSE));
                }
            }
        }
    });
}

struct Feed {
    client: Arc<Client>,
    store: String,
    uuid: String,
    after: u64,
    epoch: String,
}

impl Feed {
    /// Waits for changes; whether there were some.
    fn wait(&mut self) -> Result<bool, SyncError> {
        match self.client.changes(&self.store, self.after, Some(&self.epoch), WAIT_SECS) {
            Ok(changes) => {
                self.after = changes.last_sequence.max(self.after);
                Ok(!changes.data.is_empty())
            }
            Err(ClientError::Refused { status: 410, .. }) => {
                let tree = remote::tree(&self.client, &self.uuid)?;
                (self.after, self.epoch) = (tree.sequence, tree.epoch);
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }
}
