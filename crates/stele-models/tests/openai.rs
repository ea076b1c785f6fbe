//! The wire of chat completions against a fake of it, with the quirks of its many servers. spec/learning.md 15 and A32.

#[expect(dead_code, reason = "shared by several test programs")]
mod fake;

use fake::{Act, Fake, call, hello, to};
use serde_json::{Value, json};
use stele_core::models::{
    Arguments, Block, Conversation, Delta, Message, Model, Schema, Stop, Tool, ToolChoice, ToolResult,
    ToolUse, Usage,
};
use stele_models::Kind;

fn event(delta: &Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

const DONE: &str = "data: [DONE]\n\n";

fn usage_event() -> String {
    let usage =
        json!({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}});
    format!("data: {}\n\n", json!({"choices": [], "usage": usage}))
}

/// A stream of one text, with its usage.
fn says(text: &str) -> Act {
    Act::Events(vec![
        event(&json!({"content": text}), None),
        event(&json!({}), Some("stop")),
        usage_event(),
        DONE.into(),
    ])
}

fn whole(message: &Value, finish: &str) -> Act {
    let answer = json!({"choices": [{"message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    Act::Json(200, Vec::new(), answer)
}

fn refusal(text: &str) -> Act {
    Act::Json(400, Vec::new(), json!({"error": {"message": format!("{text}: {}", fake::LEAK)}}))
}

fn path_argument() -> Arguments {
    Arguments::parse("{\"path\": \"/a\"}")
}

fn tool() -> Tool {
    Tool { name: "read".into(), description: "reads".into(), schema: json!({"type": "object"}) }
}

#[tokio::test]
async fn text_and_uses_of_tools_come_in_pieces() {
    let call_piece = |index: u64, piece: Value| {
        let mut call = piece;
        call["index"] = index.into();
        event(&json!({"tool_calls": [call]}), None)
    };
    let fake = Fake::start([Act::Events(vec![
        event(&json!({"role": "assistant", "content": ""}), None),
        event(&json!({"content": "Hel"}), None),
        event(&json!({"content": "lo"}), None),
        call_piece(0, json!({"id": "c0", "function": {"name": "read", "arguments": ""}})),
        call_piece(0, json!({"function": {"arguments": "{\"path\""}})),
        call_piece(1, json!({"id": "c1", "function": {"name": "list", "arguments": "{}"}})),
        call_piece(0, json!({"function": {"arguments": ": \"/a\"}"}})),
        event(&json!({}), Some("tool_calls")),
        usage_event(),
        DONE.into(),
    ])])
    .await;
    let (reply, heard) = call(&to(&fake, Kind::OpenAi), &hello()).await;
    let reply = reply.expect("a reply");
    let used = |id: &str, name: &str, arguments| {
        Block::ToolUse(ToolUse { id: id.into(), name: name.into(), arguments })
    };
    assert_eq!(
        reply.blocks,
        [
            Block::Text("Hello".into()),
            used("c0", "read", path_argument()),
            used("c1", "list", Arguments::parse("{}"))
        ]
    );
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.usage, Usage { input: 12, output: 5, cache_read: 8, cache_write: 0, estimated: false });
    assert_eq!(heard[..3], [Delta::Begin, Delta::Text("Hel".into()), Delta::Text("lo".into())]);
    assert_eq!(heard.last(), Some(&Delta::Arguments { index: 0, json: ": \"/a\"}".into() }));
}

#[tokio::test]
async fn the_whole_conversation_is_spelled_as_the_wire_wants_it() {
    let fake = Fake::start([says("ok")]).await;
    let asked = Conversation {
        system: "be good".into(),
        messages: vec![
            Message::user("hello"),
            Message::assistant(vec![Block::ToolUse(ToolUse {
                id: "c0".into(),
                name: "read".into(),
                arguments: path_argument(),
            })]),
            Message {
                blocks: vec![
                    Block::Text("go on".into()),
                    Block::ToolResult(ToolResult {
                        tool_use: "c0".into(),
                        text: "no".into(),
                        is_error: true,
                    }),
                ],
                ..Message::user("")
            },
            Message::assistant(vec![Block::Text("a".into()), Block::Text("b".into())]),
        ],
        tools: vec![tool()],
        tool_choice: ToolChoice::Any,
        schema: Some(Schema { name: "out".into(), schema: json!({"type": "object"}) }),
        max_tokens: 64,
        top_p: Some(0.5),
        ..Conversation::default()
    };
    call(&to(&fake, Kind::OpenAi), &asked).await.0.expect("a reply");
    let function = json!({"name": "read", "arguments": "{\"path\":\"/a\"}"});
    assert_eq!(
        fake.body(0),
        json!({
            "model": "m",
            "max_tokens": 64,
            "stream": true,
            "stream_options": {"include_usage": true},
            "top_p": 0.5,
            "tools": [{"type": "function", "function":
                {"name": "read", "description": "reads", "parameters": {"type": "object"}}}],
            "tool_choice": "required",
            "response_format": {"type": "json_schema", "json_schema": {"name": "out", "schema": {"type": "object"}}},
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": null, "tool_calls":
                    [{"id": "c0", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c0", "content": "Error: no"},
                {"role": "user", "content": "go on"},
                {"role": "assistant", "content": "a\n\nb"},
            ],
        })
    );
    let got = fake.log().pop().expect("a call");
    assert!(got.line.starts_with("POST /v1/chat/completions HTTP"), "{}", got.line);
    assert!(got.headers.contains(&format!("authorization: Bearer {}", fake::KEY)), "{}", got.headers);
}

#[tokio::test]
async fn arguments_may_be_text_an_object_or_nonsense() {
    let call_of = |arguments: Value| json!({"id": "c", "function": {"name": "read", "arguments": arguments}});
    let calls = [
        call_of(json!({"path": "/a"})),
        call_of(json!("{\"path\": \"/a\"}")),
        call_of(json!("")),
        call_of(json!("{\"path\":")),
        call_of(json!("[1]")),
        json!({"function": {"name": "read"}}),
    ];
    let streamed = event(&json!({"tool_calls": [call_of(json!({"path": "/a"}))]}), Some("tool_calls"));
    let fake = Fake::start([
        whole(&json!({"content": null, "tool_calls": calls}), "tool_calls"),
        Act::Events(vec![streamed]),
    ])
    .await;
    let gateway = to(&fake, Kind::OpenAi);
    let reply = call(&gateway, &hello()).await.0.expect("a reply");
    let arguments: Vec<_> = reply.tool_uses().map(|used| used.arguments.clone()).collect();
    assert_eq!(
        arguments,
        [
            path_argument(),
            path_argument(),
            Arguments::parse("{}"),
            Arguments::Malformed("{\"path\":".into()),
            Arguments::Malformed("[1]".into()),
            Arguments::parse("{}"),
        ]
    );
    assert_eq!(reply.tool_uses().last().map(|used| used.id.as_str()), Some("call_5"), "an id is made");
    let reply = call(&gateway, &hello()).await.0.expect("a reply");
    assert_eq!(reply.tool_uses().next().map(|used| used.arguments.clone()), Some(path_argument()));
}

#[tokio::test]
async fn without_a_usage_the_tokens_are_estimated_and_marked_so() {
    let none =
        Act::Events(vec![event(&json!({"content": "123456789"}), None), event(&json!({}), Some("stop"))]);
    let zero = json!({"choices": [{"message": {"content": "123456789"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0}});
    let fake = Fake::start([none, Act::Json(200, Vec::new(), zero), says("x")]).await;
    let gateway = to(&fake, Kind::OpenAi);
    let expected = Usage { input: 2, output: 3, estimated: true, ..Usage::default() };
    for _ in 0..2 {
        assert_eq!(call(&gateway, &hello()).await.0.expect("a reply").usage, expected);
    }
    let model = gateway.find("p/m").await.expect("a model");
    assert_eq!(gateway.estimate_tokens(&model, 5), 2);
    call(&gateway, &hello()).await.0.expect("a reply");
    assert_eq!(gateway.estimate_tokens(&model, 5), 20, "a report corrects the estimate");
}

#[tokio::test]
async fn reasoning_in_the_text_is_neither_heard_nor_answered() {
    let pieces = ["<th", "ink>{\"useful\":", " true}</think>\n\n{\"useful\"", ": false}"];
    let mut events: Vec<_> = pieces.iter().map(|piece| event(&json!({"content": piece}), None)).collect();
    events.push(event(&json!({"reasoning_content": "hm"}), Some("stop")));
    let fake = Fake::start([
        Act::Events(events),
        whole(&json!({"content": "hm\n</think>\n\nyes"}), "stop"),
        whole(&json!({"content": "<think>never"}), "length"),
    ])
    .await;
    let gateway = to(&fake, Kind::OpenAi);
    let (reply, heard) = call(&gateway, &hello()).await;
    assert_eq!(reply.expect("a reply").text(), "{\"useful\": false}");
    let texts = heard.iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "{\"useful\": false}");
    assert!(heard.contains(&Delta::Thinking), "{heard:?}");
    assert_eq!(call(&gateway, &hello()).await.0.expect("a reply").text(), "yes");
    let cut = call(&gateway, &hello()).await.0.expect("a reply");
    assert_eq!((cut.text().as_str(), cut.stop), ("", Stop::MaxTokens));
}

#[tokio::test]
async fn a_form_that_is_refused_is_asked_for_less_strictly_and_that_is_remembered() {
    let fake = Fake::start([
        refusal("response_format.json_schema is unknown"),
        refusal("response_format is unknown"),
        says("{}"),
        says("{}"),
    ])
    .await;
    let gateway = to(&fake, Kind::OpenAi);
    let schema = Schema { name: "out".into(), schema: json!({"type": "object"}) };
    let asked = Conversation { schema: Some(schema), ..hello() };
    for _ in 0..2 {
        assert_eq!(call(&gateway, &asked).await.0.expect("a reply").tries, 1);
    }
    let forms: Vec<_> = (0..4).map(|call| fake.body(call)["response_format"]["type"].clone()).collect();
    assert_eq!(forms, [json!("json_schema"), json!("json_object"), Value::Null, Value::Null]);
}

#[tokio::test]
async fn a_server_that_cannot_stream_is_asked_for_whole_answers() {
    let fake = Fake::start([
        refusal("stream is not supported"),
        whole(&json!({"content": "hello"}), "stop"),
        whole(&json!({"content": "again"}), "stop"),
    ])
    .await;
    let gateway = to(&fake, Kind::OpenAi);
    let (reply, heard) = call(&gateway, &hello()).await;
    assert_eq!(reply.expect("a reply").text(), "hello");
    assert_eq!(heard, [Delta::Begin, Delta::Text("hello".into())]);
    call(&gateway, &hello()).await.0.expect("a reply");
    assert_eq!(fake.body(0)["stream"], true);
    assert!(fake.body(1)["stream"].is_null() && fake.body(2)["stream"].is_null());
}

#[tokio::test]
async fn other_fields_that_a_server_refuses_are_left_out() {
    let fake = Fake::start([
        refusal("extra inputs: stream_options"),
        refusal("use 'max_completion_tokens' instead of max_tokens"),
        refusal("temperature must be 1"),
        says("ok"),
    ])
    .await;
    let asked = Conversation { temperature: Some(0.0), ..hello() };
    call(&to(&fake, Kind::OpenAi), &asked).await.0.expect("a reply");
    let body = fake.body(3);
    assert!(body["stream_options"].is_null() && body["temperature"].is_null(), "{body}");
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(100), &Value::Null));
}

#[tokio::test]
async fn each_reason_to_stop_is_told_apart() {
    let cases = [
        (whole(&json!({"content": "x"}), "length"), Stop::MaxTokens),
        (whole(&json!({"content": "x"}), "content_filter"), Stop::Refusal),
        (whole(&json!({"content": null, "refusal": "no"}), "stop"), Stop::Refusal),
        (whole(&json!({"content": null}), "stop"), Stop::EndTurn),
        (whole(&json!({"content": "x"}), "tool_calls"), Stop::EndTurn),
        (Act::Events(vec![event(&json!({"content": "x"}), None), DONE.into()]), Stop::EndTurn),
    ];
    let (acts, stops): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let fake = Fake::start(acts).await;
    let gateway = to(&fake, Kind::OpenAi);
    for expected in stops {
        assert_eq!(call(&gateway, &hello()).await.0.expect("a reply").stop, expected);
    }
}

#[tokio::test]
async fn tools_are_not_offered_where_the_operator_says_so() {
    let fake = Fake::start([says("ok")]).await;
    let settings = stele_models::ProviderSettings { tools: false, ..fake.settings("p", Kind::OpenAi) };
    let gateway = fake::gateway(vec![settings], fake::HASTY);
    assert!(!gateway.find("p/m").await.expect("a model").tools);
    let asked = Conversation { tools: vec![tool()], tool_choice: ToolChoice::Any, ..hello() };
    call(&gateway, &asked).await.0.expect("a reply");
    assert!(fake.body(0)["tools"].is_null() && fake.body(0)["tool_choice"].is_null());
}
