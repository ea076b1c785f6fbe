//! The document: OpenAPI 3.1, whose schemas are JSON Schema 2020-12, which is what `schemars` makes.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::{Operation, Param, Place};

/// What request and answer shapes are called by.
struct Schemas {
    /// What may be sent.
    taken: SchemaGenerator,
    /// What is answered.
    answered: SchemaGenerator,
    errors: Map<String, Value>,
}

/// The whole document, in a fixed order.
pub fn document(operations: impl IntoIterator<Item = Operation>) -> Value {
    let settings =
        || SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut schemas = Schemas {
        taken: settings().for_deserialize().into_generator(),
        answered: settings().for_serialize().into_generator(),
        errors: Map::new(),
    };
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut tags: Vec<(&str, &str)> = Vec::new();
    let operations: Vec<Operation> = operations.into_iter().collect();
    for operation in &operations {
        let tag = (operation.family.tag, operation.family.about);
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let method = operation.method.as_str().to_lowercase();
        paths.entry(operation.path).or_default().insert(method, schemas.operation(operation, &operations));
    }
    let mut named = schemas.taken.take_definitions(true);
    named.extend(schemas.answered.take_definitions(true));
    named.extend(schemas.errors);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stele",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A self-hosted memory server for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": tags.iter().map(|(name, about)| json!({"name": name, "description": about})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": named,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    })
}

impl Schemas {
    fn operation(&mut self, operation: &Operation, all: &[Operation]) -> Value {
        let family = operation.family;
        let headers = (family.headers)();
        let params: Vec<Value> = operation.params.iter().chain(&headers).map(parameter).collect();
        let mut object = json!({
            "operationId": operation.id,
            "summary": operation.about,
            "tags": [family.tag],
            "parameters": params,
            "responses": self.responses(operation, all),
            "security": if family.keyed { json!([{"bearer": []}, {"x-api-key": []}]) } else { json!([]) },
        });
        if let Some((schema, required)) = operation.body {
            let schema = schema(&mut self.taken);
            object["requestBody"] =
                json!({"required": required, "content": {"application/json": {"schema": schema}}});
        }
        if let Some(media) = operation.plain_body {
            let schema = json!({"type": "string", "format": "binary"});
            object["requestBody"] = json!({"required": true, "content": {media: {"schema": schema}}});
        }
        object
    }

    fn responses(&mut self, operation: &Operation, all: &[Operation]) -> Value {
        let success = &operation.success;
        let mut answer = described(success.status);
        if let Some(schema) = success.schema {
            answer["content"] = json!({success.media: {"schema": schema(&mut self.answered)}});
        } else if !success.media.is_empty() {
            answer["content"] = json!({success.media: {"schema": {"type": "string"}}});
        }
        if !operation.gives.is_empty() {
            answer["links"] = links(operation, all);
        }
        let mut responses = Map::from_iter([(success.status.to_string(), answer)]);
        let (name, schema) = (operation.family.error)();
        self.errors.entry(name).or_insert(schema);
        for status in operation.family.statuses.iter().chain(operation.more_statuses) {
            let mut answer = described(*status);
            let schema = json!({"$ref": format!("#/components/schemas/{name}")});
            answer["content"] = json!({"application/json": {"schema": schema}});
            responses.insert(status.to_string(), answer);
        }
        responses.into()
    }
}

/// Which operations an answer leads to: those whose whole path it has values for.
fn links(from: &Operation, all: &[Operation]) -> Value {
    let value = |param: &Param| from.gives.iter().find(|(name, _)| *name == param.name);
    let link = |to: &Operation| {
        let path = to.params.iter().filter(|param| param.place == Place::Path);
        let values: Option<Map<String, Value>> = path
            .map(|param| {
                value(param).map(|(name, at)| ((*name).into(), format!("$response.body#{at}").into()))
            })
            .collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some((to.id.to_owned(), json!({"operationId": to.id, "parameters": values})))
    };
    all.iter().filter_map(link).collect::<Map<_, _>>().into()
}

fn parameter(param: &Param) -> Value {
    let place = match param.place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
    };
    json!({
        "name": param.name, "in": place, "description": param.about, "required": param.required,
        "schema": param.schema,
    })
}

/// An answer with the headers that every one has.
fn described(status: u16) -> Value {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut headers =
        json!({"request-id": {"schema": {"type": "string"}, "description": "Names the request in the log."}});
    if matches!(status, 429 | 503 | 529) {
        headers["retry-after"] =
            json!({"schema": {"type": "integer"}, "description": "Seconds after which a repeat may pass."});
    }
    json!({"description": reason.unwrap_or("Overloaded"), "headers": headers})
}
