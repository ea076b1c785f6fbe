//! Whole stores as files: made part by part, and taken in two passes, the first of which changes nothing. DESIGN 3.13 and 7.
//!
//! The Anthropic dialect has the routes of one store; the one that puts a store back is Stele's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Json};
use bytes::Bytes;
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Serialize;
use stele_archive::{ArchiveError, Bounds, End, IndexRow, Item, Manifest, Reader, Writer, groups, markdown};
use stele_core::access::{Action, Caller, Resource};
use stele_core::changeset::{Changeset, MAX_BYTES, MAX_CHANGES};
use stele_core::command::Command;
use stele_core::feed::{Past, Wanted};
use stele_core::id::StoreId;
use stele_core::import::{Fate, OnConflict, Plan, Unfit};
use stele_core::limits::Limits;
use stele_core::model::{Memory, Store};
use stele_core::path::MemoryPath;
use stele_core::refusal::Refusal;
use stele_core::restoration::Check;
use stele_core::service::{Exported, Stele};
use stele_core::storage::{At, Error, StorageError};
use stele_core::text::{Reason, Summary};
use tokio::sync::{Semaphore, mpsc};

use crate::body::BodyError;
use crate::flat::{self, FlatError};
use crate::openapi::{Endpoint, Family};
use crate::own::{Answer, Call};
use crate::reply::at;
use crate::stream::{self, MakingOrNot};

/// What an archive is on the wire.
pub const MEDIA: &str = "application/zstd";
/// Most bytes of a file that is sent.
const UPLOAD_BYTES: u64 = 4 << 30;
/// Most bytes that one comes to, unpacked.
const UNPACKED_BYTES: u64 = 64 << 30;
/// Longest pause between two parts of it.
const PAUSE: Duration = Duration::from_secs(30);
/// Files that are taken at the same time; who comes beyond that is asked to come again.
static TAKEN: Semaphore = Semaphore::const_new(2);
/// An import of more than a changeset holds goes in slices of so many changes and bytes, so that others get their turn.
const SLICE: (usize, u64) = (250, 1 << 20);
/// How often in a row an import is planned while others change the store and no less is left to do.
const PLANS: usize = 5;
/// How long the others get before the rest of an import is planned anew.
const BREATH: Duration = Duration::from_millis(100);
/// From so many problems on the rest is not looked at.
const PROBLEMS: usize = 10_000;
/// Entries of a history that are put back at once, and bytes of texts.
const ROWS: (usize, usize) = (500, 1 << 20);

/// What an export is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// All of the store, with history, ids and authors.
    Archive,
    /// The live memories as Markdown files.
    Markdown,
}

impl Format {
    /// Reads the parameter `format`.
    ///
    /// # Errors
    /// Another one.
    pub fn parse(text: Option<&str>) -> Result<Self, Refusal> {
        match text {
            None | Some("archive") => Ok(Self::Archive),
            Some("markdown") => Ok(Self::Markdown),
            Some(_) => Err(Refusal::shape("format", "must be archive or markdown")),
        }
    }
}

/// An export that goes on.
struct Export {
    stele: Arc<Stele>,
    caller: Caller,
    of: Arc<Exported>,
    format: Format,
    writer: Writer,
    groups: std::vec::IntoIter<Range<usize>>,
    /// The last sequence of the history that was written.
    after: u64,
}

/// Begins an export; its answer is made as it is taken.
///
/// # Errors
/// What [`Stele::export_begin`] refuses.
pub async fn export(
    stele: Arc<Stele>,
    caller: Caller,
    id: StoreId,
    format: Format,
) -> Result<Response, Error> {
    let of = stele.export_begin(&caller, id).await?;
    let installation = stele.installation();
    let writer = match format {
        Format::Markdown => Writer::tree(),
        Format::Archive => {
            let place = (installation.organization, installation.epoch);
            Writer::archive(&Manifest::of(place, &of.store, of.sequence, &of.memories))
        }
    };
    let writer = writer.map_err(|error| StorageError::Internal(Box::new(error)))?;
    let groups: Vec<_> = groups(&of.memories).collect();
    let sequence = of.sequence;
    // A slug is letters, digits and hyphens.
    let name = format!("attachment; filename=\"{}.tar.zst\"", of.store.slug);
    let export =
        Export { stele, caller, of: Arc::new(of), format, writer, groups: groups.into_iter(), after: 0 };
    let body = stream::breakable(Some(export), Export::part);
    let headers = [("content-type", MEDIA.to_owned()), ("content-disposition", name)];
    Ok(at(sequence, (headers, body).into_response()))
}

