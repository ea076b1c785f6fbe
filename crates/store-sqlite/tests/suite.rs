//! The cases that every back end passes.

use stele_core::storage::Answer;
use store_sqlite::{Config, SqliteStorage};
use store_suite::{Opened, Options, StoreFactory};

struct Factory;

impl StoreFactory for Factory {
    fn open(&self, options: Options) -> Answer<'_, Opened> {
        Box::pin(async move {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let config = Config::new(dir.path(), options.limits);
            let storage =
                SqliteStorage::open(config, options.clock, options.random).expect("a fresh database opens");
            let data_dir = Some(dir.path().to_owned());
            Opened { storage, data_dir, keep_alive: Box::new(dir) }
        })
    }
}

store_suite::store_suite!(Factory);
