//! Query parameters: form-decoded, invalid UTF-8 refused rather than repaired, the last of a repeated one counting.

use percent_encoding::percent_decode;
use stele_core::refusal::Refusal;
use stele_core::time::Timestamp;

/// The parameters of a request, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the part of an address behind its `?`.
    pub fn parse(raw: Option<&str>) -> Self {
        let pairs = raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A value that is no text is no value of any parameter; it counts only if somebody asks for that one.
            let value = decode(value).unwrap_or_else(|| "\0".into());
            (decode(name).unwrap_or_default(), value)
        });
        Self { pairs: pairs.collect() }
    }

    /// The value of `name`, if it is given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The names of all parameters, as they were sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| name.as_str())
    }

    /// All values of an array parameter, sent as `name[]` or as `name` again and again. spec/anthropic.md 1.6.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_it = move |sent: &str| sent.strip_suffix("[]").unwrap_or(sent) == name;
        self.pairs.iter().filter(move |(sent, _)| is_it(sent)).map(|(_, value)| value.as_str())
    }

    /// A whole number from `least` to `most`, or `default`.
    ///
    /// # Errors
    /// Anything else.
    pub fn number(&self, name: &str, least: usize, most: usize, default: usize) -> Result<usize, Refusal> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && (least..=most).contains(&number) => Ok(number),
            _ => Err(Refusal::shape(name, format!("must be a whole number from {least} to {most}"))),
        }
    }

    /// `true` or `false`; false where it is not given.
    ///
    /// # Errors
    /// Anything else.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Refusal::shape(name, "must be true or false")),
        }
    }

    /// An RFC 3339 time with any offset.
    ///
    /// # Errors
    /// Anything else.
    pub fn time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let parse = |text| {
            Timestamp::parse(text)
                .ok_or_else(|| Refusal::shape(name, "must be an RFC 3339 time such as 2026-11-30T14:05:22Z"))
        };
        self.get(name).map(parse).transpose()
    }
}

fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse(Some(raw))
    }

    #[test]
    fn parameters_are_form_decoded_and_the_last_counts() {
        let q = query(
            "path_prefix=%2Fa+b%2F&created_at[gte]=x&created_at%5Blte%5D=2026-01-01T00%3A00%3A00%2B00%3A00&a=1&a=2",
        );
        assert_eq!(q.get("path_prefix"), Some("/a b/"));
        assert_eq!(q.get("created_at[gte]"), Some("x"));
        assert_eq!(q.get("a"), Some("2"));
        assert!(q.time("created_at[lte]").expect("a time").is_some());
        assert!(q.time("created_at[gte]").is_err());
        assert!(query("limit=%FF").number("limit", 1, 9, 1).is_err());
        assert_eq!(query("color=%FF&limit=3").number("limit", 1, 9, 1), Ok(3), "unknown ones are ignored");
    }

    #[test]
    fn array_parameters_are_read_in_both_spellings() {
        let q = query("statuses[]=idle&statuses%5B%5D=running&statuses=terminated&status=x");
        assert_eq!(q.all("statuses").collect::<Vec<_>>(), ["idle", "running", "terminated"]);
    }

    #[test]
    fn numbers_have_bounds_and_nothing_but_digits() {
        assert_eq!(query("").number("limit", 1, 100, 20), Ok(20));
        assert_eq!(query("limit=100").number("limit", 1, 100, 20), Ok(100));
        for bad in ["0", "-1", "101", "1.5", "ten", "", "+5", "99999999999999999999"] {
            let raw = format!("limit={}", bad.replace('+', "%2B"));
            assert!(query(&raw).number("limit", 1, 100, 20).is_err(), "{bad}");
        }
    }
}