/// A part of an export, of what was read.
enum Read {
    Group(Range<usize>, Vec<(Summary, Bytes)>),
    Past(Vec<Past>),
    End(u64),
}

impl Export {
    fn part(export: Option<Self>) -> MakingOrNot<Option<Self>> {
        Box::pin(async move {
            let mut state = export;
            // The compressor may hold on to what it was given.
            while let Some(export) = state {
                let (part, rest) = export.step().await.inspect_err(|error| {
                    tracing::warn!(error = &**error as &dyn std::error::Error, "an export was broken off");
                })?;
                state = rest;
                if !part.is_empty() {
                    return Ok(Some((part.into(), state)));
                }
            }
            Ok(None)
        })
    }

    async fn step(mut self) -> Result<(Vec<u8>, Option<Self>), BoxError> {
        let read = match self.groups.next() {
            Some(group) => {
                let texts = self.texts(&group).await?;
                Read::Group(group, texts)
            }
            None if self.format == Format::Markdown => Read::End(0),
            None => self.past().await?,
        };
        // Packing takes its time, so not on an async thread.
        let written = tokio::task::spawn_blocking(move || self.write(read)).await?;
        Ok(written?)
    }

    /// The texts of a group as they were at the sequence of the export.
    async fn texts(&self, group: &Range<usize>) -> Result<Vec<(Summary, Bytes)>, BoxError> {
        let mut wanted: Vec<_> =
            self.of.memories[group.clone()].iter().map(|memory| Wanted::Version(memory.version)).collect();
        let mut texts = Vec::with_capacity(wanted.len());
        while !wanted.is_empty() {
            let found = self.stele.contents(&self.caller, self.of.store.id, wanted.clone()).await?;
            wanted.drain(..found.value.len().min(wanted.len()));
            for text in found.value {
                let text =
                    text.and_then(|text| Some((text.summary.unwrap_or_else(Summary::empty), text.content?)));
                texts.push(text.ok_or("a text was redacted or removed while the store was exported")?);
            }
        }
        Ok(texts)
    }

    async fn past(&mut self) -> Result<Read, BoxError> {
        let (store, sequence) = (self.of.store.id, self.of.sequence);
        let history = self.stele.history(&self.caller, store, self.after).await?;
        let past: Vec<_> = history.past.into_iter().take_while(|past| past.sequence() <= sequence).collect();
        let Some(last) = past.last() else {
            // Read behind all entries: what retention took meanwhile is below it.
            return Ok(Read::End(history.store.counters.floor.min(sequence)));
        };
        self.after = last.sequence();
        Ok(Read::Past(past))
    }

    fn write(mut self, read: Read) -> std::io::Result<(Vec<u8>, Option<Self>)> {
        match read {
            Read::Group(group, texts) => {
                let of = self.of.clone();
                let memories = &of.memories[group];
                match self.format {
                    Format::Markdown => {
                        for (memory, (summary, content)) in memories.iter().zip(&texts) {
                            let text = markdown::encode(summary.as_str(), crate::reply::text(content));
                            self.writer.file(&memory.path, memory.updated_at, &text)?;
                        }
                    }
                    Format::Archive => {
                        let rows = memories.iter().zip(&texts);
                        let rows: Vec<_> = rows
                            .map(|(memory, (summary, _))| IndexRow {
                                memory: memory.clone(),
                                summary: summary.clone(),
                            })
                            .collect();
                        self.writer.index(&rows)?;
                        for (memory, (_, content)) in memories.iter().zip(&texts) {
                            self.writer.content(memory, content)?;
                        }
                    }
                }
                Ok((self.writer.take(), Some(self)))
            }
            Read::Past(past) => {
                past.iter().try_for_each(|past| self.writer.past(past))?;
                Ok((self.writer.take(), Some(self)))
            }
            Read::End(floor) => {
                let end = match self.format {
                    Format::Archive => self.writer.end_archive(floor)?,
                    Format::Markdown => self.writer.end_tree()?,
                };
                Ok((end, None))
            }
        }
    }
}

