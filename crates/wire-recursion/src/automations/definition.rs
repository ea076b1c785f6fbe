//! What an automation is, as it is sent. spec/recursion.md 11.2 and 11.3.

use serde_json::Value;
use stele_core::id::{StoreId, TriggerId};
use stele_core::limits::Limits;
use stele_core::refusal::Refusal;
use stele_core::text::TextError;
use stele_core::time::Timestamp;
use stele_core::work::Fields;
use stele_core::work::attachment::{Access, Wanted};
use stele_core::work::automation::{AutomationDefinition, MAX_STORES, Overlap, Timing, Trigger};
use stele_core::work::schedule::ScheduleError;

use crate::fields::{
    missing, nothing_left, object, session_metadata, take, take_bounded, take_flag, take_id, take_list,
    take_object, take_text,
};

/// Longest name, in characters.
const NAME: usize = 256;
/// Longest prompt, in characters.
const PROMPT: usize = 65_536;
/// Most triggers.
const TRIGGERS: usize = 20;
/// Longest cron expression and name of a time zone, in characters.
const TIMING: usize = 256;
/// Defaults of runs that are kept as they are sent.
const OTHER_DEFAULTS: [&str; 3] = ["vaultIds", "credentialRefs", "resources"];

fn parse_prompt(mut prompt: Fields) -> Result<String, Refusal> {
    match take_text(&mut prompt, "type", "initialPrompt.type")?.as_deref() {
        Some("literal") => {}
        _ => return Err(Refusal::shape("initialPrompt.type", "must be literal")),
    }
    let field = "initialPrompt.text";
    let text = take_bounded(&mut prompt, "text", field, PROMPT)?.ok_or_else(|| missing(field))?;
    if text.contains('\0') {
        return Err(Refusal::invalid(field, TextError::Nul));
    }
    nothing_left(&prompt, "initialPrompt")?;
    Ok(text)
}

fn take_number(
    of: &mut Fields,
    name: &str,
    place: &str,
    (least, most): (u32, u32),
) -> Result<Option<u32>, Refusal> {
    let Some(value) = take(of, name) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    match number.filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let problem = format!("must be a whole number from {least} to {most}");
            Err(Refusal::shape(format!("{place}.{name}"), problem))
        }
    }
}

fn take_time(of: &mut Fields, name: &str, place: &str) -> Result<Option<Timestamp>, Refusal> {
    let field = format!("{place}.{name}");
    let read = |text: String| {
        Timestamp::parse(&text).ok_or_else(|| Refusal::shape(&field, "must be an RFC 3339 time"))
    };
    take_text(of, name, &field)?.map(read).transpose()
}

fn parse_timing(mut sent: Fields, place: &str) -> Result<Timing, Refusal> {
    let mut text = |name: &str| {
        let field = format!("{place}.{name}");
        take_bounded(&mut sent, name, &field, TIMING)?.ok_or_else(|| missing(&field))
    };
    let (cron, timezone) = (text("cron")?, text("timezone")?);
    let overlap = match take_text(&mut sent, "overlapPolicy", &format!("{place}.overlapPolicy"))? {
        None => None,
        Some(name) => Some(Overlap::parse(&name).ok_or_else(|| {
            let names: Vec<_> = Overlap::ALL.into_iter().map(Overlap::as_str).collect();
            Refusal::shape(format!("{place}.overlapPolicy"), format!("must be one of {}", names.join(", ")))
        })?),
    };
    let timing = Timing {
        cron,
        timezone,
        catchup_secs: take_number(&mut sent, "catchupWindowSeconds", place, (10, 31_622_400))?,
        jitter_secs: take_number(&mut sent, "jitterSeconds", place, (0, 540))?,
        overlap,
        start_at: take_time(&mut sent, "startAt", place)?,
        end_at: take_time(&mut sent, "endAt", place)?,
    };
    nothing_left(&sent, place)?;
    timing.schedule().map_err(|error| {
        let name = if error == ScheduleError::Zone { "timezone" } else { "cron" };
        Refusal::shape(format!("{place}.{name}"), error.to_string())
    })?;
    match (timing.start_at, timing.end_at) {
        (Some(start), Some(end)) if end < start => {
            Err(Refusal::shape(format!("{place}.endAt"), "is before startAt"))
        }
        _ => Ok(timing),
    }
}

fn parse_trigger(sent: Value, place: &str) -> Result<Trigger, Refusal> {
    let mut sent = object(sent, place)?;
    let at = |name: &str| format!("{place}.{name}");
    match take_text(&mut sent, "type", &at("type"))?.as_deref() {
        Some("schedule") => {}
        Some("webhook" | "slack" | "github") => {
            let problem = "must be schedule: this server has no sources of other events";
            return Err(Refusal::shape(at("type"), problem));
        }
        _ => return Err(Refusal::shape(at("type"), "must be schedule")),
    }
    let id = take_id(&mut sent, "triggerId", &at("triggerId"))?.ok_or_else(|| missing(&at("triggerId")))?;
    let enabled = take_flag(&mut sent, "enabled", &at("enabled"))?.ok_or_else(|| missing(&at("enabled")))?;
    let schedule = take_object(&mut sent, "schedule", &at("schedule"))?;
    let timing = parse_timing(schedule.ok_or_else(|| missing(&at("schedule")))?, &at("schedule"))?;
    nothing_left(&sent, place)?;
    Ok(Trigger { id, enabled, timing })
}

