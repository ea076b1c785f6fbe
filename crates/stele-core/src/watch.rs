//! Who waits for what: one place where committed changes wake the readers of feeds and streams. DESIGN 7.
//!
//! A topic is the id of a store or of a log. Announcing costs nothing where nobody waits; a waiter holds no
//! connection and no thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// What a waiter waits on: the 16 bytes of a store's, log's or record's id.
pub type Topic = [u8; 16];

/// All that is waited for in this process.
#[derive(Debug, Default)]
pub struct Watches {
    topics: Mutex<HashMap<Topic, Arc<Signal>>>,
}

#[derive(Debug)]
struct Signal {
    /// The newest position known: a sequence or revision.
    position: watch::Sender<u64>,
    watchers: AtomicU64,
}

impl Watches {
    /// Tells the watchers of `topic` that it has reached `position`. Positions that are not news wake nobody.
    pub fn announce(&self, topic: Topic, position: u64) {
        if let Some(signal) = self.lock().get(&topic) {
            signal.position.send_if_modified(|known| {
                let news = position > *known;
                *known = position.max(*known);
                news
            });
        }
    }

    /// Wakes everybody: after news may have been lost, each has to look for itself.
    pub fn announce_all(&self) {
        for signal in self.lock().values() {
            signal.position.send_modify(|_| ());
        }
    }

    /// The topics that somebody waits for, in no order.
    pub fn topics(&self) -> Vec<Topic> {
        self.lock().keys().copied().collect()
    }

    /// Starts to wait for what comes after now. Subscribe first and read then, and nothing is missed.
    pub fn subscribe(self: &Arc<Self>, topic: Topic) -> Watch {
        let mut topics = self.lock();
        let signal = topics
            .entry(topic)
            .or_insert_with(|| {
                Arc::new(Signal { position: watch::Sender::new(0), watchers: AtomicU64::new(0) })
            })
            .clone();
        signal.watchers.fetch_add(1, Ordering::Relaxed);
        let position = signal.position.subscribe();
        Watch { watches: self.clone(), topic, signal, position }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Arc<Signal>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiter's place; ends the wait when dropped.
#[derive(Debug)]
pub struct Watch {
    watches: Arc<Watches>,
    topic: Topic,
    signal: Arc<Signal>,
    position: watch::Receiver<u64>,
}

impl Watch {
    /// Waits until the topic was announced since the last call (or since the subscription), and answers with the
    /// newest position that was told. It may be woken for nothing: look, and wait again.
    pub async fn changed(&mut self) -> u64 {
        // The sender lives in `signal`, so the channel cannot be closed.
        let _ = self.position.changed().await;
        *self.position.borrow_and_update()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut topics = self.watches.lock();
        if self.signal.watchers.fetch_sub(1, Ordering::Relaxed) == 1 {
            topics.remove(&self.topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const TOPIC: Topic = [1; 16];

    /// What the wait says right now.
    fn poll(watch: &mut Watch) -> Poll<u64> {
        pin!(watch.changed()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_announcement_wakes_each_watcher_once() {
        let watches = Arc::new(Watches::default());
        let (mut a, mut b) = (watches.subscribe(TOPIC), watches.subscribe(TOPIC));
        assert_eq!(poll(&mut a), Poll::Pending);
        watches.announce(TOPIC, 3);
        assert_eq!((poll(&mut a), poll(&mut b)), (Poll::Ready(3), Poll::Ready(3)));
        watches.announce(TOPIC, 3);
        watches.announce(TOPIC, 2);
        watches.announce([2; 16], 9);
        assert_eq!((poll(&mut a), poll(&mut b)), (Poll::Pending, Poll::Pending));
        watches.announce_all();
        assert_eq!((poll(&mut a), poll(&mut b)), (Poll::Ready(3), Poll::Ready(3)));
    }

    #[test]
    fn a_topic_is_forgotten_with_its_last_watcher() {
        let watches = Arc::new(Watches::default());
        let a = watches.subscribe(TOPIC);
        let b = watches.subscribe(TOPIC);
        drop(a);
        assert_eq!(watches.topics(), [TOPIC]);
        drop(b);
        assert!(watches.topics().is_empty());
    }
}
