//! Following the store: a long poll after the other, on a thread of its own. DESIGN 7 and 9.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stele_client::{Change, Changes, Failure};

use crate::server::{Verdict, judge, read_memory, read_version};
use crate::shared::{Counters, Ended, Shared, State};

/// How long the server may keep a poll waiting, in seconds.
const WAIT_SECS: u64 = 15;
/// Without an answer for so long the feed is dead.
const DEAD: Duration = Duration::from_secs(20);
/// Longest time for a whole tree.
const RELIST: Duration = Duration::from_secs(20);
/// How long changes are gathered behind a page, so that not each of many is asked for by itself: longer if it told only
/// of what this mount did, since then nobody waits to see it.
const GATHER: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(20));
/// Shortest and longest time between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Follows until the mount ends.
pub(crate) fn follow(shared: &Arc<Shared>) {
    let mut pause = PAUSE.0;
    while !shared.is_ending() {
        let begun = Instant::now();
        match turn(shared) {
            Ok(()) => pause = PAUSE.0,
            Err(failure) => {
                lose(shared, &failure);
                if begun.elapsed() > PAUSE.1 {
                    pause = PAUSE.0;
                }
                nap(shared, pause);
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// One poll, and what it brought.
fn turn(shared: &Arc<Shared>) -> Result<(), Failure> {
    let (after, epoch, live) = {
        let state = shared.state();
        (state.sequence, state.epoch.clone(), state.live)
    };
    // Whoever lost sight asks first without waiting: what is shown meanwhile may be old.
    let wait = if live { WAIT_SECS } else { 0 };
    Counters::one(&shared.count.polls);
    match shared.client.changes_behind(&shared.store, after, &epoch, wait, DEAD) {
        Ok(answer) => {
            match take(shared, answer.value) {
                Page::Own => nap(shared, GATHER.1),
                Page::Others => nap(shared, GATHER.0),
                Page::Empty => {}
            }
            Ok(())
        }
        Err(failure) => match judge(&failure, &epoch) {
            Verdict::Expired => relist(shared),
            _ => Err(failure),
        },
    }
}

/// Takes a page in, once nothing that it may tell of is on its way.
fn take(shared: &Arc<Shared>, page: Changes) -> Page {
    let mut state = shared.state();
    while concerns(&page, &state) {
        state.feed_waits = true;
        state.wait(Duration::from_secs(1));
    }
    state.feed_waits = false;
    let over = page.data.is_empty();
    let own = !over && page.data.iter().all(|change| is_known(change, &state));
    shared.take_page(&mut state, page);
    state.contact = Some(Instant::now());
    if over && !state.live {
        state.live = true;
    }
    if state.ended == Some(Ended::Credential) {
        state.ended = None;
        state.everything_is_news();
    }
    drop(state);
    shared.turned.notify_all();
    match (over, own) {
        (true, _) => Page::Empty,
        (false, true) => Page::Own,
        (false, false) => Page::Others,
    }
}

/// Whose changes a page tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// Only of what this mount did.
    Own,
    /// Also of what others did.
    Others,
    /// Of none.
    Empty,
}

/// Whether the tree has a change already.
fn is_known(change: &Change, state: &State) -> bool {
    let Some(memory) = change.memory_id.as_deref().and_then(read_memory) else { return false };
    if state.tree.dead.contains(&memory) {
        return true;
    }
    let version = change.memory_version_id.as_deref().and_then(read_version);
    let head = state.tree.memories.get(&memory).and_then(|ino| state.tree.file(*ino)?.head.as_ref());
    matches!((head, version), (Some(head), Some(version)) if head.version >= version)
}

fn concerns(page: &Changes, state: &State) -> bool {
    let Some(flight) = &state.in_flight else { return false };
    page.data.iter().any(|change| {
        let memory = change.memory_id.as_deref().and_then(read_memory);
        memory.is_some_and(|memory| flight.memories.contains(&memory))
            || change.path.as_ref().is_some_and(|path| flight.paths.contains(path))
    })
}

/// Lists the store again, while no change of ours is on its way.
fn relist(shared: &Arc<Shared>) -> Result<(), Failure> {
    let mut state = shared.state();
    while state.in_flight.is_some() {
        state.feed_waits = true;
        state.wait(Duration::from_secs(1));
    }
    state.feed_waits = true;
    drop(state);
    let listed = shared.relist(RELIST);
    shared.state().feed_waits = false;
    shared.turned.notify_all();
    listed
}

/// Draws the consequences of a poll that failed.
fn lose(shared: &Arc<Shared>, failure: &Failure) {
    let epoch = shared.state().epoch.clone();
    let verdict = judge(failure, &epoch);
    match verdict {
        Verdict::Busy(after) => nap(shared, after.min(PAUSE.1)),
        _ => shared.heed(verdict),
    }
    let mut state = shared.state();
    if state.live && state.ended.is_none() && !shared.is_ending() {
        tracing::warn!(store.id = %shared.options.store, error = %failure.error, "lost sight of the store; trying again");
    }
    state.live = false;
}

fn nap(shared: &Arc<Shared>, most: Duration) {
    let until = Instant::now() + most;
    while !shared.is_ending() && Instant::now() < until {
        std::thread::sleep(most.min(Duration::from_millis(100)));
    }
}
