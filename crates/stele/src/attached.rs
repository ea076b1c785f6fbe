//! Stores that are to be directories here, and the credential for them: those of a session, or named ones. DESIGN 6 and 9.

use serde_json::{Value, json};
use stele_client::Client;
use stele_core::work::attachment::Access;

use crate::cli::{Attach, ClientFlags, Directories};
use crate::commands::resolve;
use crate::connect::address_and_key;
use crate::failure::{Class, fail};
use crate::ids::{session_token, session_uuid, store_uuid};

/// What the tokens of sessions begin with.
const TOKEN: &str = "sts_";

/// A store that is to be a directory.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// Its id, `memstore_...`.
    pub(crate) id: String,
    /// The same as a UUID.
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// The name of its directory below the parent.
    pub(crate) directory: String,
    pub(crate) access: Access,
}

/// Stores with the credential that opens them.
pub(crate) struct Attachments {
    pub(crate) url: String,
    /// A session's token, or the key that was found.
    pub(crate) credential: String,
    pub(crate) stores: Vec<Attached>,
    /// Whether each store has a directory of its own below the one that was named.
    pub(crate) below: bool,
}

impl Attachments {
    /// What the command line names.
    ///
    /// # Errors
    /// No such session or store, or no credential that opens it.
    pub(crate) fn find(flags: &ClientFlags, named: &Directories) -> anyhow::Result<Self> {
        let session = named.session.as_deref().map(session_ids).transpose()?;
        let (url, key) = address_and_key(flags)?;
        match session {
            Some((id, uuid)) => of_session(url, key, &id, &uuid),
            None => of_stores(url, key, &named.store),
        }
    }

    /// A client with the credential.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, self.credential.as_str())
    }
}

/// A session's id in both spellings.
fn session_ids(named: &str) -> anyhow::Result<(String, String)> {
    let ids = session_token(named).zip(session_uuid(named));
    ids.ok_or_else(|| fail(Class::Usage, format!("{named:?} is not the id of a session, as in sesn_01...")))
}

fn of_session(url: String, key: String, id: &str, uuid: &str) -> anyhow::Result<Attachments> {
    let credential = if key.starts_with(TOKEN) { key } else { token(&Client::new(&url, key), uuid)? };
    let session = Client::new(&url, credential.as_str()).session(id)?;
    let of_store = |resource: &&Value| resource.get("type").and_then(Value::as_str) == Some("memory_store");
    let stores: Vec<Attached> = session
        .resources
        .iter()
        .filter(of_store)
        .map(attached)
        .collect::<Option<_>>()
        .ok_or_else(|| fail(Class::Other, "the server's answer about the session is not understood"))?;
    if stores.is_empty() {
        return Err(fail(Class::NotFound, format!("the session {id} has no store attached")));
    }
    Ok(Attachments { url, credential, stores, below: true })
}

/// A token of the session, so that the key need not go where the agent runs.
fn token(client: &Client, session: &str) -> anyhow::Result<String> {
    let answer = client.post(&format!("/stele/v1/sessions/{session}/tokens"), &json!({}))?;
    let token = answer.get("token").and_then(Value::as_str).map(str::to_owned);
    token.ok_or_else(|| fail(Class::Other, "the server's answer holds no token"))
}

/// An attachment of a session. spec/anthropic.md 6.2.
fn attached(resource: &Value) -> Option<Attached> {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let id = text("memory_store_id")?;
    let directory = text("mount_path")?.rsplit('/').next()?;
    // It comes from elsewhere and becomes a name here.
    if directory.is_empty() || directory.starts_with('.') {
        return None;
    }
    Some(Attached {
        id: id.to_owned(),
        uuid: store_uuid(id)?,
        name: text("name").unwrap_or(directory).to_owned(),
        directory: directory.to_owned(),
        access: Access::parse(text("access")?)?,
    })
}

fn of_stores(url: String, key: String, named: &[Attach]) -> anyhow::Result<Attachments> {
    let client = Client::new(&url, key.as_str());
    let slugs = if named.len() > 1 { client.slugs()? } else { Vec::new() };
    let mut stores: Vec<Attached> = Vec::new();
    for attach in named {
        let store = resolve::store(&client, &attach.store)?;
        let not_understood = || fail(Class::Other, format!("the store's id {} is not understood", store.id));
        let uuid = store_uuid(&store.id).ok_or_else(not_understood)?;
        if stores.iter().any(|other| other.id == store.id) {
            return Err(fail(Class::Usage, format!("the store {} is named twice", store.name)));
        }
        let slug = slugs.iter().find(|slug| slug.memory_store_id == uuid).map(|slug| slug.slug.clone());
        let access = if attach.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let directory = slug.unwrap_or_else(|| uuid.clone());
        stores.push(Attached { id: store.id, uuid, name: store.name, directory, access });
    }
    Ok(Attachments { url, credential: key, below: stores.len() > 1, stores })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_becomes_a_directory_with_a_plain_name_only() {
        let id = crate::ids::store_token("01890a5d-ac96-774b-bcce-b302099a8057").expect("an id");
        let resource = |path: &str| json!({"type": "memory_store", "memory_store_id": id, "access": "read_only", "name": "N", "mount_path": path});
        let found = attached(&resource("/mnt/memory/notes")).expect("an attachment");
        assert_eq!(
            (found.directory.as_str(), found.access, found.name.as_str()),
            ("notes", Access::ReadOnly, "N")
        );
        for bad in ["/mnt/memory/..", "/mnt/memory/", "/mnt/memory/.git"] {
            assert!(attached(&resource(bad)).is_none(), "{bad}");
        }
    }
}
