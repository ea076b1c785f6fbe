//! Questions, asked only where a person can answer them.

use std::io::{self, IsTerminal, Write};

use crate::failure::{Class, fail};
use crate::output::visible;

/// Whether a person sits at both ends.
pub(crate) fn possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error; true for yes, false for no and for the end of the input.
pub(crate) fn ask(question: &str) -> anyhow::Result<bool> {
    loop {
        write!(io::stderr(), "{} [y/n] ", visible(question))?;
        io::stderr().flush()?;
        let mut line = String::new();
        if io::stdin().read_line(&mut line)? == 0 {
            return Ok(false);
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" | "q" => return Ok(false),
            _ => {}
        }
    }
}

/// Goes on only when the person agrees, or agreed beforehand by `--yes`.
///
/// # Errors
/// They do not, or there is nobody to ask.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !possible() {
        let message = format!("{question} There is no terminal to answer on: say --yes to go on");
        return Err(fail(Class::Usage, message));
    }
    if ask(question)? { Ok(()) } else { Err(fail(Class::Other, "nothing was changed")) }
}
