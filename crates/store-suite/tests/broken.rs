//! The suite on trial: back ends that are broken in one way each must fail the cases named here.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use stele_core::changeset::Changeset;
use stele_core::command::{Command, Expected, NewStore, RedactedPath};
use stele_core::dump::StorePlace;
use stele_core::feed::{Changes, History, Past, Told, Wanted};
use stele_core::id::{KeyId, MemoryId, OrganizationId, StoreId, VersionId, WorkspaceId};
use stele_core::key::{ApiKey, KeyHash};
use stele_core::list::{
    Created, Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionFilter, VersionQuery,
};
use stele_core::model::{Actor, Memory, Operation, Store, VersionText};
use stele_core::records::{
    CommitError, Entry, EntryQuery, Kind, Order, Record, RecordId, RecordQuery, RecordWrite, Records,
};
use stele_core::refusal::Refusal;
use stele_core::storage::{
    Answer, At, Change, ChangeAll, Changed, ChangedAll, Error, InStore, Installation, KeyRecord, KnownBodies,
    MemoryRead, MemoryRef, Remains, Rows, Storage, StorageError, Swept, Workspace, WorkspacePatch,
};
use stele_core::text::Content;
use stele_core::time::Timestamp;
use stele_core::watch::Watches;
use store_sqlite::{Config, SqliteStorage};
use store_suite::{Opened, Options, StoreFactory};

/// One way to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Preconditions are not looked at.
    DropsPreconditions,
    /// Renames leave no trace in history.
    SwallowsVersions,
    /// Filters of versions are not looked at.
    IgnoresFilters,
    /// Whoever knows the id of a store may read it.
    ForgetsWorkspaces,
    /// A body is asked for by the first head that was seen.
    ServesOldBodies,
    /// A redaction leaves the path.
    KeepsPaths,
    /// Nothing is ever swept.
    NeverSweeps,
    /// Any key is said to be revoked.
    RevokesAnything,
    /// A list goes on at the directory that it ended with, not after it.
    RepeatsDirectories,
    /// A list goes on by counting.
    PagesByOffset,
    /// The oldest store of a page comes first.
    ListsOldestFirst,
    /// Line ends are changed.
    NormalizesContents,
    /// The second installation is answered with as if it were made.
    InstallsTwice,
    /// The feed leaves out what wrote no version.
    ForgetsMarks,
    /// A refusal also meets the change after it.
    SpoilsItsNeighbours,
    /// A changeset is carried out change by change.
    AppliesInPart,
    /// A record is written over whatever another writer made of it.
    OverwritesRecords,
    /// The writes of a commit stand each for itself.
    CommitsByHalves,
    /// Lists of records are not narrowed.
    IgnoresTags,
    /// Lists of records begin at the other end.
    TurnsRecordsRound,
    /// Whoever knows the id of a record or log may read it.
    SharesRecords,
    /// What is due is told the other way round.
    MixesUpWhatIsDue,
    /// Entries of all kinds are told.
    IgnoresKinds,
    /// A log that is dropped is still there.
    KeepsLogs,
    /// An entry is put where the log ends, whatever its sequence.
    RenumbersEntries,
    /// Nobody is told of anything.
    AnnouncesNothing,
    /// What is committed is told before it is.
    AnnouncesTooEarly,
}

/// A back end with a flaw.
struct Broken {
    inner: Arc<SqliteStorage>,
    /// Announces as the flaw has it.
    watches: Arc<Watches>,
    flaw: Flaw,
    memo: Mutex<Memo>,
}

/// What some flaws need to remember.
#[derive(Default)]
struct Memo {
    owners: HashMap<StoreId, WorkspaceId>,
    heads: HashMap<MemoryId, VersionId>,
    offsets: HashMap<String, usize>,
    refusal: Option<Refusal>,
    record_owners: HashMap<RecordId, WorkspaceId>,
}

