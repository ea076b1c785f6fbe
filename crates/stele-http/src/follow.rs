//! Following a store: what a reader of its feed waits for, in whichever dialect. DESIGN 7.
//!
//! A waiting reader is a place in [`stele_core::watch`] and a timer: no thread, no connection to the database. What it
//! has not taken yet is read when it can take it, so that a slow one holds nothing back and costs one page.

use std::sync::Arc;
use std::time::Duration;

use stele_core::access::{Action, Caller, Resource};
use stele_core::feed::{Changes, Reader, Standing};
use stele_core::id::StoreId;
use stele_core::model::Store;
use stele_core::service::{LastPage, Stele};
use stele_core::storage::Error;
use stele_core::time::Timestamp;
use stele_core::watch::Watch;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the credential of a waiting reader is looked at. With the time that a key is believed (3 s) and
/// [`UNSURE`] that is within the 5 s of DESIGN 6.
const LOOKED_AT: Duration = Duration::from_secs(1);
/// How long a reader is let be whose credential the storage cannot judge.
const UNSURE: Duration = Duration::from_secs(1);
/// How long a stream may be quiet before it says that it lives.
const QUIET: Duration = Duration::from_secs(15);

/// A reader of one store's feed.
pub struct Follower {
    stele: Arc<Stele>,
    caller: Caller,
    /// The credential that it came with.
    shown: String,
    store: StoreId,
    standing: Standing,
    limit: usize,
    watch: Watch,
    /// How far the store was said to be, at the last news.
    position: u64,
    last_page: LastPage,
    ending: watch::Receiver<bool>,
    /// The store's own `updated_at` as the reader knows it.
    store_known: Option<Timestamp>,
    /// The store, if the reader is still to be told how it is now.
    store_news: Option<Box<Store>>,
    /// Whether there may be news that were not read yet.
    news: News,
    /// Whether the store is gone, and the reader knows.
    over: bool,
    /// When the credential was last looked at, and when it was last found to work.
    looked_at: Instant,
    trusted: Instant,
    spoke: Instant,
}

/// Whether there may be something to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// No.
    None,
    /// The store has moved on: what others at its end have read since will do.
    Moved,
    /// Somehow: only the database knows.
    Some,
}

/// What a stream has to say.
pub enum Happened {
    /// These changes, of which there is at least one.
    Changes(Arc<Changes>),
    /// The store's own fields are now these.
    Store(Box<Store>),
    /// Nothing for a while.
    Quiet,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// There may be news.
    News,
    /// Its time was over.
    Late,
    /// The server stops.
    Ending,
    /// The credential works no more.
    Unknown,
}

impl Follower {
    /// A reader that stands at `standing` and reads at most `limit` changes at once.
    pub fn new(
        stele: Arc<Stele>,
        caller: Caller,
        shown: &str,
        store: StoreId,
        standing: Standing,
        limit: usize,
    ) -> Self {
        let (watch, last_page) = (stele.watch(store), stele.last_page(store));
        let (ending, now) = (stele.ending(), Instant::now());
        Self {
            stele,
            caller,
            shown: shown.to_owned(),
            store,
            standing,
            limit,
            watch,
            position: 0,
            last_page,
            ending,
            store_known: None,
            store_news: None,
            news: News::Some,
            over: false,
            looked_at: now,
            trusted: now,
            spoke: now,
        }
    }

    /// Reads what there is now behind where the reader stands, and moves it on.
    ///
    /// # Errors
    /// As [`Stele::changes`].
    pub async fn read(&mut self, reader: Reader) -> Result<Arc<Changes>, Error> {
        let changes = match self.news {
            News::Moved => {
                let last = (&self.last_page, self.position);
                self.stele.changes_at(&self.caller, self.store, self.standing, self.limit, last).await?
            }
            News::None | News::Some => Arc::new(
                self.stele.changes(&self.caller, self.store, self.standing, self.limit, reader).await?,
            ),
        };
        if let Some(last) = changes.told.last() {
            self.standing.after = last.sequence();
        }
        self.news = if changes.told.len() == self.limit { News::Some } else { News::None };
        Ok(changes)
    }

    /// The reader knows the store as it is in `changes`.
    pub fn knows(&mut self, changes: &Changes) {
        self.store_known = changes.store.as_ref().map(|store| store.updated_at);
        self.over = changes.store.is_none() && self.news == News::None;
    }

    /// What happens next; `None` ends the stream: the store is gone, the credential works no more, the server stops,
    /// or what follows cannot be told without a gap.
    pub async fn next(&mut self) -> Option<Happened> {
        while !self.over {
            if let Some(store) = self.store_news.take() {
                return Some(Happened::Store(store));
            }
            if self.news != News::None {
                let changes = self.read(Reader::Following).await.ok()?;
                if let Some(told) = self.told(changes) {
                    self.spoke = Instant::now();
                    return Some(Happened::Changes(told));
                }
                continue;
            }
            match self.wait(self.spoke + QUIET).await {
                Woken::News => {}
                Woken::Late => {
                    self.spoke = Instant::now();
                    // A look now and then, in case that an announcement was lost on its way.
                    self.news = News::Some;
                    return Some(Happened::Quiet);
                }
                Woken::Ending | Woken::Unknown => return None,
            }
        }
        None
    }

    /// What is to be told of what was read: first the changes, then the store.
    fn told(&mut self, changes: Arc<Changes>) -> Option<Arc<Changes>> {
        let known = self.store_known;
        self.knows(&changes);
        let store = changes.store.as_ref().filter(|_| self.store_known != known);
        self.store_news = store.cloned().map(Box::new);
        Some(changes).filter(|changes| !changes.told.is_empty())
    }

    /// Waits for news until `deadline`, looking after the credential meanwhile.
    pub async fn wait(&mut self, deadline: Instant) -> Woken {
        loop {
            let look_at = self.looked_at + LOOKED_AT;
            let woken = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ending| *ending) => return Woken::Ending,
                position = self.watch.changed() => Some(position),
                () = tokio::time::sleep_until(deadline.min(look_at)) => None,
            };
            // Also where a busy store wakes it all the time.
            if Instant::now() >= look_at && !self.still_known().await {
                return Woken::Unknown;
            }
            match woken {
                Some(position) => {
                    self.news = if position > self.position { News::Moved } else { News::Some };
                    self.position = position.max(self.position);
                    return Woken::News;
                }
                None if Instant::now() >= deadline => return Woken::Late,
                None => {}
            }
        }
    }

    async fn still_known(&mut self) -> bool {
        self.looked_at = Instant::now();
        match self.stele.authenticate(&self.shown).await {
            Ok(Some(caller)) => {
                self.trusted = Instant::now();
                caller.workspace == self.caller.workspace
                    && caller.may(Resource::Memory, Action::Read).is_ok()
            }
            Ok(None) => false,
            Err(_) => self.trusted.elapsed() <= UNSURE,
        }
    }
}
