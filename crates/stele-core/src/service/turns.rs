//! Turns: those who change one thing in this process do so one after the other, so that they do not begin again and
//! again. It is a courtesy, not a lock: what must hold is checked by the revisions of a commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::records::RecordId;

type Places = Arc<Mutex<HashMap<RecordId, Arc<AsyncMutex<()>>>>>;

/// Whose turn it is, by thing.
#[derive(Debug, Default)]
pub(super) struct Turns(Places);

/// One's turn; ends when dropped.
#[derive(Debug)]
pub(super) struct Turn {
    places: Places,
    id: RecordId,
    place: Arc<AsyncMutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for one's turn at `id`.
    pub(super) async fn take(&self, id: RecordId) -> Turn {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default().clone();
        // Made before the wait, so that whoever gives up waiting leaves nothing behind.
        let mut turn = Turn { places: self.0.clone(), id, place, held: None };
        turn.held = Some(turn.place.clone().lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held = None;
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and this one: nobody else holds it or waits, and nobody can begin to under the lock.
        if Arc::strong_count(&self.place) == 2 {
            places.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn turns_come_one_after_the_other_and_leave_nothing_behind() {
        let turns = Turns::default();
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(turns.take([1; 16])).poll(&mut context) else { panic!("free") };
        {
            let mut second = pin!(turns.take([1; 16]));
            assert!(second.as_mut().poll(&mut context).is_pending());
            assert!(pin!(turns.take([2; 16])).poll(&mut context).is_ready(), "another thing");
            drop(first);
            assert!(second.as_mut().poll(&mut context).is_ready());
        }
        assert!(turns.0.lock().expect("no panic").is_empty());
    }
}
