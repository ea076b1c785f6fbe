//! Telling the kernel what is not what it was, on a thread of its own: the kernel may make it wait for a directory or a
//! page that an answer of ours holds, so no answer may wait for it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{INodeNo, Notifier};

use crate::shared::Shared;
use crate::tree::News;

/// How long the thread sleeps at most, if nobody wakes it.
const SLEEP: Duration = Duration::from_secs(60);

/// Tells until the mount is gone.
pub(crate) fn tell(shared: &Arc<Shared>, notifier: &Notifier) {
    loop {
        let news: Vec<News> = {
            let mut state = shared.state();
            while state.news.is_empty() {
                if shared.over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                state.wait(SLEEP);
            }
            state.news.drain(..).collect()
        };
        let mut told = HashSet::new();
        for piece in &news {
            // What the kernel does not know it need not forget; and a mount that is going takes all with it.
            let (News::Node(ino) | News::Name(ino, _)) = piece;
            if let News::Name(parent, name) = piece {
                let _ = notifier.inval_entry(INodeNo(*parent), OsStr::new(&**name));
            }
            if told.insert(*ino) {
                let _ = notifier.inval_inode(INodeNo(*ino), 0, 0);
            }
        }
        let mut state = shared.state();
        for piece in &news {
            state.tree.heard(piece);
        }
    }
}
