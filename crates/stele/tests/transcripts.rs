//! The transcripts in docs/cli are documentation and tests in one: every command in a `console` block is run against
//! a server of its own, and must print what stands below it. `STELE_BLESS=1 cargo test -p stele` writes them anew.
//!
//! Standard output and errors come together; an exit code other than 0 stands last as `[exit 3]`. Ids, times, ports
//! and directories are replaced by fixed ones of the same length, each id by its own.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const STELE: &str = env!("CARGO_BIN_EXE_stele");
/// Characters of an id behind its prefix.
const TOKEN: usize = 24;
/// The form of a UUID.
const UUID: &[u8; 36] = b"00000000-0000-0000-0000-000000000000";

/// A server on a port of its own and the person who speaks with it.
struct World {
    home: tempfile::TempDir,
    server: Child,
    url: String,
    ids: Vec<String>,
}

impl World {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut server = Command::new(STELE)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("HOME", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { home, server, url, ids: Vec::new() }
    }

    /// What a command prints, and its exit code where that is not 0.
    fn run(&mut self, command: &str) -> String {
        let bin = Path::new(STELE).parent().expect("a directory").display();
        // A command that waits for ever would hang the whole suite; none here takes more than a moment.
        let output = Command::new("timeout")
            .args(["120", "sh", "-c"])
            .arg(format!("{{ {command}\n}} 2>&1"))
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path())
            .env("STELE_URL", &self.url)
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let mut text = self.normal(&String::from_utf8_lossy(&output.stdout));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if let Some(code) = output.status.code().filter(|code| *code != 0) {
            let _ = writeln!(text, "[exit {code}]");
        }
        text
    }

    fn normal(&mut self, text: &str) -> String {
        let home = self.home.path().display().to_string();
        let holder = format!("process {}", self.server.id());
        let text = text.replace(&self.url, "http://127.0.0.1:7878").replace(&home, "/home/you");
        let text = text.replace(&holder, "process 4711");
        text.split_inclusive('\n').fold(String::new(), |out, line| {
            let line = self.normal_ids(&normal_times(line));
            out + &self.normal_uuids(&line)
        })
    }

    /// Each UUID as the number of its first showing.
    fn normal_uuids(&mut self, line: &str) -> String {
        let mut bytes = line.as_bytes().to_vec();
        for at in 0..bytes.len().saturating_sub(UUID.len() - 1) {
            let fits = bytes[at..at + UUID.len()].iter().zip(UUID).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_hexdigit(),
                form => byte == form,
            });
            if fits {
                let uuid = String::from_utf8_lossy(&bytes[at..at + UUID.len()]).into_owned();
                let number = self.number(&uuid);
                bytes[at..at + UUID.len()]
                    .copy_from_slice(format!("00000000-0000-0000-0000-{number:012}").as_bytes());
            }
        }
        String::from_utf8(bytes).expect("only hexadecimal digits were replaced")
    }

    fn number(&mut self, id: &str) -> usize {
        let known = self.ids.iter().position(|known| known == id);
        1 + known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        })
    }

    /// Each id as the number of its first showing.
    fn normal_ids(&mut self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find("_01") {
            let token = rest[at + 1..].chars().take_while(char::is_ascii_alphanumeric).collect::<String>();
            out.push_str(&rest[..=at]);
            if token.len() == TOKEN {
                let _ = write!(out, "01{:x>22}", self.number(&token));
            } else {
                out.push_str(&token);
            }
            rest = &rest[at + 1 + token.len()..];
        }
        out + rest
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Digits of dates and times as zeros, and the random part of a draft's directory.
fn normal_times(line: &str) -> String {
    let line = zeroed(&zeroed(line, b"0000-00-00 00:00:00"), b"00000000T000000Z");
    let line = match line.split_once("00:00:00.") {
        Some((head, tail)) => {
            format!("{head}00:00:00{}", tail.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line,
    };
    match line.split_once("/stele-") {
        Some((head, tail)) if !tail.starts_with("00000000T") => {
            format!("{head}/stele-XXXXXX{}", tail.get(6..).unwrap_or_default())
        }
        _ => line,
    }
}

/// What has this shape, its digits as zeros.
fn zeroed(line: &str, shape: &[u8]) -> String {
    let mut bytes = line.as_bytes().to_vec();
    for at in 0..bytes.len().saturating_sub(shape.len() - 1) {
        let window = &bytes[at..at + shape.len()];
        let fits = window.iter().zip(shape).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            form => byte == form,
        });
        if fits {
            let zeros = shape.iter().enumerate().filter(|(_, form)| **form == b'0');
            zeros.for_each(|(n, _)| bytes[at + n] = b'0');
        }
    }
    String::from_utf8(bytes).expect("only digits were replaced")
}

/// The text of a transcript as its commands really answer.
fn played(text: &str) -> String {
    let mut world = World::start();
    let mut out = String::new();
    let mut in_block = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_block = line == "```console";
        }
        if in_block && !line.starts_with("$ ") && line != "```console" {
            continue;
        }
        let _ = writeln!(out, "{line}");
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) else { continue };
        let mut command = command.to_owned();
        // Further lines of one command begin with `> `, as a shell shows them.
        while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
            let _ = writeln!(out, "{more}");
            command = format!("{command}\n{}", &more[2..]);
        }
        out.push_str(&world.run(&command));
    }
    out
}

#[test]
fn every_command_in_the_documentation_answers_as_it_stands_there() {
    let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli"));
    let bless = std::env::var_os("STELE_BLESS").is_some();
    let mut count = 0;
    for entry in std::fs::read_dir(dir).expect("docs/cli") {
        let file = entry.expect("an entry").path();
        let stands = std::fs::read_to_string(&file).expect("a transcript");
        let is = played(&stands);
        count += 1;
        if bless {
            std::fs::write(&file, is).expect("written");
        } else {
            assert_eq!(stands, is, "{} differs: left is what stands there", file.display());
        }
    }
    assert!(count > 0, "there are transcripts");
}
