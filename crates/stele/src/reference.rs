//! What the server says of its own interface.

use serde_json::Value;

/// The document at `/openapi.json`: every dialect's operations and those outside of them.
pub(crate) fn document(with_metrics: bool) -> Value {
    let own = stele_http::router::operations(with_metrics);
    stele_http::openapi::document(wire_anthropic::operations().chain(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the interface is reviewed as a change of the file. `STELE_BLESS=1` writes it anew.
    #[test]
    fn the_document_is_the_one_in_docs() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let is = serde_json::to_string_pretty(&document(true)).expect("JSON") + "\n";
        if std::env::var_os("STELE_BLESS").is_some() {
            std::fs::write(file, &is).expect("written");
        }
        let stands = std::fs::read_to_string(file).expect("docs/openapi.json");
        assert!(
            stands == is,
            "docs/openapi.json is not what the code says: STELE_BLESS=1 cargo test -p stele"
        );
    }

    #[test]
    fn every_operation_has_a_sentence_an_id_of_its_own_and_documented_refusals() {
        let document = document(true);
        let mut ids = std::collections::BTreeSet::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                assert!(
                    operation["summary"].as_str().is_some_and(|text| text.ends_with('.')),
                    "{method} {path}"
                );
                assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}");
                if path.starts_with("/v1/") || path.starts_with("/stele/") {
                    for status in ["401", "403", "500", "503"] {
                        assert!(operation["responses"][status].is_object(), "{method} {path} {status}");
                    }
                }
            }
        }
    }
}
