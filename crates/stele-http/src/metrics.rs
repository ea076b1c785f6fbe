//! `/metrics` in Prometheus's text format: counts about this process, nothing about what is stored. docs/METRICS.md.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use stele_core::meter::{self, Counter, EmbeddingResult, Histogram, Table};
use stele_core::models::ErrorClass;
use stele_core::searcher::SearchFigures;
use stele_core::service::Stele;

use crate::flat::FlatError;

/// Upper bounds of the time for a request, in microseconds.
const REQUEST_MICROS: [u64; 11] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000];
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "other"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const MILLION: f64 = 1e6;

/// The times of one route, by method and class of status.
type Times = [[Histogram<11>; CLASSES.len()]; METHODS.len()];

/// Times of requests by the pattern of their route: patterns come from the program, so they are a closed set.
static REQUESTS: Table<Box<Times>, 512> = Table::new();

fn no_times() -> Box<Times> {
    Box::new([const { [const { Histogram::new(&REQUEST_MICROS) }; CLASSES.len()] }; METHODS.len()])
}

/// Counts a request that was answered.
pub(crate) fn observe(route: Option<&MatchedPath>, method: &Method, status: StatusCode, took: Duration) {
    let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
    let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
    if let Some(times) = REQUESTS.of(route.map_or("unmatched", MatchedPath::as_str), no_times) {
        times[method][class].record_micros(took);
    }
}

/// The route.
pub fn routes(stele: Arc<Stele>) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(stele)
}

