//! SIGTERM and SIGINT for commands that end their work first.

use std::sync::mpsc::{Receiver, channel};

use tokio::signal::unix::{SignalKind, signal};

/// How a program that was interrupted ends, as shells have it.
const INTERRUPTED: i32 = 130;

/// So many receivers, each of which gets a word at the first SIGTERM or SIGINT. A second SIGINT ends the program at once.
/// The thread behind it lives as long as the process.
pub(crate) fn on_stop(receivers: usize) -> std::io::Result<Vec<Receiver<()>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _here = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..receivers).map(|_| channel()).unzip();
    let watch = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            for sender in &senders {
                let _ = sender.send(());
            }
            interrupt.recv().await;
            std::process::exit(INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch)?;
    Ok(receivers)
}
