//! Loading what matters for a command, in statements that begin after the store's row is locked.

use stele_core::command::{Command, MemoryRef};
use stele_core::decide::{Current, Occupant};
use stele_core::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::model::Version;
use stele_core::path::MemoryPath;
use stele_core::text::Summary;
use tokio_postgres::Row;

use crate::connect::Connected;
use crate::fault::Fault;
use crate::pipeline::{Sent, send};
use crate::rows::{self, Col, Cursor};

/// What the database holds that matters for one command, the store apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) version: Option<(Version, Option<Summary>)>,
    pub(crate) memory: Option<Current>,
    pub(crate) occupant: Option<Occupant>,
}

impl Loaded {
    /// The path that the command wants: its own, or that of a version to restore whose memory is gone.
    pub(crate) fn wanted<'a>(&'a self, command: &'a Command) -> Option<&'a MemoryPath> {
        let restored = self.version.as_ref().filter(|_| self.memory.is_none());
        command.wanted_path().or(restored.and_then(|(version, _)| version.path.as_ref()))
    }
}

/// A store as a transaction sees it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) connected: &'a Connected,
    pub(crate) workspace: WorkspaceId,
    pub(crate) store: StoreId,
}

pub(crate) type Found<'a> = Sent<'a, Result<Option<Row>, tokio_postgres::Error>>;

/// Questions on their way.
pub(crate) struct Loading<'a> {
    version: Option<Found<'a>>,
    memory: Option<Found<'a>>,
    occupant: Option<Found<'a>>,
}

impl<'a> Place<'a> {
    /// Asks for all that the command needs.
    pub(crate) async fn ask(&self, command: &Command) -> Loading<'a> {
        let version = match command.version() {
            Some(id) => Some(self.version(id).await),
            None => None,
        };
        let memory = match (command.memory(), command.version()) {
            (Some(MemoryRef::Id(id)), _) => Some(self.current(*id).await),
            (Some(MemoryRef::Path(path)), _) => Some(self.current_at(path.clone()).await),
            (None, Some(version)) => Some(self.current_of(version).await),
            (None, None) => None,
        };
        let occupant = match command.wanted_path() {
            Some(path) => Some(self.occupant(path.clone(), command.memory().cloned()).await),
            None => None,
        };
        Loading { version, memory, occupant }
    }

    /// What was asked for.
    pub(crate) async fn loaded(&self, loading: Loading<'a>, command: &Command) -> Result<Loaded, Fault> {
        let mut loaded = Loaded::default();
        if let Some(row) = found(loading.version).await? {
            let c = &mut Cursor::new(&row);
            loaded.version = Some((rows::version(c, self.store)?, c.summary()?));
        }
        if let Some(row) = found(loading.memory).await? {
            let c = &mut Cursor::new(&row);
            let memory = rows::memory(c, self.store)?;
            let summary = c.summary()?.unwrap_or_else(Summary::empty);
            loaded.memory = Some(Current { memory, summary });
        }
        let occupant = match (loading.occupant, loaded.wanted(command)) {
            (None, Some(path)) => Some(self.occupant(path.clone(), None).await),
            (asked, _) => asked,
        };
        if let Some(row) = found(occupant).await? {
            let c = &mut Cursor::new(&row);
            loaded.occupant = Some(Occupant { id: c.col()?, path: c.path()? });
        }
        Ok(loaded)
    }

    /// Asks for the workspace's own cap of memories a store.
    pub(crate) async fn cap(&self) -> Found<'a> {
        let Self { connected, workspace, .. } = *self;
        send(async move {
            connected.client.query_opt(&connected.statements.load_cap, &[&Col(workspace)]).await
        })
        .await
    }

    async fn version(&self, id: VersionId) -> Found<'a> {
        let Self { connected, workspace, store } = *self;
        send(async move {
            let statement = &connected.statements.load_version;
            connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &Col(id)]).await
        })
        .await
    }

    async fn current(&self, id: MemoryId) -> Found<'a> {
        let Self { connected, workspace, store } = *self;
        send(async move {
            let statement = &connected.statements.load_current;
            connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &Col(id)]).await
        })
        .await
    }

    async fn current_at(&self, path: MemoryPath) -> Found<'a> {
        let Self { connected, workspace, store } = *self;
        send(async move {
            let statement = &connected.statements.load_current_at;
            connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &path.as_str()]).await
        })
        .await
    }

    async fn current_of(&self, version: VersionId) -> Found<'a> {
        let Self { connected, workspace, store } = *self;
        send(async move {
            let statement = &connected.statements.load_current_of_version;
            connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &Col(version)]).await
        })
        .await
    }

    /// The live memory at, above or below `path`, other than `own`; of several, the one with the smallest path.
    async fn occupant(&self, path: MemoryPath, own: Option<MemoryRef>) -> Found<'a> {
        let Self { connected, workspace, store } = *self;
        send(async move {
            let exactly: Vec<&str> = path.ancestors().chain([path.as_str()]).collect();
            let directory = path.as_directory();
            let end = end_of(&directory);
            let statement = &connected.statements.load_occupant;
            let (own, own_path) = match own {
                Some(MemoryRef::Id(id)) => (Some(Col(id)), None),
                Some(MemoryRef::Path(path)) => (None, Some(path.as_str().to_owned())),
                None => (None, None),
            };
            connected
                .client
                .query_opt(
                    statement,
                    &[&Col(workspace), &Col(store), &exactly, &directory, &end, &own, &own_path],
                )
                .await
        })
        .await
    }
}

async fn found(asked: Option<Found<'_>>) -> Result<Option<Row>, Fault> {
    match asked {
        Some(asked) => Ok(asked.answer().await?),
        None => Ok(None),
    }
}

/// The first text after all that start with `directory`, which ends in `/`: `0` follows `/`.
pub(crate) fn end_of(directory: &str) -> String {
    format!("{}0", &directory[..directory.len() - 1])
}
