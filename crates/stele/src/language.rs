//! Language models: those of a server, and `stele model`, which asks the configured providers itself so that a
//! configuration can be tried before a server runs with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use stele_core::clock::{Clock, Random, System};
use stele_core::models::{
    Catalogue, Conversation, Delta, Fault, Message, Model as Models, ModelEntry, ModelError, Reply, Stop,
};
use stele_models::Gateway;

use crate::cli::{Model, ModelPlace};
use crate::config::{Config, process_env};
use crate::failure::{Class, fail};
use crate::output::{complain, count, print, print_json, print_table};

/// What a model is asked by `stele model test`.
const QUESTION: &str = "Answer with the one word: ready";
/// Tokens for its answer: a word, and some for models that reason first.
const ANSWER_TOKENS: u64 = 512;
/// Characters of the answer that are shown.
const SHOWN: usize = 200;

/// The models of a configuration, if it has a provider.
pub(crate) fn models(config: &Config) -> anyhow::Result<Option<Arc<dyn Models>>> {
    if config.providers.is_empty() {
        return Ok(None);
    }
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(System), Arc::new(System));
    let gateway = Gateway::new(config.providers.clone(), config.patience, &clock, &random)?;
    Ok(Some(Arc::new(gateway)))
}

/// `stele model`.
pub(crate) fn run(action: Model) -> anyhow::Result<()> {
    let (place, tested) = match &action {
        Model::List(place) => (place, None),
        Model::Test { model, place } => (place, Some(model)),
    };
    let config = Config::load(&place.as_serve_flags(), &process_env)?;
    let models = models(&config)?.ok_or(ModelError::Unconfigured).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match tested {
            None => list(&*models, place).await,
            Some(model) => test(&*models, model, place).await,
        }
    })
}

async fn list(models: &dyn Models, place: &ModelPlace) -> anyhow::Result<()> {
    let Catalogue { models, silent } = models.catalogue().await;
    if place.json {
        let silent = silent.iter().map(|s| json!({"provider": s.provider, "error": s.error.to_string()}));
        print_json(&json!({
            "models": models.iter().map(view).collect::<Vec<_>>(),
            "silent": silent.collect::<Vec<_>>(),
        }))?;
    } else {
        let rows: Vec<_> = models.iter().map(row).collect();
        print_table(["MODEL", "NAME", "CONTEXT", "TOOLS", "PRICE IN/OUT"], &rows)?;
    }
    for silent in &silent {
        let hint = "or name its models in the configuration: models = [\"...\"]";
        complain(&format!("{}; {hint}", silent.error));
    }
    match (models.is_empty(), silent.into_iter().next()) {
        (true, Some(silent)) => Err(fail(class(&silent.error), "no provider lists a model")),
        _ => Ok(()),
    }
}

fn row(model: &ModelEntry) -> [String; 5] {
    let price = model.price.map_or("unknown".into(), |price| format!("{}/{}", price.input, price.output));
    [
        model.reference(),
        model.display_name.clone(),
        model.context_tokens.to_string(),
        if model.tools { "yes" } else { "no" }.into(),
        price,
    ]
}

fn view(model: &ModelEntry) -> Value {
    json!({
        "model_ref": model.reference(),
        "provider": model.provider,
        "model_id": model.id,
        "display_name": model.display_name,
        "context_tokens": model.context_tokens,
        "max_output_tokens": model.output_tokens,
        "tools": model.tools,
        "price": model.price.map(|price| json!({
            "input": price.input, "output": price.output,
            "cache_read": price.cache_read, "cache_write": price.cache_write,
        })),
    })
}

async fn test(models: &dyn Models, name: &str, place: &ModelPlace) -> anyhow::Result<()> {
    let model = models.find(name).await.map_err(failed)?;
    let messages = vec![Message::user(QUESTION)];
    let asked = Conversation { messages, max_tokens: ANSWER_TOKENS, ..Conversation::default() };
    let (begun, mut first) = (Instant::now(), None);
    let mut hear = |delta| {
        if matches!(delta, Delta::Text(_) | Delta::Thinking) {
            first.get_or_insert_with(|| begun.elapsed());
        }
    };
    let reply = models.call(&model, &asked, &mut hear).await.map_err(failed)?;
    let whole = begun.elapsed();
    tell(&model, &reply, Times { whole, first: first.unwrap_or(whole) }, place.json)?;
    reply.whole().map_err(failed).context("the model answers, but not as it should")?;
    Ok(())
}

/// How long a call took with all its tries.
struct Times {
    whole: Duration,
    /// To the first sign of an answer.
    first: Duration,
}

fn tell(model: &ModelEntry, reply: &Reply, times: Times, as_json: bool) -> anyhow::Result<()> {
    let (text, usage) = (reply.text(), reply.usage);
    if as_json {
        return print_json(&json!({
            "model_ref": model.reference(),
            "answer": text,
            "stop_reason": stop(reply.stop),
            "input_tokens": usage.all_input(),
            "output_tokens": usage.output,
            "tokens_estimated": usage.estimated,
            "first_token_ms": u64::try_from(times.first.as_millis()).unwrap_or(u64::MAX),
            "latency_ms": u64::try_from(times.whole.as_millis()).unwrap_or(u64::MAX),
            "tries": reply.tries,
            "cost": reply.cost.map(|cost| cost.units()),
        }));
    }
    let mut answer: String = text.chars().take(SHOWN).collect();
    if answer.len() < text.len() {
        answer.push_str(" ...");
    }
    let source =
        if usage.estimated { "estimated: the provider does not say" } else { "as the provider says" };
    let cost = reply.cost.map(|cost| cost.to_string());
    print(&format!("model    {}", model.reference()))?;
    print(&format!("answer   {answer:?}"))?;
    print(&format!("stopped  {}", stop(reply.stop)))?;
    print(&format!("tokens   {} read, {} written ({source})", usage.all_input(), usage.output))?;
    print(&format!(
        "time     {:.2} s, first word after {:.2} s, {}",
        times.whole.as_secs_f64(),
        times.first.as_secs_f64(),
        count(reply.tries as usize, "try", "tries")
    ))?;
    print(&format!(
        "cost     {}",
        cost.as_deref().unwrap_or("unknown: the configuration has no price for this provider")
    ))
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::ContextFull => "context_full",
        Stop::Refusal => "refusal",
    }
}

fn failed(error: ModelError) -> anyhow::Error {
    fail(class(&error), error.to_string())
}

fn class(error: &ModelError) -> Class {
    match error {
        ModelError::Unconfigured | ModelError::UnknownModel { .. } => Class::NotFound,
        ModelError::Unreachable { .. } => Class::NoServer,
        ModelError::RateLimited { .. } | ModelError::TimedOut { .. } | ModelError::Resting { .. } => {
            Class::Unavailable
        }
        ModelError::Overflow { .. } | ModelError::Refused { .. } | ModelError::Cut { .. } => Class::Refused,
        ModelError::Failed { fault, .. } => match fault {
            Fault::Unreachable => Class::NoServer,
            Fault::Key => Class::Forbidden,
            Fault::NotFound => Class::NotFound,
            Fault::Malformed | Fault::RequestTooLarge => Class::Refused,
            Fault::BrokenOff | Fault::Unreadable | Fault::TooLarge | Fault::Redirected | Fault::Status => {
                Class::Unavailable
            }
        },
    }
}
