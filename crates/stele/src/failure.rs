//! Failures by class, and the exit code of each. docs/CLI.md lists them.

use std::process::ExitCode;

use stele_client::ClientError;
use stele_sync::SyncError;
use store_sqlite::OpenError;

/// The class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// None of the others.
    Other = 1,
    /// The command line itself is wrong, or a question could not be asked.
    Usage = 2,
    /// No such store, memory, version or file.
    NotFound = 3,
    /// Somebody else changed it, or the path is taken.
    Conflict = 4,
    /// Refused for what it is: malformed, too large, archived, full.
    Refused = 5,
    /// No key, a wrong key, or one that may not.
    Forbidden = 6,
    /// No server answers.
    NoServer = 7,
    /// The server answers that it cannot now, or not in time.
    Unavailable = 8,
}

/// A failure of a class that its text alone would not give.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    class: Class,
    message: String,
}

/// An error of a class.
pub(crate) fn fail(class: Class, message: impl Into<String>) -> anyhow::Error {
    Failure { class, message: message.into() }.into()
}

/// What was looked for is nowhere. It is said by the exit code alone, as grep does.
#[derive(Debug, thiserror::Error)]
#[error("nothing matches")]
pub(crate) struct NoMatch;

/// The class of an error, from whatever in its chain has one.
pub(crate) fn class(error: &anyhow::Error) -> Class {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(failure.class);
        }
        if let Some(error) = cause.downcast_ref::<OpenError>() {
            return Some(open_class(error));
        }
        // Errors that pass a client's on are transparent: their cause is the client's own cause.
        if let Some(SyncError::Client(error)) = cause.downcast_ref::<SyncError>() {
            return Some(client_class(error));
        }
        cause.downcast_ref::<ClientError>().map(client_class)
    };
    error.chain().find_map(of).unwrap_or(Class::Other)
}

fn client_class(error: &ClientError) -> Class {
    match error {
        ClientError::Unreachable { .. } => Class::NoServer,
        ClientError::Slow { .. } => Class::Unavailable,
        ClientError::Strange { .. } => Class::Other,
        ClientError::Unfit { .. } => Class::Refused,
        ClientError::Refused { status, .. } => match status {
            401 | 403 => Class::Forbidden,
            404 | 410 => Class::NotFound,
            409 | 412 => Class::Conflict,
            429 => Class::Unavailable,
            400..=499 => Class::Refused,
            _ => Class::Unavailable,
        },
    }
}

/// Of commands on the files of a stopped server.
fn open_class(error: &OpenError) -> Class {
    match error {
        OpenError::NoDatabase(_) => Class::NotFound,
        OpenError::InUse { .. } | OpenError::NotEmpty(_) => Class::Conflict,
        OpenError::NewerSchema | OpenError::ForeignSchema { .. } | OpenError::Foreign(_) => Class::Refused,
        OpenError::Io { .. } | OpenError::Sqlite(_) => Class::Other,
    }
}

/// Ends the command: quietly where the reader of its output went away. What changes something does not get here for
/// that: see [`crate::output::Report`].
pub(crate) fn exit(error: &anyhow::Error) -> ExitCode {
    if crate::output::reader_is_gone(error) {
        return ExitCode::SUCCESS;
    }
    if error.is::<NoMatch>() {
        return ExitCode::from(Class::Other as u8);
    }
    crate::output::complain(format!("{error:#}").trim_end());
    ExitCode::from(class(error) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_class_is_found_through_the_context_around_it() {
        let refused = |status| ClientError::Refused { status, code: String::new(), message: "m".into() };
        let of = |status| class(&anyhow::Error::from(refused(status)).context("around"));
        assert_eq!(
            [401, 403, 404, 409, 400, 413, 500, 503, 529].map(of),
            [
                Class::Forbidden,
                Class::Forbidden,
                Class::NotFound,
                Class::Conflict,
                Class::Refused,
                Class::Refused,
                Class::Unavailable,
                Class::Unavailable,
                Class::Unavailable
            ]
        );
        let failed: anyhow::Result<()> = Err(fail(Class::Usage, "x"));
        assert_eq!(class(&failed.context("around").expect_err("failed")), Class::Usage);
        assert_eq!(class(&anyhow::anyhow!("x")), Class::Other);
    }
}
