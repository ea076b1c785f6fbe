//! Redaction on PostgreSQL: unreadable at once, physically gone after `stele scrub`. DESIGN 3.3.

use std::path::Path;

use stele_core::command::{Command, RedactedPath};
use throwaway_postgres::Cluster;

mod kit;
use kit::*;

/// The files below `dir` that hold `needle`.
fn files_with(dir: &Path, needle: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let mut at = 0;
            // Most bytes are skipped by looking for the first one only.
            while let Some(next) = bytes[at..].iter().position(|byte| *byte == needle[0]) {
                at += next;
                if bytes[at..].starts_with(needle) {
                    found.push(path.display().to_string());
                    break;
                }
                at += 1;
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_words_and_those_of_deleted_stores_are_in_no_file_after_a_scrub() {
    let cluster = Cluster::start(&["max_connections=40"]);
    cluster.sql("postgres", "CREATE DATABASE stele");
    let url = cluster.url("stele");
    let server = open(&url).await;
    let workspace = install(&server).await.first_workspace;
    let (kept, gone) =
        (new_store(&server, workspace, "Kept").await, new_store(&server, workspace, "canary name").await);
    let long = format!("{}token canary-7f3a91 end", "filler ".repeat(2_000));
    for n in 0..20 {
        written(&server, &gone, create(&format!("/canary-path{n}"), "token canary-55 end")).await;
    }
    let memory = written(&server, &kept, create("/canary-path", &long)).await;
    written(&server, &kept, update(memory.id, "token canary-8 end", None)).await;
    let moved = Command::UpdateMemory {
        memory: memory.id.into(),
        path: Some(stele_core::path::MemoryPath::parse("/clean").expect("legal")),
        summary: None,
        content: Some(stele_core::text::Content::parse("clean", 100).expect("legal")),
        expected: stele_core::command::Expected::Anything,
    };
    written(&server, &kept, moved).await;
    assert_ne!(files_with(&cluster.data_dir(), b"canary"), [] as [String; 0], "they lie there as they are");
    for version in versions(&server, &kept).await.into_iter().skip(1) {
        let redact = Command::RedactVersion { version: version.version.id, path: RedactedPath::Scrub };
        change(&server, &kept, redact).await.expect("it is redacted");
    }
    change(&server, &gone, Command::DeleteStore).await.expect("it is deleted");
    use stele_core::storage::Storage;
    assert_eq!(server.sweep().await.expect("a sweep").stores, 1);
    assert!(
        versions(&server, &kept)
            .await
            .iter()
            .skip(1)
            .all(|v| v.content.is_none() && v.version.path.is_none())
    );
    let scrubbed = store_postgres::scrub(&url.parse().expect("an address")).await.expect("it scrubs");
    assert!(scrubbed.log, "a superuser may");
    assert_eq!(files_with(&cluster.data_dir(), b"canary"), [] as [String; 0]);
    is_sound(&server, &kept).await;
}
