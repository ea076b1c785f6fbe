//! What surrounds every request of the dialect: key, selectors, echoed ids, error codes. spec/recursion.md 2 and 3.4.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use stele_core::access::Caller;
use stele_core::id::{OrganizationId, WorkspaceId};
use stele_core::service::Stele;
use stele_http::auth;
use stele_http::flat::FlatError;

const ORGANIZATION: &str = "x-organization-id";
const TENANT: &str = "x-tenant-id";

/// Which codes errors carry. spec/recursion.md 3.4 (D2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorCodes {
    /// Those of the public page.
    #[default]
    Seed,
    /// Only such as the SDK's closed enum knows.
    Sdk,
}

impl ErrorCodes {
    /// The codes of that name, in the header and in the settings.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "seed" => Some(Self::Seed),
            "sdk" => Some(Self::Sdk),
            _ => None,
        }
    }

    /// The codes that a request asks for; a name that nobody knows asks for nothing.
    fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get("stele-error-codes")?.to_str().ok()?.trim())
    }

    /// The code as it is sent; `details.code` always keeps the seed's.
    fn spell(self, code: &'static str) -> &'static str {
        match (self, code) {
            (Self::Sdk, "content_sha256_mismatch") => "conflict",
            (Self::Sdk | Self::Seed, code) => code,
        }
    }
}

/// What [`pass`] needs.
#[derive(Clone)]
pub(crate) struct Door {
    stele: Arc<Stele>,
    codes: ErrorCodes,
    tenant: HeaderValue,
}

impl Door {
    pub(crate) fn new(stele: Arc<Stele>, codes: ErrorCodes) -> Self {
        let tenant = id_value(&stele.installation().organization.to_string());
        Self { stele, codes, tenant }
    }
}

/// Lets a request in, unknown routes too, and puts on its answer what every answer carries.
pub(crate) async fn pass(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let codes = ErrorCodes::of(request.headers()).unwrap_or(door.codes);
    let installation = door.stele.installation();
    let (organization, mut response) = match auth::caller(&door.stele, request.headers()).await {
        Ok(caller) => {
            let organization = caller.workspace;
            let response = match selected(request.headers(), organization, installation.organization) {
                Ok(()) => {
                    request.extensions_mut().insert::<Caller>(caller);
                    next.run(request).await
                }
                Err(error) => error.into_response(),
            };
            (organization, response)
        }
        // Every answer names an organization, so whoever nobody knows is shown the installation's first.
        Err(unknown) => (installation.first_workspace, FlatError::from(unknown).into_response()),
    };
    if let Some(error) = response.extensions_mut().get_mut::<FlatError>() {
        error.code = codes.spell(error.code);
    }
    let headers = response.headers_mut();
    headers.insert("recursion-organization-id", id_value(&organization.to_string()));
    headers.insert("recursion-tenant-id", door.tenant);
    response
}

fn id_value(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).expect("a UUID is a header value")
}

/// Checks the selectors: what is named must be the key's. spec/recursion.md 2.
fn selected(headers: &HeaderMap, own: WorkspaceId, tenant: OrganizationId) -> Result<(), FlatError> {
    selects(headers, ORGANIZATION, |named| named == "default" || named == own.to_string())?;
    selects(headers, TENANT, |named| named == tenant.to_string())
}

fn selects(headers: &HeaderMap, name: &str, fits: impl Fn(&str) -> bool) -> Result<(), FlatError> {
    for value in headers.get_all(name) {
        let named = value.to_str().unwrap_or("?").trim();
        if named.is_empty() {
            let message = format!("{name} must not be empty");
            return Err(FlatError::new(StatusCode::BAD_REQUEST, "invalid_request", message).on(name));
        }
        if !fits(named) {
            let message = format!("{name} names another one than the key's");
            return Err(FlatError::new(StatusCode::FORBIDDEN, "forbidden", message).on(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::time::Timestamp;

    #[test]
    fn only_a_mismatch_has_another_code_for_the_sdk() {
        assert_eq!(ErrorCodes::Sdk.spell("content_sha256_mismatch"), "conflict");
        assert_eq!(ErrorCodes::Seed.spell("content_sha256_mismatch"), "content_sha256_mismatch");
        assert_eq!(ErrorCodes::Sdk.spell("not_found"), "not_found");
    }

    #[test]
    fn selectors_must_name_what_the_key_belongs_to() {
        let at = Timestamp::from_micros(1_790_604_131_123_456);
        let (own, tenant) = (WorkspaceId::mint(at, 1), OrganizationId::mint(at, 2));
        let judged = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().expect("a value"));
            }
            selected(&headers, own, tenant).err().map(|error| error.status.as_u16())
        };
        let (own, tenant) = (own.to_string(), tenant.to_string());
        assert_eq!(judged(&[]), None);
        assert_eq!(judged(&[(ORGANIZATION, "default"), (TENANT, &tenant)]), None);
        assert_eq!(judged(&[(ORGANIZATION, &own)]), None);
        for (name, value, status) in [
            (ORGANIZATION, "", 400),
            (ORGANIZATION, tenant.as_str(), 403),
            (TENANT, "", 400),
            (TENANT, "default", 403),
            (TENANT, own.as_str(), 403),
        ] {
            assert_eq!(judged(&[(name, value)]), Some(status), "{name}: {value}");
        }
        assert_eq!(judged(&[(ORGANIZATION, "default"), (ORGANIZATION, "x")]), Some(403));
    }
}
