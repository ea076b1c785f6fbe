//! Reading the fields of open and closed bodies. `null` counts as left out. spec/recursion.md 2.

use std::collections::BTreeMap;

use serde_json::Value;
use stele_core::refusal::Refusal;
use stele_core::text::{Metadata, TextError};
use stele_core::work::Fields;

use crate::context::Id;

/// What a field that must be there is refused with.
pub(crate) fn missing(field: &str) -> Refusal {
    Refusal::shape(field, "is required")
}

/// Takes a field out of a body.
pub(crate) fn take(body: &mut Fields, name: &str) -> Option<Value> {
    body.remove(name).filter(|value| !value.is_null())
}

/// Takes a text. `field` is what the refusal names.
pub(crate) fn take_text(body: &mut Fields, name: &str, field: &str) -> Result<Option<String>, Refusal> {
    match take(body, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::shape(field, "must be a string")),
    }
}

/// Takes a text of at least one and at most `most` characters.
pub(crate) fn take_bounded(
    body: &mut Fields,
    name: &str,
    field: &str,
    most: usize,
) -> Result<Option<String>, Refusal> {
    let Some(text) = take_text(body, name, field)? else { return Ok(None) };
    match text.chars().count() {
        0 => Err(Refusal::invalid(field, TextError::Empty)),
        actual if actual > most => Err(Refusal::invalid(field, TextError::TooLong { max: most, actual })),
        _ => Ok(Some(text)),
    }
}

/// Takes an id.
pub(crate) fn take_id<T: Id>(body: &mut Fields, name: &str, field: &str) -> Result<Option<T>, Refusal> {
    let read = |text: String| T::read(&text).ok_or_else(|| Refusal::shape(field, "must be a UUID"));
    take_text(body, name, field)?.map(read).transpose()
}

/// Takes `true` or `false`.
pub(crate) fn take_flag(body: &mut Fields, name: &str, field: &str) -> Result<Option<bool>, Refusal> {
    match take(body, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(Refusal::shape(field, "must be true or false")),
    }
}

/// Takes a list.
pub(crate) fn take_list(body: &mut Fields, name: &str, field: &str) -> Result<Option<Vec<Value>>, Refusal> {
    match take(body, name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(Refusal::shape(field, "must be a list")),
    }
}

/// Takes an object.
pub(crate) fn take_object(body: &mut Fields, name: &str, field: &str) -> Result<Option<Fields>, Refusal> {
    match take(body, name) {
        None => Ok(None),
        Some(value) => object(value, field).map(Some),
    }
}

/// The object that a value is.
pub(crate) fn object(value: Value, field: &str) -> Result<Fields, Refusal> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::shape(field, "must be an object")),
    }
}

/// Refuses what is left of a closed object. `place` is where it is, empty for the body.
pub(crate) fn nothing_left(body: &Fields, place: &str) -> Result<(), Refusal> {
    let Some(unknown) = body.keys().next() else { return Ok(()) };
    let dot = if place.is_empty() { "" } else { "." };
    Err(Refusal::shape(format!("{place}{dot}{unknown}"), "is not a field of this request"))
}

/// Most pairs of a session's metadata.
const PAIRS: usize = 32;
/// Longest key, in characters.
const KEY: usize = 64;
/// Longest value, in characters.
const VALUE: usize = 512;

/// The metadata of a session. spec/recursion.md 10.5.
pub(crate) fn session_metadata(pairs: Fields, field: &str) -> Result<Metadata, Refusal> {
    if pairs.len() > PAIRS {
        return Err(Refusal::shape(field, format!("must be at most {PAIRS} pairs")));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let mut read = BTreeMap::new();
    for (key, value) in pairs {
        if !(1..=KEY).contains(&key.len()) || !key.chars().all(legal) {
            let problem = "keys must be 1 to 64 of the letters, digits, `_`, `.` and `-`";
            return Err(Refusal::shape(field, problem));
        }
        let Value::String(value) = value else {
            return Err(Refusal::shape(format!("{field}.{key}"), "must be a string"));
        };
        if !(1..=VALUE).contains(&value.chars().count()) || value.contains('\0') {
            return Err(Refusal::shape(format!("{field}.{key}"), "must be 1 to 512 characters without NUL"));
        }
        read.insert(key, value);
    }
    Ok(Metadata::from_trusted(read))
}
