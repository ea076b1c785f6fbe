//! `/v1/memory_stores/{id}/export` and `/import`: a store as a file, and files into a store. DESIGN 7.

use axum::body::Body;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use stele_core::access::{Action, Resource};
use stele_core::import::{Fate, OnConflict};
use stele_core::refusal::Refusal;
use stele_http::archives::{self, Format, Import, TakeError};
use stele_http::reply::{at, bytes, json};

use crate::context::Call;
use crate::error::ApiError;

/// What an import did, or would do.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ImportResult")]
pub(crate) struct ImportView<'a> {
    dry_run: bool,
    created: usize,
    overwritten: usize,
    skipped: usize,
    unchanged: usize,
    /// What happens to each file, by path.
    data: Vec<FateView<'a>>,
    /// The store's sequence afterwards.
    sequence: u64,
}

#[derive(Serialize, JsonSchema)]
struct FateView<'a> {
    path: &'a str,
    #[schemars(extend("enum" = ["create", "overwrite", "skip", "unchanged"]))]
    action: &'static str,
}

pub(crate) async fn export(call: Call) -> Result<Response, ApiError> {
    call.may(Resource::Archive, Action::Read)?;
    let (store, format) = (call.store()?, Format::parse(call.query.get("format"))?);
    Ok(archives::export(call.stele.clone(), call.caller.clone(), store, format).await?)
}

pub(crate) async fn import(call: Call, body: Body) -> Result<Response, ApiError> {
    call.may(Resource::Archive, Action::Update)?;
    let store = call.store()?;
    let dry_run = call.query.flag("dry_run")?;
    let on_conflict = match call.query.get("on_conflict") {
        None => OnConflict::default(),
        Some(text) => OnConflict::parse(text)
            .ok_or_else(|| Refusal::shape("on_conflict", "must be refuse, skip or overwrite"))?,
    };
    let import = Import { store, dry_run, on_conflict };
    let imported = archives::import(&call.stele, &call.caller, import, body).await?;
    let count = |wanted| imported.fates.iter().filter(|(_, fate)| *fate == wanted).count();
    let data =
        imported.fates.iter().map(|(path, fate)| FateView { path: path.as_str(), action: fate.as_str() });
    let view = ImportView {
        dry_run,
        created: count(Fate::Create),
        overwritten: count(Fate::Overwrite),
        skipped: count(Fate::Skip),
        unchanged: count(Fate::Same),
        data: data.collect(),
        sequence: imported.sequence,
    };
    Ok(at(imported.sequence, json(bytes(&view))))
}

impl From<TakeError> for ApiError {
    fn from(error: TakeError) -> Self {
        match error {
            TakeError::Body(error) => error.into(),
            TakeError::Error(error) => error.into(),
            TakeError::Broken(error, done) => Self::from(error).because(format!(
                "somebody else changed the store when {done} files were imported; the same import again goes on from there"
            )),
        }
    }
}
