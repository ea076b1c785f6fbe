//! Fixtures were written for these tests after what is publicly known of the formats; none is anybody's transcript.

use super::*;

fn told(format: Format, input: &str) -> (About, Tally, Vec<Value>) {
    let mut events = Vec::new();
    let (about, tally) = read(format, input.as_bytes(), |event| {
        events.push(event);
        Ok(())
    })
    .expect("read");
    (about, tally, events)
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

/// Every event as the server would judge it.
fn judge(events: &[Value]) {
    let mut ids = std::collections::BTreeSet::new();
    for event in events {
        let fields = event.as_object().expect("an object").clone();
        stele_core::work::event::kinds::parse(fields, true)
            .unwrap_or_else(|wrong| panic!("{event}: {wrong:?}"));
        assert!(ids.insert(event["id"].to_string()), "{event}: twice the same id");
    }
}

const CLAUDE: &str = include_str!("fixtures/claude-code.jsonl");
const CODEX: &str = include_str!("fixtures/codex.jsonl");
const JSONL: &str = include_str!("fixtures/own.jsonl");

#[test]
fn a_transcript_of_claude_code_is_told_whole() {
    let (about, tally, events) = told(Format::ClaudeCode, CLAUDE);
    judge(&events);
    assert_eq!(
        kinds(&events),
        [
            "user.message",
            "span.model_request_start",
            "agent.thinking",
            "agent.message",
            "agent.tool_use",
            "agent.tool_result",
            "span.model_request_end",
            "span.model_request_start",
            "agent.mcp_tool_use",
            "agent.mcp_tool_result",
            "span.model_request_end",
            "user.interrupt",
            "agent.thread_context_compacted",
            "user.message",
            "span.model_request_start",
            "agent.message",
            "span.model_request_end",
        ]
    );
    assert_eq!(about.id.as_deref(), Some("5f0c9a52-7a5e-4d4c-9a7e-0d6f6a2b1c11"));
    assert_eq!(about.title.as_deref(), Some("Fix the failing build"));
    assert_eq!(about.opening.as_deref(), Some("The build fails, please look."));
    assert_eq!(about.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!((about.version.as_deref(), about.strange_version), (Some("2.0.74"), None));
    assert_eq!((about.directory.as_deref(), about.branch.as_deref()), (Some("/home/dev/app"), Some("main")));
    // The tokens of an answer in three lines count once, as its last line says them.
    assert_eq!(events[6]["model_usage"]["output_tokens"], 60);
    assert_eq!(events[4]["id"], events[5]["tool_use_id"]);
    assert_eq!(events[5]["is_error"], true);
    assert_eq!(events[8]["mcp_server_name"], "github");
    assert_eq!(tally.left_out["of subagents"], 1);
    assert_eq!(tally.left_out["of the program's own"], 3);
    assert_eq!(tally.left_out["of the unknown kind \"hologram\""], 1);
    assert_eq!((tally.damaged, tally.cut_off, tally.events), (0, false, events.len()));
    let image = events[13]["content"][1]["text"].as_str().expect("text");
    assert!(image.starts_with("[image image/png left out"), "{image}");
}

#[test]
fn a_rollout_of_codex_is_told_whole() {
    let (about, tally, events) = told(Format::Codex, CODEX);
    judge(&events);
    assert_eq!(
        kinds(&events),
        [
            "user.message",
            "agent.thinking",
            "agent.tool_use",
            "agent.tool_result",
            "agent.tool_use",
            "agent.tool_result",
            "agent.message",
            "span.model_request_start",
            "span.model_request_end",
            "user.interrupt",
        ]
    );
    assert_eq!(about.id.as_deref(), Some("019a2d7a-0000-78b1-b7cc-a45d62a89cd5"));
    assert_eq!(about.opening.as_deref(), Some("List the tests"));
    assert_eq!(about.model.as_deref(), Some("gpt-5-codex"));
    assert_eq!(about.branch.as_deref(), Some("main"));
    assert_eq!(events[2]["input"], json!({"command": ["ls", "tests"]}));
    assert_eq!((&events[3]["is_error"], &events[3]["content"][0]["text"]), (&json!(false), &json!("a.py\n")));
    assert_eq!(events[4]["input"], json!({"input": "*** Begin Patch"}));
    assert_eq!(events[8]["model_usage"]["input_tokens"], 100);
    assert_eq!(events[8]["model_usage"]["cache_read_input_tokens"], 900);
    assert_eq!(tally.left_out["that only repeat or show"], 3);
    assert_eq!(tally.left_out["of the program's own"], 2);
}

#[test]
fn an_old_rollout_without_envelopes_is_told_too() {
    let input = concat!(
        r#"{"id":"0000aaaa","timestamp":"2025-06-01T10:00:00Z","instructions":null}"#,
        "\n",
        r#"{"record_type":"state"}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}"#,
        "\n",
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#,
        "\n",
    );
    let (about, _, events) = told(Format::Codex, input);
    judge(&events);
    assert_eq!(kinds(&events), ["user.message", "agent.message"]);
    assert_eq!(about.id.as_deref(), Some("0000aaaa"));
}

#[test]
fn a_rollout_in_which_nothing_but_what_is_shown_was_kept_is_told_by_that() {
    let shown = |kind: &str, text: &str| {
        format!("{}\n", json!({"type": "event_msg", "payload": {"type": kind, "message": text}}))
    };
    let (user, agent) = (shown("user_message", "hi"), shown("agent_message", "hello"));
    assert_eq!(kinds(&told(Format::Codex, &format!("{user}{agent}")).2), ["user.message", "agent.message"]);
    // Its item may yet come.
    assert!(told(Format::Codex, &user).2.is_empty());
    let item =
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hi"}});
    assert_eq!(kinds(&told(Format::Codex, &format!("{user}{item}\n{agent}")).2), ["user.message"]);
}

#[test]
fn what_a_person_says_while_claude_works_is_told_once() {
    let queued = |prompt: &str, mode: &str| {
        let attachment = json!({"type": "queued_command", "prompt": prompt, "commandMode": mode});
        json!({"type": "attachment", "uuid": prompt, "attachment": attachment}).to_string()
    };
    let removed =
        json!({"type": "queue-operation", "operation": "remove", "content": "no, the parser"}).to_string();
    let lines = [
        queued("no, the parser", "prompt"),
        removed.clone(),
        removed,
        queued("a task ended", "task-notification"),
        json!({"type": "attachment", "attachment": {"type": "skill_listing"}}).to_string(),
        json!({"type": "queue-operation", "operation": "enqueue", "content": "x"}).to_string(),
        json!({"type": "user", "uuid": "u", "message": {"content": "<task-notification>done"}}).to_string(),
    ];
    let (_, tally, events) = told(Format::ClaudeCode, &lines.join("\n"));
    judge(&events);
    let said: Vec<_> = events.iter().map(|event| event["content"][0]["text"].as_str()).collect();
    assert_eq!(said, [Some("no, the parser"); 2]);
    assert_eq!(tally.left_out["of the program's own"], 3);
}

#[test]
fn lines_of_ones_own_are_events_or_chat_messages() {
    let (about, tally, events) = told(Format::Jsonl, JSONL);
    judge(&events);
    assert_eq!(
        kinds(&events),
        [
            "system.message",
            "user.message",
            "agent.tool_use",
            "agent.tool_result",
            "agent.message",
            "agent.message",
        ]
    );
    assert_eq!((about.id.as_deref(), about.title.as_deref()), (Some("run-7"), Some("Weather")));
    assert_eq!(events[2]["input"], json!({"city": "Oslo"}));
    assert_eq!(events[5]["id"], "my-own");
    assert_eq!(tally.left_out["about the state of a session"], 1);
    assert_eq!(tally.left_out["that are no whole events"], 1);
    assert_eq!(tally.left_out["of the unknown kind \"role narrator\""], 1);
}

#[test]
fn a_transcript_that_is_cut_anywhere_tells_a_beginning_of_the_whole() {
    for (format, text) in [(Format::ClaudeCode, CLAUDE), (Format::Codex, CODEX), (Format::Jsonl, JSONL)] {
        let (.., whole) = told(format, text);
        for cut in (0..text.len()).step_by(97) {
            let (_, tally, events) = told(format, &text[..text.floor_char_boundary(cut)]);
            assert_eq!(tally.damaged, 0);
            // The end of the last request may be told early; all else is the same.
            let ids: Vec<_> = whole.iter().map(|event| &event["id"]).collect();
            assert!(events.iter().all(|event| ids.contains(&&event["id"])), "cut at {cut}");
            let plain = |events: &[Value]| -> Vec<String> {
                let kept = events.iter().filter(|event| event["type"] != "span.model_request_end");
                kept.map(Value::to_string).collect()
            };
            let (part, all) = (plain(&events), plain(&whole));
            assert_eq!(part, all[..part.len()], "cut at {cut}");
        }
    }
}

#[test]
fn an_id_that_is_used_again_is_another_event_and_a_copied_line_is_not() {
    let call = |city: &str| {
        let function = json!({"name": "weather", "arguments": {"city": city}});
        format!("{}\n", json!({"role": "assistant", "tool_calls": [{"id": "call_0", "function": function}]}))
    };
    let input = [call("Oslo"), call("Rome"), call("Oslo"), call("Bern")].concat();
    let (_, tally, events) = told(Format::Jsonl, &input);
    let ids: Vec<_> = events.iter().map(|event| event["id"].as_str()).collect();
    assert_eq!(ids, [Some("call_0"), Some("call_0~2"), Some("call_0~3")]);
    assert_eq!((tally.events, tally.left_out["of events that are there twice"]), (3, 1));
}

#[test]
fn an_answer_between_whose_lines_tools_answer_is_one_request() {
    let part = |uuid: &str, tool: &str, tokens: u64| {
        let content = json!([{"type": "tool_use", "id": tool, "name": "Read", "input": {}}]);
        let message =
            json!({"id": "msg", "model": "claude", "content": content, "usage": {"output_tokens": tokens}});
        format!("{}\n", json!({"type": "assistant", "uuid": uuid, "message": message}))
    };
    let result = |uuid: &str, tool: &str| {
        let content = json!([{"type": "tool_result", "tool_use_id": tool, "content": "x"}]);
        format!("{}\n", json!({"type": "user", "uuid": uuid, "message": {"content": content}}))
    };
    let person =
        |uuid: &str| format!("{}\n", json!({"type": "user", "uuid": uuid, "message": {"content": "go on"}}));
    let input = [
        part("a", "t1", 10),
        result("b", "t1"),
        part("c", "t2", 30),
        result("d", "t2"),
        person("e"),
        part("f", "t3", 40),
    ];
    let (.., events) = told(Format::ClaudeCode, &input.concat());
    judge(&events);
    let spans: Vec<_> = events.iter().filter(|event| event["type"] == "span.model_request_end").collect();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["model_usage"]["output_tokens"], 30);
    assert_eq!(events.len(), 8);
}

#[test]
fn what_is_damaged_is_counted_and_the_rest_is_told() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let input = format!(
        "not json\n[1]\n\"x\"\n{{\"type\":7}}\n{{}}\n{{\"deep\":{deep}}}\n{}\n{{\"type\":\"user\",\"message\":{{\"cont",
        r#"{"type":"user","uuid":"u1","message":{"content":"hi"},"timestamp":"yesterday","version":"9.1.0"}"#
    );
    let (about, tally, events) = told(Format::ClaudeCode, &input);
    judge(&events);
    assert_eq!(kinds(&events), ["user.message"]);
    assert_eq!(events[0].get("processed_at"), None);
    assert_eq!((tally.damaged, tally.first_damaged, tally.cut_off), (4, Some(1), true));
    assert_eq!(tally.left_out["without a type"], 2);
    assert_eq!(about.strange_version.as_deref(), Some("9.1.0"));
    let missing = tally.missing().expect("something is missing");
    assert_eq!(
        missing,
        "2 lines without a type, 4 damaged lines (the first is line 1), the last line, which is not whole"
    );
}