impl Broken {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn memo(&self) -> std::sync::MutexGuard<'_, Memo> {
        self.memo.lock().expect("no panic under the lock")
    }

    /// The workspace that a read is made in.
    fn reader(&self, workspace: WorkspaceId, store: StoreId) -> WorkspaceId {
        let owner = self.memo().owners.get(&store).copied();
        owner.filter(|_| self.has(Flaw::ForgetsWorkspaces)).unwrap_or(workspace)
    }

    fn spoiled(&self, mut command: Command) -> Command {
        match &mut command {
            Command::UpdateMemory { expected, .. } | Command::DeleteMemory { expected, .. }
                if self.has(Flaw::DropsPreconditions) =>
            {
                *expected = Expected::Anything;
            }
            Command::RedactVersion { path, .. } if self.has(Flaw::KeepsPaths) => *path = RedactedPath::Keep,
            Command::CreateMemory { content, .. } if self.has(Flaw::NormalizesContents) => {
                let text = String::from_utf8(content.bytes().to_vec()).expect("contents are UTF-8");
                *content =
                    Content::parse(text.replace("\r\n", "\n"), 102_400).expect("no longer than before");
            }
            _ => {}
        }
        command
    }

    /// Pages by counting: skips as many as were shown when a page ended with `after`.
    async fn by_offset(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        query: MemoryQuery,
    ) -> Result<InStore<Page<MemoryEntry>>, StorageError> {
        let skip =
            query.after.as_ref().and_then(|after| self.memo().offsets.get(after).copied()).unwrap_or(0);
        let all = MemoryQuery { after: None, limit: 100_000, ..query.clone() };
        let Some(At { sequence, value: page }) = self.inner.memory_list(workspace, store, all).await? else {
            return Ok(None);
        };
        let page = Page::cut(page.items.into_iter().skip(skip).collect(), query.limit);
        if let Some(MemoryEntry::Memory { memory, .. }) = page.items.last() {
            self.memo().offsets.insert(memory.path.as_str().to_owned(), skip + page.items.len());
        }
        Ok(Some(At { sequence, value: page }))
    }

    /// Asks for the body of the first head seen, whatever the head is by now.
    async fn by_old_head(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        reference: MemoryRef,
        known: Arc<dyn KnownBodies>,
    ) -> Result<InStore<Option<MemoryRead>>, StorageError> {
        let read = self.inner.memory_get(workspace, store, reference, Detail::Full, None).await?;
        let Some(At { sequence, value: Some(MemoryRead::Read { memory, .. }) }) = &read else {
            return Ok(read);
        };
        let head = *self.memo().heads.entry(memory.id).or_insert(memory.version);
        let known =
            known.body(head).map(|body| At { sequence: *sequence, value: Some(MemoryRead::Known(body)) });
        Ok(known.or(read))
    }
}

