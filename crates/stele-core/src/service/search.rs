//! Searching a store. DESIGN 8.

use super::Stele;
use crate::access::{Action, Caller, Resource};
use crate::id::StoreId;
use crate::searcher::{Question, SearchFigures, SearchPage};
use crate::storage::{At, Error};

impl Stele {
    /// The memories of a store that answer a question, best first. It sees every write that was answered before.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn search(
        &self,
        caller: &Caller,
        store: StoreId,
        question: &Question,
    ) -> Result<At<SearchPage>, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        self.searcher.search(caller.workspace, store, question).await
    }

    /// What is held in memory for searches.
    pub fn search_figures(&self) -> SearchFigures {
        self.searcher.figures()
    }
}
