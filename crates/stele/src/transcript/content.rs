//! Contents of messages as the blocks of events, within bounds.

use serde_json::{Map, Value, json};

/// Longest text of an event, in bytes.
const TEXT_BYTES: usize = 64 * 1024;
/// Most bytes of all texts of an event together.
const EVENT_BYTES: usize = 192 * 1024;
/// Most bytes of an event as JSON, when its texts are short and yet it is large.
const JSON_BYTES: usize = 512 * 1024;

/// A text as a list of blocks.
pub(super) fn said(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// Blocks out of a text, a block or a list of them, whatever their kinds are called; `None` for nothing.
pub(super) fn blocks(content: &Value) -> Option<Value> {
    let blocks: Vec<Value> = match content {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => return Some(said(text)),
        Value::Array(items) => items.iter().filter_map(block).collect(),
        other => block(other).into_iter().collect(),
    };
    (!blocks.is_empty()).then(|| blocks.into())
}

/// A block as text: pictures and documents are named, not kept.
fn block(item: &Value) -> Option<Value> {
    let text = match item {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
            Some("text" | "input_text" | "output_text" | "summary_text") | None
                if fields.get("text").is_some_and(Value::is_string) =>
            {
                fields["text"].as_str().unwrap_or_default().to_owned()
            }
            Some(kind)
                if ["image", "document", "file", "audio"].iter().any(|binary| kind.contains(binary)) =>
            {
                left_out(kind, fields)
            }
            _ => item.to_string(),
        },
        other => other.to_string(),
    };
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// What stands where something binary was.
fn left_out(kind: &str, fields: &Map<String, Value>) -> String {
    let media = fields.get("source").and_then(|source| source.get("media_type")).and_then(Value::as_str);
    let size = Value::Object(fields.clone()).to_string().len();
    let kind = kind.trim_start_matches("input_");
    format!("[{kind}{} left out: {size} bytes]", media.map(|media| format!(" {media}")).unwrap_or_default())
}

/// The input of a tool, which must be an object.
pub(super) fn input(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Object(fields)) => fields.clone().into(),
        Some(Value::String(text)) => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(fields) => fields.into(),
            Err(_) => json!({"input": text}),
        },
        None | Some(Value::Null) => json!({}),
        Some(other) => json!({"input": other}),
    }
}

/// Makes an event fit; says whether something was cut.
pub(super) fn fit(event: &mut Value) -> bool {
    let mut left = EVENT_BYTES;
    let mut cut = false;
    for name in ["content", "input", "error"] {
        if let Some(value) = event.get_mut(name) {
            shorten(value, &mut left, &mut cut);
        }
    }
    let size = event.to_string().len();
    if size <= JSON_BYTES {
        return cut;
    }
    let gone = format!("[left out: {size} bytes]");
    if event.get("input").is_some() {
        event["input"] = json!({"left_out": gone});
    }
    if event.get("content").is_some() {
        event["content"] = said(&gone);
    }
    true
}

fn shorten(value: &mut Value, left: &mut usize, cut: &mut bool) {
    match value {
        Value::String(text) => {
            let most = TEXT_BYTES.min(*left);
            if text.len() > most {
                let end = text.floor_char_boundary(most);
                let gone = text.len() - end;
                text.truncate(end);
                text.push_str(&format!("[... {gone} bytes left out]"));
                *cut = true;
            }
            *left = left.saturating_sub(text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, left, cut)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, left, cut)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_become_blocks_of_text() {
        assert_eq!(blocks(&json!("hi")), Some(said("hi")));
        assert_eq!(
            blocks(&json!([{"type": "output_text", "text": "a"}, {"type": "text", "text": ""}])),
            Some(said("a"))
        );
        for nothing in [json!(null), json!(""), json!([]), json!([null])] {
            assert_eq!(blocks(&nothing), None);
        }
        let image = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]);
        let named = blocks(&image).expect("a block");
        let named = named[0]["text"].as_str().expect("text");
        assert!(named.starts_with("[image image/png left out: ") && !named.contains("AAAA"), "{named}");
        assert_eq!(blocks(&json!([7])), Some(said("7")));
    }

    #[test]
    fn the_input_of_a_tool_is_an_object() {
        assert_eq!(input(Some(&json!({"a": 1}))), json!({"a": 1}));
        assert_eq!(input(Some(&json!("{\"a\":1}"))), json!({"a": 1}));
        assert_eq!(input(Some(&json!("*** patch"))), json!({"input": "*** patch"}));
        assert_eq!(input(None), json!({}));
    }

    #[test]
    fn what_is_too_large_is_cut_between_characters_and_says_so() {
        let mut small = json!({"content": said("x")});
        assert!(!fit(&mut small));
        let mut large = json!({"content": said(&"é".repeat(TEXT_BYTES)), "type": "agent.message"});
        assert!(fit(&mut large));
        let text = large["content"][0]["text"].as_str().expect("text");
        assert!(
            text.ends_with(&format!("[... {TEXT_BYTES} bytes left out]")),
            "{}",
            &text[text.len() - 60..]
        );
        let mut many = json!({"input": {"list": vec![1_000_000; JSON_BYTES / 4]}});
        assert!(fit(&mut many));
        assert!(many.to_string().len() < 200);
    }
}
