//! Anthropic's wire against a fake of it.

#[expect(dead_code, reason = "shared by several test programs")]
mod fake;

use fake::{Act, Fake, call, hello, to};
use serde_json::{Value, json};
use stele_core::models::{
    Arguments, Block, Cache, Conversation, Delta, Message, Schema, Stop, Tool, ToolChoice, ToolResult,
    ToolUse, Usage,
};
use stele_models::Kind;

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().expect("a type"))
}

/// A stream of these blocks, each in pieces.
fn stream(blocks: &[(Value, Vec<Value>)], reason: &str) -> Vec<String> {
    let usage = json!({"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2});
    let mut events = vec![event(&json!({"type": "message_start", "message": {"usage": usage}}))];
    events.push(event(&json!({"type": "ping"})));
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(event(&json!({"type": "content_block_start", "index": index, "content_block": block})));
        for delta in deltas {
            events.push(event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    events.push(event(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
    ));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

fn text(pieces: &[&str]) -> (Value, Vec<Value>) {
    let deltas = pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece}));
    (json!({"type": "text", "text": ""}), deltas.collect())
}

fn tool_use() -> (Value, Vec<Value>) {
    let pieces =
        ["{\"path\"", ": \"/a\"}"].map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    (json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}), pieces.to_vec())
}

fn path_argument() -> Arguments {
    Arguments::parse("{\"path\": \"/a\"}")
}

#[tokio::test]
async fn an_answer_is_heard_piece_by_piece_and_comes_whole() {
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thought = vec![
        json!({"type": "thinking_delta", "thinking": "hm"}),
        json!({"type": "signature_delta", "signature": "s"}),
    ];
    let blocks = [(thinking, thought), text(&["Hel", "lo"]), tool_use()];
    let fake = Fake::start([Act::Events(stream(&blocks, "tool_use"))]).await;
    let (reply, heard) = call(&to(&fake, Kind::Anthropic), &hello()).await;
    let reply = reply.expect("a reply");
    let reasoning = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let used = ToolUse { id: "toolu_1".into(), name: "read".into(), arguments: path_argument() };
    assert_eq!(
        reply.blocks,
        [Block::Reasoning(reasoning), Block::Text("Hello".into()), Block::ToolUse(used)]
    );
    assert_eq!((reply.stop, reply.tries, reply.model.as_str()), (Stop::ToolUse, 1, "m"));
    let usage = Usage { input: 9, output: 7, cache_read: 4, cache_write: 2, estimated: false };
    assert_eq!(reply.usage, usage);
    let heard: Vec<_> = heard.into_iter().filter(|delta| *delta != Delta::Thinking).collect();
    let arguments = |json: &str| Delta::Arguments { index: 0, json: json.into() };
    assert_eq!(
        heard,
        [
            Delta::Begin,
            Delta::Text("Hel".into()),
            Delta::Text("lo".into()),
            Delta::ToolUse { index: 0, id: "toolu_1".into(), name: "read".into() },
            arguments("{\"path\""),
            arguments(": \"/a\"}"),
        ]
    );
}

#[tokio::test]
async fn the_whole_conversation_is_spelled_as_the_wire_wants_it() {
    let fake = Fake::start([Act::Events(stream(&[text(&["ok"])], "end_turn"))]).await;
    let result =
        |tool_use: &str, is_error| ToolResult { tool_use: tool_use.into(), text: "out".into(), is_error };
    let used =
        |id: &str, arguments| Block::ToolUse(ToolUse { id: id.into(), name: "read".into(), arguments });
    let last =
        Message { cache: Cache::UpToHere, ..Message::results([result("t1", false), result("t2", true)]) };
    let asked = Conversation {
        system: "be good".into(),
        cache_system: Cache::UpToHere,
        messages: vec![
            Message::user("hello"),
            Message::assistant(vec![
                Block::Reasoning(json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
                Block::Text(String::new()),
                used("t1", path_argument()),
                used("t2", Arguments::Malformed("{".into())),
            ]),
            last,
            Message::assistant(Vec::new()),
        ],
        tools: vec![Tool {
            name: "read".into(),
            description: "reads".into(),
            schema: json!({"type": "object"}),
        }],
        tool_choice: ToolChoice::Tool("read".into()),
        schema: Some(Schema { name: "out".into(), schema: json!({"type": "object"}) }),
        max_tokens: 64,
        temperature: Some(0.5),
        top_p: None,
    };
    call(&to(&fake, Kind::Anthropic), &asked).await.0.expect("a reply");
    let ephemeral = json!({"type": "ephemeral"});
    assert_eq!(
        fake.body(0),
        json!({
            "model": "m",
            "max_tokens": 64,
            "stream": true,
            "temperature": 0.5,
            "system": [{"type": "text", "text": "be good", "cache_control": ephemeral}],
            "tools": [{"name": "read", "description": "reads", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "tool", "name": "read"},
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "/a"}},
                    {"type": "tool_use", "id": "t2", "name": "read", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "out"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "out", "is_error": true,
                     "cache_control": ephemeral},
                ]},
            ],
        })
    );
    let got = fake.log().pop().expect("a call");
    assert!(got.line.starts_with("POST /v1/messages HTTP"), "{}", got.line);
    assert!(got.headers.contains("anthropic-version: 2023-06-01"), "{}", got.headers);
    assert!(got.headers.contains(&format!("x-api-key: {}", fake::KEY)), "{}", got.headers);
}

