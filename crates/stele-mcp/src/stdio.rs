//! The protocol on standard input and output: one JSON-RPC message a line, nothing else. MCP, "stdio".
//!
//! rmcp has a transport for this, but it says nothing to a line that is no JSON; here such a line is answered with
//! -32700 as JSON-RPC 2.0 asks for. Reading and writing block, so each has a thread of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, serve_directly};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::door::Door;
use crate::server::Tools;

/// Longest line that is taken: more than any document with its JSON around it.
const LINE: u64 = 16 * 1024 * 1024;
/// Messages between a thread and the protocol; then the faster side waits.
const QUEUE: usize = 64;
/// How long calls under way may go on when the input has ended: the process is to be gone within two seconds.
const GRACE: Duration = Duration::from_millis(1_500);

/// Serves one client until its input ends; calls under way are still answered, as far as that is quick.
pub async fn serve_stdio<D: Door>(
    tools: Tools<D>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    let (lines, ended) = (Lines::start(input, output), Arc::new(Notify::new()));
    let transport = Stdio { lines, ended: ended.clone() };
    // Requests before `initialize` are answered: nothing here depends on it, and newer clients never send it.
    let running = serve_directly::<RoleServer, _, _, _, _>(tools, transport, None);
    let late = async {
        ended.notified().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        _ = running.waiting() => {}
        () = late => {}
    }
}

/// A line of input.
enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// The two threads.
struct Lines {
    input: mpsc::Receiver<Line>,
    /// Gone once the transport is closed.
    output: Option<mpsc::Sender<Vec<u8>>>,
    written: oneshot::Receiver<()>,
}

impl Lines {
    fn start(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let (in_sender, in_receiver) = mpsc::channel(QUEUE);
        let (out_sender, out_receiver) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        std::thread::spawn(move || read(BufReader::new(input), &in_sender));
        std::thread::spawn(move || {
            write(output, out_receiver);
            // Nobody waits any more where the process is ending anyway.
            let _ = done.send(());
        });
        Self { input: in_receiver, output: Some(out_sender), written }
    }
}

fn read(mut input: impl BufRead, lines: &mpsc::Sender<Line>) {
    loop {
        let mut line = Vec::new();
        let whole = match (&mut input).take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => line.last() == Some(&b'\n') || (line.len() as u64) < LINE,
        };
        let line = match whole {
            true => Line::Text(line),
            false if skip_line(&mut input) => Line::TooLong,
            false => return,
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads to the end of a line and forgets it; whether that worked.
fn skip_line(input: &mut impl BufRead) -> bool {
    loop {
        let (used, found) = match input.fill_buf() {
            Err(_) => return false,
            Ok([]) => return true,
            Ok(some) => match some.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (some.len(), false),
            },
        };
        input.consume(used);
        if found {
            return true;
        }
    }
}

/// Writes lines, and flushes where no other waits.
fn write(mut output: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.blocking_recv() {
        if output.write_all(&line).is_err() || (lines.is_empty() && output.flush().is_err()) {
            return;
        }
    }
}

/// The transport of one client.
struct Stdio {
    lines: Lines,
    ended: Arc<Notify>,
}

/// What was sent could not be written: the reader of the output went away.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct Closed;

/// Puts a message into the queue of the writing thread.
async fn put(output: Option<mpsc::Sender<Vec<u8>>>, message: ServerJsonRpcMessage) -> Result<(), Closed> {
    let mut line = serde_json::to_vec(&message).map_err(|_| Closed)?;
    line.push(b'\n');
    output.ok_or(Closed)?.send(line).await.map_err(|_| Closed)
}

impl Transport<RoleServer> for Stdio {
    type Error = Closed;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        put(self.lines.output.clone(), message)
    }

    /// The next message; a line that is none is answered here. Nothing is lost where this is given up and begun again:
    /// a line is taken out of the queue only when it is there, and the answer's place in the other queue first.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let output = self.lines.output.clone()?;
            let Ok(place) = output.reserve().await else { return None };
            let Some(line) = self.lines.input.recv().await else {
                self.ended.notify_one();
                return None;
            };
            let refusal = match line {
                Line::TooLong => {
                    refusal(ErrorCode::INVALID_REQUEST, "the message is longer than 16 MiB", &Value::Null)
                }
                Line::Text(line) if line.trim_ascii().is_empty() => continue,
                Line::Text(line) => match parse(&line) {
                    Ok(message) => return Some(message),
                    Err(refusal) => refusal,
                },
            };
            place.send(format!("{refusal}\n").into_bytes());
        }
    }

    async fn close(&mut self) -> Result<(), Closed> {
        drop(self.lines.output.take());
        (&mut self.lines.written).await.map_err(|_| Closed)
    }
}

/// An answer to what is no message. Its id is null where none can be read: JSON-RPC 2.0, 5.
fn refusal(code: ErrorCode, text: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": text}})
}

/// Reads a message.
///
/// # Errors
/// The answer to what is none: -32700 for what is no JSON, -32602 for parameters of the wrong shape, -32600 else.
pub(crate) fn parse(line: &[u8]) -> Result<ClientJsonRpcMessage, Value> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|_| refusal(ErrorCode::PARSE_ERROR, "the message is not valid JSON", &Value::Null))?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_i64()).cloned().unwrap_or_default();
    let method = value.get("method").and_then(Value::as_str);
    let is_request = value.get("jsonrpc").is_some_and(|version| version == "2.0") && !id.is_null();
    // Otherwise a known method with parameters of another shape would pass for an unknown method.
    let misshapen = match method {
        Some("tools/call") => {
            let params = &value["params"];
            !params["name"].is_string() || !(params["arguments"].is_object() || params["arguments"].is_null())
        }
        Some("initialize") => !value["params"]["protocolVersion"].is_string(),
        _ => value.get("params").is_some_and(|params| !params.is_object()),
    };
    if is_request && misshapen {
        let text = match method {
            Some("tools/call") => {
                "the parameters must be an object with a name and, as an object, the arguments"
            }
            Some("initialize") => {
                "the parameters must be an object with protocolVersion, capabilities and clientInfo"
            }
            _ => "the parameters must be an object",
        };
        return Err(refusal(ErrorCode::INVALID_PARAMS, text, &id));
    }
    serde_json::from_value(value).map_err(|_| {
        refusal(ErrorCode::INVALID_REQUEST, "the message is no JSON-RPC 2.0 message of MCP", &id)
    })
}

#[cfg(test)]
mod tests;
