//! The installation, its workspaces and their keys.

use stele_core::access::Grant;
use stele_core::id::{KeyId, OrganizationId, WorkspaceId};
use stele_core::storage::{Installation, KeyRecord, Workspace, WorkspacePatch};

use crate::connect::Connected;
use crate::fault::{Fault, Stop};
use crate::rows::{self, Col, Cursor, signed};
use crate::shared::Shared;

impl Shared {
    pub(crate) async fn install(
        &self,
        organization: OrganizationId,
        workspace: &Workspace,
        key: &KeyRecord,
    ) -> Result<Installation, Stop> {
        let tx = self.begin().await?;
        let connected = tx.connected();
        let statement = &connected.statements.insert_installation;
        // A second process waits here for the first one's COMMIT, and then inserts nothing.
        let new = Installation::new(organization, workspace.id);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&Col(new.organization), &Col(new.first_workspace), &Col(new.epoch)];
        let won = connected.client.execute(statement, &parameters).await? == 1;
        if won {
            insert_workspace(connected, workspace).await?;
            insert_key(connected, key).await?;
        }
        let there = installation(connected).await?;
        tx.commit().await?;
        there.ok_or_else(|| Fault::Damaged("of the installation".into()).into())
    }

    pub(crate) async fn workspace_create(&self, workspace: &Workspace, key: &KeyRecord) -> Result<(), Fault> {
        let tx = self.begin().await?;
        insert_workspace(tx.connected(), workspace).await?;
        insert_key(tx.connected(), key).await?;
        tx.commit().await
    }

    pub(crate) async fn workspace_update(
        &self,
        id: WorkspaceId,
        patch: &WorkspacePatch,
    ) -> Result<Option<Workspace>, Fault> {
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        let row = client.query_opt(&statements.lock_workspace, &[&Col(id)]).await?;
        let mut workspace = row.as_ref().map(rows::workspace).transpose()?;
        if let Some(now) = &mut workspace {
            now.name = patch.name.clone().unwrap_or_else(|| now.name.clone());
            now.max_memories_per_store = patch.max_memories_per_store.unwrap_or(now.max_memories_per_store);
            let cap = now.max_memories_per_store.map(signed);
            client.execute(&statements.update_workspace, &[&Col(id), &now.name.as_str(), &cap]).await?;
        }
        tx.commit().await?;
        Ok(workspace)
    }

    pub(crate) async fn key_create(&self, key: &KeyRecord) -> Result<(), Fault> {
        let tx = self.begin().await?;
        insert_key(tx.connected(), key).await?;
        tx.commit().await
    }

    pub(crate) async fn key_revoke(&self, workspace: WorkspaceId, id: KeyId) -> Result<bool, Fault> {
        let tx = self.begin().await?;
        let now = self.clock.now().as_micros();
        let statement = &tx.connected().statements.revoke_key;
        let revoked = tx.connected().client.execute(statement, &[&Col(workspace), &Col(id), &now]).await?;
        tx.commit().await?;
        Ok(revoked == 1)
    }
}

async fn insert_workspace(connected: &Connected, workspace: &Workspace) -> Result<(), Fault> {
    let statement = &connected.statements.insert_workspace;
    let (name, created_at) = (workspace.name.as_str(), workspace.created_at.as_micros());
    let cap = workspace.max_memories_per_store.map(signed);
    connected.client.execute(statement, &[&Col(workspace.id), &name, &created_at, &cap]).await?;
    Ok(())
}

async fn insert_key(connected: &Connected, record: &KeyRecord) -> Result<(), Fault> {
    let key = &record.key;
    let role = match key.grant {
        Grant::Role(role) => Some(role.as_str()),
        Grant::Permissions(_) => None,
    };
    connected
        .client
        .execute(
            &connected.statements.insert_key,
            &[
                &Col(key.workspace),
                &Col(key.id),
                &record.hash.as_bytes().as_slice(),
                &key.name.as_str(),
                &role,
                &i16::from(key.grant.permissions().bits()),
                &key.contract.as_str(),
                &key.created_at.as_micros(),
                &key.expires_at.map(|at| at.as_micros()),
                &key.revoked_at.map(|at| at.as_micros()),
            ],
        )
        .await?;
    Ok(())
}

/// The installation, if there is one.
pub(crate) async fn installation(connected: &Connected) -> Result<Option<Installation>, Fault> {
    let row = connected.client.query_opt(&connected.statements.installation, &[]).await?;
    row.map(|row| {
        let c = &mut Cursor::new(&row);
        Ok(Installation { organization: c.col()?, first_workspace: c.col()?, epoch: c.col()? })
    })
    .transpose()
}
