//! Reading bodies: bounded in size and time, UTF-8 JSON objects with closed shapes.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use stele_core::refusal::Refusal;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Largest request body of the whole server. spec/anthropic.md 1.7, spec/recursion.md 13.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// How much more is read and thrown away, so that a client that is still sending gets to read the refusal.
const DRAINED_BYTES: usize = 128 * 1024 * 1024;
/// Longest pause between two parts of a body.
const PAUSE: Duration = Duration::from_secs(30);
/// Longest time for a whole body.
const WHOLE: Duration = Duration::from_secs(300);

/// Bodies up to this size are read as they come; texts of memories stay below it.
const SMALL_BYTES: u64 = 1024 * 1024;
/// KiB of larger bodies that are read at the same time; further ones wait.
static LARGE_KIB: Semaphore = Semaphore::const_new(256 * 1024);

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More than [`MAX_BODY_BYTES`].
    TooLarge,
    /// It came too slowly.
    TooSlow,
    /// The client broke off.
    Broken,
}

/// Reads a whole body.
///
/// # Errors
/// Too large, too slow, or broken off.
pub async fn read(body: Body) -> Result<Bytes, BodyError> {
    let most = body.size_hint().upper().unwrap_or(u64::MAX).min(MAX_BODY_BYTES as u64);
    let read = async {
        let _place = place_for(most).await;
        collect(body).await
    };
    tokio::time::timeout(WHOLE, read).await.unwrap_or(Err(BodyError::TooSlow))
}

/// A share of the memory for large bodies; a body that does not say its size counts as the largest.
async fn place_for(most: u64) -> Option<SemaphorePermit<'static>> {
    if most <= SMALL_BYTES {
        return None;
    }
    let kib = u32::try_from(most / 1024).expect("32 MiB are 32,768 KiB");
    Some(LARGE_KIB.acquire_many(kib).await.expect("the semaphore is never closed"))
}

async fn collect(mut body: Body) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut total = 0;
    while let Some(frame) = tokio::time::timeout(PAUSE, body.frame()).await.map_err(|_| BodyError::TooSlow)? {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        total += data.len();
        if total > DRAINED_BYTES {
            return Err(BodyError::TooLarge);
        }
        match total {
            _ if total > MAX_BODY_BYTES => rest = BytesMut::new(),
            _ if first.is_empty() && rest.is_empty() => first = data,
            _ => {
                if rest.is_empty() {
                    rest.extend_from_slice(&std::mem::take(&mut first));
                }
                rest.extend_from_slice(&data);
            }
        }
    }
    match total {
        _ if total > MAX_BODY_BYTES => Err(BodyError::TooLarge),
        _ if rest.is_empty() => Ok(first),
        _ => Ok(rest.freeze()),
    }
}

/// For `#[serde(deserialize_with)]`: tells a field that is `null` from one that is not there.
///
/// # Errors
/// The field's own.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    field: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// Whether a body counts as none: empty, as actions send it.
pub fn is_empty(body: &[u8]) -> bool {
    body.iter().all(u8::is_ascii_whitespace)
}

/// What is wrong with a body as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// It is not JSON, or not an object.
    NotAnObject(String),
    /// A field has the wrong shape.
    Field(Refusal),
}

/// Reads a JSON object of the shape `T`.
///
/// # Errors
/// Not UTF-8, not JSON, not an object, or a field that is missing, unknown or of the wrong type.
pub fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ShapeError> {
    let start = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if start != Some(&b'{') {
        return Err(ShapeError::NotAnObject("the body must be a JSON object".into()));
    }
    // Also of a field that nobody reads the text must be one.
    let body = std::str::from_utf8(body)
        .map_err(|_| ShapeError::NotAnObject("the body is not valid UTF-8".into()))?;
    let mut reader = serde_json::Deserializer::from_str(body);
    let value: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let inner = error.into_inner();
        match inner.classify() {
            serde_json::error::Category::Data => {
                // What is no JSON is said before what has the wrong shape.
                whole(body).err().unwrap_or_else(|| ShapeError::Field(field_error(field, &inner)))
            }
            _ => not_json(&inner),
        }
    })?;
    reader.end().map_err(|_| ShapeError::NotAnObject("the body goes on after the JSON object".into()))?;
    Ok(value)
}

