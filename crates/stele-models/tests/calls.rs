//! What calls have in common whatever the wire: tries, waits, limits, rests, catalogues. spec/learning.md 15 and A13.

#[expect(dead_code, reason = "shared by several test programs")]
mod fake;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fake::{Act, Fake, HASTY, call, gateway, hello, to};
use serde_json::{Value, json};
use stele_core::clock::{Clock, System};
use stele_core::models::{Cost, Delta, ErrorClass, Fault, Model, ModelError, Price};
use stele_models::{Gateway, Kind, Patience, ProviderSettings};
use tokio::sync::Notify;

fn answer(text: &str) -> Value {
    json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}})
}

fn says(text: &str) -> Act {
    Act::Json(200, Vec::new(), answer(text))
}

fn status(status: u16) -> Act {
    Act::Json(status, Vec::new(), json!({"error": {"message": fake::LEAK}}))
}

fn piece(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}))
}

fn failed(status: Option<u16>, fault: Fault) -> ModelError {
    ModelError::Failed { provider: "p".into(), status, fault }
}

/// The error of a call, and how many requests it took.
async fn error(acts: impl IntoIterator<Item = Act>) -> (ModelError, usize) {
    let fake = Fake::start(acts).await;
    let error = call(&to(&fake, Kind::OpenAi), &hello()).await.0.expect_err("a failure");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(fake::LEAK) && !text.contains(fake::KEY), "{text}");
    }
    (error, fake.calls())
}

#[tokio::test]
async fn trouble_of_the_provider_is_tried_three_times() {
    for (code, fault) in
        [(408, Fault::Status), (500, Fault::Status), (503, Fault::Status), (529, Fault::Status)]
    {
        let fake = Fake::start([status(code), status(code), says("ok")]).await;
        let reply = call(&to(&fake, Kind::OpenAi), &hello()).await.0.expect("the third try");
        assert_eq!((reply.text().as_str(), reply.tries), ("ok", 3), "{code}");
        assert_eq!(error([status(code), status(code), status(code)]).await, (failed(Some(code), fault), 3));
    }
    let hang_up = || [Act::HangUp, Act::HangUp, Act::HangUp];
    assert_eq!(error(hang_up()).await, (failed(None, Fault::BrokenOff), 3));
    let malformed = || Act::Raw("{\"choices\": [{\"mess");
    assert_eq!(error([malformed(), malformed(), malformed()]).await, (failed(None, Fault::Unreadable), 3));
}

#[tokio::test]
async fn what_no_second_try_would_change_is_tried_once() {
    let cases = [
        (400, Fault::Malformed),
        (401, Fault::Key),
        (403, Fault::Key),
        (404, Fault::NotFound),
        (413, Fault::RequestTooLarge),
        (418, Fault::Status),
        (422, Fault::Malformed),
    ];
    for (code, fault) in cases {
        let expected = failed(Some(code), fault);
        assert_eq!(expected.class(), ErrorClass::Error);
        assert_eq!(error([status(code)]).await, (expected, 1));
    }
    let long = json!({"error": {"code": "context_length_exceeded"}});
    let overflow = ModelError::Overflow { provider: "p".into(), status: Some(400) };
    assert!(overflow.is_of_the_conversation());
    assert_eq!(error([Act::Json(400, Vec::new(), long)]).await, (overflow, 1));
}

#[tokio::test]
async fn a_redirection_is_not_followed_so_that_the_key_stays() {
    let other = Fake::start([]).await;
    let place = vec![("location", format!("http://{}/v1/chat/completions", other.address))];
    let (error, _) = error([Act::Json(307, place, Value::Null)]).await;
    assert_eq!(error, failed(Some(307), Fault::Redirected));
    assert!(other.log().is_empty());
}

fn limited(retry_after: &str) -> Act {
    Act::Json(429, vec![("retry-after", retry_after.into())], json!({"error": {"message": fake::LEAK}}))
}

