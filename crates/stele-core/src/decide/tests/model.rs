//! The smallest back end: maps in memory, which load situations and apply writes as the port asks for.

use std::collections::BTreeMap;

use crate::command::MemoryRef;
use crate::decide::*;
use crate::hash::Sha256;
use crate::id::{KeyId, MemoryId};
use crate::text::{Content, Description, MetadataPatch, Name, Summary};

/// One store and all that is in it.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) store: Option<Store>,
    pub(super) memories: BTreeMap<MemoryPath, Current>,
    /// In the order written.
    pub(super) versions: Vec<NewVersion>,
    /// In the order written; those of a deleted store stay.
    pub(super) marks: Vec<Mark>,
    /// The text that each version still holds.
    pub(super) texts: BTreeMap<VersionId, Content>,
    pub(super) limits: Limits,
    /// The clock, in microseconds; tests may set it back.
    pub(super) now: i64,
    pub(super) actor: Actor,
    dice: u64,
}

pub(super) const START: i64 = 1_790_000_000_000_000;

pub(super) fn actor(n: u64) -> Actor {
    Actor::ApiKey(KeyId::mint(Timestamp::from_micros(1), n))
}

pub(super) fn new_store(name: &str) -> NewStore {
    NewStore {
        name: Name::parse(name).expect("a legal name"),
        description: Description::parse("").expect("empty is legal"),
        metadata: metadata(&[]),
        agent: None,
        learned: None,
    }
}

pub(super) fn metadata(pairs: &[(&str, Option<&str>)]) -> MetadataPatch {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    MetadataPatch::parse(pairs).expect("a legal patch")
}

pub(super) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a legal path")
}

pub(super) fn text(content: &str) -> Content {
    Content::parse(content, 102_400).expect("a legal content")
}

pub(super) fn summary(text: &str) -> Summary {
    Summary::parse(text, 512).expect("a legal summary")
}

pub(super) fn workspace() -> WorkspaceId {
    WorkspaceId::mint(Timestamp::from_micros(1), 1)
}

/// An update that changes nothing yet.
pub(super) fn update(memory: MemoryId) -> Update {
    Update { memory, path: None, summary: None, content: None, expected: Expected::Anything }
}

/// An update in the making.
pub(super) struct Update {
    memory: MemoryId,
    path: Option<MemoryPath>,
    summary: Option<Summary>,
    content: Option<Content>,
    expected: Expected,
}

impl Update {
    pub(super) fn path(self, to: &str) -> Self {
        Self { path: Some(path(to)), ..self }
    }

    pub(super) fn summary(self, to: &str) -> Self {
        Self { summary: Some(summary(to)), ..self }
    }

    pub(super) fn content(self, to: &str) -> Self {
        Self { content: Some(text(to)), ..self }
    }

    pub(super) fn expecting(self, content: &str) -> Self {
        Self { expected: Expected::Content(Sha256::of(content.as_bytes())), ..self }
    }

    pub(super) fn command(self) -> Command {
        let Self { memory, path, summary, content, expected } = self;
        Command::UpdateMemory { memory: memory.into(), path, summary, content, expected }
    }
}

impl Model {
    pub(super) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(super) fn with_limits(limits: Limits) -> Self {
        let situation = WorkspaceSituation { workspace: workspace(), stores: 0 };
        let now = Timestamp::from_micros(START);
        let context = Context { actor: actor(0), reason: None, now, random: [7, 8], limits: &limits };
        let store = decide_store(&situation, &new_store("Notes"), &context).expect("a legal store");
        Self {
            store: Some(store),
            memories: BTreeMap::new(),
            versions: Vec::new(),
            marks: Vec::new(),
            texts: BTreeMap::new(),
            limits,
            now: START,
            actor: actor(0),
            dice: 0,
        }
    }