fn parse_triggers(sent: Vec<Value>) -> Result<Vec<Trigger>, Refusal> {
    if sent.len() > TRIGGERS {
        return Err(Refusal::shape("triggers", format!("must be at most {TRIGGERS} triggers")));
    }
    let parse = |(place, sent)| parse_trigger(sent, &format!("triggers[{place}]"));
    let triggers: Vec<Trigger> = sent.into_iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    let seen = |place: usize, id: TriggerId| triggers[..place].iter().any(|other| other.id == id);
    match triggers.iter().enumerate().position(|(place, trigger)| seen(place, trigger.id)) {
        Some(place) => {
            Err(Refusal::shape(format!("triggers[{place}].triggerId"), "is that of another trigger"))
        }
        None => Ok(triggers),
    }
}

fn parse_store(sent: Value, place: &str, limits: &Limits) -> Result<Wanted, Refusal> {
    let mut sent = object(sent, place)?;
    let at = |name: &str| format!("{place}.{name}");
    let store: Option<StoreId> = take_id(&mut sent, "memoryStoreId", &at("memoryStoreId"))?;
    let store = store.ok_or_else(|| missing(&at("memoryStoreId")))?;
    let access = take_text(&mut sent, "access", &at("access"))?.ok_or_else(|| missing(&at("access")))?;
    let access = Access::parse(&access)
        .ok_or_else(|| Refusal::shape(at("access"), "must be read_only or read_write"))?;
    let instructions = take_text(&mut sent, "instructions", &at("instructions"))?;
    let (max, actual) =
        (limits.instructions_chars, instructions.as_ref().map_or(0, |text| text.chars().count()));
    if actual > max {
        return Err(Refusal::invalid(at("instructions"), TextError::TooLong { max, actual }));
    }
    if instructions.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Refusal::invalid(at("instructions"), TextError::Nul));
    }
    nothing_left(&sent, place)?;
    Ok(Wanted { store, access, instructions })
}

fn parse_stores(sent: Vec<Value>, limits: &Limits) -> Result<Vec<Wanted>, Refusal> {
    let field = "runDefaults.memoryStores";
    if sent.len() > MAX_STORES {
        return Err(Refusal::shape(field, format!("must be at most {MAX_STORES} memory stores")));
    }
    let parse = |(place, sent)| parse_store(sent, &format!("{field}[{place}]"), limits);
    let stores: Vec<Wanted> = sent.into_iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    let again =
        |(place, wanted): (usize, &Wanted)| stores[..place].iter().any(|other| other.store == wanted.store);
    if stores.iter().enumerate().any(again) {
        return Err(Refusal::shape(field, "names a memory store twice"));
    }
    Ok(stores)
}

/// Reads the body of create and replace.
pub(super) fn parse(mut body: Fields, limits: &Limits) -> Result<AutomationDefinition, Refusal> {
    let field = "displayName";
    let name = take_bounded(&mut body, field, field, NAME)?.ok_or_else(|| missing(field))?;
    let agent = take_id(&mut body, "agentId", "agentId")?.ok_or_else(|| missing("agentId"))?;
    let agent_version =
        take_id(&mut body, "agentVersionId", "agentVersionId")?.ok_or_else(|| missing("agentVersionId"))?;
    let environment =
        take_id(&mut body, "environmentId", "environmentId")?.ok_or_else(|| missing("environmentId"))?;
    let prompt = take_object(&mut body, "initialPrompt", "initialPrompt")?;
    let prompt = parse_prompt(prompt.ok_or_else(|| missing("initialPrompt"))?)?;
    let triggers = take_list(&mut body, "triggers", "triggers")?.ok_or_else(|| missing("triggers"))?;
    let triggers = parse_triggers(triggers)?;
    let defaults = take_object(&mut body, "runDefaults", "runDefaults")?;
    let mut defaults = defaults.ok_or_else(|| missing("runDefaults"))?;
    nothing_left(&body, "")?;
    let metadata = take_object(&mut defaults, "metadata", "runDefaults.metadata")?;
    let metadata = metadata.map(|pairs| session_metadata(pairs, "runDefaults.metadata")).transpose()?;
    let stores = take_list(&mut defaults, "memoryStores", "runDefaults.memoryStores")?;
    let stores = parse_stores(stores.unwrap_or_default(), limits)?;
    defaults.remove("metadata");
    defaults.remove("memoryStores");
    let other = OTHER_DEFAULTS.into_iter().filter_map(|name| defaults.remove_entry(name));
    let other_defaults = other.filter(|(_, value)| !value.is_null()).collect();
    nothing_left(&defaults, "runDefaults")?;
    Ok(AutomationDefinition {
        name,
        agent,
        agent_version,
        environment,
        prompt,
        triggers,
        metadata,
        stores,
        other_defaults,
    })
}
