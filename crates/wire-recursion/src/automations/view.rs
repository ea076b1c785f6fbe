//! Automations and runs as they are shown. spec/recursion.md 11.

use serde_json::{Value, json};
use stele_core::time::Timestamp;
use stele_core::work::Fields;
use stele_core::work::attachment::Wanted;
use stele_core::work::automation::{Automation, Timing, Trigger};
use stele_core::work::run::{Cause, Ran, Run};
use stele_core::work::timer::Timer;

/// An object of these fields, without those that are not set.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Fields {
    let set = |(name, value): (&str, Option<Value>)| value.map(|value| (name.to_owned(), value));
    fields.into_iter().filter_map(set).collect()
}

fn time(at: Timestamp) -> Value {
    json!(at.to_string())
}

fn timing(timing: &Timing) -> Fields {
    object([
        ("cron", Some(json!(timing.cron))),
        ("timezone", Some(json!(timing.timezone))),
        ("catchupWindowSeconds", timing.catchup_secs.map(Into::into)),
        ("jitterSeconds", timing.jitter_secs.map(Into::into)),
        ("overlapPolicy", timing.overlap.map(|overlap| overlap.as_str().into())),
        ("startAt", timing.start_at.map(time)),
        ("endAt", timing.end_at.map(time)),
    ])
}

fn trigger(trigger: &Trigger) -> Value {
    json!({
        "type": "schedule",
        "triggerId": trigger.id,
        "enabled": trigger.enabled,
        "schedule": timing(&trigger.timing),
    })
}

fn store(wanted: &Wanted) -> Fields {
    object([
        ("memoryStoreId", Some(json!(wanted.store))),
        ("access", Some(wanted.access.as_str().into())),
        ("instructions", wanted.instructions.as_ref().map(|text| json!(text))),
    ])
}

fn status(automation: &Automation) -> &'static str {
    if automation.active { "active" } else { "paused" }
}

fn summary(automation: &Automation) -> Fields {
    let definition = &automation.definition;
    object([
        ("automationId", Some(json!(automation.id))),
        ("displayName", Some(json!(definition.name))),
        ("agentId", Some(json!(definition.agent))),
        ("agentVersionId", Some(json!(definition.agent_version))),
        ("environmentId", Some(json!(definition.environment))),
        ("status", Some(status(automation).into())),
        ("revision", Some(automation.revision.into())),
        ("createdAt", Some(time(automation.created_at))),
        ("updatedAt", Some(time(automation.updated_at))),
    ])
}

/// An automation.
pub(super) fn automation(automation: &Automation) -> Fields {
    let definition = &automation.definition;
    let mut defaults = definition.other_defaults.clone();
    defaults.insert("metadata".into(), json!(definition.metadata));
    if !definition.stores.is_empty() {
        let stores: Vec<_> = definition.stores.iter().map(store).collect();
        defaults.insert("memoryStores".into(), json!(stores));
    }
    let triggers: Vec<_> = definition.triggers.iter().map(trigger).collect();
    let mut view = summary(automation);
    view.insert("initialPrompt".into(), prompt(automation));
    view.insert("runDefaults".into(), defaults.into());
    view.insert("triggers".into(), triggers.into());
    view
}

fn prompt(automation: &Automation) -> Value {
    json!({"type": "literal", "text": automation.definition.prompt})
}

/// An automation in a list.
pub(super) fn row(automation: &Automation, latest: Option<&Run>) -> Fields {
    let triggers = &automation.definition.triggers;
    let types: &[&str] = if triggers.is_empty() { &[] } else { &["schedule"] };
    let mut view = summary(automation);
    view.insert("triggerCount".into(), triggers.len().into());
    let enabled = triggers.iter().filter(|trigger| trigger.enabled).count();
    view.insert("enabledTriggerCount".into(), enabled.into());
    view.insert("triggerTypes".into(), json!(types));
    view.insert("latestRun".into(), json!(latest.map(run_row)));
    view
}

/// Where a run can be read.
pub(super) fn run_path(run: &Run) -> String {
    format!("/managed-agents/v1/automation-runs/{}", run.id)
}

/// A run in a list.
pub(super) fn run_row(run: &Run) -> Fields {
    let (session, error) = match &run.ran {
        Ran::Created { session } => (Some(json!(session)), None),
        Ran::Failed { message } => {
            let error = json!({"code": "semantic_validation_failed", "message": message, "retryable": false});
            (None, Some(error))
        }
    };
    let (trigger, incarnation, occasion) = match &run.cause {
        Cause::Manual { .. } => (None, None, None),
        Cause::Schedule { trigger, incarnation, occasion } => {
            (Some(json!(trigger)), Some(json!(incarnation)), Some(time(*occasion)))
        }
    };
    object([
        ("automationRunId", Some(json!(run.id))),
        ("automationId", Some(json!(run.automation.id))),
        ("status", Some(run.ran.as_str().into())),
        ("triggerType", Some(run.cause.as_str().into())),
        ("statusUrl", Some(run_path(run).into())),
        ("createdAt", Some(time(run.created_at))),
        ("updatedAt", Some(time(run.created_at))),
        ("completedAt", Some(time(run.created_at))),
        ("sessionId", session),
        ("error", error),
        ("triggerId", trigger),
        ("triggerIncarnation", incarnation),
        ("occurrenceAt", occasion),
    ])
}

/// A run.
pub(super) fn run(run: &Run) -> Fields {
    let mut view = run_row(run);
    view.insert("effectiveInitialMessage".into(), json!(run.automation.definition.prompt));
    view.insert("automationSnapshot".into(), automation(&run.automation).into());
    view.insert("promptSnapshot".into(), prompt(&run.automation));
    if let Cause::Manual { payload: Some(payload) } = &run.cause {
        view.insert("eventContext".into(), json!({"payload": payload}));
    }
    if let Some(of) = run.trigger().and_then(|id| run.automation.trigger(id)) {
        view.insert("triggerSnapshot".into(), trigger(of));
    }
    view
}

/// How the schedule of a trigger stands.
pub(super) fn timer(automation: &Automation, timer: &Timer, upcoming: &[Timestamp]) -> Value {
    let enabled = automation.trigger(timer.trigger).is_some_and(|trigger| trigger.enabled);
    json!({
        "triggerId": timer.trigger,
        "available": true,
        "paused": !(automation.active && enabled),
        "synchronization": "synced",
        "nextRunAt": timer.next.map(time),
        "lastRunAt": timer.last_run_at.map(time),
        "upcomingRuns": upcoming.iter().map(|at| time(*at)).collect::<Vec<_>>(),
        "skippedOverlap": timer.skipped,
        "missedCatchupWindow": timer.missed,
    })
}