impl Storage for Broken {
    fn change(&self, change: Change) -> Answer<'_, Result<Changed, Error>> {
        Box::pin(async move {
            let met = self.memo().refusal.take();
            if let Some(refusal) = met {
                return Err(refusal.into());
            }
            let created = matches!(change.command, Command::CreateMemory { .. });
            let change = Change { command: self.spoiled(change.command), ..change };
            let result = self.inner.change(change).await;
            if let Ok(Changed { outcome: stele_core::decide::Outcome::Memory(current), .. }) = &result
                && created
            {
                self.memo().heads.insert(current.memory.id, current.memory.version);
            }
            if let Err(Error::Refused { refusal, .. }) = &result
                && self.has(Flaw::SpoilsItsNeighbours)
            {
                self.memo().refusal = Some(refusal.clone());
            }
            result
        })
    }

    fn change_all(&self, change: ChangeAll) -> Answer<'_, Result<ChangedAll, Error>> {
        if !self.has(Flaw::AppliesInPart) {
            return self.inner.change_all(change);
        }
        Box::pin(async move {
            let mut all = ChangedAll { applied: Vec::new(), sequence: 0 };
            for (index, command) in change.changeset.commands().iter().enumerate() {
                let reason = change.changeset.reason().cloned();
                let changeset = Changeset::new(reason, vec![command.clone()])?;
                let one = self.inner.change_all(ChangeAll { changeset, ..change.clone() }).await;
                let one = one.map_err(|error| match error {
                    Error::Refused { refusal: Refusal::InChangeset { refusal, .. }, sequence } => {
                        Error::refused(refusal.at(index), sequence)
                    }
                    other => other,
                })?;
                all.applied.extend(one.applied);
                all.sequence = one.sequence;
            }
            Ok(all)
        })
    }

    fn store_create(
        &self,
        workspace: WorkspaceId,
        actor: Actor,
        new: NewStore,
    ) -> Answer<'_, Result<Store, Error>> {
        Box::pin(async move {
            let store = self.inner.store_create(workspace, actor, new).await?;
            self.memo().owners.insert(store.id, workspace);
            Ok(store)
        })
    }

    fn store_by_id(
        &self,
        workspace: WorkspaceId,
        id: StoreId,
    ) -> Answer<'_, Result<Option<Store>, StorageError>> {
        self.inner.store_by_id(self.reader(workspace, id), id)
    }

    fn store_list(
        &self,
        workspace: WorkspaceId,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Answer<'_, Result<Page<Store>, StorageError>> {
        Box::pin(async move {
            let mut page = self.inner.store_list(workspace, filter, after, limit).await?;
            if self.has(Flaw::ListsOldestFirst) {
                page.items.reverse();
            }
            Ok(page)
        })
    }

    fn memory_get(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        memory: MemoryRef,
        detail: Detail,
        known: Option<Arc<dyn KnownBodies>>,
    ) -> Answer<'_, Result<InStore<Option<MemoryRead>>, StorageError>> {
        match known {
            Some(known) if self.has(Flaw::ServesOldBodies) => {
                Box::pin(self.by_old_head(workspace, store, memory, known))
            }
            known => self.inner.memory_get(self.reader(workspace, store), store, memory, detail, known),
        }
    }

    fn memory_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        mut query: MemoryQuery,
    ) -> Answer<'_, Result<InStore<Page<MemoryEntry>>, StorageError>> {
        match self.flaw {
            Flaw::PagesByOffset => Box::pin(self.by_offset(workspace, store, query)),
            Flaw::RepeatsDirectories => {
                query.after = query.after.map(|after| after.trim_end_matches('/').to_owned());
                self.inner.memory_list(workspace, store, query)
            }
            _ => self.inner.memory_list(self.reader(workspace, store), store, query),
        }
    }

    fn version_by_id(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        id: VersionId,
        full: bool,
    ) -> Answer<'_, Result<InStore<Option<VersionText>>, StorageError>> {
        self.inner.version_by_id(self.reader(workspace, store), store, id, full)
    }

    fn version_list(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        mut query: VersionQuery,
    ) -> Answer<'_, Result<InStore<Page<VersionText>>, StorageError>> {
        if self.has(Flaw::IgnoresFilters) {
            query.filter = VersionFilter::default();
        }
        Box::pin(async move {
            let page = self.inner.version_list(self.reader(workspace, store), store, query).await?;
            Ok(page.map(|mut page| {
                if self.has(Flaw::SwallowsVersions) {
                    page.value.items.retain(|text| text.version.operation != Operation::Renamed);
                }
                page
            }))
        })
    }

    fn changes(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
    ) -> Answer<'_, Result<Option<Changes>, StorageError>> {
        Box::pin(async move {
            let changes = self.inner.changes(self.reader(workspace, store), store, after, limit).await?;
            Ok(changes.map(|mut changes| {
                if self.has(Flaw::ForgetsMarks) {
                    changes.told.retain(|told| matches!(told, Told::Version { .. }));
                }
                changes
            }))
        })
    }

    fn snapshot(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
    ) -> Answer<'_, Result<InStore<Vec<Memory>>, StorageError>> {
        self.inner.snapshot(self.reader(workspace, store), store)
    }

    fn contents(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        wanted: Vec<Wanted>,
        bytes: u64,
    ) -> Answer<'_, Result<InStore<Vec<Option<VersionText>>>, StorageError>> {
        self.inner.contents(self.reader(workspace, store), store, wanted, bytes)
    }

    fn history(
        &self,
        workspace: WorkspaceId,
        store: StoreId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Answer<'_, Result<Option<History>, StorageError>> {
        Box::pin(async move {
            let mut found = self.inner.history(workspace, store, after, limit, bytes).await?;
            if self.has(Flaw::ForgetsMarks)
                && let Some(history) = &mut found
            {
                history.past.retain(|past| matches!(past, Past::Version(_)));
            }
            Ok(found)
        })
    }

    fn restore_begin(&self, store: Store) -> Answer<'_, Result<Remains, Error>> {
        self.inner.restore_begin(store)
    }

    fn restore_rows(&self, place: StorePlace, rows: Rows) -> Answer<'_, Result<(), Error>> {
        self.inner.restore_rows(place, rows)
    }

    fn restore_end(&self, store: Store) -> Answer<'_, Result<Store, Error>> {
        self.inner.restore_end(store)
    }

    fn restore_abandon(&self, place: StorePlace) -> Answer<'_, Result<(), StorageError>> {
        self.inner.restore_abandon(place)
    }

    fn installation(&self) -> Answer<'_, Result<Option<Installation>, StorageError>> {
        self.inner.installation()
    }

    fn install(
        &self,
        organization: OrganizationId,
        workspace: Workspace,
        key: KeyRecord,
    ) -> Answer<'_, Result<Installation, StorageError>> {
        Box::pin(async move {
            let asked_for = Installation::new(organization, workspace.id);
            let there = self.inner.install(organization, workspace, key).await?;
            Ok(if self.has(Flaw::InstallsTwice) { asked_for } else { there })
        })
    }

    fn key_by_hash(&self, hash: KeyHash) -> Answer<'_, Result<Option<ApiKey>, StorageError>> {
        self.inner.key_by_hash(hash)
    }

    fn key_create(&self, record: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        self.inner.key_create(record)
    }

    fn key_list(&self, workspace: WorkspaceId) -> Answer<'_, Result<Vec<ApiKey>, StorageError>> {
        self.inner.key_list(workspace)
    }

    fn key_revoke(&self, workspace: WorkspaceId, id: KeyId) -> Answer<'_, Result<bool, StorageError>> {
        Box::pin(
            async move { Ok(self.inner.key_revoke(workspace, id).await? || self.has(Flaw::RevokesAnything)) },
        )
    }

    fn workspace_create(&self, workspace: Workspace, key: KeyRecord) -> Answer<'_, Result<(), StorageError>> {
        self.inner.workspace_create(workspace, key)
    }

    fn workspace_update(
        &self,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Answer<'_, Result<Option<Workspace>, StorageError>> {
        self.inner.workspace_update(id, patch)
    }

    fn workspace_list(&self) -> Answer<'_, Result<Vec<Workspace>, StorageError>> {
        self.inner.workspace_list()
    }

    fn sweep(&self) -> Answer<'_, Result<Swept, StorageError>> {
        if self.has(Flaw::NeverSweeps) {
            return Box::pin(async { Ok(Swept::default()) });
        }
        self.inner.sweep()
    }

    fn purge(&self) -> Answer<'_, Result<Swept, StorageError>> {
        if self.has(Flaw::NeverSweeps) {
            return Box::pin(async { Ok(Swept::default()) });
        }
        self.inner.purge()
    }

    fn store_count(&self) -> Answer<'_, Result<u64, StorageError>> {
        self.inner.store_count()
    }

    fn ping(&self) -> Answer<'_, Result<(), StorageError>> {
        self.inner.ping()
    }
}

