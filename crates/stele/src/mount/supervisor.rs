//! The process that replaces a worker that died, at the same path.

use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal};

use super::control;
use super::launch::{READY, spawn};
use super::place::Place;
use super::setup::Setup;
use crate::failure::{Class, fail};
use crate::output::{complain, print};
use crate::signals;

/// How long a worker may take to commit and unmount.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest pause before a worker that does not come up is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

enum Event {
    /// All stores are mounted.
    Ready,
    /// The worker of this process id ended.
    Ended(u32, ExitStatus),
    Stop,
}

pub(super) fn run(mut setup: Setup) -> anyhow::Result<()> {
    if setup.daemon {
        // Not being the leader of a group, it can always have a session of its own.
        let _ = rustix::process::setsid();
    }
    let (events, happened) = channel();
    stop_on_signals(events.clone())?;
    setup.supervisor = Some(std::process::id());
    let mut place = Place::prepare(&setup)?;
    setup.made = place.made().to_vec();
    let result = supervise(&mut setup, &place, &events, &happened);
    place.take_away();
    control::forget(&setup.dir);
    result
}

fn stop_on_signals(events: Sender<Event>) -> anyhow::Result<()> {
    let stops = signals::on_stop(1)?;
    std::thread::spawn(move || {
        for stop in stops {
            if stop.recv().is_ok() {
                let _ = events.send(Event::Stop);
            }
        }
    });
    Ok(())
}

fn supervise(
    setup: &mut Setup,
    place: &Place,
    events: &Sender<Event>,
    happened: &Receiver<Event>,
) -> anyhow::Result<()> {
    let mut failures = 0;
    loop {
        let worker = start(setup, events.clone())?;
        let status = loop {
            match happened.recv().context("the worker is being watched")? {
                Event::Ready => {
                    failures = 0;
                    if !setup.again {
                        ready(setup, place)?;
                    }
                }
                Event::Ended(id, status) if id == worker => break status,
                Event::Ended(..) => {}
                Event::Stop => return stop(worker, happened),
            }
        };
        match status.code() {
            Some(0) => return Ok(()),
            Some(code) if !setup.again || is_final(code) => return Err(ended(code)),
            _ => complain(&format!("the process of the mount died ({status}); it is replaced")),
        }
        setup.again = true;
        let pause = if failures == 0 {
            Duration::ZERO
        } else {
            LONGEST_PAUSE.min(Duration::from_millis(250 << failures.min(5)))
        };
        failures += 1;
        match happened.recv_timeout(pause) {
            Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Whether another worker would end likewise: the credential does not work any more, the store is gone, the command
/// line is wrong.
fn is_final(code: i32) -> bool {
    [Class::Usage, Class::NotFound, Class::Forbidden].map(|class| class as i32).contains(&code)
}

/// What the worker said on standard error itself; its code is ours.
fn ended(code: i32) -> anyhow::Error {
    let class = [
        Class::Usage,
        Class::NotFound,
        Class::Conflict,
        Class::Refused,
        Class::Forbidden,
        Class::NoServer,
        Class::Unavailable,
    ];
    let class = class.into_iter().find(|class| *class as i32 == code).unwrap_or(Class::Other);
    fail(class, "the mount ended")
}

fn ready(setup: &Setup, place: &Place) -> anyhow::Result<()> {
    place.seal();
    let _ = print(READY);
    if setup.daemon { control::detach(&setup.dir) } else { Ok(()) }
}

/// Starts a worker; says when it is ready and when it has ended.
fn start(setup: &Setup, events: Sender<Event>) -> anyhow::Result<u32> {
    let mut worker = spawn("--worker", setup)?;
    let (id, again) = (worker.id(), setup.again);
    let lines = worker.stdout.take().context("it has a standard output")?;
    std::thread::spawn(move || {
        for line in BufReader::new(lines).lines().map_while(Result::ok) {
            if line == READY {
                let _ = events.send(Event::Ready);
            } else if !again {
                let _ = print(&line);
            }
        }
        let status = wait(&mut worker);
        let _ = events.send(Event::Ended(id, status));
    });
    Ok(id)
}

fn wait(worker: &mut Child) -> ExitStatus {
    loop {
        if let Ok(status) = worker.wait() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Lets the worker commit and unmount, and ends it where it does not come to an end.
fn stop(worker: u32, happened: &Receiver<Event>) -> anyhow::Result<()> {
    signal(worker, Signal::TERM);
    loop {
        match happened.recv_timeout(PATIENCE) {
            Ok(Event::Ended(id, status)) if id == worker => {
                return match status.code() {
                    Some(0) | None => Ok(()),
                    Some(code) => Err(ended(code)),
                };
            }
            Ok(_) => {}
            Err(_) => {
                signal(worker, Signal::KILL);
                return Err(fail(Class::Unavailable, "the mount did not end in time and was killed"));
            }
        }
    }
}

fn signal(worker: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(worker).ok().and_then(Pid::from_raw) {
        // It may just have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
