//! What calls of models cost by day, and budgets. spec/learning.md 15.
//!
//! Each call counts in two documents, its workspace's and its agent's. Before a call, what it may take at most is
//! reserved in both, and refused if a budget has no room for it; afterwards what it took takes the reservation's place.
//! Nobody knows what a call took whose process was killed: its reservation stays, so it counts in full.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::hash::Sha256;
use crate::id::{AgentId, WorkspaceId};
use crate::models::answer::Usage;
use crate::models::catalogue::Cost;
use crate::models::failure::ModelError;
use crate::records::{Kind, RecordId, Tag};
use crate::storage::StorageError;
use crate::time::Timestamp;
use crate::work::document::{Document, kind};

const MICROS_PER_DAY: i64 = 24 * 60 * 60 * 1_000_000;
/// Of the tag that says whose days these are.
const OWNER: u16 = 1;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// An agent's session that Stele runs.
    Session,
    /// Reports, learning runs and dreams.
    Learning,
}

/// Whom a call is counted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The agent, where it is for one.
    pub agent: Option<AgentId>,
    /// What for.
    pub purpose: Purpose,
}

/// Most that may be spent in a day of UTC; `None`: any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tokens, read and written.
    pub daily_tokens: Option<u64>,
    /// Money. Calls whose price is not configured cost nothing here.
    pub daily_cost: Option<Cost>,
}

/// The budgets that a call must have room in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budgets {
    /// Of its workspace.
    pub workspace: Budget,
    /// Of its agent.
    pub agent: Budget,
}

/// Tokens and money, taken or reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money.
    pub cost: Cost,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.plus(other.cost) }
    }

    /// What is left without the other.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.less(other.cost) }
    }
}

/// Why a call was not made, or what came of it.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A budget has no room for it.
    #[error(
        "the day's budget of the {owner} has no room for this call: {left} of {whole} {unit} are left, and it may take {wanted}"
    )]
    Budget {
        /// Whose: `workspace` or `agent`.
        owner: &'static str,
        /// `tokens`, or `units of money`.
        unit: &'static str,
        /// The whole budget.
        whole: String,
        /// What is left of it.
        left: String,
        /// What the call may take at most.
        wanted: String,
    },
    /// What it costs could not be written down, so it was not made.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What was spent on one day by one payer: all calls of a workspace for one purpose, or those for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySpending {
    id: RecordId,
    /// The agent; `None` for the whole workspace.
    pub agent: Option<AgentId>,
    /// What for.
    pub purpose: Purpose,
    /// When the day begins, in UTC.
    pub day: Timestamp,
    /// Calls that were made.
    pub calls: u64,
    /// Those of them that failed, or that nobody waited for.
    pub failed: u64,
    /// Tokens, as the providers reported them, or as they were estimated.
    pub usage: Usage,
    /// Money and all tokens.
    pub spent: Amount,
    /// For calls that are under way, or whose process was killed.
    pub reserved: Amount,
}

impl DaySpending {
    /// An empty day.
    pub fn new(agent: Option<AgentId>, purpose: Purpose, at: Timestamp) -> Self {
        let day = day_of(at);
        Self {
            id: Self::id_of(agent, purpose, at),
            agent,
            purpose,
            day,
            calls: 0,
            failed: 0,
            usage: Usage::default(),
            spent: Amount::default(),
            reserved: Amount::default(),
        }
    }

    /// What the day that `at` lies in is found by, in its workspace.
    pub fn id_of(agent: Option<AgentId>, purpose: Purpose, at: Timestamp) -> RecordId {
        let day = day_of(at).as_micros().to_be_bytes();
        let hash = Sha256::of(&[&b"spending\0"[..], &owner(agent, purpose), &day].concat());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }

    /// The tag of all days of a payer.
    pub fn tag(agent: Option<AgentId>, purpose: Purpose) -> Tag {
        Tag { name: OWNER, value: owner(agent, purpose) }
    }

    /// With `wanted` reserved.
    ///
    /// # Errors
    /// The budget has no room for it.
    pub fn reserve(mut self, wanted: Amount, budget: &Budget) -> Result<Self, CallError> {
        let taken = self.spent.plus(self.reserved);
        let owner = if self.agent.is_some() { "agent" } else { "workspace" };
        let after = taken.plus(wanted);
        if let Some(whole) = budget.daily_tokens.filter(|whole| after.tokens > *whole) {
            return Err(CallError::Budget {
                owner,
                unit: "tokens",
                whole: whole.to_string(),
                left: whole.saturating_sub(taken.tokens).to_string(),
                wanted: wanted.tokens.to_string(),
            });
        }
        if let Some(whole) = budget.daily_cost.filter(|whole| after.cost > *whole) {
            return Err(CallError::Budget {
                owner,
                unit: "units of money",
                whole: whole.to_string(),
                left: whole.less(taken.cost).to_string(),
                wanted: wanted.cost.to_string(),
            });
        }
        self.reserved = self.reserved.plus(wanted);
        self.calls += 1;
        Ok(self)
    }

