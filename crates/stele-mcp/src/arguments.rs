//! Arguments of tools: one table says of each what a model reads and what is accepted.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use stele_core::hash::Sha256;
use stele_core::path::{MemoryPath, PathPrefix};

/// What an argument takes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// A text of at least and at most so many characters.
    Text(usize, usize),
    /// A whole number of at least and at most this.
    Number(u64, u64),
}

/// An argument; the same in every tool that has it.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    about: &'static str,
    takes: Takes,
}

/// No bound worth naming: contents and queries are bounded by the server in bytes.
const ANY: usize = usize::MAX;
/// A page or hash is short; a longer text is none of ours and would not fit into an address.
const SHORT: usize = 4_096;
/// Most entries of a page.
pub(crate) const MOST: u64 = 100;
/// Entries of a page where nothing is said: of lists, and of searches, which bring passages.
pub(crate) const USUAL: (u64, u64) = (100, 20);

const fn text(name: &'static str, about: &'static str, least: usize, most: usize) -> Argument {
    Argument { name, about, takes: Takes::Text(least, most) }
}

const fn number(name: &'static str, about: &'static str, most: u64) -> Argument {
    Argument { name, about, takes: Takes::Number(1, most) }
}

pub(crate) static STORE: Argument =
    text("store", "Store by slug, id or mount directory; needed only where several are in scope.", 1, SHORT);
pub(crate) static PATH: Argument = text("path", "Path of the memory, such as /notes/build.md.", 1, SHORT);
pub(crate) static PATH_PREFIX: Argument =
    text("path_prefix", "Only memories below this directory, such as /notes/.", 1, SHORT);
pub(crate) static QUERY: Argument =
    text("query", "Words or a question; \"quoted\" words are looked for as a phrase.", 0, ANY);
pub(crate) static LIMIT: Argument = number("limit", "Most entries of this page.", MOST);
pub(crate) static PAGE: Argument =
    text("page", "The `page` that the page before named, for what is left.", 1, SHORT);
pub(crate) static START_LINE: Argument = number(
    "start_line",
    "First line to read, from 1; the whole text where no line is named.",
    u32::MAX as u64,
);
pub(crate) static END_LINE: Argument = number("end_line", "Last line to read.", u32::MAX as u64);
pub(crate) static CONTENT: Argument = text("content", "The whole text, at most 102,400 bytes.", 0, ANY);
pub(crate) static SUMMARY: Argument =
    text("summary", "What the memory holds, in one line; lists and searches show it.", 0, 512);
pub(crate) static OLD_STR: Argument =
    text("old_str", "Text to replace, exactly as it stands there, and there once.", 1, ANY);
pub(crate) static NEW_STR: Argument = text("new_str", "Text to put in its place; empty removes it.", 0, ANY);
pub(crate) static NEW_PATH: Argument = text("new_path", "Path that the memory is to have.", 1, SHORT);
pub(crate) static EXPECTED: Argument = text(
    "expected_content_sha256",
    "content_sha256 as it was read: refused if the memory changed since.",
    64,
    64,
);

/// The schema of a tool that takes these; closed.
pub(crate) fn schema(required: &[&'static Argument], optional: &[&'static Argument]) -> JsonObject {
    let property = |argument: &&'static Argument| {
        let mut schema = match argument.takes {
            Takes::Text(..) => json!({"type": "string", "description": argument.about}),
            Takes::Number(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most, "description": argument.about})
            }
        };
        if let Takes::Text(least @ 1.., _) = argument.takes {
            schema["minLength"] = least.into();
        }
        if let Takes::Text(_, most) = argument.takes
            && most < SHORT
        {
            schema["maxLength"] = most.into();
        }
        (argument.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = required.iter().chain(optional).map(property).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.into());
    schema.insert("required".into(), required.iter().map(|argument| argument.name).collect());
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// The arguments of one call, checked against the tool's table.
#[derive(Debug)]
pub(crate) struct Arguments(JsonObject);

