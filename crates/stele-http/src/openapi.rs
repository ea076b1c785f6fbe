//! The description of the HTTP interface, made from the one table that the router is made from too.
//!
//! An [`Endpoint`] holds a handler beside what is said of it, so that no route exists without its description, and none
//! is described that is not there. Shapes come from the wire structs themselves, by `schemars`. Chosen over utoipa: its
//! attributes stand on each handler and repeat method and path, its derive is a second schema language beside the
//! one that MCP needs anyway, and it took 1.8 % of all build time when the crates were measured together.

mod document;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use stele_core::service::Stele;

pub use document::document;

/// The pattern of a name: no control characters.
pub const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// The pattern of a text: no NUL.
pub const NO_NUL: &str = r"^[^\u0000]*$";

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What all operations of a dialect have in common.
#[derive(Debug)]
pub struct Family {
    /// The heading that its operations stand under.
    pub tag: &'static str,
    /// What is said below the heading.
    pub about: &'static str,
    /// Headers of every request.
    pub headers: fn() -> Vec<Param>,
    /// The name and schema of the error envelope.
    pub error: fn() -> (&'static str, Value),
    /// Statuses that any operation may answer.
    pub statuses: &'static [u16],
    /// Whether a key is needed.
    pub keyed: bool,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
}

/// A parameter of a request.
#[derive(Clone, Debug)]
pub struct Param {
    place: Place,
    name: &'static str,
    about: &'static str,
    required: bool,
    schema: Value,
}

impl Param {
    /// A part of the path.
    pub fn path(name: &'static str, about: &'static str, schema: Value) -> Self {
        Self { place: Place::Path, name, about, required: true, schema }
    }

    /// A member of the query, optional.
    pub fn query(name: &'static str, about: &'static str, schema: Value) -> Self {
        Self { place: Place::Query, name, about, required: false, schema }
    }

    /// A header that must be there.
    pub fn header(name: &'static str, about: &'static str, schema: Value) -> Self {
        Self { place: Place::Header, name, about, required: true, schema }
    }
}

/// The schema of a whole number within bounds.
pub fn whole(least: usize, most: usize, default: usize) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "default": default})
}

/// The schema of one of some words; the first is the default.
pub fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "default": words.first()})
}

/// The schema of an RFC 3339 time.
pub fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// An answer of an operation.
#[derive(Clone, Debug)]
struct Success {
    status: u16,
    media: &'static str,
    schema: Option<SchemaOf>,
}

/// What is said of an endpoint.
#[derive(Clone, Debug)]
pub struct Operation {
    method: Method,
    path: &'static str,
    id: &'static str,
    about: &'static str,
    family: &'static Family,
    params: Vec<Param>,
    body: Option<(SchemaOf, bool)>,
    /// The media type of a body that is no JSON.
    plain_body: Option<&'static str>,
    success: Success,
    more_statuses: &'static [u16],
    gives: &'static [(&'static str, &'static str)],
}

/// A handler with its method, path and description.
pub struct Endpoint {
    route: MethodRouter<Arc<Stele>>,
    operation: Operation,
}

impl Endpoint {
    /// The endpoint of `method` at `path`, called `id` in the document.
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        id: &'static str,
        family: &'static Family,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Stele>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("only usual methods are routed");
        let operation = Operation {
            method,
            path,
            id,
            about: "",
            family,
            params: Vec::new(),
            body: None,
            plain_body: None,
            success: Success { status: 200, media: "application/json", schema: None },
            more_statuses: &[],
            gives: &[],
        };
        Self { route: on(filter, handler), operation }
    }

    /// Says in a sentence what it does.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.operation.about = about;
        self
    }

    /// Takes these parameters too.
    #[must_use]
    pub fn params(mut self, params: impl IntoIterator<Item = Param>) -> Self {
        self.operation.params.extend(params);
        self
    }

    /// Takes a body of the shape `T`.
    #[must_use]
    pub fn takes<T: JsonSchema>(mut self) -> Self {
        self.operation.body = Some((|generator| generator.subschema_for::<T>(), true));
        self
    }

    /// Takes an empty body, or one of the shape `T`, which has no fields.
    #[must_use]
    pub fn may_take<T: JsonSchema>(mut self) -> Self {
        self.operation.body = Some((|generator| generator.subschema_for::<T>(), false));
        self
    }

    /// Takes a body of another kind than JSON.
    #[must_use]
    pub fn takes_plain(mut self, media: &'static str) -> Self {
        self.operation.plain_body = Some(media);
        self
    }

    /// Answers `status` with a body of the shape `T`.
    #[must_use]
    pub fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        self.operation.success = Success {
            status,
            media: "application/json",
            schema: Some(|generator| generator.subschema_for::<T>()),
        };
        self
    }

    /// Answers `status` without a body, or with one of another kind than JSON.
    #[must_use]
    pub fn answers_plain(mut self, status: u16, media: &'static str) -> Self {
        self.operation.success = Success { status, media, schema: None };
        self
    }

    /// Its answer holds values for parameters of other paths: the name of each with a pointer into the answer.
    #[must_use]
    pub fn gives(mut self, values: &'static [(&'static str, &'static str)]) -> Self {
        self.operation.gives = values;
        self
    }

    /// May answer these statuses beside those of its family.
    #[must_use]
    pub fn or(mut self, statuses: &'static [u16]) -> Self {
        self.operation.more_statuses = statuses;
        self
    }
}

/// The routes of endpoints, below `base`, which all their paths begin with.
pub fn router(endpoints: Vec<Endpoint>, base: &str) -> Router<Arc<Stele>> {
    endpoints.into_iter().fold(Router::new(), |router, endpoint| {
        let path = endpoint.operation.path;
        router.route(path.strip_prefix(base).expect("every path lies below the base"), endpoint.route)
    })
}

/// What is said of endpoints.
pub fn operations(endpoints: Vec<Endpoint>) -> impl Iterator<Item = Operation> {
    endpoints.into_iter().map(|endpoint| endpoint.operation)
}
