//! `stele config check`.

use serde_json::{Map, Value};

use crate::cli::ConfigCheck;
use crate::config::{Config, models, process_env};
use crate::output::{print_json, print_table};

/// Prints what `stele serve` would run with.
pub(crate) fn check(args: &ConfigCheck) -> anyhow::Result<()> {
    let config = Config::load(&args.serve, &process_env)?;
    let providers = config.providers.iter();
    let providers = providers.map(|p| (format!("models.providers.{}", p.name), models::shown(p)));
    let settings = config.settings().into_iter().map(|(name, value)| (name.to_owned(), value));
    let settings = settings.chain(providers);
    if args.json {
        let object: Map<String, Value> = settings.map(|(name, value)| (name, value.into())).collect();
        return print_json(&object);
    }
    let rows: Vec<_> = settings.map(|(name, value)| [name, value]).collect();
    print_table(["SETTING", "VALUE"], &rows)
}
