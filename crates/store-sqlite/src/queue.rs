//! The writer's queue: bounded, and fair by workspace. DESIGN 5.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use stele_core::id::WorkspaceId;
use stele_core::meter;

/// Most jobs that wait in all.
const MOST: usize = 8_192;
/// Most jobs of one workspace that wait.
const MOST_OF_ONE: usize = 2_048;

/// Who a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A request of this workspace.
    Workspace(WorkspaceId),
    /// Housekeeping: at most one such job a batch, after all others.
    Background,
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many wait.
    Full,
    /// The writer has ended.
    Closed,
}

struct Waiting<J> {
    jobs: HashMap<WorkspaceId, VecDeque<J>>,
    /// Workspaces with waiting jobs, the next one first.
    turns: VecDeque<WorkspaceId>,
    background: VecDeque<J>,
    count: usize,
    closed: bool,
}

/// What the writer got.
pub(crate) enum Taken<J> {
    /// Jobs to commit together.
    Batch(Vec<J>),
    /// Nothing came in time.
    Nothing,
    /// The queue is closed and empty.
    End,
}

/// A queue of jobs.
pub(crate) struct Queue<J> {
    waiting: Mutex<Waiting<J>>,
    arrived: Condvar,
}

impl<J> Queue<J> {
    pub(crate) fn new() -> Self {
        let waiting = Waiting {
            jobs: HashMap::new(),
            turns: VecDeque::new(),
            background: VecDeque::new(),
            count: 0,
            closed: false,
        };
        Self { waiting: Mutex::new(waiting), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().expect("no panic under the lock")
    }

    /// Lets a job wait for its turn.
    pub(crate) fn push(&self, lane: Lane, job: J) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Refused::Closed);
        }
        match lane {
            Lane::Background => waiting.background.push_back(job),
            Lane::Workspace(workspace) => waiting.push(workspace, job)?,
        }
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next batch of at most `most` jobs, one of each workspace in turn. Waits for the first one, with
    /// `patience` at most so long.
    pub(crate) fn take(&self, most: usize, patience: Option<Duration>) -> Taken<J> {
        let mut waiting = self.lock();
        while waiting.is_empty() {
            if waiting.closed {
                return Taken::End;
            }
            waiting = match patience {
                None => self.arrived.wait(waiting).expect("no panic under the lock"),
                Some(patience) => {
                    let (waiting, timeout) =
                        self.arrived.wait_timeout(waiting, patience).expect("no panic under the lock");
                    if timeout.timed_out() && waiting.is_empty() {
                        return Taken::Nothing;
                    }
                    waiting
                }
            };
        }
        let batch = waiting.next_batch(most);
        meter::WRITE_QUEUE.set(waiting.count as u64);
        Taken::Batch(batch)
    }

    /// Takes no more jobs; what waits is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

impl<J> Waiting<J> {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.background.is_empty()
    }

    fn push(&mut self, workspace: WorkspaceId, job: J) -> Result<(), Refused> {
        if self.count >= MOST {
            return Err(Refused::Full);
        }
        let lane = self.jobs.entry(workspace).or_default();
        if lane.len() >= MOST_OF_ONE {
            return Err(Refused::Full);
        }
        if lane.is_empty() {
            self.turns.push_back(workspace);
        }
        lane.push_back(job);
        self.count += 1;
        Ok(())
    }

    fn next_batch(&mut self, most: usize) -> Vec<J> {
        let mut batch = Vec::with_capacity(self.count.min(most) + 1);
        while batch.len() < most {
            let Some(workspace) = self.turns.pop_front() else { break };
            let lane = self.jobs.get_mut(&workspace).expect("a workspace with a turn has a lane");
            batch.extend(lane.pop_front());
            self.count -= 1;
            if lane.is_empty() {
                self.jobs.remove(&workspace);
            } else {
                self.turns.push_back(workspace);
            }
        }
        batch.extend(self.background.pop_front());
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::time::Timestamp;

    fn lane(n: u64) -> Lane {
        Lane::Workspace(WorkspaceId::mint(Timestamp::from_micros(1), n))
    }

    fn batch(queue: &Queue<u32>, most: usize) -> Vec<u32> {
        match queue.take(most, Some(Duration::ZERO)) {
            Taken::Batch(jobs) => jobs,
            Taken::Nothing | Taken::End => Vec::new(),
        }
    }

    #[test]
    fn workspaces_take_turns_and_keep_their_own_order() {
        let queue = Queue::new();
        for job in 1..=4 {
            queue.push(lane(1), job).expect("room");
        }
        queue.push(lane(2), 10).expect("room");
        queue.push(Lane::Background, 99).expect("room");
        assert_eq!(batch(&queue, 3), [1, 10, 2, 99]);
        assert_eq!(batch(&queue, 3), [3, 4]);
    }

    #[test]
    fn a_flood_of_one_workspace_leaves_room_for_others() {
        let queue = Queue::new();
        for job in 0..MOST_OF_ONE {
            queue.push(lane(1), job).expect("room");
        }
        assert_eq!(queue.push(lane(1), 0), Err(Refused::Full));
        assert_eq!(queue.push(lane(2), 0), Ok(()));
    }

    #[test]
    fn a_closed_queue_hands_out_what_waits_and_ends() {
        let queue = Queue::new();
        queue.push(lane(1), 1).expect("room");
        queue.close();
        assert_eq!(queue.push(lane(1), 2), Err(Refused::Closed));
        assert_eq!(batch(&queue, 9), [1]);
        assert!(matches!(queue.take(9, None), Taken::End));
    }
}