/// Why nothing, or not all, was taken.
#[derive(Debug)]
pub enum TakeError {
    /// The file did not come.
    Body(BodyError),
    /// It, or what would come of it, is refused.
    Error(Error),
    /// Somebody else wrote meanwhile, or it failed: so many files, maybe none, had been imported before. The same import
    /// again goes on there.
    Broken(Error, usize),
}

impl<E: Into<Error>> From<E> for TakeError {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl TakeError {
    /// It ends with this error after so many files.
    fn after(error: Error, done: usize) -> Self {
        if done == 0 { Self::Error(error) } else { Self::Broken(error, done) }
    }

    fn failed(error: impl Into<BoxError>) -> Self {
        Self::Error(StorageError::Internal(error.into()).into())
    }
}

/// What an import comes to.
#[derive(Debug)]
pub struct Imported {
    /// What happens to each file, by path.
    pub fates: Vec<(MemoryPath, Fate)>,
    /// The store's sequence afterwards.
    pub sequence: u64,
}

/// Files to be imported.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// Into this store.
    pub store: StoreId,
    /// Whether it is only said what would happen.
    pub dry_run: bool,
    /// What happens over memories that are there.
    pub on_conflict: OnConflict,
}

/// A file that was sent, put aside without a name: it is gone with the process, however that ends.
async fn received(mut body: Body) -> Result<File, TakeError> {
    let mut file = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(TakeError::failed)?;
    let mut file = match &mut file {
        Ok(file) => file.try_clone().map_err(TakeError::failed)?,
        Err(_) => return Err(TakeError::Error(StorageError::Full.into())),
    };
    let mut total = 0u64;
    while let Some(frame) =
        tokio::time::timeout(PAUSE, body.frame()).await.map_err(|_| TakeError::Body(BodyError::TooSlow))?
    {
        let frame = frame.map_err(|_| TakeError::Body(BodyError::Broken))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len() as u64;
        if total > UPLOAD_BYTES {
            return Err(TakeError::Body(BodyError::TooLarge));
        }
        let (back, written) = tokio::task::spawn_blocking(move || {
            let written = file.write_all(&data);
            (file, written)
        })
        .await
        .map_err(TakeError::failed)?;
        written.map_err(|_| TakeError::Error(StorageError::Full.into()))?;
        file = back;
    }
    Ok(file)
}

/// A reader of the file from its beginning.
fn from_start<'a>(mut file: &'a File, limits: &Limits) -> Result<Reader<&'a File>, ArchiveError> {
    file.seek(SeekFrom::Start(0))?;
    Reader::new(file, &Bounds { limits: limits.clone(), unpacked_bytes: UNPACKED_BYTES })
}

