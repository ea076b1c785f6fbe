//! Threads for what takes a processor rather than waits, and tasks that outlive a request.

use std::pin::Pin;

use stele_core::searcher::Workers;

/// Those of the runtime that the server runs on.
pub(crate) struct Threads;

impl Workers for Threads {
    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        drop(tokio::task::spawn_blocking(work));
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(tokio::spawn(task));
    }
}