/// Records and logs with a flaw.
impl Broken {
    /// The workspace that a record or log is read in.
    fn record_reader(&self, workspace: WorkspaceId, id: RecordId) -> WorkspaceId {
        let owner = self.memo().record_owners.get(&id).copied();
        owner.filter(|_| self.has(Flaw::SharesRecords)).unwrap_or(workspace)
    }

    /// A write as the flaw has it.
    async fn bent(&self, write: RecordWrite) -> RecordWrite {
        match write {
            RecordWrite::Put(mut record) if self.has(Flaw::OverwritesRecords) => {
                let now = self.inner.record(record.workspace, record.kind, record.id).await;
                record.revision = now.ok().flatten().map_or(1, |now| now.revision + 1);
                RecordWrite::Put(record)
            }
            RecordWrite::Append { workspace, log, mut entries } if self.has(Flaw::RenumbersEntries) => {
                let query = EntryQuery {
                    workspace,
                    log,
                    kinds: Vec::new(),
                    at: Created::default(),
                    order: Order::NewestFirst,
                    after: None,
                    limit: 1,
                };
                let page = self.inner.entries(query).await.expect("a read");
                let last = page.items.first().map_or(0, |entry| entry.sequence);
                for (entry, sequence) in entries.iter_mut().zip(last + 1..) {
                    entry.sequence = sequence;
                }
                RecordWrite::Append { workspace, log, entries }
            }
            write => write,
        }
    }
}