/// Imports files that come as an archive or as a tree of Markdown files: all of them are looked through before the first
/// change. What fits a changeset is one; more goes in slices. Where somebody else's write refuses one, such as the same import
/// whose client is gone, the rest is planned anew. It ends with its client: whoever calls drops it.
///
/// # Errors
/// See [`TakeError`].
pub async fn import(
    stele: &Stele,
    caller: &Caller,
    import: Import,
    body: Body,
) -> Result<Imported, TakeError> {
    let Import { store, dry_run, on_conflict } = import;
    // Before anything is received: whoever may not write cannot make the server hold what it sends.
    stele.import_begin(caller, store, on_conflict).await?;
    let _place = TAKEN.try_acquire().map_err(|_| StorageError::Overloaded)?;
    let file = Arc::new(received(body).await?);
    let (mut done, mut fates) = (BTreeSet::new(), BTreeMap::new());
    // Why it is planned again, and the sequence that the last plan was of.
    let mut refused: Option<(Error, u64)> = None;
    let (mut plans, mut least) = (0, usize::MAX);
    loop {
        let begun = stele.import_begin(caller, store, on_conflict).await;
        let At { sequence: planned_at, value: plan } =
            begun.map_err(|error| TakeError::after(error, done.len()))?;
        if let Some((error, _)) = refused.take_if(|(_, last)| *last == planned_at) {
            // Nothing is different from the last plan: it would be refused again.
            return Err(TakeError::Broken(error, done.len()));
        }
        let (source, limits) = (file.clone(), stele.limits().clone());
        let look = move || (look_through(&source, &limits, plan, &done), done);
        let looked;
        (looked, done) = tokio::task::spawn_blocking(look).await.map_err(TakeError::failed)?;
        let plan = match (looked, refused.take()) {
            (Ok(plan), _) => plan,
            // What others wrote does not go with the rest of the files.
            (Err(_), Some((error, _))) if !done.is_empty() => {
                return Err(TakeError::Broken(error, done.len()));
            }
            (Err(unfit), _) => return Err(Refusal::Unfit(unfit).into()),
        };
        let open = plan.fates().filter(|(_, fate)| matches!(fate, Fate::Create | Fate::Overwrite)).count();
        // Where less is left, whoever did it, this comes to an end.
        plans = if open < least { 1 } else { plans + 1 };
        least = least.min(open);
        fates.extend(plan.fates().map(|(path, fate)| (path.clone(), fate)));
        let mut sequence = planned_at;
        if dry_run {
            return Ok(Imported { fates: fates.into_iter().collect(), sequence });
        }
        let (count, bytes) = plan.changes();
        let most = if count <= MAX_CHANGES && bytes <= MAX_BYTES { (MAX_CHANGES, MAX_BYTES) } else { SLICE };
        let (send, mut slices) = mpsc::channel(2);
        let (source, limits) = (file.clone(), stele.limits().clone());
        let reading = tokio::task::spawn_blocking(move || send_slices(&source, &limits, &plan, most, &send));
        let reason = Reason::parse("imported from files").ok();
        let mut failed = None;
        while let Some(Slice { paths, commands }) = slices.recv().await {
            let result = match Changeset::new(reason.clone(), commands) {
                Ok(changeset) => stele.import_slice(caller, store, changeset).await,
                Err(refusal) => Err(refusal.into()),
            };
            match result {
                Ok(changed) => sequence = changed.sequence,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            done.extend(paths);
        }
        // The reading ends where nobody takes what it reads; only then can the file be read once more.
        drop(slices);
        let read = reading.await.map_err(TakeError::failed)?;
        let Some(error) = failed else {
            read.map_err(TakeError::failed)?;
            return Ok(Imported { fates: fates.into_iter().collect(), sequence });
        };
        if !outdated(&error) {
            return Err(TakeError::after(error, done.len()));
        }
        if plans == PLANS {
            return Err(TakeError::Broken(error, done.len()));
        }
        refused = Some((error, planned_at));
        tokio::time::sleep(BREATH).await;
    }
}

/// Whether it is refused because the store is not any more as it was when the import was planned.
fn outdated(error: &Error) -> bool {
    let Error::Refused { refusal, .. } = error else { return false };
    let refusal = match refusal {
        Refusal::InChangeset { refusal, .. } => refusal.as_ref(),
        other => other,
    };
    matches!(
        refusal,
        Refusal::PathOccupied { .. }
            | Refusal::ContentChanged { .. }
            | Refusal::PathNotFound
            | Refusal::MemoryNotFound(_)
    )
}

/// Changes that are made at once, with the paths of their files.
#[derive(Default)]
struct Slice {
    paths: Vec<MemoryPath>,
    commands: Vec<Command>,
}

/// Judges all files but those that are done.
fn look_through(
    file: &File,
    limits: &Limits,
    mut plan: Plan,
    done: &BTreeSet<MemoryPath>,
) -> Result<Plan, Unfit> {
    let whole = |error: ArchiveError| Unfit::one("the archive", error);
    let mut reader = from_start(file, limits).map_err(whole)?;
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Memory(found))) => {
                if !done.contains(&found.path) {
                    plan.judge(&to_import(*found));
                }
            }
            Ok(Some(Item::Bad(problem))) => plan.problem(problem.path, problem.what),
            // Only live memories are imported; that the rest is whole was looked at all the same.
            Ok(Some(Item::Manifest(_) | Item::Past(_) | Item::End(_))) => {}
            Err(error) => {
                plan.problem("the archive", error);
                break;
            }
        }
        if plan.problem_count() >= PROBLEMS {
            break;
        }
    }
    plan.check().map(|()| plan)
}

fn to_import(found: stele_archive::Found) -> stele_core::import::File {
    stele_core::import::File { path: found.path, summary: found.summary, content: found.content }
}