#[tokio::test]
async fn retry_after_is_obeyed_up_to_a_minute_and_a_longer_one_ends_the_call() {
    let date = "Tue, 01 Dec 2020 12:00:00 GMT";
    let fake = Fake::start([limited("0"), limited(date), says("ok")]).await;
    let slow = Patience { backoff: Duration::from_secs(3600), ..HASTY };
    let gateway = gateway(vec![fake.settings("p", Kind::OpenAi)], slow);
    assert_eq!(call(&gateway, &hello()).await.0.expect("the third try").tries, 3);
    let (error, calls) = error([limited("61")]).await;
    let expected = ModelError::RateLimited { provider: "p".into(), status: 429, retry_after_secs: Some(61) };
    assert_eq!((&error, calls), (&expected, 1));
    assert_eq!(
        (error.class(), error.wait_secs(), error.status()),
        (ErrorClass::RateLimited, Some(61), Some(429))
    );
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_not_tried_again() {
    let hangs = [Act::Hang, Act::Endless(piece("x"))];
    let fake = Fake::start(hangs).await;
    let patience = Patience { timeout: Duration::from_millis(200), ..HASTY };
    let gateway = gateway(vec![fake.settings("p", Kind::OpenAi)], patience);
    for calls in 1..=2 {
        let error = call(&gateway, &hello()).await.0.expect_err("too slow");
        assert_eq!(error, ModelError::TimedOut { provider: "p".into(), secs: 1 });
        assert_eq!((error.class(), fake.calls()), (ErrorClass::Timeout, calls));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_begins_anew() {
    let whole = [piece("Hello"), "data: [DONE]\n\n".into()];
    let fake = Fake::start([
        Act::Broken(vec![piece("Hal")]),
        // It ends as a stream should, but no event said that the answer is whole.
        Act::Events(vec![piece("Hallo")]),
        Act::Events(whole.to_vec()),
    ])
    .await;
    let (reply, heard) = call(&to(&fake, Kind::OpenAi), &hello()).await;
    assert_eq!(reply.expect("a reply").text(), "Hello");
    let said = |text: &str| Delta::Text(text.into());
    assert_eq!(heard, [Delta::Begin, said("Hal"), Delta::Begin, said("Hallo"), Delta::Begin, said("Hello")]);
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let expected = (failed(None, Fault::TooLarge), 1);
    let text = "x".repeat(64 * 1024);
    assert_eq!(error([Act::Endless(piece(&text))]).await, expected);
    assert_eq!(error([Act::Endless(": nothing but a comment\n".repeat(4096))]).await, expected);
    assert_eq!(error([Act::Endless("data: x".repeat(4096))]).await, expected, "an event without end");
    assert_eq!(error([says(&"x".repeat(10_000_000))]).await, expected);
    assert_eq!(error([says(&"x".repeat(20_000_000))]).await, expected);
    let call = json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": text}});
    let call = format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
    assert_eq!(error([Act::Endless(call)]).await, expected);
    let call = json!({"function": {"name": "t", "arguments": "{}"}});
    let call = format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
    assert_eq!(error([Act::Endless(call)]).await, expected, "uses of tools without end");
}

#[tokio::test]
async fn after_five_failed_calls_a_provider_rests_and_others_go_on() {
    let fake = Fake::start((0..15).map(|_| status(500))).await;
    let good = Fake::start([says("ok")]).await;
    let settings = vec![fake.settings("p", Kind::OpenAi), good.settings("q", Kind::OpenAi)];
    let gateway = gateway(settings, HASTY);
    for _ in 0..5 {
        assert_eq!(call(&gateway, &hello()).await.0.expect_err("it fails").status(), Some(500));
    }
    let resting = call(&gateway, &hello()).await.0.expect_err("it rests");
    assert!(matches!(resting, ModelError::Resting { .. }) && resting.wait_secs().is_some(), "{resting}");
    assert_eq!(fake.calls(), 15, "three tries a call, and none while it rests");
    let rests: Vec<_> =
        gateway.standings().iter().map(|s| (s.provider.clone(), s.rests_secs.is_some())).collect();
    assert_eq!(rests, [("p".to_owned(), true), ("q".to_owned(), false)]);
    let model = gateway.find("q/m").await.expect("a model");
    gateway.call(&model, &hello(), &mut |_| {}).await.expect("the other provider answers");
}

#[tokio::test]
async fn what_is_wrong_with_a_conversation_lets_no_provider_rest() {
    let fake = Fake::start((0..6).map(|_| status(400)).chain([says("ok")])).await;
    let gateway = to(&fake, Kind::OpenAi);
    for _ in 0..6 {
        call(&gateway, &hello()).await.0.expect_err("refused");
    }
    call(&gateway, &hello()).await.0.expect("it does not rest");
}

#[tokio::test]
async fn a_provider_has_two_calls_at_a_time() {
    let told = Arc::new(Notify::new());
    let fake = Fake::start((0..5).map(|_| Act::Wait(told.clone(), answer("ok")))).await;
    let gateway = Arc::new(to(&fake, Kind::OpenAi));
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let gateway = gateway.clone();
            tokio::spawn(async move { call(&gateway, &hello()).await.0.expect("a reply") })
        })
        .collect();
    for call in 1..=5 {
        fake.got(call).await;
        told.notify_one();
    }
    for call in calls {
        call.await.expect("no panic");
    }
    assert_eq!(fake.most_at_once(), 2);
}

#[tokio::test]
async fn dropping_the_future_drops_the_call() {
    let mut fake = Fake::start([Act::Hang, Act::Endless(piece("x")), says("ok")]).await;
    let gateway = to(&fake, Kind::OpenAi);
    let model = gateway.find("p/m").await.expect("a model");
    for calls in 1..=2 {
        let asked = hello();
        let mut hear = |_| {};
        {
            let mut called = pin!(gateway.call(&model, &asked, &mut hear));
            let got = pin!(fake.got(calls));
            tokio::select! {
                _ = &mut called => panic!("it does not end"),
                () = got => {}
            }
        }
        // The first connection was that of the catalogue, if it was not used again.
        fake.left(calls).await;
    }
    call(&gateway, &hello()).await.0.expect("its slots are free again");
}

#[tokio::test]
async fn a_call_costs_what_the_configuration_says() {
    let fake = Fake::start([says("ok")]).await;
    let price = Price { input: 2.0, output: 10.0, ..Price::default() };
    let settings = ProviderSettings { price: Some(price), ..fake.settings("p", Kind::OpenAi) };
    let reply = call(&gateway(vec![settings], HASTY), &hello()).await.0.expect("a reply");
    assert_eq!(reply.cost, Some(Cost::from_units(0.003)));
}

fn catalogue(ids: &[&str]) -> Value {
    json!({"data": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()})
}

async fn references(gateway: &Gateway) -> Vec<String> {
    gateway.catalogue().await.models.iter().map(|entry| entry.reference()).collect()
}

#[tokio::test]
async fn catalogues_are_fetched_once_and_a_name_finds_its_model() {
    let (open, anthropic) = (Fake::start([]).await, Fake::start([]).await);
    open.lists(json!({"data": [
        {"id": "shared"}, {"id": "org/deep", "context_length": 4096, "name": "Deep"},
    ]}));
    anthropic.lists(json!({"data": [
        {"id": "shared"}, {"id": "claude-x-20260101", "display_name": "Claude X", "max_tokens": 64},
    ], "has_more": false, "last_id": "shared"}));
    let settings = vec![open.settings("a", Kind::OpenAi), anthropic.settings("z", Kind::Anthropic)];
    let gateway = gateway(settings, HASTY);
    for _ in 0..2 {
        assert_eq!(references(&gateway).await, ["a/org/deep", "a/shared", "z/claude-x-20260101", "z/shared"]);
    }
    let cases = [
        ("shared", "z/shared"),
        ("org/deep", "a/org/deep"),
        ("claude-x", "z/claude-x"),
        ("a/shared", "a/shared"),
        ("a/not-listed", "a/not-listed"),
        ("a/org/deep", "a/org/deep"),
    ];
    for (name, found) in cases {
        assert_eq!(gateway.find(name).await.expect(name).reference(), found);
    }
    for name in ["claude", "b/shared", "a/", "", "/"] {
        let unknown = ModelError::UnknownModel { name: name.into() };
        assert_eq!(gateway.find(name).await.expect_err(name), unknown);
    }
    let deep = gateway.find("org/deep").await.expect("a model");
    assert_eq!((deep.context_tokens, deep.display_name.as_str()), (4096, "Deep"));
    let claude = gateway.find("claude-x").await.expect("a model");
    assert_eq!((claude.context_tokens, claude.output_tokens), (200_000, Some(64)));
    let lines: Vec<_> = [&open, &anthropic]
        .map(|fake| fake.log().into_iter().map(|got| got.line))
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(lines, ["GET /v1/models HTTP/1.1", "GET /v1/models?limit=1000 HTTP/1.1"]);
}

#[tokio::test]
async fn a_provider_that_does_not_answer_hides_no_other() {
    let (silent, good) = (Fake::start([]).await, Fake::start([]).await);
    good.lists(catalogue(&["m"]));
    let all = gateway(vec![silent.settings("a", Kind::OpenAi), good.settings("b", Kind::OpenAi)], HASTY);
    assert_eq!(references(&all).await, ["b/m"]);
    assert_eq!(all.find("m").await.expect("a model").reference(), "b/m");
    let unreachable = ModelError::Unreachable { providers: vec!["a".into()] };
    assert_eq!(all.find("other").await, Err(unreachable.clone()), "the silent one may have it");
    let alone = gateway(vec![silent.settings("a", Kind::OpenAi)], HASTY);
    let catalogue = alone.catalogue().await;
    assert_eq!(
        catalogue.silent[0].error,
        ModelError::Failed { provider: "a".into(), status: Some(404), fault: Fault::NotFound }
    );
    assert_eq!(catalogue.reachable(), Err(unreachable));
    assert_eq!(alone.find("a/m").await.expect("it needs no catalogue").reference(), "a/m");
}

#[tokio::test]
async fn models_that_the_operator_names_take_the_place_of_a_catalogue() {
    let fake = Fake::start([]).await;
    let models = Some(vec!["n".to_owned(), "m".to_owned()]);
    let settings =
        ProviderSettings { models, context_tokens: Some(8192), ..fake.settings("p", Kind::OpenAi) };
    let gateway = gateway(vec![settings], HASTY);
    assert_eq!(references(&gateway).await, ["p/n", "p/m"]);
    assert_eq!(gateway.find("m").await.expect("a model").context_tokens, 8192);
    assert!(fake.log().is_empty());
}

#[tokio::test]
async fn without_a_provider_it_says_so() {
    let gateway = gateway(Vec::new(), HASTY);
    assert_eq!(gateway.catalogue().await.reachable(), Ok(Vec::new()));
    assert_eq!(gateway.find("m").await, Err(ModelError::Unconfigured));
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_being_shown() {
    let fake = Fake::start([]).await;
    for base in ["", "nowhere", "ftp://x/y", "http://u:secret@x/", "http://x/?key=secret", "http://x/#secret"]
    {
        let settings = ProviderSettings { base_url: base.into(), ..fake.settings("p", Kind::OpenAi) };
        let clock: Arc<dyn Clock> = Arc::new(System);
        let refused = Gateway::new(vec![settings], HASTY, &clock, &(Arc::new(System) as _));
        let error = refused.err().expect(base);
        let text =
            format!("{error} {error:?} {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(text.contains("base_url") && !text.contains("secret"), "{text}");
    }
    let dead = "http://127.0.0.1:1/v1";
    let settings = ProviderSettings { base_url: dead.into(), ..fake.settings("p", Kind::OpenAi) };
    let error = call(&gateway(vec![settings], HASTY), &hello()).await.0.expect_err("nobody listens");
    assert_eq!(error, failed(None, Fault::Unreachable));
}
