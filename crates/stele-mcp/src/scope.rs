//! Which stores the tools reach: a session's attachments, an agent's learned memory and named stores, or all that
//! the credential opens. DESIGN 10.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stele_client::ClientError;
use stele_http::query::Query;

use crate::door::{Ask, Door};
use crate::ids::{agent_uuid, session_token, session_uuid, store_token, store_uuid};

/// Where sessions see their stores. spec/anthropic.md 6.2.
const MOUNTS: &str = "/mnt/memory/";
const STORES: &str = "/managed-agents/v1/memory_stores";

/// What was asked for: words of the command line, or of the query at `/mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The session whose attachments are meant.
    pub session: Option<String>,
    /// Agents whose learned memory is meant.
    pub agents: Vec<String>,
    /// Stores by id or slug; with `:ro` behind it, one that is only read.
    pub stores: Vec<String>,
}

impl Words {
    /// The words in a query. One that is not known is refused: overlooking a misspelt one would widen the scope.
    ///
    /// # Errors
    /// Another parameter, or two sessions.
    pub fn of_query(raw: Option<&str>) -> Result<Self, ScopeError> {
        let query = Query::parse(raw);
        let known =
            |name: &str| ["session", "agent", "store"].contains(&name.strip_suffix("[]").unwrap_or(name));
        if query.names().any(|name| !known(name)) {
            return Err(ScopeError::Words("the parameters of /mcp are session, agent and store".into()));
        }
        let all = |name| query.all(name).map(str::to_owned).collect::<Vec<_>>();
        let mut sessions = all("session");
        let session = sessions.pop();
        if !sessions.is_empty() {
            return Err(ScopeError::Words("name one session".into()));
        }
        let words = Self { session, agents: all("agent"), stores: all("store") };
        words.checked()
    }

    /// These words, if they go together.
    ///
    /// # Errors
    /// A session beside something else.
    pub fn checked(self) -> Result<Self, ScopeError> {
        if self.session.is_some() && !(self.agents.is_empty() && self.stores.is_empty()) {
            let text = "a session has its own stores: name either a session, or agents and stores";
            return Err(ScopeError::Words(text.into()));
        }
        Ok(self)
    }
}

/// Why there is no scope.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The words are wrong.
    #[error("{0}")]
    Words(String),
    /// What they name is not there, or not for this credential.
    #[error("{0}")]
    Missing(String),
    /// The server refuses, or there is none.
    #[error(transparent)]
    Server(#[from] ClientError),
}

/// What may be written in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) create: bool,
    pub(crate) update: bool,
    pub(crate) delete: bool,
}

impl Rights {
    pub(crate) const ALL: Self = Self { create: true, update: true, delete: true };

    fn and(self, other: Self) -> Self {
        Self {
            create: self.create && other.create,
            update: self.update && other.update,
            delete: self.delete && other.delete,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            create: self.create || other.create,
            update: self.update || other.update,
            delete: self.delete || other.delete,
        }
    }

    fn of(permissions: &[String]) -> Self {
        let has = |name: &str| permissions.iter().any(|permission| permission == name);
        Self { create: has("create"), update: has("update"), delete: has("delete") }
    }

    /// The access that it comes to, in the word of an attachment.
    pub(crate) fn access(self) -> &'static str {
        if self == Self::default() { "read_only" } else { "read_write" }
    }
}

/// A store in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// Its id, as a UUID.
    pub(crate) id: String,
    /// Its slug: the name of its mount directory.
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// What the attachment says about its use.
    pub(crate) instructions: String,
    pub(crate) rights: Rights,
    pub(crate) archived: bool,
}

impl Store {
    /// A path of the Anthropic dialect below the store.
    pub(crate) fn anthropic(&self, rest: &str) -> String {
        format!("/v1/memory_stores/{}{rest}", store_token(&self.id).unwrap_or_default())
    }

    /// A path of the Recursion dialect below the store.
    pub(crate) fn recursion(&self, rest: &str) -> String {
        format!("{STORES}/{}{rest}", self.id)
    }
}

/// The stores in scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub(crate) stores: Vec<Store>,
}

/// The answer of `/stele/v1/self`.
#[derive(Debug, Deserialize)]
struct Own {
    r#type: String,
    permissions: Vec<String>,
    session_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Session {
    resources: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Attachment {
    memory_store_id: String,
    access: String,
    instructions: Option<String>,
    name: String,
    description: Option<String>,
    mount_path: String,
}

#[derive(Debug, Deserialize)]
struct Stores {
    memory_stores: Vec<Listed>,
}

/// A store as the Recursion dialect shows it. spec/recursion.md 4.1.
#[derive(Debug, Deserialize)]
struct Listed {
    memory_store_id: String,
    slug: String,
    name: String,
    #[serde(default)]
    description: String,
    origin: String,
    status: String,
}

impl Listed {
    fn store(self, rights: Rights) -> Store {
        let archived = self.status == "archived";
        let learned = self.origin == "reflection";
        Store {
            id: self.memory_store_id,
            slug: self.slug,
            name: self.name,
            description: self.description,
            instructions: String::new(),
            rights: if archived || learned { Rights::default() } else { rights },
            archived,
        }
    }
}

async fn typed<T: DeserializeOwned>(door: &impl Door, path: String) -> Result<T, ClientError> {
    let answer = door.ask(Ask::Get(path)).await?;
    serde_json::from_value(answer)
        .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })
}

