//! Making stores.

use stele_core::command::NewStore;
use stele_core::decide::{WorkspaceSituation, decide_store};
use stele_core::id::WorkspaceId;
use stele_core::model::{Actor, Store};
use stele_core::text::SlugSearch;

use crate::connect::Connected;
use crate::fault::{Fault, Stop};
use crate::rows::{Col, actor_columns, metadata_column, origin_number};
use crate::shared::Shared;

impl Shared {
    /// Makes a store with a slug of its own; the workspace's row keeps others from doing so meanwhile.
    pub(crate) async fn store_create(
        &self,
        workspace: WorkspaceId,
        actor: Actor,
        new: &NewStore,
    ) -> Result<Store, Stop> {
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        client.query_opt(&statements.lock_workspace, &[&Col(workspace)]).await?;
        let stores = match self.limits.stores_per_workspace {
            Some(_) => {
                client.query_one(&statements.count_stores, &[&Col(workspace)]).await?.try_get::<_, i64>(0)?
            }
            None => 0,
        };
        let situation = WorkspaceSituation { workspace, stores: stores.unsigned_abs() };
        let decided = decide_store(&situation, new, &self.context(actor, None));
        let mut store = match decided {
            Ok(store) => store,
            Err(refusal) => {
                self.roll_back(tx.lent).await;
                return Err(refusal.into());
            }
        };
        store.slug = free_slug(tx.connected(), workspace, &store.slug).await?;
        insert_store(tx.connected(), &store).await?;
        tx.commit().await?;
        Ok(store)
    }
}

/// A free slug on `base`. The workspace's row is locked.
pub(crate) async fn free_slug(
    connected: &Connected,
    workspace: WorkspaceId,
    base: &str,
) -> Result<String, Fault> {
    let mut search = SlugSearch::new(base);
    loop {
        match search.next() {
            Ok(free) => return Ok(free),
            Err(slug) => {
                let statement = &connected.statements.taken_slug;
                let taken = connected.client.query_opt(statement, &[&Col(workspace), &slug]).await?;
                search.found(taken.is_some());
            }
        }
    }
}

pub(crate) async fn insert_store(connected: &Connected, store: &Store) -> Result<(), Fault> {
    let (kind, by) = actor_columns(store.created_by);
    connected
        .client
        .execute(
            &connected.statements.insert_store,
            &[
                &Col(store.workspace),
                &Col(store.id),
                &store.name.as_str(),
                &store.slug,
                &store.description.as_str(),
                &metadata_column(&store.metadata),
                &origin_number(store.origin),
                &store.agent.map(Col),
                &kind,
                &by,
                &store.created_at.as_micros(),
                &store.updated_at.as_micros(),
                &store.changed_at.as_micros(),
                &store.archived_at.map(|at| at.as_micros()),
            ],
        )
        .await?;
    Ok(())
}
