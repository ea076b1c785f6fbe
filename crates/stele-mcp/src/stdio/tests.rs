use std::io::Cursor;
use std::sync::{Arc, Mutex};

use stele_client::ClientError;

use super::*;
use crate::door::Ask;
use crate::scope::Words;

/// A server that nobody reaches.
#[derive(Clone)]
struct Nowhere;

impl Door for Nowhere {
    async fn ask(&self, _: Ask) -> Result<Value, ClientError> {
        Err(ClientError::Unreachable { url: "http://nowhere".into(), cause: "refused".into() })
    }
}

/// An output that can be looked at.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What comes out where these lines go in, by id; what has none under null.
async fn answers(lines: &[u8]) -> Vec<Value> {
    let seen = Seen::default();
    serve_stdio(Tools::new(Nowhere, Words::default()), Cursor::new(lines.to_vec()), seen.clone()).await;
    let out = String::from_utf8(seen.0.lock().expect("no panic").clone()).expect("UTF-8");
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn code(answers: &[Value], id: &Value) -> i64 {
    let found = answers.iter().find(|answer| answer["id"] == *id);
    found.expect("an answer")["error"]["code"].as_i64().unwrap_or_default()
}

#[tokio::test]
async fn a_broken_line_is_answered_and_the_next_is_served() {
    let found = answers(b"{broken\n\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n").await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(code(&found, &Value::Null), -32_700);
    assert_eq!(found.iter().find(|answer| answer["id"] == "a").expect("an answer")["result"], json!({}));
}

#[tokio::test]
async fn what_is_json_but_no_message_is_told_by_its_code() {
    let lines = [
        json!([1]),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_memory", "arguments": "x"}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 7}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": [1]}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "no/such"}),
        json!({"jsonrpc": "1.0", "id": 5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 6, "method": "initialize", "params": {}}),
    ];
    let sent: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let found = answers(sent.as_bytes()).await;
    let codes: Vec<i64> = [Value::Null, json!(1), json!(2), json!(3), json!(4), json!(5), json!(6)]
        .iter()
        .map(|id| code(&found, id))
        .collect();
    assert_eq!(codes, [-32_600, -32_602, -32_602, -32_602, -32_601, -32_600, -32_602], "{found:?}");
}

/// Newer clients never initialize, and older ones may ask early: neither is a reason to end or to refuse.
#[tokio::test]
async fn requests_before_initialize_are_served_and_a_version_is_agreed_on() {
    let sent = [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params":
            {"protocolVersion": "2099-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
    ];
    let sent: String = sent.iter().map(|line| format!("{line}\n")).collect();
    let found = answers(sent.as_bytes()).await;
    let of = |id: i64| &found.iter().find(|answer| answer["id"] == id).expect("an answer")["result"];
    assert_eq!(of(1)["tools"].as_array().map(Vec::len), Some(8));
    assert_eq!(of(2)["protocolVersion"], "2025-11-25");
    assert_eq!(of(2)["serverInfo"]["name"], "stele");
}

/// A call that cannot be carried out is a result for the model, not an error of the protocol.
#[tokio::test]
async fn a_server_out_of_reach_is_told_by_the_tool() {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_memories"}});
    let found = answers(format!("{call}\n").as_bytes()).await;
    assert_eq!(found[0]["result"]["isError"], true);
    let text = found[0]["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("cannot reach http://nowhere"), "{text}");
}

#[tokio::test]
async fn a_line_without_end_is_skipped_and_not_kept() {
    let mut sent = vec![b'x'; usize::try_from(LINE).expect("it fits") + 10];
    sent.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    let found = answers(&sent).await;
    assert_eq!(code(&found, &Value::Null), -32_600);
    assert!(
        found.iter().any(|answer| answer["id"] == 1 && answer["result"] == json!({})),
        "also without a line break"
    );
}
