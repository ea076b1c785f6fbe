//! Housekeeping in slices, each a short transaction: retention, and what deleted stores and dropped logs left. One
//! process at a time does it, by a lease that every slice renews. DESIGN 5.

use std::time::Duration;

use stele_core::id::{StoreId, WorkspaceId};
use stele_core::retention::{Standing, cutoff, expired};
use stele_core::storage::Swept;
use stele_core::time::Timestamp;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::fault::{Fault, Stop};
use crate::rows::{AnyId, Col, Cursor, signed};
use crate::shared::Shared;

/// The one job of this kind.
const JOB: &str = "sweep";
/// How long a process that says nothing keeps the lease: longer than any slice may take.
const LEASE: Duration = Duration::from_secs(30);
/// How long a purge waits for another process to end its own work, and how often it looks.
const WAIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// Stores looked at in one read.
const STORES: i64 = 500;
/// Old versions looked at in one transaction.
const VERSIONS: i64 = 500;
/// Old marks looked at in one transaction.
const MARKS: i64 = 200;
/// Rows of a deleted store or dropped log removed in one transaction.
const ROWS: i64 = 500;

/// What a process does when another one holds the lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    /// Leave it to that one.
    Leave,
    /// Wait: that one may have passed by already.
    Wait,
}

impl Shared {
    pub(crate) async fn sweep(&self) -> Result<Swept, Fault> {
        self.housekeeping(Otherwise::Leave, true).await
    }

    pub(crate) async fn purge(&self) -> Result<Swept, Fault> {
        self.housekeeping(Otherwise::Wait, false).await
    }

