//! Reads: a few connections that many requests share, one behind the other, each in a snapshot of its own.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::connect::{Connected, Connector};
use crate::fault::Fault;

/// How long a server that could not be reached is believed to be out of reach: all who ask in this time share one
/// attempt.
const BELIEVED_GONE: Duration = Duration::from_millis(200);

/// Shared connections.
pub(crate) struct Points {
    slots: Vec<Slot>,
    next: AtomicUsize,
    connector: Arc<Connector>,
    patience: Duration,
}

#[derive(Default)]
struct Slot {
    current: RwLock<Option<Arc<Connected>>>,
    /// When the last attempt to connect failed; whoever connects holds the lock.
    failed: Mutex<Option<Instant>>,
}

impl Points {
    pub(crate) fn new(connector: Arc<Connector>, count: usize, patience: Duration) -> Self {
        let slots = (0..count).map(|_| Slot::default()).collect();
        Self { slots, next: AtomicUsize::new(0), connector, patience }
    }

    /// Runs a read. One that meets a dead connection is repeated on a fresh one; nothing is waited for beyond the
    /// patience.
    pub(crate) async fn read<T, F>(&self, read: impl Fn(Arc<Connected>) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let began = tokio::time::Instant::now();
        let mut lost = Fault::Silent;
        // All shared connections may have died, perhaps without a word: the last attempt is on a fresh one and has half
        // of the time for itself.
        for attempt in 0..=self.slots.len() {
            let part = if attempt < self.slots.len() { self.patience / 2 } else { self.patience };
            let deadline = began + part;
            let connected = match tokio::time::timeout_at(deadline, self.connection()).await {
                Ok(Ok(connected)) => connected,
                Ok(Err(fault)) if fault.is_lost() => {
                    lost = fault;
                    continue;
                }
                Ok(Err(fault)) => return Err(fault),
                Err(_) => continue,
            };
            let answer = tokio::time::timeout_at(deadline, read(connected.clone())).await;
            match answer.unwrap_or(Err(Fault::Silent)) {
                Err(fault) if fault.is_lost() => {
                    self.forget(&connected);
                    lost = fault;
                }
                other => return other,
            }
        }
        Err(lost)
    }

    /// Makes all connections, before others take the server's last ones.
    pub(crate) async fn connect(&self) -> Result<(), tokio_postgres::Error> {
        for slot in &self.slots {
            let connected = Arc::new(self.connector.ready().await?);
            *slot.current.write().expect("no panic under the lock") = Some(connected);
        }
        Ok(())
    }

    async fn connection(&self) -> Result<Arc<Connected>, Fault> {
        let slot = &self.slots[self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len()];
        if let Some(connected) = slot.alive() {
            return Ok(connected);
        }
        let mut failed = slot.failed.lock().await;
        if let Some(connected) = slot.alive() {
            return Ok(connected);
        }
        if failed.is_some_and(|at| at.elapsed() < BELIEVED_GONE) {
            return Err(Fault::Silent);
        }
        // A connection may be cut while it is made ready, which says little of the server: one failure is none yet.
        let made = match self.connector.ready().await {
            Ok(connected) => Ok(connected),
            Err(_) => self.connector.ready().await,
        };
        match made {
            Ok(connected) => {
                let connected = Arc::new(connected);
                *slot.current.write().expect("no panic under the lock") = Some(connected.clone());
                *failed = None;
                Ok(connected)
            }
            Err(error) => {
                *failed = Some(Instant::now());
                Err(error.into())
            }
        }
    }

    /// Uses a connection no more.
    fn forget(&self, dead: &Arc<Connected>) {
        for slot in &self.slots {
            let mut current = slot.current.write().expect("no panic under the lock");
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, dead)) {
                *current = None;
            }
        }
    }

    /// Closes them.
    pub(crate) fn close(&self) {
        for slot in &self.slots {
            *slot.current.write().expect("no panic under the lock") = None;
        }
    }
}

impl Slot {
    fn alive(&self) -> Option<Arc<Connected>> {
        let current = self.current.read().expect("no panic under the lock");
        current.clone().filter(|connected| !connected.client.is_closed())
    }
}
