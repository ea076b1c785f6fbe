//! The cases that every back end passes, each on a database of its own that sorts by the rules of a language.

use std::time::Duration;

use stele_core::storage::Answer;
use store_postgres::{Config, PostgresStorage};
use store_suite::{Opened, Options, StoreFactory};
use throwaway_postgres::Cluster;

mod kit;

struct Factory;

impl StoreFactory for Factory {
    fn open(&self, options: Options) -> Answer<'_, Opened> {
        Box::pin(async move {
            let database = Cluster::shared().migrated(kit::migrate);
            let mut config = Config::new(database.url().parse().expect("an address"), options.limits);
            config.patience = Duration::from_secs(60);
            let storage = PostgresStorage::open(config, options.clock, options.random).await;
            let storage = storage.expect("a fresh database opens");
            // Redacted text leaves the files with `stele scrub` only: tests/scrub.rs.
            Opened { storage, data_dir: None, keep_alive: Box::new(database) }
        })
    }
}

store_suite::store_suite!(Factory);
