//! Words to the person at the terminal. A reader that went away is no error.

use std::io::Write;

/// Says a line on standard output.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Says what went wrong on standard error.
pub(crate) fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "stele: {what}");
}
