//! A provider of models on this machine that does what a test tells it to, byte for byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use stele_core::clock::{Clock, Random, System};
use stele_core::models::{Conversation, Delta, Message, Model, ModelError, Reply};
use stele_models::{Gateway, Key, Kind, Patience, ProviderSettings, Structured};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

pub(crate) const KEY: &str = "sk-test-0123456789";
/// In every refusal of the fake: nothing of it may show anywhere.
pub(crate) const LEAK: &str = "the-body-of-the-error";

/// What the fake does with a call.
pub(crate) enum Act {
    /// Answers with a status, headers and JSON.
    Json(u16, Vec<(&'static str, String)>, Value),
    /// Answers with these events, and ends as it should.
    Events(Vec<String>),
    /// Answers with the beginning of a stream and breaks off.
    Broken(Vec<String>),
    /// Answers with these bytes as JSON.
    Raw(&'static str),
    /// Takes the request and says nothing, until the other side goes away.
    Hang,
    /// Takes the request and hangs up.
    HangUp,
    /// Says these events again and again, as long as somebody listens.
    Endless(String),
    /// Answers once it is told to.
    Wait(Arc<Notify>, Value),
}

/// A request that the fake got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) line: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct State {
    acts: Mutex<VecDeque<Act>>,
    log: Mutex<Vec<Got>>,
    models: Mutex<Option<Value>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    gone: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub(crate) async fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State { acts: Mutex::new(acts.into_iter().collect()), ..State::default() });
        let (leave, gone) = watch::channel(0);
        let task = tokio::spawn({
            let state = state.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (state, leave) = (state.clone(), leave.clone());
                    tokio::spawn(async move {
                        serve(stream, &state).await;
                        leave.send_modify(|gone| *gone += 1);
                    });
                }
            }
        });
        Self { address, state, gone, task }
    }

    pub(crate) fn add(&self, act: Act) {
        self.state.acts.lock().expect("unpoisoned").push_back(act);
    }

    /// What it answers when it is asked for its models; 404 before.
    pub(crate) fn lists(&self, models: Value) {
        *self.state.models.lock().expect("unpoisoned") = Some(models);
    }

    pub(crate) fn log(&self) -> Vec<Got> {
        self.state.log.lock().expect("unpoisoned").clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.log().iter().filter(|got| got.line.starts_with("POST")).count()
    }

    /// The body of a call, from 0.
    pub(crate) fn body(&self, call: usize) -> Value {
        self.log()
            .into_iter()
            .filter(|got| got.line.starts_with("POST"))
            .nth(call)
            .expect("so many calls")
            .body
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.state.most_at_once.load(Ordering::SeqCst)
    }

    /// Waits until so many connections have ended.
    pub(crate) async fn left(&mut self, connections: usize) {
        self.gone.wait_for(|gone| *gone >= connections).await.expect("the fake goes on");
    }

    /// Waits until it has got so many calls.
    pub(crate) async fn got(&self, calls: usize) {
        while self.calls() < calls {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn settings(&self, name: &str, kind: Kind) -> ProviderSettings {
        let base = match kind {
            Kind::Anthropic => format!("http://{}", self.address),
            Kind::OpenAi => format!("http://{}/v1/", self.address),
        };
        ProviderSettings {
            name: name.into(),
            kind,
            base_url: base,
            key: Key::parse(KEY),
            context_tokens: None,
            tools: true,
            structured: Structured::JsonSchema,
            price: None,
            models: None,
            concurrent_calls: 2,
        }
    }
}

/// Waits hardly at all between tries.
pub(crate) const HASTY: Patience = Patience {
    timeout: Duration::from_secs(60),
    rest: Duration::from_secs(600),
    backoff: Duration::from_millis(1),
};

pub(crate) fn gateway(providers: Vec<ProviderSettings>, patience: Patience) -> Gateway {
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(System), Arc::new(System));
    Gateway::new(providers, patience, &clock, &random).expect("a gateway")
}