/// That a thing is missing is said alike, whether it is unknown, of another workspace, or out of a token's reach.
fn missing(what: &str) -> impl Fn(ClientError) -> ScopeError {
    let text = format!("{what} not found");
    move |error| match error.status() {
        Some(404 | 400) => ScopeError::Missing(text.clone()),
        _ => error.into(),
    }
}

impl Scope {
    /// The stores that `words` mean for whoever is at the door.
    ///
    /// # Errors
    /// What they name is not there, or the server cannot be asked.
    pub async fn resolve(door: &impl Door, words: &Words) -> Result<Self, ScopeError> {
        let own: Own = typed(door, "/stele/v1/self".into()).await?;
        let rights = Rights::of(&own.permissions);
        if own.r#type == "environment_key" {
            let text = "the key of an environment opens no memory: use an API key, or a token of the session";
            return Err(ScopeError::Words(text.into()));
        }
        let named = words
            .session
            .as_deref()
            .map(|text| session_uuid(text).ok_or_else(|| ScopeError::Missing("session not found".into())));
        let stores = match (named.transpose()?, own.session_id) {
            (Some(named), Some(own)) if named != own => {
                return Err(ScopeError::Missing("session not found".into()));
            }
            (Some(session), _) => attachments(door, &session, rights).await?,
            (None, Some(session)) => {
                let attached = attachments(door, &session, rights).await?;
                if words.stores.is_empty() && words.agents.is_empty() {
                    attached
                } else {
                    some(attached, words)?
                }
            }
            (None, None) if words.agents.is_empty() && words.stores.is_empty() => {
                let all: Stores = typed(door, format!("{STORES}?include_archived=true")).await?;
                all.memory_stores.into_iter().map(|listed| listed.store(rights)).collect()
            }
            (None, None) => named_stores(door, words, rights).await?,
        };
        Ok(Self { stores })
    }

    /// What may be written somewhere in scope.
    pub(crate) fn rights(&self) -> Rights {
        self.stores.iter().fold(Rights::default(), |all, store| all.or(store.rights))
    }

    /// The store that a tool's `store` means: id, slug or mount directory; where none is named, the only one.
    /// The message does not tell a store out of scope from one that does not exist.
    pub(crate) fn store(&self, named: Option<&str>) -> Result<&Store, String> {
        let Some(named) = named else {
            let mut active = self.stores.iter().filter(|store| !store.archived);
            let only = (active.next().or(self.stores.first()), active.next());
            return match only {
                (Some(store), None) => Ok(store),
                (None, _) => Err("No store is in scope, so there is no memory to work with.".into()),
                _ => Err(format!("Several stores are in scope: name one with `store`. {}", self.list())),
            };
        };
        let id = store_uuid(named);
        let directory = named.strip_prefix(MOUNTS).unwrap_or(named).trim_end_matches('/');
        let found =
            self.stores.iter().find(|store| Some(&store.id) == id.as_ref() || store.slug == directory);
        found.ok_or_else(|| format!("That store is not in scope. {}", self.list()))
    }

    fn list(&self) -> String {
        const MOST: usize = 50;
        let active: Vec<_> = self.stores.iter().filter(|store| !store.archived).collect();
        let names: Vec<_> = active.iter().take(MOST).map(|store| format!("`{}`", store.slug)).collect();
        let more = match active.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if names.is_empty() {
            "No store is in scope.".into()
        } else {
            format!("In scope: {}{more}.", names.join(", "))
        }
    }
}

/// The stores attached to a session, each in its access.
async fn attachments(door: &impl Door, uuid: &str, rights: Rights) -> Result<Vec<Store>, ScopeError> {
    let address = format!("/v1/sessions/{}", session_token(uuid).unwrap_or_default());
    let session: Session = typed(door, address).await.map_err(missing("session"))?;
    let attached = session.resources.into_iter().filter(|resource| resource["type"] == "memory_store");
    let store = |resource| {
        let of: Attachment = serde_json::from_value(resource)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })?;
        Ok(Store {
            id: store_uuid(&of.memory_store_id).unwrap_or_default(),
            slug: of.mount_path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned(),
            name: of.name,
            description: of.description.unwrap_or_default(),
            instructions: of.instructions.unwrap_or_default(),
            rights: if of.access == "read_write" { rights } else { Rights::default() },
            archived: false,
        })
    };
    attached.map(store).collect()
}

