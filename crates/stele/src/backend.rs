//! Which database a server runs on: the embedded one in its data directory, or a PostgreSQL.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use anyhow::Context;
use stele_core::clock::System;
use stele_core::storage::Storage;
use store_postgres::PostgresStorage;
use store_sqlite::SqliteStorage;

use crate::backup::Source;
use crate::config::Config;

/// An open database.
pub(crate) enum Backend {
    /// Embedded.
    Sqlite(Arc<SqliteStorage>),
    /// On a server.
    Postgres(Arc<PostgresStorage>),
}

impl Backend {
    /// Opens the database that the configuration names, making or migrating what is to be.
    pub(crate) async fn open(config: &Config) -> anyhow::Result<Self> {
        let (clock, random) = (Arc::new(System), Arc::new(System));
        let Some(url) = &config.database_url else {
            let mut wanted = store_sqlite::Config::new(&config.data_dir, config.limits.clone());
            wanted.compression = config.compression;
            return Ok(Self::Sqlite(SqliteStorage::open(wanted, clock, random)?));
        };
        let dir = &config.data_dir;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.with_context(|| format!("cannot make the data directory {}", dir.display()))?;
        let mut wanted = store_postgres::Config::new(url.clone(), config.limits.clone());
        wanted.compression = config.compression;
        Ok(Self::Postgres(PostgresStorage::open(wanted, clock, random).await?))
    }

    /// The storage port.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        match self {
            Self::Sqlite(storage) => storage.clone(),
            Self::Postgres(storage) => storage.clone(),
        }
    }

    /// What backups of it are made of.
    pub(crate) fn source(&self, config: &Config) -> Source {
        match (self, &config.database_url) {
            (Self::Sqlite(storage), _) => Source::Sqlite(storage.clone(), config.data_dir.clone()),
            (Self::Postgres(storage), Some(url)) => Source::Postgres(storage.clone(), Box::new(url.clone())),
            (Self::Postgres(_), None) => unreachable!("a PostgreSQL has an address"),
        }
    }

    /// Its name in logs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Whether the database was made by this opening.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            Self::Sqlite(storage) => storage.is_new(),
            Self::Postgres(storage) => storage.is_new(),
        }
    }

    /// Ends after what waits is done.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(storage) => Ok(tokio::task::spawn_blocking(move || storage.close()).await?),
            Self::Postgres(storage) => {
                storage.close().await;
                Ok(())
            }
        }
    }
}