/// Reads the changes once more and sends them in slices; ends early where nobody takes them.
fn send_slices(
    file: &File,
    limits: &Limits,
    plan: &Plan,
    (most, most_bytes): (usize, u64),
    send: &mpsc::Sender<Slice>,
) -> Result<(), ArchiveError> {
    let mut reader = from_start(file, limits)?;
    let (mut slice, mut bytes) = (Slice::default(), 0);
    while let Some(item) = reader.next()? {
        let Item::Memory(found) = item else { continue };
        let (size, path) = (found.content.size_bytes(), found.path.clone());
        let Some(command) = plan.command(to_import(*found)) else { continue };
        let count = slice.commands.len();
        if count >= most || (bytes + size > most_bytes && count > 0) {
            bytes = 0;
            if send.blocking_send(std::mem::take(&mut slice)).is_err() {
                return Ok(());
            }
        }
        bytes += size;
        slice.paths.push(path);
        slice.commands.push(command);
    }
    if !slice.commands.is_empty() {
        // Who does not take it any more has said why.
        let _ = send.blocking_send(slice);
    }
    Ok(())
}

static WHOLE: Family = Family {
    tag: "Whole stores",
    about: "Stele's own routes for those who mirror a store: its tree of one moment, and many texts at once.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 500, 503],
    keyed: true,
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/stele/v1/memory_stores/import",
            "restore_memory_store",
            &WHOLE,
            restore,
        )
        .about("Put a store back out of its archive, with ids, history and authors; for admins.")
        .takes_plain(MEDIA)
        .answers::<RestoredView>(201)
        .or(&[408, 409, 413]),
    ]
}

/// A store that was put back.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RestoredStore")]
struct RestoredView {
    memory_store_id: String,
    name: String,
    /// Another one than in the archive where that was taken.
    slug: String,
    sequence: u64,
    memories: u64,
    versions: u64,
}

impl From<TakeError> for FlatError {
    fn from(error: TakeError) -> Self {
        match error {
            TakeError::Body(error) => error.into(),
            TakeError::Error(error) | TakeError::Broken(error, _) => error.into(),
        }
    }
}

async fn restore(Call { stele, caller }: Call, body: Body) -> Answer {
    caller.may(Resource::Archive, Action::Create).map_err(Refusal::from)?;
    let _place = TAKEN.try_acquire().map_err(|_| FlatError::from(StorageError::Overloaded))?;
    let file = received(body).await?;
    // From here on it does not end with the connection.
    let restoring = tokio::spawn(async move { put_back(&stele, &caller, file).await });
    let store = restoring.await.map_err(TakeError::failed)??;
    let view = RestoredView {
        memory_store_id: store.id.to_string(),
        name: store.name.as_str().to_owned(),
        slug: store.slug,
        sequence: store.counters.sequence,
        memories: store.counters.memories,
        versions: store.counters.versions,
    };
    Ok(at(store.counters.sequence, (StatusCode::CREATED, Json(view)).into_response()))
}

async fn put_back(stele: &Stele, caller: &Caller, file: File) -> Result<Store, TakeError> {
    let (limits, workspace) = (stele.limits().clone(), caller.workspace);
    let look = move || judged(&file, &limits, workspace).map(|(store, memories)| (file, store, memories));
    let looked = tokio::task::spawn_blocking(look).await.map_err(TakeError::failed)?;
    let (file, store, memories) = looked.map_err(Refusal::Unfit)?;
    let limits = stele.limits().clone();
    let (send, mut pages) = mpsc::channel(2);
    let mut restoration = stele.restore_begin(caller, store).await?;
    let reading = tokio::task::spawn_blocking(move || send_past(&file, &limits, &send));
    let put = async {
        while let Some(page) = pages.recv().await {
            restoration.past(page).await?;
        }
        reading.await.map_err(TakeError::failed)?.map_err(TakeError::failed)?;
        Ok(restoration.end(memories).await?)
    };
    let put: Result<Store, TakeError> = put.await;
    if put.is_err()
        && let Err(error) = restoration.abandon().await
    {
        let error = &error as &dyn std::error::Error;
        tracing::info!(error, "a store was not put back, and what there is of it is removed a little later");
    }
    put
}

