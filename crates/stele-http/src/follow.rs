//! Following a store: what a reader of its feed waits for, in whichever dialect. DESIGN 7.
//!
//! A waiting reader is a place in [`stele_core::watch`] and a timer: no thread, no connection to the database. What it
//! has not taken yet is read when it can take it, so that a slow one holds nothing back and costs one page.

use std::sync::Arc;
use std::time::Duration;

use stele_core::access::{Action, Caller, Resource};
use stele_core::feed::{Changes, Reader, Standing, Told};
use stele_core::id::StoreId;
use stele_core::model::Store;
use stele_core::service::Stele;
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
    ending: watch::Receiver<bool>,
    /// The store's own `updated_at` as the reader knows it.
    store_known: Option<Timestamp>,
    /// The store, if the reader is still to be told how it is now.
    store_news: Option<Box<Store>>,
    /// Whether there may be news that were not read yet.
    news: bool,
    /// Whether the store is gone, and the reader knows.
    over: bool,
    /// When the credential was last looked at, and when it was last found to work.
    looked_at: Instant,
    trusted: Instant,
    spoke: Instant,
}

/// What a stream has to say.
pub enum Happened {
    /// These changes.
    Changes(Vec<Told>),
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
        let (watch, ending, now) = (stele.watch(store), stele.ending(), Instant::now());
        Self {
            stele,
            caller,
            shown: shown.to_owned(),
            store,
            standing,
            limit,
            watch,
            ending,
            store_known: None,
            store_news: None,
            news: true,
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
    pub async fn read(&mut self, reader: Reader) -> Result<Changes, Error> {
        let changes = self.stele.changes(&self.caller, self.store, self.standing, self.limit, reader).await?;
        if let Some(last) = changes.told.last() {
            self.standing.after = last.sequence();
        }
        self.news = changes.told.len() == self.limit;
        Ok(changes)
    }

    /// The reader knows the store as it is in `changes`.
    pub fn knows(&mut self, changes: &Changes) {
        self.store_known = changes.store.as_ref().map(|store| store.updated_at);
        self.over = changes.store.is_none() && !self.news;
    }

    /// What happens next; `None` ends the stream: the store is gone, the credential works no more, the server stops,
    /// or what follows cannot be told without a gap.
    pub async fn next(&mut self) -> Option<Happened> {
        while !self.over {
            if let Some(store) = self.store_news.take() {
                return Some(Happened::Store(store));
            }
            if self.news {
                let changes = self.read(Reader::Following).await.ok()?;
                if let Some(told) = self.told(changes) {
                    self.spoke = Instant::now();
                    return Some(Happened::Changes(told));
                }
                continue;
            }
            match self.wait(self.spoke + QUIET).await {
                Woken::News => self.news = true,
                Woken::Late => {
                    self.spoke = Instant::now();
                    // A look now and then, in case that an announcement was lost on its way.
                    self.news = true;
                    return Some(Happened::Quiet);
                }
                Woken::Ending | Woken::Unknown => return None,
            }
        }
        None
    }

    /// What is to be told of what was read: first the changes, then the store.
    fn told(&mut self, changes: Changes) -> Option<Vec<Told>> {
        let known = self.store_known;
        self.knows(&changes);
        self.store_news = changes.store.filter(|_| self.store_known != known).map(Box::new);
        Some(changes.told).filter(|told| !told.is_empty())
    }

    /// Waits for news until `deadline`, looking after the credential meanwhile.
    pub async fn wait(&mut self, deadline: Instant) -> Woken {
        loop {
            let look_at = self.looked_at + LOOKED_AT;
            let woken = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ending| *ending) => return Woken::Ending,
                _ = self.watch.changed() => Some(Woken::News),
                () = tokio::time::sleep_until(deadline.min(look_at)) => None,
            };
            // Also where a busy store wakes it all the time.
            if Instant::now() >= look_at && !self.still_known().await {
                return Woken::Unknown;
            }
            match woken {
                Some(woken) => return woken,
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
