//! The built binary as tests use it: a server of their own, and requests to it.

#![allow(dead_code, unreachable_pub, reason = "each file of tests uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub fn stele(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stele"));
    command.env_clear().env("HOME", data_dir).env("STELE_DATA_DIR", data_dir).stdin(Stdio::null());
    command
}

/// A running server.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    /// Starts one on the database, or on the embedded one.
    pub fn start(data_dir: &Path, database_url: Option<&str>) -> Self {
        let mut command = stele(data_dir);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if let Some(url) = database_url {
            command.env("STELE_DATABASE_URL", url);
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let address = line.trim().rsplit("http://").next().expect("an address").to_owned();
        Self { child, address }
    }

    /// One request on a connection of its own; `None` if the server goes away before it has answered whole.
    pub fn ask(&self, key: &str, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: stele\r\nconnection: close\r\nx-api-key: {key}\r\n\
             anthropic-beta: agent-memory-2026-07-22\r\nanthropic-version: 2023-06-01\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.to_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length: ").and_then(|length| length.parse::<usize>().ok())
        });
        (length == Some(body.len()) || status == 204).then_some(())?;
        Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    pub fn get(&self, key: &str, path: &str) -> Value {
        let (status, body) = self.ask(key, "GET", path, &Value::Null).expect("an answer");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The paths of a store's memories, in their order.
    pub fn paths(&self, key: &str, store: &str) -> Vec<String> {
        let (mut paths, mut page) = (Vec::new(), String::new());
        loop {
            let listed = self.get(key, &format!("/v1/memory_stores/{store}/memories?limit=100{page}"));
            let data = listed["data"].as_array().expect("a list");
            paths.extend(data.iter().map(|memory| memory["path"].as_str().expect("a path").to_owned()));
            let Some(next) = listed["next_page"].as_str() else { return paths };
            page = format!("&page={next}");
        }
    }

    pub fn post(&self, key: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(key, "POST", path, body).expect("an answer");
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// The life that the database is in.
    pub fn epoch(&self, key: &str) -> String {
        let head = self.head(key, "/v1/memory_stores").to_lowercase();
        let value = head.lines().find_map(|line| line.strip_prefix("stele-epoch: "));
        value.expect("every answer says it").trim().to_owned()
    }

    /// The status line and headers of an answer.
    fn head(&self, key: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: stele\r\nconnection: close\r\nx-api-key: {key}\r\n\
             anthropic-beta: agent-memory-2026-07-22\r\nanthropic-version: 2023-06-01\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split("\r\n\r\n").next().unwrap_or_default().to_owned()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn admin_key(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("admin-key")).expect("the admin key").trim().to_owned()
}

pub fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

pub fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