impl Records for Broken {
    fn record(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        id: RecordId,
    ) -> Answer<'_, Result<Option<Record>, StorageError>> {
        self.inner.record(self.record_reader(workspace, id), kind, id)
    }

    fn record_many(
        &self,
        workspace: WorkspaceId,
        kind: Kind,
        ids: Vec<RecordId>,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        self.inner.record_many(workspace, kind, ids)
    }

    fn record_by_key(&self, kind: Kind, key: [u8; 32]) -> Answer<'_, Result<Option<Record>, StorageError>> {
        self.inner.record_by_key(kind, key)
    }

    fn record_list(&self, mut query: RecordQuery) -> Answer<'_, Result<Page<Record>, StorageError>> {
        if self.has(Flaw::IgnoresTags) {
            query.tag = None;
        }
        if self.has(Flaw::TurnsRecordsRound) {
            query.order = match query.order {
                Order::NewestFirst => Order::OldestFirst,
                Order::OldestFirst => Order::NewestFirst,
            };
        }
        self.inner.record_list(query)
    }

    fn record_due(
        &self,
        kind: Kind,
        now: Timestamp,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(async move {
            let mut due = self.inner.record_due(kind, now, limit).await?;
            if self.has(Flaw::MixesUpWhatIsDue) {
                due.reverse();
            }
            Ok(due)
        })
    }

    fn entries(&self, mut query: EntryQuery) -> Answer<'_, Result<Page<Entry>, StorageError>> {
        if self.has(Flaw::IgnoresKinds) {
            query.kinds = Vec::new();
        }
        query.workspace = self.record_reader(query.workspace, query.log);
        self.inner.entries(query)
    }

    fn commit(&self, writes: Vec<RecordWrite>) -> Answer<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let mut bent = Vec::new();
            for write in writes {
                self.memo().record_owners.entry(write.id()).or_insert(write.workspace());
                if self.has(Flaw::AnnouncesTooEarly)
                    && let RecordWrite::Put(record) = &write
                {
                    self.watches.announce(record.id, record.revision);
                }
                if !(self.has(Flaw::KeepsLogs) && matches!(write, RecordWrite::DropLog { .. })) {
                    bent.push(self.bent(write).await);
                }
            }
            if !self.has(Flaw::CommitsByHalves) {
                return self.inner.commit(bent).await;
            }
            for (at, write) in bent.into_iter().enumerate() {
                match self.inner.commit(vec![write]).await {
                    Err(CommitError::Conflict(_)) => return Err(CommitError::Conflict(at)),
                    other => other?,
                }
            }
            Ok(())
        })
    }

    fn watches(&self) -> &Arc<Watches> {
        &self.watches
    }
}

impl StoreFactory for Flaw {
    fn open(&self, options: Options) -> Answer<'_, Opened> {
        Box::pin(async move {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let config = Config::new(dir.path(), options.limits);
            let inner =
                SqliteStorage::open(config, options.clock, options.random).expect("a fresh database opens");
            let watches = match self {
                Flaw::AnnouncesNothing | Flaw::AnnouncesTooEarly => Arc::default(),
                _ => inner.watches().clone(),
            };
            let storage = Arc::new(Broken { inner, watches, flaw: *self, memo: Mutex::default() });
            Opened { storage, data_dir: Some(dir.path().to_owned()), keep_alive: Box::new(dir) }
        })
    }
}

fn fails(flaw: Flaw, cases: &[&str]) {
    for case in cases {
        let outcome = catch_unwind(AssertUnwindSafe(|| store_suite::run(case, &flaw)));
        assert!(outcome.is_err(), "{case} does not notice a back end that {flaw:?}");
    }
}

macro_rules! noticed {
    ($($name:ident: $flaw:ident by $($case:literal),+;)+) => {
        $(#[test]
        fn $name() {
            fails(Flaw::$flaw, &[$($case),+]);
        })+
    };
}

