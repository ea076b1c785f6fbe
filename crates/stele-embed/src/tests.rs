use std::sync::Mutex;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;

/// What an endpoint of a test was sent: the `authorization` header and the body.
type Seen = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// An endpoint that answers every call by what `answer` makes of its number and texts.
async fn endpoint_that<F>(answer: F) -> (String, Seen)
where
    F: Fn(usize, &[Value]) -> (u16, HeaderMap, String) + Clone + Send + Sync + 'static,
{
    let (seen, listener) = (Seen::default(), TcpListener::bind("127.0.0.1:0").await.expect("a port"));
    let address = listener.local_addr().expect("an address");
    let noted = seen.clone();
    let handler = move |headers: HeaderMap, body: String| async move {
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let authorization = headers.get(AUTHORIZATION).map(|v| v.to_str().expect("ASCII").to_owned());
        let texts = body["input"].as_array().expect("a list").clone();
        let number = {
            let mut seen = noted.lock().expect("no panic");
            seen.push((authorization, body));
            seen.len()
        };
        let (status, headers, body) = answer(number, &texts);
        (StatusCode::from_u16(status).expect("a status"), headers, body)
    };
    let router = Router::new().route("/v1/embeddings", post(handler));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/v1/"), seen)
}

fn config(base_url: String) -> Config {
    Config {
        base_url,
        model: "m".into(),
        key: Some(Key::new(" secret-key\n")),
        dimensions: None,
        passage_chars: 1000,
        passage_prefix: "passage: ".into(),
        query_prefix: "query: ".into(),
    }
}

fn embedder(base_url: String) -> OpenAiEmbedder {
    OpenAiEmbedder::new(config(base_url)).expect("an embedder")
}

fn lengths(texts: &[Value]) -> String {
    let item = |text: &Value| json!({"embedding": [text.as_str().map_or(0, str::len), 1]});
    json!({"data": texts.iter().map(item).collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn texts_go_out_with_prefix_and_key_and_vectors_come_back_in_order() {
    let (url, seen) = endpoint_that(|_, texts| (200, HeaderMap::new(), lengths(texts))).await;
    let embedder = embedder(url);
    let vectors = embedder.passages(vec!["a".into(), "abc".into()]).await;
    assert_eq!(vectors, Ok(vec![vec![10.0, 1.0], vec![12.0, 1.0]]));
    assert_eq!(embedder.query("why".into()).await, Ok(vec![10.0, 1.0]));
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen[0].0.as_deref(), Some("Bearer secret-key"));
    assert_eq!(seen[0].1, json!({"model": "m", "input": ["passage: a", "passage: abc"]}));
    assert_eq!(seen[1].1, json!({"model": "m", "input": ["query: why"]}));
}

#[tokio::test]
async fn an_endpoint_that_fails_again_and_again_is_left_alone() {
    let (url, seen) = endpoint_that(|_, _| (500, HeaderMap::new(), "secret text".into())).await;
    let embedder = embedder(url);
    for _ in 0..6 {
        assert_eq!(embedder.query("q".into()).await, Err(EmbedError::Unavailable));
    }
    assert_eq!(seen.lock().expect("no panic").len(), 3);
    assert_eq!(embedder.passages(vec!["p".into()]).await, Err(EmbedError::Unavailable));
    assert_eq!(seen.lock().expect("no panic").len(), 4, "passages have a rest of their own");
}

#[tokio::test]
async fn retry_after_is_obeyed_at_once() {
    let busy = |_: usize, _: &[Value]| {
        let headers = [(RETRY_AFTER, HeaderValue::from_static("30"))].into_iter().collect();
        (429, headers, String::new())
    };
    let (url, seen) = endpoint_that(busy).await;
    let embedder = embedder(url);
    for _ in 0..3 {
        assert_eq!(embedder.query("q".into()).await, Err(EmbedError::Unavailable));
    }
    assert_eq!(seen.lock().expect("no panic").len(), 1);
}

#[tokio::test]
async fn a_text_is_refused_only_by_a_model_that_has_taken_others() {
    let picky = |_: usize, texts: &[Value]| {
        let bad = texts.iter().any(|text| text.as_str().is_some_and(|text| text.ends_with("bad")));
        if bad { (400, HeaderMap::new(), String::new()) } else { (200, HeaderMap::new(), lengths(texts)) }
    };
    let (url, _) = endpoint_that(picky).await;
    let embedder = embedder(url);
    assert_eq!(embedder.passages(vec!["bad".into()]).await, Err(EmbedError::Unavailable));
    assert!(embedder.passages(vec!["good".into()]).await.is_ok());
    for _ in 0..5 {
        assert_eq!(embedder.passages(vec!["bad".into()]).await, Err(EmbedError::Refused));
    }
    assert!(embedder.passages(vec!["good".into()]).await.is_ok());
}

#[tokio::test]
async fn a_dimension_that_changes_is_not_used() {
    let growing = |number: usize, _: &[Value]| {
        (200, HeaderMap::new(), json!({"data": [{"embedding": vec![1.0; number]}]}).to_string())
    };
    let (url, _) = endpoint_that(growing).await;
    let embedder = embedder(url);
    assert_eq!(embedder.query("q".into()).await, Ok(vec![1.0]));
    assert_eq!(embedder.query("q".into()).await, Err(EmbedError::Unavailable));
}

#[tokio::test]
async fn redirects_nonsense_and_silence_are_failures() {
    let elsewhere = |_: usize, _: &[Value]| {
        let headers = [(reqwest::header::LOCATION, HeaderValue::from_static("http://127.0.0.1:1/"))];
        (307, headers.into_iter().collect(), String::new())
    };
    let (url, _) = endpoint_that(elsewhere).await;
    assert_eq!(embedder(url).query("q".into()).await, Err(EmbedError::Unavailable));
    let (url, _) = endpoint_that(|_, _| (200, HeaderMap::new(), "<html>".into())).await;
    assert_eq!(embedder(url).query("q".into()).await, Err(EmbedError::Unavailable));
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", silent.local_addr().expect("an address"));
    assert_eq!(embedder(url).query("q".into()).await, Err(EmbedError::Unavailable));
}

#[test]
fn what_cannot_be_right_is_refused_without_showing_the_key() {
    for bad in ["", "localhost:11434", "ftp://x/v1", "http://user:pw@x/v1", "http://x/v1?key=secret"] {
        assert!(matches!(OpenAiEmbedder::new(config(bad.into())), Err(ConfigError::BaseUrl)), "{bad}");
    }
    let key = Config { key: Some(Key::new("a\u{7}b")), ..config("http://x/v1".into()) };
    assert!(!format!("{key:?}").contains("a\u{7}b"));
    assert!(matches!(OpenAiEmbedder::new(key), Err(ConfigError::Key)));
    let url = endpoint("https://api.example/v1/").expect("an address");
    assert_eq!(url.as_str(), "https://api.example/v1/embeddings");
}
