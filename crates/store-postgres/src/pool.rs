//! The bounded pool of connections for transactions.

use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, PoolError, RecycleError, RecycleResult, TimeoutType};

use tokio_postgres::error::SqlState;

use crate::connect::{Connected, Connector};
use crate::fault::Fault;

/// How long to wait for a connection of ours to come back where the server has no room for another one.
const FULL: Duration = Duration::from_millis(20);

pub(crate) struct Manager {
    connector: Arc<Connector>,
}

impl managed::Manager for Manager {
    type Type = Connected;
    type Error = tokio_postgres::Error;

    async fn create(&self) -> Result<Connected, tokio_postgres::Error> {
        self.connector.ready().await
    }

    /// No question over the network: a connection that died unnoticed is noticed by its first statement, which is
    /// repeated.
    async fn recycle(&self, connected: &mut Connected, _: &Metrics) -> RecycleResult<tokio_postgres::Error> {
        if connected.client.is_closed() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}

/// The pool.
#[derive(Clone)]
pub(crate) struct Pool {
    pool: managed::Pool<Manager>,
    patience: Duration,
}

impl Pool {
    /// At most `most` connections; who waits longer than `patience` for one is sent away.
    pub(crate) fn new(connector: Arc<Connector>, most: usize, patience: Duration) -> Self {
        let pool = managed::Pool::builder(Manager { connector })
            .max_size(most)
            .wait_timeout(Some(patience))
            .create_timeout(Some(patience))
            .runtime(Runtime::Tokio1)
            .build();
        Self { pool: pool.expect("a pool with a runtime can be built"), patience }
    }

    /// A connection for one transaction. Where the server has no room for one more, those that there are will do.
    pub(crate) async fn lend(&self) -> Result<Lent, Fault> {
        let until = tokio::time::Instant::now() + self.patience;
        loop {
            match self.lend_once().await {
                Err(Fault::Postgres(error)) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                    if tokio::time::Instant::now() + FULL > until {
                        return Err(Fault::Busy);
                    }
                    tokio::time::sleep(FULL).await;
                }
                other => return other,
            }
        }
    }

    async fn lend_once(&self) -> Result<Lent, Fault> {
        match self.pool.get().await {
            Ok(object) => Ok(Lent { object: Some(object), clean: true }),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Err(Fault::Busy),
            Err(PoolError::Timeout(_)) => Err(Fault::Silent),
            Err(PoolError::Backend(error)) => Err(error.into()),
            Err(PoolError::Closed) => Err(Fault::Closed),
            Err(PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_)) => {
                unreachable!("the pool has a runtime and no hooks")
            }
        }
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// A connection out of the pool. Goes back only if no transaction is open on it; else it is closed, which ends the
/// transaction.
pub(crate) struct Lent {
    object: Option<managed::Object<Manager>>,
    clean: bool,
}

impl Lent {
    /// The connection.
    pub(crate) fn connected(&self) -> &Connected {
        self.object.as_ref().expect("lent until dropped")
    }

    /// The connection, for a transaction that is about to begin.
    pub(crate) fn dirty(&mut self) -> &Connected {
        self.clean = false;
        self.object.as_ref().expect("lent until dropped")
    }

    /// The transaction has ended.
    pub(crate) fn clean(&mut self) {
        self.clean = true;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.clean
            && let Some(object) = self.object.take()
        {
            drop(managed::Object::take(object));
        }
    }
}