    async fn housekeeping(&self, otherwise: Otherwise, versions: bool) -> Result<Swept, Fault> {
        // Within a process one after the other, without a look at the lease.
        let _turn = self.sweeping.lock().await;
        let until = tokio::time::Instant::now() + WAIT;
        while !self.take_lease().await? {
            if otherwise == Otherwise::Leave || tokio::time::Instant::now() > until {
                return Ok(Swept::default());
            }
            tokio::time::sleep(LOOK).await;
        }
        let swept = self.sweep_all(versions).await;
        self.give_lease().await;
        match swept {
            Ok(swept) => Ok(swept),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Refused(_)) => unreachable!("housekeeping is not judged"),
        }
    }

    async fn sweep_all(&self, versions: bool) -> Result<Swept, Stop> {
        let mut swept = Swept::default();
        if versions {
            swept.versions = self.sweep_versions().await?;
            while self.sweep_marks().await? {}
        }
        while let Some(purged) = self.purge_slice().await? {
            swept.stores += u64::from(purged);
        }
        while let Some(purged) = self.purge_log_slice().await? {
            swept.logs += u64::from(purged);
        }
        Ok(swept)
    }

    async fn take_lease(&self) -> Result<bool, Fault> {
        let tx = self.begin().await?;
        let taken = renew(tx.connected(), self.holder).await?;
        tx.commit().await?;
        Ok(taken)
    }

    async fn give_lease(&self) {
        let give = async {
            let tx = self.begin().await?;
            let statement = &tx.connected().statements.give_lease;
            tx.connected().client.execute(statement, &[&JOB, &Col(AnyId(self.holder))]).await?;
            tx.commit().await
        };
        if give.await.is_err() {
            tracing::info!("the lease of the sweep was not given back; it ends by itself");
        }
    }

    async fn sweep_versions(&self) -> Result<u64, Stop> {
        let now = self.clock.now();
        let old = cutoff(now, &self.limits).as_micros();
        let mut after = (WorkspaceId::from_bytes([0; 16]), StoreId::from_bytes([0; 16]));
        let mut removed = 0;
        loop {
            let aged = self
                .lists
                .read(|connected| async move {
                    let statement = &connected.statements.aged_stores;
                    let rows = connected
                        .client
                        .query(statement, &[&Col(after.0), &Col(after.1), &old, &STORES])
                        .await?;
                    let place = |row| {
                        let c = &mut Cursor::new(row);
                        Ok((c.col()?, c.col()?))
                    };
                    rows.iter().map(place).collect::<Result<Vec<_>, Fault>>()
                })
                .await?;
            let Some(last) = aged.last() else { return Ok(removed) };
            after = *last;
            for (workspace, store) in aged {
                let mut next = Some(0);
                while let Some(sequence) = next {
                    let slice = self.sweep_slice((workspace, store), sequence, now).await?;
                    removed += slice.0;
                    next = slice.1;
                }
            }
        }
    }

    /// Removes the expired ones among the next old versions of a store; how many, and where to go on.
    async fn sweep_slice(
        &self,
        (workspace, store): (WorkspaceId, StoreId),
        after: i64,
        now: Timestamp,
    ) -> Result<(u64, Option<i64>), Stop> {
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        let (workspace, store) = (Col(workspace), Col(store));
        let locked = client.query_opt(&statements.lock_store, &[&workspace, &store]).await?;
        if locked.is_none() || !renew(tx.connected(), self.holder).await? {
            tx.commit().await?;
            return Ok((0, None));
        }
        let old = cutoff(now, &self.limits).as_micros();
        let kept = signed(self.limits.versions_kept.max(1));
        let looked = client
            .query(&statements.aged_versions, &[&workspace, &store, &after, &old, &VERSIONS, &kept])
            .await?;
        let mut gone: Vec<i64> = Vec::new();
        let mut last = None;
        for row in &looked {
            let c = &mut Cursor::new(row);
            let sequence = c.take::<i64>()?;
            let standing =
                Standing { created_at: c.time()?, newer: c.number()?, memory_deleted_at: c.maybe_time()? };
            if expired(standing, now, &self.limits) {
                gone.push(sequence);
            }
            last = Some(sequence);
        }
        if !gone.is_empty() {
            client.execute(&statements.delete_versions, &[&workspace, &store, &gone]).await?;
            let (count, newest) = (signed(gone.len() as u64), gone.last().copied().unwrap_or_default());
            client.execute(&statements.count_down, &[&workspace, &store, &count, &newest]).await?;
        }
        let full = looked.len() as i64 == VERSIONS;
        tx.commit().await?;
        Ok((gone.len() as u64, last.filter(|_| full)))
    }

    /// Removes some marks that are older than versions are kept; false once none is left, or another process sweeps.
    async fn sweep_marks(&self) -> Result<bool, Stop> {
        let old = cutoff(self.clock.now(), &self.limits).as_micros();
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        let aged = client.query(&statements.aged_marks, &[&old, &MARKS]).await?;
        let Some(first) = aged.first() else {
            tx.commit().await?;
            return Ok(false);
        };
        let place = |row| -> Result<(WorkspaceId, StoreId, i64), Fault> {
            let c = &mut Cursor::new(row);
            Ok((c.col()?, c.col()?, c.take()?))
        };
        // One store a transaction, its row locked first as by every writer.
        let (workspace, store, _) = place(first)?;
        client.query_opt(&statements.lock_store, &[&Col(workspace), &Col(store)]).await?;
        if !renew(tx.connected(), self.holder).await? {
            tx.commit().await?;
            return Ok(false);
        }
        for row in &aged {
            let (_, of, sequence) = place(row)?;
            if of == store {
                let parameters: [&(dyn ToSql + Sync); 3] = [&Col(workspace), &Col(store), &sequence];
                client.execute(&statements.delete_mark, &parameters).await?;
                client.execute(&statements.raise_floor, &parameters).await?;
            }
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Removes some rows of a deleted store; `None` if there is none, else whether all of it is gone now.
    async fn purge_slice(&self) -> Result<Option<bool>, Stop> {
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        let found = client.query_opt(&statements.deleted_store, &[]).await?;
        let Some(row) = found else {
            tx.commit().await?;
            return Ok(None);
        };
        if !renew(tx.connected(), self.holder).await? {
            tx.commit().await?;
            return Ok(None);
        }
        let c = &mut Cursor::new(&row);
        let (workspace, store): (WorkspaceId, StoreId) = (c.col()?, c.col()?);
        let (workspace, store) = (Col(workspace), Col(store));
        let mut emptied = true;
        for statement in [&statements.purge_memories, &statements.purge_versions, &statements.purge_marks] {
            let removed = client.execute(statement, &[&workspace, &store, &ROWS]).await?;
            emptied &= removed < ROWS.unsigned_abs();
        }
        if emptied {
            client.execute(&statements.purge_store, &[&workspace, &store]).await?;
            // Of one that was not put back to its end.
            client.execute("DELETE FROM leases WHERE job = $1", &[&crate::restore::job(store.0)]).await?;
        }
        tx.commit().await?;
        Ok(Some(emptied))
    }

    /// Removes some entries of a dropped log; `None` if there is none, else whether all of it is gone now.
    async fn purge_log_slice(&self) -> Result<Option<bool>, Stop> {
        let tx = self.begin().await?;
        let (client, statements) = (&tx.connected().client, &tx.connected().statements);
        let found = client.query_opt(&statements.dropped_log, &[]).await?;
        let Some(row) = found else {
            tx.commit().await?;
            return Ok(None);
        };
        if !renew(tx.connected(), self.holder).await? {
            tx.commit().await?;
            return Ok(None);
        }
        let c = &mut Cursor::new(&row);
        let (workspace, log) = (Col(c.col::<WorkspaceId>()?), Col(c.col::<AnyId>()?));
        let removed = client.execute(&statements.purge_entries, &[&workspace, &log, &ROWS]).await?;
        let emptied = removed < ROWS.unsigned_abs();
        if emptied {
            client.execute(&statements.purge_log, &[&workspace, &log]).await?;
        }
        tx.commit().await?;
        Ok(Some(emptied))
    }
}

/// Takes the lease or keeps it; false if another process has it.
async fn renew(connected: &Connected, holder: [u8; 16]) -> Result<bool, Fault> {
    let millis = i64::try_from(LEASE.as_millis()).expect("a short time");
    let statement = &connected.statements.take_lease;
    Ok(connected.client.execute(statement, &[&JOB, &Col(AnyId(holder)), &millis]).await? == 1)
}
