//! `stele key` and `stele workspace`: over HTTP, as any client.

use anyhow::Context;
use serde_json::{Value, json};
use stele_client::Client;

use crate::cli::{ClientFlags, CreateKey, Key, RoleName, Workspace};
use crate::config::{default_data_dir, process_env};
use crate::first_start::admin_key_file;
use crate::output::say;

const URL: &str = "http://127.0.0.1:7878";

/// The server and key that a command speaks with: flags, environment, else the admin key of this machine.
fn client(flags: &ClientFlags) -> anyhow::Result<Client> {
    let url = flags.url.clone().or_else(|| process_env("STELE_URL")).unwrap_or_else(|| URL.into());
    let key = match process_env("STELE_API_KEY") {
        Some(key) => key,
        None => {
            let path = admin_key_file(&default_data_dir(&process_env)?);
            std::fs::read_to_string(&path).with_context(|| {
                format!(
                    "there is no API key: set STELE_API_KEY, or start a server here ({} is missing)",
                    path.display()
                )
            })?
        }
    };
    Ok(Client::new(&url, key.trim()))
}

pub(crate) fn key(action: Key, flags: ClientFlags) -> anyhow::Result<()> {
    let client = client(&flags)?;
    match action {
        Key::Create(wanted) => {
            let made = client.post("/stele/v1/api_keys", &key_body(wanted))?;
            show_secret(&made, flags.json, "api_key_id");
        }
        Key::List => {
            let keys = client.get("/stele/v1/api_keys")?;
            let columns = ["api_key_id", "name", "role", "permissions", "created_at", "expires_at"];
            show_table(&keys, "api_keys", &columns, flags.json);
        }
        Key::Revoke { id } => {
            client.delete(&format!("/stele/v1/api_keys/{id}"))?;
            if !flags.json {
                say(&format!("revoked {id}"));
            }
        }
    }
    Ok(())
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

pub(crate) fn workspace(action: Workspace, flags: ClientFlags) -> anyhow::Result<()> {
    let client = client(&flags)?;
    match action {
        Workspace::Create { name } => {
            let made = client.post("/stele/v1/workspaces", &json!({"name": name}))?;
            show_secret(&made, flags.json, "workspace_id");
        }
        Workspace::List => {
            let workspaces = client.get("/stele/v1/workspaces")?;
            show_table(&workspaces, "workspaces", &["workspace_id", "name", "created_at"], flags.json);
        }
    }
    Ok(())
}

fn show_secret(made: &Value, as_json: bool, id: &str) {
    if as_json {
        return say(&made.to_string());
    }
    say(&format!("{id}: {}", cell(&made[id])));
    say(&format!("key (shown once): {}", cell(&made["key"])));
}

fn show_table(answer: &Value, list: &str, columns: &[&str], as_json: bool) {
    if as_json {
        return say(&answer.to_string());
    }
    let rows: Vec<Vec<String>> = answer[list]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| columns.iter().map(|column| cell(&row[*column])).collect())
        .collect();
    let header = columns.iter().map(|column| column.to_uppercase()).collect();
    let table: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let width = |n: usize| table.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for row in &table {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
        say(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// A value as a person reads it; what could steer a terminal is taken out.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}