    pub(super) fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is there")
    }

    pub(super) fn live(&self, id: MemoryId) -> Option<&Current> {
        self.memories.values().find(|current| current.memory.id == id)
    }

    pub(super) fn id_of(&self, which: &MemoryRef) -> Option<MemoryId> {
        match which {
            MemoryRef::Id(id) => Some(*id),
            MemoryRef::Path(path) => self.memories.get(path).map(|current| current.memory.id),
        }
    }

    pub(super) fn version(&self, id: VersionId) -> Option<&NewVersion> {
        self.versions.iter().find(|new| new.version.id == id)
    }

    pub(super) fn newest(&self) -> &Version {
        &self.versions.last().expect("a version").version
    }

    /// Decides and applies.
    pub(super) fn run(&mut self, command: &Command) -> Result<Decision, Refusal> {
        self.dice += 1;
        // Falling bits, so that ids can only increase by their times.
        let random = [u64::MAX - self.dice, self.dice];
        let now = Timestamp::from_micros(self.now);
        let context = Context { actor: self.actor, reason: None, now, random, limits: &self.limits };
        let id = StoreId::mint(now, 0);
        let decision = decide(&self.situation(command), id, command, &context)?;
        decision.writes.iter().for_each(|write| self.apply(write));
        Ok(decision)
    }

    /// Runs what must not be refused and must write a version; answers with it.
    pub(super) fn write(&mut self, command: &Command) -> Version {
        let before = self.versions.len();
        self.run(command).expect("not refused");
        assert_eq!(self.versions.len(), before + 1, "one version for {command:?}");
        self.newest().clone()
    }

    /// Runs what must be refused.
    pub(super) fn refused(&mut self, command: &Command) -> Refusal {
        self.run(command).expect_err("refused")
    }

    pub(super) fn create(&mut self, at: &str, content: &str) -> MemoryId {
        self.write(&create(at, content)).memory
    }

    fn situation(&self, command: &Command) -> Situation {
        let version = command.version().and_then(|id| self.version(id));
        let memory_id =
            command.memory().and_then(|which| self.id_of(which)).or(version.map(|new| new.version.memory));
        let memory = memory_id.and_then(|id| self.live(id)).cloned();
        let wanted = match (command, version, &memory) {
            (Command::RestoreVersion { .. }, Some(new), None) => new.version.path.as_ref(),
            _ => command.wanted_path(),
        };
        let others = self.memories.iter().filter(|(_, current)| Some(current.memory.id) != memory_id);
        let occupant = wanted.and_then(|wanted| others.into_iter().find(|(path, _)| path.overlaps(wanted)));
        Situation {
            store: self.store.clone(),
            memory,
            version: version.map(|new| (new.version.clone(), new.summary.clone())),
            occupant: occupant.map(|(path, current)| Occupant { id: current.memory.id, path: path.clone() }),
            memories_cap: None,
        }
    }

    fn apply(&mut self, write: &Write) {
        let store = self.store.as_mut().expect("nothing is written to a deleted store");
        match write {
            Write::Store(new) => *store = (**new).clone(),
            Write::Counters { changed_at, counters } => {
                store.changed_at = *changed_at;
                store.counters = *counters;
            }
            Write::Mark(mark) => self.marks.push(*mark),
            Write::DeleteStore { .. } => {
                self.store = None;
                self.memories.clear();
                self.versions.clear();
                self.texts.clear();
            }
            Write::InsertMemory(memory) => self.put(memory),
            Write::ReplaceMemory(memory) => {
                self.remove(memory.id);
                self.put(memory);
            }
            Write::RemoveMemory(id) => self.remove(*id),
            Write::AppendVersion(new) => self.append(new),
            Write::Redact { version, redaction, path } => self.redact(*version, *redaction, *path),
        }
    }

    fn put(&mut self, memory: &Memory) {
        assert!(self.live(memory.id).is_none(), "one live memory an id");
        // The summary comes with the version, which is written next.
        let current = Current { memory: memory.clone(), summary: Summary::empty() };
        assert_eq!(self.memories.insert(memory.path.clone(), current), None, "one live memory a path");
    }

    fn remove(&mut self, id: MemoryId) {
        let path = self.live(id).expect("the memory is live").memory.path.clone();
        self.memories.remove(&path);
    }

    fn append(&mut self, new: &NewVersion) {
        let id = new.version.id;
        let content = match &new.content {
            NewContent::None => None,
            NewContent::Text(content) => Some(content.clone()),
            NewContent::CopyOf(old) => {
                let source = self.version(*old).expect("the version copied is kept");
                assert_eq!(source.version.memory, new.version.memory, "copies stay within a memory");
                Some(self.texts.get(old).expect("the version copied holds its text").clone())
            }
        };
        let recorded = content
            .as_ref()
            .map(|content| Recorded { content_sha256: content.sha256(), size_bytes: content.size_bytes() });
        assert_eq!(new.version.recorded, recorded, "the version records its own text");
        self.texts.extend(content.map(|content| (id, content)));
        if let Some(current) = self.memories.values_mut().find(|current| current.memory.version == id) {
            current.summary = new.summary.clone().expect("a live memory has a summary");
        }
        self.versions.push(new.clone());
    }

    fn redact(&mut self, id: VersionId, redaction: Redaction, path: RedactedPath) {
        self.texts.remove(&id);
        let new = self.versions.iter_mut().find(|new| new.version.id == id).expect("the version is kept");
        new.summary = None;
        new.version.recorded = None;
        new.version.redaction = Some(redaction);
        if path == RedactedPath::Scrub {
            new.version.path = None;
        }
    }
}

pub(super) fn create(at: &str, content: &str) -> Command {
    Command::CreateMemory { path: path(at), summary: summary("about it"), content: text(content) }
}

pub(super) fn delete(memory: MemoryId) -> Command {
    Command::DeleteMemory {
        memory: memory.into(),
        expected: Expected::Anything,
        on_archived: OnArchived::Refuse,
    }
}

pub(super) fn restore(version: &Version) -> Command {
    Command::RestoreVersion { version: version.id }
}

pub(super) fn redact(version: &Version, path: RedactedPath) -> Command {
    Command::RedactVersion { version: version.id, path }
}
