//! Telling the other processes what was committed here, and hearing it from them. DESIGN 5.
//!
//! Never inside a write's transaction (measured: NOTIFY there serialises all commits). A lost notification costs a
//! second, never a change: what somebody waits for is also looked up every second, and whenever the connection that
//! listens is made anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::watch::{Topic, Watches};
use tokio::sync::Notify;

use crate::connect::{Connected, Connector};
use crate::fault::Fault;
use crate::rows::{AnyId, Col};
use crate::shared::Shared;

/// The channel, in every database its own.
pub(crate) const CHANNEL: &str = "stele";
/// Least time between two notifications of a process.
const EVERY: Duration = Duration::from_millis(10);
/// How often what is waited for is looked up.
const LOOK: Duration = Duration::from_secs(1);
/// PostgreSQL refuses payloads of 8,000 bytes or more.
const MOST_BYTES: usize = 7_999;
/// The payload where there is more to say than fits.
const ALL: &str = "all";

/// What this process committed and has not told the others yet.
#[derive(Default)]
pub(crate) struct Announcer {
    watches: Arc<Watches>,
    untold: Mutex<HashMap<Topic, u64>>,
    some: Notify,
}

impl Announcer {
    /// All that is waited for in this process.
    pub(crate) fn watches(&self) -> &Arc<Watches> {
        &self.watches
    }

    /// Tells the waiters of this process at once and those of the others within some 10 ms that `topic` has reached
    /// `position`. Only after COMMIT.
    pub(crate) fn announce(&self, topic: Topic, position: u64) {
        self.watches.announce(topic, position);
        let mut untold = self.untold.lock().expect("no panic under the lock");
        let known = untold.entry(topic).or_default();
        *known = position.max(*known);
        drop(untold);
        self.some.notify_one();
    }

    fn take(&self) -> HashMap<Topic, u64> {
        std::mem::take(&mut *self.untold.lock().expect("no panic under the lock"))
    }

    /// Takes what another process told.
    fn hear(&self, payload: &str) {
        match parse(payload) {
            Some(told) => {
                told.into_iter().for_each(|(topic, position)| self.watches.announce(topic, position))
            }
            None => self.watches.announce_all(),
        }
    }
}

/// The topics and positions as one payload: 32 and 16 hexadecimal digits each.
fn payload(told: &HashMap<Topic, u64>) -> String {
    let parts =
        told.iter().map(|(topic, position)| format!("{:032x}{position:016x}", u128::from_be_bytes(*topic)));
    let text = parts.collect::<Vec<_>>().join(",");
    if text.len() > MOST_BYTES { ALL.to_owned() } else { text }
}

/// What a payload says; `None` for all, and for what a process of another version may say.
fn parse(payload: &str) -> Option<Vec<(Topic, u64)>> {
    let read = |part: &str| {
        let (topic, position) = part.split_at_checked(32)?;
        let topic = u128::from_str_radix(topic, 16).ok()?.to_be_bytes();
        Some((topic, u64::from_str_radix(position, 16).ok().filter(|_| position.len() == 16)?))
    };
    payload.split(',').map(read).collect()
}

impl Shared {
    /// Tells the other processes, until the storage closes.
    pub(crate) async fn tell(&self) {
        loop {
            self.announcer.some.notified().await;
            let told = self.announcer.take();
            if told.is_empty() {
                continue;
            }
            let text = &payload(&told);
            let notify = |c: Arc<Connected>| async move {
                c.client.query_one(&c.statements.notify, &[&CHANNEL, text]).await?;
                Ok(())
            };
            // What is not told is found by looking.
            if let Err(fault) = self.points.read(notify).await {
                tracing::debug!(error = ?fault.again(), "other servers were not told of changes");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Listens to the other processes, on a connection of its own, until the storage closes.
    pub(crate) async fn listen(&self, connector: &Connector) {
        loop {
            match connector.listening(CHANNEL).await {
                Ok((_client, mut heard)) => {
                    // What was said before is not heard any more.
                    self.announcer.watches.announce_all();
                    while let Some(payload) = heard.recv().await {
                        self.announcer.hear(&payload);
                    }
                    tracing::info!("the connection that listens to other servers was lost");
                }
                Err(error) => {
                    tracing::info!(error = &error as &dyn std::error::Error, "other servers cannot be heard");
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Looks up every second how far that is which somebody waits for, until the storage closes.
    pub(crate) async fn look(&self) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let topics = self.announcer.watches.topics();
            if topics.is_empty() {
                continue;
            }
            match self.positions(&topics).await {
                Ok(positions) => {
                    positions.into_iter().for_each(|(topic, at)| self.announcer.watches.announce(topic, at));
                }
                Err(fault) => tracing::debug!(error = ?fault.again(), "what is followed was not looked up"),
            }
        }
    }

    /// How far the stores and logs among these are, deleted ones too.
    async fn positions(&self, topics: &[Topic]) -> Result<Vec<(Topic, u64)>, Fault> {
        let ids: &Vec<Col<AnyId>> = &topics.iter().map(|topic| Col(AnyId(*topic))).collect();
        let read = |c: Arc<Connected>| async move {
            let rows = c.client.query(&c.statements.positions, &[ids]).await?;
            let position = |row: &tokio_postgres::Row| {
                let (Col(AnyId(topic)), at): (Col<AnyId>, i64) = (row.try_get(0)?, row.try_get(1)?);
                Ok((topic, at.unsigned_abs()))
            };
            rows.iter().map(position).collect()
        };
        self.lists.read(read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_reads_back_and_one_too_long_says_all() {
        let told = |count: u16| -> HashMap<Topic, u64> {
            let topic = |n: u16| {
                let mut topic = [0xAB; 16];
                topic[..2].copy_from_slice(&n.to_be_bytes());
                (topic, u64::MAX - u64::from(n))
            };
            (0..count).map(topic).collect()
        };
        for count in [1, 2, 163] {
            let text = payload(&told(count));
            assert!(text.len() < 8_000);
            assert_eq!(parse(&text).map(|told| told.into_iter().collect()), Some(told(count)), "{count}");
        }
        assert_eq!(payload(&told(164)), ALL);
        for foreign in [ALL, "", "x", &"a".repeat(40), &"é".repeat(24)] {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }
}