/// A gateway to a fake as the provider `p`.
pub(crate) fn to(fake: &Fake, kind: Kind) -> Gateway {
    gateway(vec![fake.settings("p", kind)], HASTY)
}

pub(crate) fn hello() -> Conversation {
    Conversation { messages: vec![Message::user("hello")], max_tokens: 100, ..Conversation::default() }
}

/// Calls the model `m` of `p`; the answer, and what was heard of it.
pub(crate) async fn call(gateway: &Gateway, asked: &Conversation) -> (Result<Reply, ModelError>, Vec<Delta>) {
    let model = gateway.find("p/m").await.expect("a model of a provider");
    let mut heard = Vec::new();
    let mut hear = |delta| heard.push(delta);
    let called = gateway.call(&model, asked, &mut hear).await;
    (called, heard)
}

async fn serve(mut stream: TcpStream, state: &State) {
    while let Some(got) = request(&mut stream).await {
        let is_call = got.line.starts_with("POST");
        state.log.lock().expect("unpoisoned").push(got);
        if !is_call {
            let models = state.models.lock().expect("unpoisoned").clone();
            let (status, body) = models.map_or((404, Value::Null), |models| (200, models));
            if write(&mut stream, head(status, "application/json", &[], Some(body.to_string())).as_bytes())
                .await
            {
                continue;
            }
            return;
        }
        let now = state.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_at_once.fetch_max(now, Ordering::SeqCst);
        let act = state.acts.lock().expect("unpoisoned").pop_front();
        let goes_on = perform(act.expect("the script has an act for each call"), &mut stream).await;
        state.at_once.fetch_sub(1, Ordering::SeqCst);
        if !goes_on {
            return;
        }
    }
}

async fn perform(act: Act, stream: &mut TcpStream) -> bool {
    let json = "application/json";
    match act {
        Act::Json(status, headers, body) => {
            write(stream, head(status, json, &headers, Some(body.to_string())).as_bytes()).await
        }
        Act::Raw(body) => write(stream, head(200, json, &[], Some(body.into())).as_bytes()).await,
        Act::Events(events) => {
            begin(stream).await && chunks(stream, &events).await && write(stream, b"0\r\n\r\n").await
        }
        Act::Broken(events) => {
            let _ = begin(stream).await && chunks(stream, &events).await;
            false
        }
        Act::HangUp => false,
        Act::Hang => {
            let mut byte = [0];
            let _ = stream.read(&mut byte).await;
            false
        }
        Act::Endless(event) => {
            if begin(stream).await {
                while chunks(stream, std::slice::from_ref(&event)).await {}
            }
            false
        }
        Act::Wait(told, body) => {
            told.notified().await;
            write(stream, head(200, json, &[], Some(body.to_string())).as_bytes()).await
        }
    }
}

async fn begin(stream: &mut TcpStream) -> bool {
    let chunked = [("transfer-encoding", "chunked".to_owned())];
    write(stream, head(200, "text/event-stream; charset=utf-8", &chunked, None).as_bytes()).await
}

async fn chunks(stream: &mut TcpStream, events: &[String]) -> bool {
    for event in events {
        if !write(stream, format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await {
            return false;
        }
    }
    true
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok()
}

fn head(status: u16, media: &str, headers: &[(&str, String)], body: Option<String>) -> String {
    let mut text = format!("HTTP/1.1 {status} X\r\ncontent-type: {media}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = &body {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text + "\r\n" + &body.unwrap_or_default()
}

async fn request(stream: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        read(stream, &mut bytes).await?;
    };
    let headers = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length = headers.to_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length:").map(|value| value.trim().parse::<usize>().expect("a length"))
    });
    while bytes.len() < head + length.unwrap_or(0) {
        read(stream, &mut bytes).await?;
    }
    let line = headers.lines().next().expect("a request line").to_owned();
    let body = serde_json::from_slice(&bytes[head..]).unwrap_or(Value::Null);
    Some(Got { line, headers, body })
}

async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 * 1024];
    let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
    bytes.extend_from_slice(&piece[..read]);
    Some(())
}
