//! `stele config check`.

use serde_json::{Map, Value};

use crate::cli::ConfigCheck;
use crate::config::{Config, process_env};
use crate::output::{print_json, print_table};

/// Prints what `stele serve` would run with.
pub(crate) fn check(args: &ConfigCheck) -> anyhow::Result<()> {
    let settings = Config::load(&args.serve, &process_env)?.settings();
    if args.json {
        let object: Map<String, Value> =
            settings.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        return print_json(&object);
    }
    let rows: Vec<_> = settings.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    print_table(["SETTING", "VALUE"], &rows)
}
