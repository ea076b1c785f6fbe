//! Arguments of what finds memories and follows stores.

use clap::Args;

use super::Address;

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// STORE[:/directory/].
    pub(crate) place: Address,
    /// What to look for: words, or a question.
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// How many memories at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Grep {
    /// A regular expression, matched against each line.
    pub(crate) pattern: String,
    /// STORE[:/path], of one memory or of all below a directory.
    pub(crate) place: Address,
    /// The path apart from its store.
    pub(crate) path: Option<String>,
    /// Take the pattern for plain text
    #[arg(long, short = 'F')]
    pub(crate) fixed_strings: bool,
    /// Let upper and lower case match each other
    #[arg(long, short)]
    pub(crate) ignore_case: bool,
    /// Print the paths of memories that match, and not the lines
    #[arg(long, short = 'l')]
    pub(crate) files_with_matches: bool,
    /// Print the number of each line
    #[arg(long, short = 'n')]
    pub(crate) line_number: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Its name, slug or id.
    pub(crate) store: String,
    /// Begin behind this sequence, 0 for all that is kept of the history [default: what changes from now on]
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) after: Option<u64>,
    /// End after so many changes
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}