noticed! {
    dropped_preconditions_are_noticed: DropsPreconditions by
        "memories::a_stale_hash_refuses_and_changes_nothing",
        "concurrency::of_fifty_writers_with_one_precondition_one_wins",
        "machine::one_writer_gets_what_the_oracle_says";
    swallowed_versions_are_noticed: SwallowsVersions by
        "versions::each_change_writes_one_version_that_says_what_who_and_when",
        "machine::one_writer_gets_what_the_oracle_says",
        "machine::whatever_many_writers_do_history_gives_the_present";
    ignored_filters_are_noticed: IgnoresFilters by
        "versions::filters_by_memory_operation_author_and_time_combine",
        "versions::every_kind_of_author_is_recorded_and_found";
    forgotten_workspaces_are_noticed: ForgetsWorkspaces by
        "isolation::a_foreign_store_is_as_good_as_unknown";
    old_bodies_are_noticed: ServesOldBodies by
        "memories::a_body_of_an_older_head_is_never_returned";
    kept_paths_are_noticed: KeepsPaths by
        "redaction::text_hash_and_size_go_who_and_when_stay",
        "redaction::redacted_words_are_in_no_file_once_it_is_answered",
        "machine::one_writer_gets_what_the_oracle_says";
    missing_sweeps_are_noticed: NeverSweeps by
        "expiry::old_versions_go_and_the_newest_ten_of_the_living_stay",
        "expiry::a_purge_removes_deleted_stores_and_leaves_old_versions",
        "stores::a_deleted_store_is_gone_from_every_read_and_write_at_once";
    false_revocations_are_noticed: RevokesAnything by
        "keys::unknown_and_foreign_keys_are_not_revoked",
        "keys::of_two_revocations_at_once_one_revokes";
    repeated_directories_are_noticed: RepeatsDirectories by
        "lists::a_directory_sorts_at_its_own_path_and_appears_once",
        "properties::every_walk_shows_what_lies_below_its_prefix";
    offsets_are_noticed: PagesByOffset by
        "lists::a_list_goes_on_where_its_last_memory_was_deleted";
    a_wrong_order_of_stores_is_noticed: ListsOldestFirst by
        "stores::stores_are_listed_newest_first";
    changed_bytes_are_noticed: NormalizesContents by
        "memories::bytes_come_back_as_they_were_sent";
    a_second_installation_is_noticed: InstallsTwice by
        "installation::a_second_install_answers_with_the_first_and_writes_nothing";
    forgotten_marks_are_noticed: ForgetsMarks by
        "feed::redaction_and_archiving_are_told_without_a_version",
        "machine::one_writer_gets_what_the_oracle_says";
    spoiled_neighbours_are_noticed: SpoilsItsNeighbours by
        "concurrency::a_refusal_touches_only_itself";
    changesets_in_part_are_noticed: AppliesInPart by
        "changesets::a_refusal_leaves_nothing_of_it",
        "changesets::changes_that_contradict_each_other_are_refused",
        "changesets::changesets_and_single_changes_at_once_leave_whole_ones";
    overwritten_records_are_noticed: OverwritesRecords by
        "records::of_many_writers_of_one_revision_one_wins";
    half_commits_are_noticed: CommitsByHalves by
        "records::a_conflict_anywhere_leaves_nothing",
        "records::what_is_committed_is_announced_and_a_conflict_is_not";
    ignored_tags_are_noticed: IgnoresTags by
        "records::tags_are_replaced_with_each_write",
        "records::lists_go_both_ways_and_narrow_by_tag_and_time";
    a_wrong_order_of_records_is_noticed: TurnsRecordsRound by
        "records::lists_go_both_ways_and_narrow_by_tag_and_time",
        "records::a_walk_during_writes_shows_the_untouched_once";
    shared_records_are_noticed: SharesRecords by
        "records::a_foreign_record_is_as_good_as_unknown",
        "logs::a_foreign_log_is_as_good_as_unknown";
    a_wrong_order_of_what_is_due_is_noticed: MixesUpWhatIsDue by
        "records::what_is_due_comes_from_all_workspaces_the_longest_due_first";
    ignored_kinds_are_noticed: IgnoresKinds by
        "logs::entries_go_both_ways_and_narrow_by_kind_and_time";
    kept_logs_are_noticed: KeepsLogs by
        "logs::a_dropped_log_is_gone_at_once_and_from_the_disk_with_the_sweep";
    unswept_logs_are_noticed: NeverSweeps by
        "logs::a_dropped_log_is_gone_at_once_and_from_the_disk_with_the_sweep";
    renumbered_entries_are_noticed: RenumbersEntries by
        "logs::entries_go_on_where_the_log_ends_or_not_at_all",
        "records::a_conflict_anywhere_leaves_nothing";
    missing_announcements_are_noticed: AnnouncesNothing by
        "records::what_is_committed_is_announced_and_a_conflict_is_not",
        "logs::appends_are_announced_and_so_is_the_end";
    early_announcements_are_noticed: AnnouncesTooEarly by
        "records::what_is_committed_is_announced_and_a_conflict_is_not";
}
