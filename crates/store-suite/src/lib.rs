//! Test cases that every back end of the storage port passes, over a factory that opens it.
//!
//! A back end's crate has one test file with a factory and one line, `store_suite!(Factory);`: that makes one
//! test a case, in a module an area. `tests/broken.rs` shows that broken back ends do not pass.

use std::any::Any;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use stele_core::clock::{Random, System};
use stele_core::limits::Limits;
use stele_core::storage::{Answer, Storage};

mod archives;
mod changesets;
mod clock;
mod concurrency;
mod console;
mod expiry;
mod feed;
mod installation;
mod isolation;
mod keys;
mod list;
mod lists;
mod logs;
mod machine;
mod memories;
mod paths;
mod properties;
mod records;
mod redaction;
mod replay;
mod restoring;
mod schedules;
mod search;
mod spending;
mod stores;
mod versions;
mod work;
mod world;

pub use clock::TestClock;

/// What a case wants to be opened.
#[derive(Clone)]
pub struct Options {
    /// The caps.
    pub limits: Limits,
    /// The clock, which the case moves.
    pub clock: Arc<TestClock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Options {
    /// A clock of its own, and these caps.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, clock: Arc::new(TestClock::default()), random: Arc::new(System) }
    }
}

/// An empty back end, open.
pub struct Opened {
    /// The back end.
    pub storage: Arc<dyn Storage>,
    /// The directory that all its bytes are in, if there is one: redacted text is looked for there.
    pub data_dir: Option<PathBuf>,
    /// What must live as long as the back end does, such as its temporary directory.
    pub keep_alive: Box<dyn Any + Send + Sync>,
}

/// Opens empty back ends, each apart from the others.
pub trait StoreFactory: Sync {
    /// Opens an empty back end; panics if it cannot.
    fn open(&self, options: Options) -> Answer<'_, Opened>;
}

/// What a case does with a factory.
type Body = for<'a> fn(&'a dyn StoreFactory) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One case: its name, `area::sentence`, and what it does.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    body: Body,
}

/// All cases.
pub static CASES: &[Case] = crate::each_case!(table());

/// Runs the case of that name on two worker threads; panics if the back end fails it.
pub fn run(name: &str, factory: &dyn StoreFactory) {
    let case = CASES.iter().find(|case| case.name == name).expect("a case of this name");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on((case.body)(factory));
}

/// Makes one test of each case, in a module an area: `store_suite!(Factory);`, `Factory` being an expression
/// whose value is a [`StoreFactory`].
#[macro_export]
macro_rules! store_suite {
    ($factory:expr) => {
        $crate::each_case!(tests($factory));
    };
}

/// What [`each_case!`] makes of the list of cases: the table, or the tests of a back end.
#[doc(hidden)]
#[macro_export]
macro_rules! expand_cases {
    (table() $($area:ident { $($case:ident,)* })*) => {
        &[$($($crate::Case {
            name: concat!(stringify!($area), "::", stringify!($case)),
            body: |factory| Box::pin($crate::$area::$case(factory)),
        },)*)*]
    };
    (tests($factory:expr) $($area:ident { $($case:ident,)* })*) => {
        $(mod $area {
            #[allow(unused_imports, reason = "a factory may be named by its full path")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::run(concat!(stringify!($area), "::", stringify!($case)), &$factory);
                }
            )*
        })*
    };
}