#[tokio::test]
async fn an_answer_that_comes_whole_is_read_too() {
    let content = json!([
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "/a"}},
    ]);
    let answer = json!({"content": content, "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    let fake = Fake::start([Act::Json(200, Vec::new(), answer)]).await;
    let reply = call(&to(&fake, Kind::Anthropic), &hello()).await.0.expect("a reply");
    assert_eq!((reply.text().as_str(), reply.stop), ("Hello", Stop::ToolUse));
    assert_eq!(reply.tool_uses().next().map(|used| used.arguments.clone()), Some(path_argument()));
    assert_eq!(reply.usage.total(), 7);
}

#[tokio::test]
async fn each_reason_to_stop_is_told_apart() {
    let reasons = [
        ("end_turn", Stop::EndTurn),
        ("stop_sequence", Stop::EndTurn),
        ("max_tokens", Stop::MaxTokens),
        ("refusal", Stop::Refusal),
        ("model_context_window_exceeded", Stop::ContextFull),
    ];
    let acts = reasons.map(|(reason, _)| Act::Events(stream(&[text(&["x"])], reason)));
    let fake = Fake::start(acts).await;
    let gateway = to(&fake, Kind::Anthropic);
    for (reason, expected) in reasons {
        let reply = call(&gateway, &hello()).await.0.expect("a reply");
        assert_eq!(reply.stop, expected, "{reason}");
        assert_eq!(reply.whole().is_ok(), expected == Stop::EndTurn, "{reason}");
    }
}

#[tokio::test]
async fn a_forced_tool_that_is_refused_is_offered_instead() {
    let refusal = json!({"error": {"type": "invalid_request_error", "message": fake::LEAK}});
    let fake = Fake::start([
        Act::Json(400, Vec::new(), refusal),
        Act::Events(stream(&[tool_use()], "tool_use")),
        Act::Events(stream(&[tool_use()], "tool_use")),
    ])
    .await;
    let gateway = to(&fake, Kind::Anthropic);
    let tool = Tool { name: "read".into(), description: String::new(), schema: json!({"type": "object"}) };
    let asked = Conversation { tools: vec![tool], tool_choice: ToolChoice::Tool("read".into()), ..hello() };
    let reply = call(&gateway, &asked).await.0.expect("a reply");
    assert_eq!((reply.stop, reply.tries), (Stop::ToolUse, 1));
    call(&gateway, &asked).await.0.expect("a reply");
    let choices: Vec<_> = (0..3).map(|call| fake.body(call)["tool_choice"]["type"].clone()).collect();
    assert_eq!(choices, ["tool", "auto", "auto"], "what led to an answer is remembered");
}

#[tokio::test]
async fn trouble_in_the_middle_of_a_stream_is_tried_again() {
    let mut broken = stream(&[text(&["Hal"])], "end_turn");
    broken.truncate(4);
    broken
        .push(event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": fake::LEAK}})));
    let fake = Fake::start([Act::Events(broken), Act::Events(stream(&[text(&["Hello"])], "end_turn"))]).await;
    let (reply, heard) = call(&to(&fake, Kind::Anthropic), &hello()).await;
    let reply = reply.expect("a reply");
    assert_eq!((reply.text().as_str(), reply.tries), ("Hello", 2));
    let said = |text: &str| Delta::Text(text.into());
    assert_eq!(heard, [Delta::Begin, said("Hal"), Delta::Begin, said("Hello")]);
}
