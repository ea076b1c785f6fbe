use serde_json::json;

use super::*;
use crate::clock::System;
use crate::id::SessionId;

fn fields(value: Value) -> Fields {
    value.as_object().expect("an object").clone()
}

fn state() -> SessionState {
    SessionState::new(SessionId::from_bytes([1; 16]), Timestamp::from_micros(1_000_000))
}

fn named(name: &str) -> NewEvent {
    NewEvent::bare(EventKind::parse(name).expect("a kind"))
}

#[test]
fn the_named_kinds_are_what_they_are_called() {
    let named = [
        (EventKind::USER_MESSAGE, "user.message"),
        (EventKind::SYSTEM_MESSAGE, "system.message"),
        (EventKind::INTERRUPT, "user.interrupt"),
        (EventKind::DEFINE_OUTCOME, "user.define_outcome"),
        (EventKind::AGENT_MESSAGE, "agent.message"),
        (EventKind::TOOL_USE, "agent.tool_use"),
        (EventKind::TOOL_RESULT, "agent.tool_result"),
        (EventKind::RUNNING, "session.status_running"),
        (EventKind::IDLE, "session.status_idle"),
        (EventKind::TERMINATED, "session.status_terminated"),
        (EventKind::MODEL_END, "span.model_request_end"),
        (EventKind::UPDATED, "session.updated"),
        (EventKind::DELETED, "session.deleted"),
    ];
    for (kind, name) in named {
        assert_eq!(kind.as_str(), name);
    }
    assert!(EventKind::all().all(|kind| kind.as_str().len() <= 64), "as long as an entry's kind may be");
}

#[test]
fn ids_and_times_grow_whatever_the_clock_does() {
    let new = vec![named("user.interrupt"), named("user.interrupt")];
    let (after, events) = append(&state(), new, Timestamp::from_micros(5), &System).expect("appended");
    assert!(events[0].at > state().last_at && events[0].at < events[1].at && events[0].id < events[1].id);
    assert_eq!((events[0].sequence, events[1].sequence, after.last_sequence), (1, 2, 2));
    let (_, more) =
        append(&after, vec![named("user.interrupt")], Timestamp::from_micros(5), &System).expect("more");
    assert!(more[0].id > events[1].id && more[0].sequence == 3);
}

#[test]
fn status_events_drive_the_status_and_nothing_follows_the_end() {
    let now = Timestamp::from_micros(2_000_000);
    let run = |state: &SessionState, names: &[&str]| {
        append(state, names.iter().map(|name| named(name)).collect(), now, &System).map(|(state, _)| state)
    };
    let running = run(&state(), &["session.status_running"]).expect("running");
    assert_eq!(running.status, SessionStatus::Running);
    let ended = run(&running, &["session.status_idle", "session.status_terminated"]).expect("ended");
    assert_eq!(ended.status, SessionStatus::Terminated);
    assert_eq!(ended.end.as_ref().map(|end| &end.outcome), Some(&Outcome::Completed));
    assert_eq!(run(&ended, &["user.interrupt"]), Err(0));
    assert_eq!(run(&running, &["session.status_terminated", "agent.thinking"]), Err(1));
}

/// spec/anthropic.md 8.2.
#[test]
fn input_is_queued_until_the_agent_does_something() {
    let now = Timestamp::from_micros(2_000_000);
    let kinds = ["user.message", "user.tool_result", "agent.thinking", "user.message"];
    let new = kinds.iter().map(|name| named(name)).collect();
    let (state, events) = append(&state(), new, now, &System).expect("appended");
    let processed: Vec<_> = events.iter().map(|e| e.processed_at(state.taken_up).is_some()).collect();
    assert_eq!(processed, [true, true, true, false]);
    let before: Vec<_> = events.iter().map(|e| e.processed_at(0).is_some()).collect();
    assert_eq!(before, [false, true, true, false]);
}

#[test]
fn tokens_of_model_requests_add_up() {
    let usage =
        json!({"model_request_start_id": "x", "model_usage": {"input_tokens": 3, "output_tokens": 4}});
    let end = NewEvent::new(EventKind::MODEL_END, fields(usage));
    let (state, _) =
        append(&state(), vec![end.clone(), end], Timestamp::from_micros(1), &System).expect("appended");
    assert_eq!((state.usage.input_tokens, state.usage.output_tokens), (6, 8));
}

#[test]
fn an_entry_reads_back_as_the_event_it_keeps() {
    let sent = json!({"type": "agent.tool_use", "id": "toolu_1", "name": "read", "input": {"a": [1, null]},
        "processed_at": "2026-01-01T00:00:00Z", "evaluation": null});
    let new = kinds::parse(fields(sent), true).expect("an event");
    let (_, events) = append(&state(), vec![new], Timestamp::from_micros(1), &System).expect("appended");
    assert_eq!(Event::try_from(events[0].entry()).expect("an event"), events[0]);
    let mut damaged = events[0].entry();
    damaged.kind = "agent.unheard".into();
    assert!(Event::try_from(damaged).is_err());
}

#[test]
fn what_has_the_wrong_shape_is_named() {
    let refused = |value: Value, recorder| kinds::parse(fields(value), recorder).expect_err("refused").0;
    let text = json!([{"type": "text", "text": "x"}]);
    assert_eq!(refused(json!({}), false), "type");
    assert_eq!(refused(json!({"type": "agent.message", "content": text}), false), "type");
    assert_eq!(refused(json!({"type": "session.deleted"}), true), "type");
    assert_eq!(refused(json!({"type": "user.message"}), false), "content");
    assert_eq!(refused(json!({"type": "user.message", "content": []}), false), "content");
    assert_eq!(refused(json!({"type": "user.message", "content": "hi"}), false), "content");
    assert_eq!(
        refused(json!({"type": "user.message", "content": [{"type": "text"}]}), false),
        "content.0.text"
    );
    assert_eq!(refused(json!({"type": "user.message", "content": text, "id": "x"}), false), "id");
    assert_eq!(refused(json!({"type": "user.message", "content": text, "colour": 1}), true), "colour");
    assert_eq!(refused(json!({"type": "session.status_idle"}), true), "stop_reason");
    let why = json!({"type": "session.status_idle", "stop_reason": {"type": "bored"}});
    assert_eq!(refused(why, true), "stop_reason.type");
    assert!(kinds::parse(fields(json!({"type": "user.message", "content": text})), false).is_ok());
}
