//! `stele key` and `stele workspace`: over HTTP, as any client.

use serde_json::{Value, json};

use crate::cli::{ClientFlags, CreateKey, Key, RoleName, Workspace};
use crate::connect::client;
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
            let keys = client.get("/stele/v1/api_keys")?;
            if flags.json {
                return print_json(&keys);
            }
            let columns = ["api_key_id", "name", "role", "permissions", "created_at", "expires_at"];
            print_table(
                ["ID", "NAME", "ROLE", "PERMISSIONS", "CREATED", "EXPIRES"],
                &rows(&keys, "api_keys", columns),
            )
        }
        Key::Revoke { id, yes } => {
            confirm(&format!("Revoke the key {id}? What uses it stops working."), yes)?;
            client.delete(&format!("/stele/v1/api_keys/{id}"))?;
            if flags.json { Ok(()) } else { print(&format!("revoked {id}")) }
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
    body
}

pub(crate) fn workspace(action: Workspace, flags: &ClientFlags) -> anyhow::Result<()> {
    let client = client(flags)?;
    match action {
        Workspace::Create { name } => {
            let made = client.post("/stele/v1/workspaces", &json!({"name": name}))?;
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
