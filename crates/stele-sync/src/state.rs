//! What was the same on both sides the last time. It lies in `.stele-sync/state.json` of the folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stele_core::hash::Sha256;

/// The version of the file.
const VERSION: u32 = 1;

/// What a file looked like from outside when its hash was known, so that it need not be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) inode: u64,
}

/// A text that was the same on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) sha256: Sha256,
    /// The file that held it; `None` where it was written too recently to be recognised by its times.
    pub(crate) stat: Option<Stat>,
}

/// A text that the server refuses, and in which words.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) sha256: Sha256,
    pub(crate) message: String,
}

/// All that is known of the last pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The store's id, `memstore_...`.
    pub(crate) store: String,
    /// The life of the database that the bases are of. DESIGN 7.
    pub(crate) epoch: String,
    pub(crate) bases: BTreeMap<String, Base>,
    pub(crate) refused: BTreeMap<String, Refusal>,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    store: String,
    epoch: String,
    files: BTreeMap<String, (String, Option<Stat>)>,
    refused: BTreeMap<String, (String, String)>,
}

impl State {
    /// As the file holds it.
    pub(crate) fn write(&self) -> Vec<u8> {
        let base = |(path, base): (&String, &Base)| (path.clone(), (base.sha256.to_string(), base.stat));
        let refused =
            |(path, it): (&String, &Refusal)| (path.clone(), (it.sha256.to_string(), it.message.clone()));
        let file = File {
            version: VERSION,
            store: self.store.clone(),
            epoch: self.epoch.clone(),
            files: self.bases.iter().map(base).collect(),
            refused: self.refused.iter().map(refused).collect(),
        };
        serde_json::to_vec(&file).expect("strings and numbers are JSON")
    }

    /// Out of the file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if file.version != VERSION {
            return Err(format!("it is of version {}, this program knows {VERSION}", file.version));
        }
        let hash = |text: &str| Sha256::parse(text).map_err(|error| error.to_string());
        let bases = file
            .files
            .into_iter()
            .map(|(path, (sha256, stat))| Ok((path, Base { sha256: hash(&sha256)?, stat })));
        let refused = file
            .refused
            .into_iter()
            .map(|(path, (sha256, message))| Ok((path, Refusal { sha256: hash(&sha256)?, message })));
        Ok(Self {
            store: file.store,
            epoch: file.epoch,
            bases: bases.collect::<Result<_, String>>()?,
            refused: refused.collect::<Result<_, String>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_named() {
        let stat = Stat { size_bytes: 1, mtime_ns: 2, ctime_ns: 3, inode: 4 };
        let base = Base { sha256: Sha256::of(b"a"), stat: Some(stat) };
        let state = State {
            store: "memstore_1".into(),
            epoch: "e".into(),
            bases: BTreeMap::from([("/a".to_owned(), base)]),
            refused: BTreeMap::from([(
                "/b".to_owned(),
                Refusal { sha256: Sha256::of(b"b"), message: "m".into() },
            )]),
        };
        let read = State::read(&state.write()).expect("readable");
        assert_eq!((read.store, read.epoch), (state.store, state.epoch));
        assert_eq!((read.bases["/a"].sha256, read.bases["/a"].stat), (base.sha256, Some(stat)));
        assert_eq!(read.refused["/b"].message, "m");
        assert!(State::read(b"{").is_err());
        let newer = br#"{"version":9,"store":"s","epoch":"e","files":{},"refused":{}}"#;
        assert!(State::read(newer).expect_err("newer").contains("version 9"));
        let bad = br#"{"version":1,"store":"s","epoch":"e","files":{"/a":["x",null]},"refused":{}}"#;
        assert!(State::read(bad).is_err());
    }
}
