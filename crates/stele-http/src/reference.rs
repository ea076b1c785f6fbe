//! `/openapi.json`, and `/docs`: the same for people, on one page without scripts or anything from elsewhere.

use std::fmt::Write;

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use stele_core::hash::Sha256;

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font:.9em ui-monospace,monospace}summary{cursor:pointer}table{border-collapse:collapse;margin:.5rem 0}
td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884}
details{border:1px solid #8886;border-radius:.4rem;padding:.4rem .8rem;margin:.5rem 0}pre{overflow-x:auto}
.m{display:inline-block;min-width:4.5rem;font-weight:600}";

/// The routes. Everything is made once.
pub fn routes(document: &Value) -> Router {
    let json: Bytes = document.to_string().into();
    let page: Bytes = page(document).into();
    let hash = STANDARD.encode(Sha256::of(STYLE.as_bytes()).as_bytes());
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let json = move || async move { ([(CONTENT_TYPE, "application/json")], json).into_response() };
    let docs = move || async move {
        let headers =
            [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
        (headers, page).into_response()
    };
    Router::new().route("/openapi.json", get(json)).route("/docs", get(docs))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The page. Writing to a `String` cannot fail.
fn page(document: &Value) -> String {
    let title = format!("{} {}", text(document, "/info/title"), text(document, "/info/version"));
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{0}: HTTP reference</title><style>{STYLE}</style><h1>{0}</h1><p>{1} The same for programs: \
         <a href=\"/openapi.json\">openapi.json</a>.</p>",
        escaped(&title),
        escaped(text(document, "/info/description"))
    );
    for tag in items(&document["tags"]) {
        let name = text(tag, "/name");
        let _ = write!(html, "<h2>{}</h2><p>{}</p>", escaped(name), escaped(text(tag, "/description")));
        for (path, methods) in members(&document["paths"]) {
            for (method, operation) in members(methods).filter(|(_, o)| text(o, "/tags/0") == name) {
                operation_html(&mut html, path, method, operation);
            }
        }
    }
    html.push_str("<h2>Shapes</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        let _ = write!(
            html,
            "<details id=\"{0}\"><summary><code>{0}</code> {1}</summary>",
            escaped(name),
            escaped(text(schema, "/description"))
        );
        shape_html(&mut html, schema);
        html.push_str("</details>");
    }
    html
}

fn operation_html(html: &mut String, path: &str, method: &str, operation: &Value) {
    let (method, id) = (method.to_uppercase(), escaped(text(operation, "/operationId")));
    let about = escaped(text(operation, "/summary"));
    let _ = write!(
        html,
        "<details id=\"{id}\"><summary><span class=m>{method}</span><code>{}</code> {about}</summary>",
        escaped(path)
    );
    if items(&operation["parameters"]).next().is_some() {
        html.push_str("<table><tr><th>parameter<th>in<th>type<th>what it is</tr>");
        for param in items(&operation["parameters"]) {
            let required = if param["required"] == true { " (required)" } else { "" };
            let _ = write!(
                html,
                "<tr><td><code>{}</code><td>{}{required}<td>{}<td>{}</tr>",
                escaped(text(param, "/name")),
                escaped(text(param, "/in")),
                type_html(&param["schema"]),
                escaped(text(param, "/description"))
            );
        }
        html.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let _ = write!(html, "<p>Body: {}</p>", type_html(body));
    }
    html.push_str("<table><tr><th>status<th>answer</tr>");
    for (status, answer) in members(&operation["responses"]) {
        let schema = members(&answer["content"]).next().map(|(_, media)| type_html(&media["schema"]));
        let _ = write!(
            html,
            "<tr><td>{status} {}<td>{}</tr>",
            escaped(text(answer, "/description")),
            schema.unwrap_or_default()
        );
    }
    html.push_str("</table></details>");
}

/// A schema in a word, with a link to a shape that has a name.
fn type_html(schema: &Value) -> String {
    if let Some(name) = text(schema, "/$ref").strip_prefix("#/components/schemas/") {
        return format!("<a href=\"#{0}\"><code>{0}</code></a>", escaped(name));
    }
    if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        return items(options).map(type_html).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema.get("enum").or_else(|| schema.get("const")) {
        return format!("<code>{}</code>", escaped(&words.to_string()));
    }
    match &schema["type"] {
        Value::Array(types) => {
            escaped(&types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "))
        }
        Value::String(name) if name == "array" => format!("array of {}", type_html(&schema["items"])),
        Value::String(name) => match text(schema, "/format") {
            "" => escaped(name),
            format => escaped(&format!("{name} ({format})")),
        },
        _ => "anything".into(),
    }
}

fn shape_html(html: &mut String, schema: &Value) {
    let variants = items(schema.get("oneOf").or_else(|| schema.get("anyOf")).unwrap_or(&Value::Null));
    for variant in variants {
        match variant.get("properties") {
            Some(_) => shape_html(html, variant),
            None => drop(write!(html, "<p>{}</p>", type_html(variant))),
        }
    }
    if schema.get("properties").is_none() {
        return;
    }
    html.push_str("<table><tr><th>field<th>type<th>what it is</tr>");
    for (name, field) in members(&schema["properties"]) {
        let required = items(&schema["required"]).any(|wanted| wanted == name);
        let required = if required { "" } else { " (optional)" };
        let about = escaped(text(field, "/description"));
        let _ = write!(
            html,
            "<tr><td><code>{}</code>{required}<td>{}<td>{about}</tr>",
            escaped(name),
            type_html(field)
        );
    }
    html.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_document_says_is_text_on_the_page() {
        let document =
            json!({"info": {"title": "<script>", "description": "a & b"}, "tags": [], "paths": {}});
        let page = page(&document);
        assert!(
            page.contains("&lt;script&gt;") && page.contains("a &amp; b") && !page.contains("<script"),
            "{page}"
        );
    }
}
