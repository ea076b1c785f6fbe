//! Attachments: stores that a session carries, fixed when it is made. spec/anthropic.md 6, spec/recursion.md 11.4.

use serde::{Deserialize, Serialize};

use crate::id::StoreId;
use crate::limits::Limits;
use crate::model::{Origin, Status, Store};
use crate::refusal::Refusal;
use crate::text::{self, TextError};

/// Where sessions find their stores.
pub const MOUNT_ROOT: &str = "/mnt/memory";

/// What a session may do with an attached store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read it.
    ReadOnly,
    /// Read and change it.
    ReadWrite,
}

impl Access {
    /// Its name in both dialects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::ReadWrite => "read_write",
        }
    }

    /// The access of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::ReadOnly, Self::ReadWrite].into_iter().find(|access| access.as_str() == name)
    }
}

/// A store attached to a session. Never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The store.
    pub store: StoreId,
    /// What the session may do with it.
    pub access: Access,
    /// What the session is told about it.
    pub instructions: Option<String>,
    /// The store's name when the session began.
    pub name: String,
    /// The store's description when the session began.
    pub description: String,
    /// The name of its directory below [`MOUNT_ROOT`], unlike all others of the session.
    pub directory: String,
    /// Whether it is the agent's learned store.
    pub learned: bool,
}

impl Attachment {
    /// Where the session finds it.
    pub fn mount_path(&self) -> String {
        format!("{MOUNT_ROOT}/{}", self.directory)
    }
}

/// A store that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The store.
    pub store: StoreId,
    /// The access asked for.
    pub access: Access,
    /// What the session is to be told about it.
    pub instructions: Option<String>,
}

/// How the directories of a session are called. spec/recursion.md 16.4.
#[derive(Clone, Copy, Debug)]
pub enum Naming {
    /// By the store's name now. A store whose name leaves nothing goes by its id, as the function spells it.
    ByName(fn(StoreId) -> String),
    /// By the store's slug.
    BySlug,
}

impl Naming {
    fn directory(self, store: &Store) -> String {
        match self {
            Self::BySlug => store.slug.clone(),
            Self::ByName(spell) => match text::slug(store.name.as_str()) {
                empty if empty.is_empty() => spell(store.id),
                slug => slug,
            },
        }
    }
}

/// Judges what a session asks for before its stores are looked up: how many, each once, instructions that fit.
/// `field` spells the place of the `n`th.
///
/// # Errors
/// The first that is refused.
pub fn check(
    wanted: &[Wanted],
    limits: &Limits,
    field: impl Fn(usize, &'static str) -> String,
) -> Result<(), Refusal> {
    let (most, chars) = (limits.stores_per_session, limits.instructions_chars);
    for (n, one) in wanted.iter().enumerate() {
        if n >= most {
            let problem = format!("a session has at most {most} memory stores");
            return Err(Refusal::shape(field(n, ""), problem));
        }
        if wanted[..n].iter().any(|other| other.store == one.store) {
            return Err(Refusal::shape(field(n, "memory_store_id"), "is attached twice"));
        }
        let actual = one.instructions.as_deref().map_or(0, |text| text.chars().count());
        if actual > chars {
            return Err(Refusal::invalid(
                field(n, "instructions"),
                TextError::TooLong { max: chars, actual },
            ));
        }
    }
    Ok(())
}

/// Attaches a store that is there, in the place of the `taken` ones. A learned store is attached read_only whatever
/// was asked.
///
/// # Errors
/// It is archived.
pub fn attach(
    wanted: &Wanted,
    store: &Store,
    naming: Naming,
    taken: &[Attachment],
) -> Result<Attachment, Refusal> {
    if store.status() == Status::Archived {
        return Err(Refusal::StoreArchived(store.id));
    }
    let learned = store.origin == Origin::Reflection;
    let base = naming.directory(store);
    let is_free = |name: &String| taken.iter().all(|other| other.directory != *name);
    let directory = (1..).map(|number| text::numbered_slug(&base, number)).find(is_free);
    Ok(Attachment {
        store: store.id,
        access: if learned { Access::ReadOnly } else { wanted.access },
        instructions: wanted.instructions.clone(),
        name: store.name.as_str().to_owned(),
        description: store.description.as_str().to_owned(),
        directory: directory.expect("one of endless numbers is free"),
        learned,
    })
}