/// Of a session's stores those that are named.
fn some(attached: Vec<Store>, words: &Words) -> Result<Vec<Store>, ScopeError> {
    if !words.agents.is_empty() {
        return Err(ScopeError::Missing("agent not found".into()));
    }
    let scope = Scope { stores: attached };
    let chosen = words.stores.iter().map(|word| {
        let (named, most) = split(word);
        let store =
            scope.store(Some(named)).map_err(|_| ScopeError::Missing(format!("store {named} not found")))?;
        Ok(Store { rights: store.rights.and(most), ..store.clone() })
    });
    chosen.collect()
}

/// A store's name, and what may be written there at most.
fn split(word: &str) -> (&str, Rights) {
    word.strip_suffix(":ro").map_or((word, Rights::ALL), |named| (named, Rights::default()))
}

async fn named_stores(door: &impl Door, words: &Words, rights: Rights) -> Result<Vec<Store>, ScopeError> {
    let mut stores: Vec<Store> = Vec::new();
    for agent in &words.agents {
        let not_found = || ScopeError::Missing(format!("agent {agent} not found"));
        let id = agent_uuid(agent).ok_or_else(not_found)?;
        let what = format!("agent {agent}");
        let _agent: Value =
            typed(door, format!("/managed-agents/v1/agents/{id}")).await.map_err(missing(&what))?;
        let learned: Stores = typed(door, format!("{STORES}?agent_id={id}&origin=reflection")).await?;
        stores.extend(learned.memory_stores.into_iter().map(|listed| listed.store(Rights::default())));
    }
    let mut listed: Option<Vec<Store>> = None;
    for word in &words.stores {
        let (named, most) = split(word);
        let store = match store_uuid(named) {
            Some(id) => {
                let what = format!("store {named}");
                let found: Listed = typed(door, format!("{STORES}/{id}")).await.map_err(missing(&what))?;
                found.store(rights)
            }
            None => {
                if listed.is_none() {
                    let all: Stores = typed(door, format!("{STORES}?include_archived=true")).await?;
                    listed = Some(all.memory_stores.into_iter().map(|found| found.store(rights)).collect());
                }
                let found = listed.iter().flatten().find(|store| store.slug == named);
                found.cloned().ok_or_else(|| ScopeError::Missing(format!("store {named} not found")))?
            }
        };
        stores.push(Store { rights: store.rights.and(most), ..store });
    }
    let mut seen = std::collections::HashSet::new();
    stores.retain(|store| seen.insert(store.id.clone()));
    Ok(stores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(raw: &str) -> Result<Words, String> {
        Words::of_query(Some(raw)).map_err(|error| error.to_string())
    }

    pub(crate) fn store(id: u8, slug: &str, rights: Rights) -> Store {
        Store {
            id: stele_core::id::StoreId::from_bytes([id; 16]).to_string(),
            slug: slug.into(),
            name: slug.to_uppercase(),
            description: String::new(),
            instructions: String::new(),
            rights,
            archived: false,
        }
    }

    #[test]
    fn a_query_names_a_session_or_agents_and_stores_and_nothing_else() {
        let stores = Words { stores: vec!["a:ro".into(), "b".into()], ..Words::default() };
        assert_eq!(words("store=a:ro&store=b"), Ok(stores));
        assert_eq!(words("session=s").map(|words| words.session), Ok(Some("s".into())));
        assert_eq!(words(""), Ok(Words::default()));
        for bad in ["sesion=s", "session=a&session=b", "session=a&store=b", "x=1"] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_store_goes_by_id_slug_or_directory_and_needs_no_name_where_it_is_alone() {
        let mut scope = Scope { stores: vec![store(1, "notes", Rights::ALL)] };
        assert_eq!(scope.store(None).map(|store| store.slug.as_str()), Ok("notes"));
        scope.stores.push(store(2, "old", Rights::default()));
        scope.stores[1].archived = true;
        assert!(scope.store(None).is_ok(), "an archived one is no choice");
        scope.stores[1].archived = false;
        assert!(scope.store(None).is_err_and(|text| text.contains("`notes`, `old`")));
        let (id, token) = (scope.stores[1].id.clone(), scope.stores[1].anthropic(""));
        let token = token.rsplit('/').next().expect("an id").to_owned();
        for named in ["old", "/mnt/memory/old", "/mnt/memory/old/", &id, &token] {
            assert_eq!(scope.store(Some(named)).map(|store| store.slug.as_str()), Ok("old"), "{named}");
        }
        assert!(Scope::default().store(None).is_err());
    }

    #[test]
    fn a_foreign_store_reads_like_one_that_does_not_exist() {
        let scope = Scope { stores: vec![store(1, "notes", Rights::ALL)] };
        let foreign = stele_core::id::StoreId::from_bytes([9; 16]).to_string();
        assert_eq!(scope.store(Some(&foreign)), scope.store(Some("nonsense")));
    }
}