/// Checks that a body is JSON to its end, whatever its shape.
fn whole(body: &str) -> Result<(), ShapeError> {
    serde_json::from_str::<IgnoredAny>(body).map(|_| ()).map_err(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> ShapeError {
    ShapeError::NotAnObject(format!("the body is not valid JSON: {}", without_texts(error)))
}

/// The refusal of a field by its shape. Serde names missing and unknown fields in the text, not in the path.
fn field_error(path: String, error: &serde_json::Error) -> Refusal {
    let text = without_texts(error);
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| text.strip_prefix(start)?.split('`').next());
    let field = match (named, path.as_str()) {
        (Some(name), "." | "") => name.to_owned(),
        (Some(name), path) if path.split('.').next_back() == Some(name) => path.to_owned(),
        (Some(name), path) => format!("{path}.{name}"),
        (None, "." | "") => "body".to_owned(),
        (None, path) => path.to_owned(),
    };
    let problem = match named {
        Some(_) if text.starts_with("missing") => "is required".to_owned(),
        Some(_) if text.starts_with("unknown") => "is not a field of this request".to_owned(),
        Some(_) => "is given twice".to_owned(),
        None => text,
    };
    Refusal::shape(field, problem)
}

/// Serde's message without the place and without quoted values, which are the caller's texts.
fn without_texts(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    match (text.find(" \""), text.rfind('"')) {
        (Some(start), Some(end)) if end > start + 1 => format!("{}{}", &text[..start], &text[end + 1..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        kind: String,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        name: String,
        inner: Option<Inner>,
    }

    fn refused(body: &str) -> (String, String) {
        match object::<Shape>(body.as_bytes()) {
            Err(ShapeError::Field(Refusal::Invalid { field, error })) => (field, error.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_json_object_is_named_so() {
        for body in
            ["", "{", "[]", "\"x\"", "null", "name=x", "{\"name\": \"x\"} more", "{\"name\": \"\\ud800\"}"]
        {
            assert!(
                matches!(object::<Shape>(body.as_bytes()), Err(ShapeError::NotAnObject(_))),
                "{body:.20}"
            );
        }
        assert!(matches!(object::<Shape>(b"{\"name\": \"\xff\"}"), Err(ShapeError::NotAnObject(_))));
        assert!(matches!(object::<Shape>(b"{\"name\": 5, \"inner\": "), Err(ShapeError::NotAnObject(_))));
        let unread = object::<serde_json::Map<String, serde_json::Value>>(b"{\"a\": \"\xff\"}");
        assert!(matches!(unread, Err(ShapeError::NotAnObject(_))));
        let deep = format!("{{\"name\":{}", "[".repeat(10_000));
        assert!(object::<Shape>(deep.as_bytes()).is_err());
        assert!(object::<serde_json::Value>(deep.as_bytes()).is_err(), "however open the shape");
    }

    #[test]
    fn the_field_at_fault_is_named_and_its_text_is_not_echoed() {
        assert_eq!(refused("{}"), ("name".into(), "is required".into()));
        assert_eq!(refused("{\"name\":\"x\",\"nmae\":1}").0, "nmae");
        assert_eq!(refused("{\"name\":\"x\",\"inner\":{\"kind\":\"a\",\"b\":1}}").0, "inner.b");
        assert_eq!(
            refused("{\"name\":5}"),
            ("name".into(), "invalid type: integer `5`, expected a string".into())
        );
        let (field, text) = refused("{\"name\":\"x\",\"inner\":\"my \\\"secret\\\" text\"}");
        assert_eq!(field, "inner");
        assert!(!text.contains("secret"), "{text}");
    }
}