impl Arguments {
    /// Checks what a model sent; `null` counts as left out, as models send it for optional arguments.
    ///
    /// # Errors
    /// What is wrong and what to do, without the text that was sent.
    pub(crate) fn check(
        sent: Option<JsonObject>,
        required: &[&'static Argument],
        optional: &[&'static Argument],
    ) -> Result<Self, String> {
        let known: Vec<&'static Argument> = required.iter().chain(optional).copied().collect();
        let mut sent = sent.unwrap_or_default();
        sent.retain(|_, value| !value.is_null());
        if sent.keys().any(|name| known.iter().all(|argument| argument.name != name)) {
            let names: Vec<_> = known.iter().map(|argument| format!("`{}`", argument.name)).collect();
            return Err(format!(
                "There is an argument that this tool does not have. It takes {}.",
                names.join(", ")
            ));
        }
        for argument in &known {
            match sent.get(argument.name) {
                Some(value) => argument.check(value)?,
                None if required.iter().any(|one| one.name == argument.name) => {
                    return Err(format!("`{}` is required: {}", argument.name, argument.about));
                }
                None => {}
            }
        }
        Ok(Self(sent))
    }

    pub(crate) fn text(&self, argument: &Argument) -> Option<&str> {
        self.0.get(argument.name)?.as_str()
    }

    /// The text of a required argument.
    pub(crate) fn the(&self, argument: &Argument) -> &str {
        self.text(argument).unwrap_or_default()
    }

    pub(crate) fn number(&self, argument: &Argument) -> Option<usize> {
        whole(self.0.get(argument.name)?).and_then(|number| usize::try_from(number).ok())
    }

    /// A path, as far as it can be one.
    pub(crate) fn path(&self, argument: &Argument) -> Result<MemoryPath, String> {
        MemoryPath::parse(self.the(argument)).map_err(|error| format!("`{}` {error}.", argument.name))
    }

    /// The directory to look below, `/` where none is named; a missing slash at its end is no mistake.
    pub(crate) fn prefix(&self) -> Result<String, String> {
        let Some(text) = self.text(&PATH_PREFIX) else { return Ok("/".into()) };
        let text = if text.ends_with('/') { text.to_owned() } else { format!("{text}/") };
        PathPrefix::parse(&text).map_err(|error| format!("`path_prefix` {error}."))?;
        Ok(text)
    }

    /// The hash that the memory is expected to have.
    pub(crate) fn expected(&self) -> Result<Option<&str>, String> {
        let check = |text| match Sha256::parse(text) {
            Ok(_) => Ok(text),
            Err(_) => Err(
                "`expected_content_sha256` must be the content_sha256 that read_memory told: 64 hexadecimal \
                           digits."
                    .to_owned(),
            ),
        };
        self.text(&EXPECTED).map(check).transpose()
    }
}

impl Argument {
    fn check(&self, value: &Value) -> Result<(), String> {
        let name = self.name;
        match self.takes {
            Takes::Text(least, most) => {
                let text =
                    value.as_str().ok_or_else(|| format!("`{name}` must be a text, not {}.", kind(value)))?;
                let count = text.chars().take(most.saturating_add(1)).count();
                match count {
                    count if count < least => Err(format!("`{name}` must not be so short: {}", self.about)),
                    count if count > most => Err(format!("`{name}` must be at most {most} characters.")),
                    _ => Ok(()),
                }
            }
            Takes::Number(least, most) => match whole(value) {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                Some(_) => Err(format!("`{name}` must be from {least} to {most}.")),
                None => Err(format!(
                    "`{name}` must be a whole number from {least} to {most}, not {}.",
                    kind(value)
                )),
            },
        }
    }
}

/// A whole number, also one that is written with a point.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within bounds"
    )]
    value.as_u64().or_else(|| float().map(|number| number as u64))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "such a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: Value) -> Result<Arguments, String> {
        let sent = sent.as_object().cloned();
        Arguments::check(sent, &[&PATH], &[&LIMIT, &SUMMARY, &EXPECTED, &PATH_PREFIX])
    }

    #[test]
    fn arguments_have_names_types_and_bounds() {
        for (sent, says) in [
            (json!({}), "`path` is required"),
            (json!({"path": null}), "`path` is required"),
            (json!({"path": 5}), "`path` must be a text, not such a number"),
            (json!({"path": ["/a"]}), "not a list"),
            (json!({"path": ""}), "so short"),
            (json!({"path": "/a", "limit": "5"}), "`limit` must be a whole number from 1 to 100, not a text"),
            (json!({"path": "/a", "limit": 0}), "from 1 to 100"),
            (json!({"path": "/a", "limit": 1.5}), "whole number"),
            (json!({"path": "/a", "summary": "x".repeat(513)}), "at most 512"),
            (json!({"path": "/a", "pth": "secret words"}), "It takes `path`, `limit`"),
        ] {
            let text = check(sent.clone()).expect_err("refused");
            assert!(text.contains(says), "{sent}: {text}");
            assert!(!text.contains("secret"), "{text}");
        }
        let sent = check(json!({"path": "/a", "limit": 5.0, "summary": null})).expect("arguments");
        assert_eq!((sent.number(&LIMIT), sent.text(&SUMMARY)), (Some(5), None));
    }

    #[test]
    fn paths_prefixes_and_hashes_are_those_of_the_core() {
        let of = |sent| check(sent).expect("arguments");
        assert!(of(json!({"path": "a"})).path(&PATH).is_err_and(|text| text == "`path` must start with /."));
        assert!(of(json!({"path": "/a/../b"})).path(&PATH).is_err());
        assert_eq!(of(json!({"path": "/a", "path_prefix": "/b"})).prefix(), Ok("/b/".into()));
        assert_eq!(of(json!({"path": "/a"})).prefix(), Ok("/".into()));
        assert!(of(json!({"path": "/a", "path_prefix": "b"})).prefix().is_err());
        assert!(of(json!({"path": "/a", "expected_content_sha256": "z".repeat(64)})).expected().is_err());
    }

    #[test]
    fn schemas_are_closed_and_say_what_each_argument_is() {
        let schema = Value::from(schema(&[&PATH], &[&LIMIT]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["path"]));
        assert_eq!(schema["properties"]["limit"]["maximum"], 100);
        for property in schema["properties"].as_object().expect("an object").values() {
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{property}");
        }
    }
}