    /// With what a call took in the place of what was reserved for it.
    #[must_use]
    pub fn settle(mut self, reserved: Amount, call: &Settled) -> Self {
        self.reserved = self.reserved.less(reserved);
        self.spent = self.spent.plus(Amount { tokens: call.usage.total(), cost: call.cost });
        self.failed += u64::from(call.failed);
        self.usage = Usage {
            input: self.usage.input.saturating_add(call.usage.input),
            output: self.usage.output.saturating_add(call.usage.output),
            cache_read: self.usage.cache_read.saturating_add(call.usage.cache_read),
            cache_write: self.usage.cache_write.saturating_add(call.usage.cache_write),
            estimated: self.usage.estimated || call.usage.estimated,
        };
        self
    }
}

/// What a call took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Tokens.
    pub usage: Usage,
    /// Money; nothing where there is no price.
    pub cost: Cost,
    /// Whether it failed, or nobody waited for its end.
    pub failed: bool,
}

impl Document for DaySpending {
    const KIND: Kind = kind::DAY_SPENDING;

    fn record_id(&self) -> RecordId {
        self.id
    }

    /// The day, so that a list of days is one by creation.
    fn created_at(&self) -> Timestamp {
        self.day
    }

    fn tags(&self) -> Vec<Tag> {
        vec![Self::tag(self.agent, self.purpose)]
    }
}

fn owner(agent: Option<AgentId>, purpose: Purpose) -> Vec<u8> {
    let purpose = match purpose {
        Purpose::Session => 1,
        Purpose::Learning => 2,
    };
    let mut value = vec![purpose];
    value.extend(agent.iter().flat_map(|agent| agent.as_bytes()));
    value
}

/// When the day of UTC begins that a time lies in.
pub fn day_of(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros().div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY)
}

/// The date of a day, as `2026-12-01`.
pub fn date_of(day: Timestamp) -> Date {
    let days = day.as_micros().div_euclid(MICROS_PER_DAY);
    Date::constant(1970, 1, 1).saturating_add(jiff::Span::new().days(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(tokens: u64, units: f64) -> Amount {
        Amount { tokens, cost: Cost::from_units(units) }
    }

    #[test]
    fn a_budget_counts_what_is_reserved_and_is_filled_to_the_last_token() {
        let budget = Budget { daily_tokens: Some(100), daily_cost: Some(Cost::from_units(1.0)) };
        let day = DaySpending::new(None, Purpose::Learning, Timestamp::from_micros(1));
        let day = day.reserve(amount(60, 0.5), &budget).expect("there is room");
        let refused = day.clone().reserve(amount(41, 0.1), &budget).expect_err("one token too many");
        let text = refused.to_string();
        assert!(text.contains("40 of 100 tokens are left, and it may take 41"), "{text}");
        let refused = day.clone().reserve(amount(1, 0.6), &budget).expect_err("too dear");
        assert!(refused.to_string().contains("0.500000 of 1.000000 units of money"), "{refused}");
        let usage = Usage { input: 20, output: 5, ..Usage::default() };
        let call = Settled { usage, cost: Cost::from_units(0.2), failed: false };
        let day = day.settle(amount(60, 0.5), &call);
        assert_eq!((day.spent, day.reserved), (amount(25, 0.2), Amount::default()));
        let day = day.reserve(amount(75, 0.8), &budget).expect("just room");
        assert_eq!((day.calls, day.failed), (2, 0));
    }

    #[test]
    fn days_agents_and_purposes_are_kept_apart() {
        let (noon, next) =
            (Timestamp::from_micros(MICROS_PER_DAY / 2), Timestamp::from_micros(MICROS_PER_DAY));
        let agent = Some(AgentId::from_bytes([7; 16]));
        let ids = [
            DaySpending::id_of(None, Purpose::Learning, noon),
            DaySpending::id_of(None, Purpose::Learning, next),
            DaySpending::id_of(None, Purpose::Session, noon),
            DaySpending::id_of(agent, Purpose::Learning, noon),
        ];
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(ids[0], DaySpending::id_of(None, Purpose::Learning, day_of(noon)));
        assert_eq!(date_of(Timestamp::from_micros(-1)).to_string(), "1969-12-31");
        assert_eq!(date_of(next).to_string(), "1970-01-02");
    }
}
