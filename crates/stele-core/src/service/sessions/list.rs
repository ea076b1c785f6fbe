//! Lists of sessions: what the database cannot narrow is looked through page by page.

use std::collections::HashMap;

use serde_json::Value;

use crate::access::{Action, Caller, Resource};
use crate::id::SessionId;
use crate::list::{Created, Page};
use crate::records::Order;
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{Listing, Position};
use crate::storage::{Error, StorageError};
use crate::work::document::Kept;
use crate::work::session::{
    Facet, Phase, Session, SessionState, SessionStatus, Whole, state_of, with_status,
};

/// Sessions that are looked through in one read, at least.
const LOOK: usize = 100;

/// Which sessions are listed.
#[derive(Clone, Debug)]
pub struct SessionQuery {
    /// Of what.
    pub facet: Facet,
    /// Further: with this store attached, of this agent, in this environment.
    pub also: Vec<Facet>,
    /// Of this version of their agent.
    pub agent_version: Option<u32>,
    /// With one of these statuses; empty for any.
    pub statuses: Vec<SessionStatus>,
    /// With all of this.
    pub filter: SessionFilter,
    /// Made in this span.
    pub created: Created,
    /// Archived ones too.
    pub include_archived: bool,
    /// The order.
    pub order: Order,
    /// After this place.
    pub after: Option<Position>,
    /// At most so many.
    pub limit: usize,
}

/// What else sessions are narrowed to. spec/recursion.md 10.5.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// In one of these phases; empty for any.
    pub phases: Vec<Phase>,
    /// With these pairs of metadata.
    pub metadata: Vec<(String, String)>,
    /// With these keys of metadata.
    pub metadata_keys: Vec<String>,
    /// With these of the fields that only Recursion knows.
    pub extra: Vec<(String, String)>,
}

impl SessionFilter {
    fn shows(&self, whole: &Whole) -> bool {
        let pairs = whole.session.metadata.pairs();
        let extra = &whole.session.extra;
        (self.phases.is_empty() || self.phases.contains(&whole.phase()))
            && self.metadata.iter().all(|(key, value)| pairs.get(key) == Some(value))
            && self.metadata_keys.iter().all(|key| pairs.contains_key(key))
            && self.extra.iter().all(|(key, value)| extra.get(key).and_then(Value::as_str) == Some(value))
    }
}

impl SessionQuery {
    fn shows(&self, whole: &Whole) -> bool {
        let session = &whole.session;
        let has = |facet: &Facet| match facet {
            Facet::All => true,
            Facet::Agent(id) => session.agent.id == *id,
            Facet::Environment(id) => session.environment == Some(*id),
            Facet::Store(id) => session.attachments().any(|attachment| attachment.store == *id),
        };
        (self.include_archived || session.archived_at.is_none())
            && (self.statuses.is_empty() || self.statuses.contains(&whole.state.status))
            && self.agent_version.is_none_or(|version| version == session.agent.version)
            && self.also.iter().all(has)
            && self.filter.shows(whole)
    }

    /// The one status that alone narrows the list.
    fn by_status(&self) -> Option<SessionStatus> {
        match (self.facet, self.statuses.as_slice()) {
            (Facet::All, [status]) => Some(*status),
            _ => None,
        }
    }
}

impl Stele {
    /// Sessions by creation.
    ///
    /// # Errors
    /// No read permission.
    pub async fn session_list(&self, caller: &Caller, query: SessionQuery) -> Result<Page<Whole>, Error> {
        caller.may(Resource::Session, Action::List).map_err(Refusal::from)?;
        let (mut found, mut after) = (Vec::new(), query.after);
        loop {
            let limit = (query.limit + 1 - found.len()).max(LOOK);
            let (wholes, last, more) = self.session_look(caller, &query, after, limit).await?;
            found.extend(wholes.into_iter().filter(|whole| query.shows(whole)));
            if !more || found.len() > query.limit {
                return Ok(Page::cut(found, query.limit));
            }
            after = last;
        }
    }

    /// Sessions behind `after`, the place of the last one looked at, and whether there are more.
    async fn session_look(
        &self,
        caller: &Caller,
        query: &SessionQuery,
        after: Option<Position>,
        limit: usize,
    ) -> Result<(Vec<Whole>, Option<Position>, bool), StorageError> {
        let (created, order, workspace) = (query.created, query.order, caller.workspace);
        let (sessions, states, last, more) = match query.by_status() {
            Some(status) => {
                let after = after.map(|(at, id)| (at, state_of(SessionId::from_bytes(id))));
                let listing = Listing { tag: Some(with_status(status)), created, order, after, limit };
                let page = self.list::<SessionState>(workspace, listing).await?;
                let ids = page.items.iter().map(|kept| *kept.doc.session.as_bytes()).collect();
                let sessions = self.find_many::<Session>(workspace, ids).await?;
                let last = page.items.last().map(|kept| (kept.doc.created_at, *kept.doc.session.as_bytes()));
                (sessions, page.items, last, page.more)
            }
            None => {
                let tag = query.facet.tag(query.include_archived);
                let page =
                    self.list::<Session>(workspace, Listing { tag, created, order, after, limit }).await?;
                let ids = page.items.iter().map(|kept| state_of(kept.doc.id)).collect();
                let states = self.find_many::<SessionState>(workspace, ids).await?;
                let last = page.items.last().map(|kept| (kept.doc.created_at, *kept.doc.id.as_bytes()));
                (page.items, states, last, page.more)
            }
        };
        Ok((joined(sessions, states), last, more))
    }
}

/// Sessions with their states, in the order of the sessions; one that was just deleted has lost one of them.
fn joined(sessions: Vec<Kept<Session>>, states: Vec<Kept<SessionState>>) -> Vec<Whole> {
    let mut states: HashMap<SessionId, SessionState> =
        states.into_iter().map(|kept| (kept.doc.session, kept.doc)).collect();
    let whole =
        |kept: Kept<Session>| states.remove(&kept.doc.id).map(|state| Whole { session: kept.doc, state });
    sessions.into_iter().filter_map(whole).collect()
}