/// The store in an archive that can be put back, with its live memories.
fn judged(
    file: &File,
    limits: &Limits,
    workspace: stele_core::id::WorkspaceId,
) -> Result<(Store, Vec<Memory>), Unfit> {
    let whole = |error: ArchiveError| Unfit::one("the archive", error);
    let mut reader = from_start(file, limits).map_err(whole)?;
    let manifest = match reader.next().map_err(whole)? {
        Some(Item::Manifest(manifest)) => manifest,
        _ => {
            let what =
                "it holds no history: `stele import --store` takes its files into a store that is there";
            return Err(Unfit::one("the archive", what));
        }
    };
    let store = manifest.store(workspace).map_err(|what| Unfit::one("the store", what))?;
    let (mut unfit, mut check, mut memories) = (Unfit::default(), Check::new(store.clone()), Vec::new());
    let mut ended: Option<End> = None;
    while unfit.count < PROBLEMS {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Memory(found))) => {
                if let Some(row) = found.row {
                    check.memory(&row.memory).unwrap_or_else(|what| unfit.add(found.path.as_str(), what));
                    memories.push(row.memory);
                }
            }
            Ok(Some(Item::Past(past))) => {
                let place = format!("history, sequence {}", past.sequence());
                check.past(&past).unwrap_or_else(|what| unfit.add(place, what));
            }
            Ok(Some(Item::Bad(problem))) => unfit.add(problem.path, problem.what),
            Ok(Some(Item::End(end))) => ended = Some(end),
            Ok(Some(Item::Manifest(_))) => {}
            Err(error) => {
                unfit.add("the archive", error);
                break;
            }
        }
    }
    // What is missing because it could not be read is not to be named twice.
    match ended.filter(|_| unfit.is_empty()) {
        None => Err(unfit),
        Some(end) => match check.end(end.floor) {
            Ok(counters) => Ok((Store { counters, ..store }, memories)),
            Err(wrong) => {
                wrong.into_iter().for_each(|what| unfit.add("the store", what));
                Err(unfit)
            }
        },
    }
}

/// Reads the history once more and sends it in pages; ends early where nobody takes them.
fn send_past(file: &File, limits: &Limits, send: &mpsc::Sender<Vec<Past>>) -> Result<(), ArchiveError> {
    let mut reader = from_start(file, limits)?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while let Some(item) = reader.next()? {
        let Item::Past(past) = item else { continue };
        if let Past::Version(text) = &past {
            bytes += text.content.as_ref().map_or(0, Bytes::len);
        }
        page.push(past);
        if page.len() >= ROWS.0 || bytes >= ROWS.1 {
            bytes = 0;
            if send.blocking_send(std::mem::take(&mut page)).is_err() {
                return Ok(());
            }
        }
    }
    if !page.is_empty() {
        // Who does not take it any more has said why.
        let _ = send.blocking_send(page);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use stele_core::id::MemoryId;

    use super::*;

    #[test]
    fn only_what_others_wrote_is_planned_anew() {
        let path = || MemoryPath::parse("/a").expect("legal");
        let by = MemoryId::from_bytes([1; 16]);
        let occupied = || Refusal::PathOccupied { wanted: path(), by, at: path() };
        for refusal in [occupied(), occupied().at(3), Refusal::PathNotFound.at(0)] {
            assert!(outdated(&refusal.into()));
        }
        let full = Refusal::MemoryLimit { limit: 1 }.at(0);
        for error in [full.into(), Refusal::shape("changes", "none").into(), StorageError::Full.into()] {
            assert!(!outdated(&error), "{error}");
        }
    }

    #[test]
    fn what_is_done_is_neither_judged_nor_sent_again() {
        let mut writer = Writer::tree().expect("memory is enough");
        let paths = ["/a", "/b", "/c"].map(|path| MemoryPath::parse(path).expect("legal"));
        let at = stele_core::time::Timestamp::from_micros(1);
        paths.iter().for_each(|path| writer.file(path, at, path.as_str()).expect("it is written"));
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&writer.end_tree().expect("it ends")).expect("it is written");
        let (limits, done) = (Limits::default(), BTreeSet::from([paths[1].clone()]));
        // Room for two: the third was counted when it was made.
        let plan = Plan::new(Vec::new(), OnConflict::Refuse, 2);
        let plan = look_through(&file, &limits, plan, &done).expect("it may begin");
        let (send, mut slices) = mpsc::channel(2);
        send_slices(&file, &limits, &plan, (1, 100), &send).expect("it reads");
        drop(send);
        let mut sent = Vec::new();
        while let Some(slice) = slices.blocking_recv() {
            assert_eq!(slice.commands.len(), 1);
            sent.extend(slice.paths);
        }
        assert_eq!(sent, [paths[0].clone(), paths[2].clone()]);
    }
}
