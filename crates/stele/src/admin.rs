//! `stele key` and `stele workspace`: over HTTP, as any client.

use serde_json::{Value, json};

use crate::cli::{ClientFlags, CreateKey, Key, RoleName, Workspace};
use crate::connect::client;
use crate::ids::{key_token, key_uuid};
use crate::output::{print, print_json, print_table, time};
use crate::prompt::confirm;

pub(crate) fn key(action: Key, flags: &ClientFlags) -> anyhow::Result<()> {
    let client = client(flags)?;
    match action {
        Key::Create(wanted) => {
            let made = client.post("/stele/v1/api_keys", &key_body(wanted))?;
            show_secret(&made, flags.json, "api_key_id")
        }
        Key::List => {
            let mut keys = client.get("/stele/v1/api_keys")?;
            if flags.json {
                for key in keys["api_keys"].as_array_mut().into_iter().flatten() {
                    key["id"] = key["api_key_id"].as_str().and_then(key_token).into();
                }
                return print_json(&keys);
            }
            let columns = ["api_key_id", "name", "role", "permissions", "created_at", "expires_at", "user"];
            print_table(
                ["ID", "NAME", "ROLE", "PERMISSIONS", "CREATED", "EXPIRES", "PERSON"],
                &rows(&keys, "api_keys", columns),
            )
        }
        Key::Revoke { id, yes } => {
            // What is neither spelling goes as it is: the server says what is wrong with it.
            let id = key_uuid(&id).unwrap_or(id);
            confirm(&format!("Revoke the key {id}? What uses it stops working."), yes)?;
            client.delete(&format!("/stele/v1/api_keys/{id}"))?;
            if flags.json {
                return print_json(&json!({"api_key_id": id, "revoked": true}));
            }
            print(&format!("revoked {id}"))
        }
    }
}

fn key_body(wanted: CreateKey) -> Value {
    let mut body = json!({"name": wanted.name});
    if let Some(role) = wanted.role {
        body["role"] = match role {
            RoleName::Admin => "admin",
            RoleName::Developer => "developer",
            RoleName::Contributor => "contributor",
            RoleName::Reader => "reader",
        }
        .into();
    }
    if let Some(permissions) = wanted.permissions {
        body["permissions"] = permissions.into();
    }
    if let Some(end) = wanted.expires_at {
        body["expires_at"] = end.into();
    }
    if let Some(person) = wanted.user {
        body["user"] = person.into();
    }
    body
}

pub(crate) fn workspace(action: Workspace, flags: &ClientFlags) -> anyhow::Result<()> {
    let client = client(flags)?;
    match action {
        Workspace::Create { name, max_memories_per_store } => {
            let mut body = json!({"name": name});
            if let Some(most) = max_memories_per_store {
                body["max_memories_per_store"] = most.into();
            }
            let made = client.post("/stele/v1/workspaces", &body)?;
            show_secret(&made, flags.json, "workspace_id")
        }
        Workspace::List => {
            let workspaces = client.get("/stele/v1/workspaces")?;
            if flags.json {
                return print_json(&workspaces);
            }
            let columns = ["workspace_id", "name", "created_at"];
            print_table(["ID", "NAME", "CREATED"], &rows(&workspaces, "workspaces", columns))
        }
    }
}

fn show_secret(made: &Value, as_json: bool, id: &str) -> anyhow::Result<()> {
    if as_json {
        return print_json(made);
    }
    print(&format!("{id}: {}", text(&made[id])))?;
    print(&format!("key (shown once): {}", text(&made["key"])))
}

fn rows<const N: usize>(answer: &Value, list: &str, columns: [&str; N]) -> Vec<[String; N]> {
    let row = |row: &Value| {
        columns.map(|column| {
            let text = text(&row[column]);
            if column.ends_with("_at") { time(&text) } else { text }
        })
    };
    answer[list].as_array().into_iter().flatten().map(row).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