#[test]
fn hostile_lines_become_events_that_the_server_takes() {
    for line in [
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"","name":"x","input":[1]}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":7,"name":"x"},7,null,"s",{}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":{"a":1}}]}}"#,
        r#"{"type":"user","message":"text"}"#,
        r#"{"type":"user","message":{"content":[{"type":"text","text":"a\u0000b\u001b[2J"}]}}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"x","usage":{"input_tokens":-1,"output_tokens":"many"}}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"x","arguments":"{","call_id":"c"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":7}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":[]}}}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"function":{}},7]}"#,
        r#"{"role":"user","content":{"type":"image","image":"AAAA"}}"#,
        r#"{"type":"user.message","content":"x","id":""}"#,
    ] {
        for format in [Format::ClaudeCode, Format::Codex, Format::Jsonl] {
            judge(&told(format, line).2);
        }
    }
    let many: String = (0..100).map(|n| format!("{{\"type\":\"kind-{n}\"}}\n")).collect();
    let (_, tally, _) = told(Format::ClaudeCode, &many);
    assert_eq!(tally.left_out.len(), KINDS + 1);
    assert_eq!(tally.left_out.values().sum::<usize>(), 100);
}

#[test]
fn a_line_of_ten_megabytes_is_an_event_that_says_what_is_missing() {
    let line = json!({"type": "user", "uuid": "u", "message": {"content": "x".repeat(10 << 20)}}).to_string();
    let (_, tally, events) = told(Format::ClaudeCode, &line);
    judge(&events);
    assert_eq!((tally.events, tally.cut), (1, 1));
    assert!(events[0].to_string().len() < 100_000);
}