pub(crate) async fn metrics(State(stele): State<Arc<Stele>>) -> Response {
    match stele.store_count().await {
        Ok(stores) => (
            [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
            render(stores, stele.search_figures()),
        )
            .into_response(),
        Err(error) => FlatError::from(error).into_response(),
    }
}

/// All families, as a scrape sees them.
fn render(stores: u64, search: SearchFigures) -> String {
    let mut text = Text(String::with_capacity(16 * 1024));
    text.requests();
    let one = |counter: &Counter| counter.get();
    text.histogram("stele_write_batch_commands", "Commands committed together.", &meter::BATCHES, 1.0);
    text.histogram("stele_write_commit_duration_seconds", "Time for a commit.", &meter::COMMITS, MILLION);
    text.single(
        "stele_write_queue_commands",
        "gauge",
        "Commands that waited when the writer last took a batch.",
        meter::WRITE_QUEUE.get(),
    );
    text.single("stele_sqlite_wal_pages", "gauge", "Pages in the write-ahead log.", meter::WAL_PAGES.get());
    text.single("stele_stores", "gauge", "Memory stores, archived ones too.", stores);
    text.single(
        "stele_body_cache_hits_total",
        "counter",
        "Reads answered from the body cache.",
        one(&meter::BODY_CACHE_HITS),
    );
    text.single(
        "stele_body_cache_misses_total",
        "counter",
        "Reads that the body cache could not answer.",
        one(&meter::BODY_CACHE_MISSES),
    );
    text.search(search);
    text.single("stele_redactions_total", "counter", "Redactions answered.", one(&meter::REDACTIONS));
    text.family("stele_refusals_total", "counter", "Refused requests by the code of the error.");
    for (code, count) in meter::REFUSALS.all() {
        text.line("stele_refusals_total", &format!("code=\"{code}\""), one(count));
    }
    text.models();
    text.family("stele_build_info", "gauge", "1, with the version.");
    text.line("stele_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    text.0
}

/// The text of a scrape, growing. Writing to a `String` cannot fail.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn histogram<const N: usize>(&mut self, name: &str, help: &str, values: &Histogram<N>, unit: f64) {
        self.family(name, "histogram", help);
        self.buckets(name, "", values, unit);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and microseconds far below 2^52")]
    fn buckets<const N: usize>(&mut self, name: &str, labels: &str, values: &Histogram<N>, unit: f64) {
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, count) in values.cumulative() {
            let _ =
                writeln!(self.0, "{name}_bucket{{{labels}{comma}le=\"{}\"}} {count}", bound as f64 / unit);
        }
        let total = values.total();
        let _ = writeln!(self.0, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(
            self.0,
            "{name}_sum{labels} {}\n{name}_count{labels} {total}",
            values.sum() as f64 / unit
        );
    }

    fn search(&mut self, held: SearchFigures) {
        let gauges = [
            ("stele_search_indexes", "Stores with an index for searches.", held.indexes),
            ("stele_search_index_bytes", "Bytes of indexes and vectors for searches.", held.bytes),
            ("stele_search_vectors", "Passages of memories with a vector.", held.vectors),
            ("stele_search_vectors_missing", "Memories whose vectors are not there yet.", held.wanting),
        ];
        for (name, help, value) in gauges {
            self.single(name, "gauge", help, value as u64);
        }
        self.family("stele_searches_total", "counter", "Searches answered, by what ranked them.");
        self.line("stele_searches_total", "ranking=\"words\"", meter::SEARCHES_BY_WORDS.get());
        self.line("stele_searches_total", "ranking=\"blended\"", meter::SEARCHES_BLENDED.get());
        self.family(
            "stele_embedding_requests_total",
            "counter",
            "Requests to the embedding model, by their end.",
        );
        for ((_, result), count) in EmbeddingResult::ALL.iter().zip(&meter::EMBEDDING_CALLS) {
            self.line("stele_embedding_requests_total", &format!("result=\"{result}\""), count.get());
        }
    }

    fn models(&mut self) {
        const CALLS: &str = "stele_model_calls_total";
        const TOKENS: &str = "stele_model_tokens_total";
        const RETRIES: &str = "stele_model_retries_total";
        const DURATION: &str = "stele_model_call_duration_seconds";
        let providers = meter::MODELS.all();
        self.family(CALLS, "counter", "Calls of models by what came of them.");
        for (provider, meter) in &providers {
            let failed = [ErrorClass::RateLimited, ErrorClass::Timeout, ErrorClass::Error];
            let failed = failed.map(|class| (class.as_str(), meter.failed(class)));
            for (result, count) in
                [("answered", &meter.answered), ("resting", &meter.resting)].into_iter().chain(failed)
            {
                self.line(CALLS, &format!("provider=\"{provider}\",result=\"{result}\""), count.get());
            }
        }
        self.family(TOKENS, "counter", "Tokens that models read and wrote.");
        for (provider, meter) in &providers {
            for (direction, count) in [("input", &meter.input_tokens), ("output", &meter.output_tokens)] {
                self.line(TOKENS, &format!("provider=\"{provider}\",direction=\"{direction}\""), count.get());
            }
        }
        self.family(RETRIES, "counter", "Tries beyond the first of a call.");
        for (provider, meter) in &providers {
            self.line(RETRIES, &format!("provider=\"{provider}\""), meter.retries.get());
        }
        self.family(DURATION, "histogram", "Time for a call of a model with all its tries and waits.");
        for (provider, meter) in &providers {
            self.buckets(DURATION, &format!("provider=\"{provider}\""), &meter.durations, MILLION);
        }
    }

    fn requests(&mut self) {
        const NAME: &str = "stele_http_request_duration_seconds";
        self.family(NAME, "histogram", "Time from the head of a request to the head of its answer.");
        for (route, times) in REQUESTS.all() {
            for (method, classes) in METHODS.iter().zip(times.iter()) {
                for (class, times) in CLASSES.iter().zip(classes).filter(|(_, times)| times.total() > 0) {
                    let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{class}\"");
                    self.buckets(NAME, &labels, times, MILLION);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_metric_has_its_line_in_the_documentation_and_each_line_its_metric() {
        let documented: BTreeSet<_> = include_str!("../../../docs/METRICS.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_owned)
            .collect();
        let text = render(0, SearchFigures::default());
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        assert_eq!(types.map(str::to_owned).collect::<BTreeSet<_>>(), documented);
    }

    #[test]
    fn a_request_is_counted_under_its_method_and_class() {
        observe(None, &Method::PATCH, StatusCode::from_u16(529).expect("a status"), Duration::from_millis(3));
        let text = render(0, SearchFigures::default());
        let labels = "route=\"unmatched\",method=\"PATCH\",status=\"5xx\"";
        assert!(
            text.contains(&format!("stele_http_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 1")),
            "{text}"
        );
        assert!(
            text.contains(&format!("stele_http_request_duration_seconds_sum{{{labels}}} 0.003")),
            "{text}"
        );
        assert!(text.contains("le=\"+Inf\"} 0"), "what is empty shows too");
    }
}
