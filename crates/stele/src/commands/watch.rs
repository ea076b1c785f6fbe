//! `stele store watch`: long polls, each behind the last change that was shown, so that nothing is missed or doubled
//! when the connection or the server goes away for a while.

use std::time::Duration;

use stele_client::{Change, ClientError};

use super::{Session, resolve};
use crate::cli::Watch;
use crate::failure::{Class, fail};
use crate::output::{cell, complain, print, print_json, time};

/// How long the server may wait for a change.
const WAIT_SECS: u64 = 25;
/// Longest pause before a server that does not answer is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

pub(crate) fn watch(session: &Session, args: &Watch) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &args.store)?;
    let (now, epoch) = session.client.store_stands(&store.id)?;
    let mut after = args.after.unwrap_or(now);
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut away = Away::default();
    // The first look fails as any command does; later on the server may be away for a while.
    let mut known = false;
    loop {
        let changes = match session.client.changes(&store.id, after, epoch.as_deref(), WAIT_SECS) {
            Ok(changes) => changes,
            Err(error) if known && passes(&error) => {
                away.wait(&error);
                continue;
            }
            Err(error) if error.status() == Some(410) => return Err(gone(after, &error)),
            Err(error) => return Err(error.into()),
        };
        away.ended();
        known = true;
        after = changes.last_sequence.max(after);
        for change in changes.data {
            show(session, &change)?;
            left -= 1;
            if left == 0 || change.operation == "store_deleted" {
                return Ok(());
            }
        }
    }
}

/// Whether a failure may pass by itself.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Slow { .. } => true,
        ClientError::Unfit { .. } => false,
        ClientError::Strange { .. } => true,
        ClientError::Refused { status, .. } => *status == 429 || *status >= 500,
    }
}

fn gone(after: u64, error: &ClientError) -> anyhow::Error {
    let message = format!(
        "the changes behind {after} cannot be told without a gap ({error}): read the store anew, then watch it without \
         --after"
    );
    fail(Class::NotFound, message)
}

/// A server that does not answer: said once, asked again ever more slowly.
#[derive(Default)]
struct Away {
    tries: u32,
}

impl Away {
    fn wait(&mut self, error: &ClientError) {
        if self.tries == 0 {
            complain(&format!("{error}; trying again"));
        }
        std::thread::sleep(Duration::from_millis(250 << self.tries.min(10)).min(LONGEST_PAUSE));
        self.tries = self.tries.saturating_add(1);
    }

    fn ended(&mut self) {
        if self.tries > 0 {
            complain("the server answers again");
        }
        self.tries = 0;
    }
}

fn show(session: &Session, change: &Change) -> anyhow::Result<()> {
    if session.json { print_json(change) } else { print(&line(change)) }
}

/// A change on one line.
fn line(change: &Change) -> String {
    let mut line = format!("{}  {}  {}", change.sequence, time(&change.created_at), change.operation);
    if let Some(path) = &change.path {
        line = format!("{line}  {}", cell(path));
    } else if let Some(version) = &change.memory_version_id {
        line = format!("{line}  {}", cell(version));
    }
    match &change.previous_path {
        Some(previous) => format!("{line} (was {})", cell(previous)),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(operation: &str, path: Option<&str>, previous: Option<&str>) -> Change {
        Change {
            sequence: 7,
            memory_id: Some("mem_1".into()),
            memory_version_id: Some("memver_1".into()),
            operation: operation.into(),
            path: path.map(str::to_owned),
            previous_path: previous.map(str::to_owned),
            content_sha256: None,
            content_size_bytes: None,
            created_by: None,
            created_at: "2026-12-01T08:00:00.123456Z".into(),
        }
    }

    #[test]
    fn a_change_is_one_line_whatever_its_path_holds() {
        let head = "7  2026-12-01 08:00:00Z";
        assert_eq!(
            line(&change("created", Some("/a\n\x1b"), None)),
            format!("{head}  created  /a\\x0a\\x1b")
        );
        assert_eq!(
            line(&change("modified", Some("/b"), Some("/a"))),
            format!("{head}  modified  /b (was /a)")
        );
        assert_eq!(line(&change("redacted", None, None)), format!("{head}  redacted  memver_1"));
    }

    #[test]
    fn only_what_may_pass_by_itself_is_waited_for() {
        let refused = |status| ClientError::Refused { status, code: String::new(), message: String::new() };
        assert!([429, 500, 503, 529].map(refused).iter().all(passes));
        assert!(![400, 401, 403, 404, 410].map(refused).iter().any(passes));
    }
}
