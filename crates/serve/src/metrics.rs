//! Counts and latencies of each model, and the page that Prometheus reads. Names, labels and
//! buckets are TensorFlow Serving's.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::model::{Model, Models};
use crate::status::Code;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Predict,
    Classify,
    Regress,
    MultiInference,
    Infer,
}

impl Api {
    const ALL: [Api; 5] = [Api::Predict, Api::Classify, Api::Regress, Api::MultiInference, Api::Infer];

    fn name(self) -> &'static str {
        match self {
            Api::Predict => "Predict",
            Api::Classify => "Classify",
            Api::Regress => "Regress",
            Api::MultiInference => "MultiInference",
            Api::Infer => "Infer",
        }
    }
}

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Rest,
    Grpc,
}

impl Entry {
    const ALL: [Entry; 2] = [Entry::Rest, Entry::Grpc];
}

/// The limits of a histogram: `scale`, `scale * growth`, and so on. A last bucket has no limit.
struct Buckets<const N: usize>([f64; N]);

impl<const N: usize> Buckets<N> {
    const fn new(scale: f64, growth: f64) -> Buckets<N> {
        let mut limits = [scale; N];
        let mut i = 1;
        while i < N {
            limits[i] = limits[i - 1] * growth;
            i += 1;
        }
        Buckets(limits)
    }
}

const MICROS: Buckets<33> = Buckets::new(10.0, 1.8);
const EXAMPLES: Buckets<15> = Buckets::new(1.0, 2.0);

/// Counts of values by size.
struct Histogram<const N: usize> {
    counts: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Histogram<N> {
        Histogram { counts: [const { AtomicU64::new(0) }; N], above: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&self, buckets: &Buckets<N>, value: u64) {
        // TF: a value that equals a limit is in the bucket above it.
        let i = buckets.0.partition_point(|&limit| limit <= value as f64);
        self.counts.get(i).unwrap_or(&self.above).fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Appends the lines of the page, unless nothing was counted.
    fn lines(&self, buckets: &Buckets<N>, name: &str, labels: &str, page: &mut String) {
        let mut count = 0;
        let mut lines = String::new();
        for (limit, bucket) in buckets.0.iter().zip(&self.counts) {
            count += bucket.load(Ordering::Relaxed);
            line(&mut lines, format_args!("{name}_bucket{{{labels},le=\"{}\"}} {count}", six_digits(*limit)));
        }
        count += self.above.load(Ordering::Relaxed);
        if count == 0 {
            return;
        }
        page.push_str(&lines);
        line(page, format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}"));
        line(page, format_args!("{name}_sum{{{labels}}} {}", self.sum.load(Ordering::Relaxed)));
        line(page, format_args!("{name}_count{{{labels}}} {count}"));
    }
}

/// Six digits without trailing zeros, as C's `%g` prints them.
fn six_digits(value: f64) -> String {
    let mut text = Vec::new();
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    crate::json::write_f64(rounded, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

pub(crate) fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{text}");
}

/// The counts of one model.
pub(crate) struct ModelMetrics {
    requests: [AtomicU64; Code::ALL.len()],
    latencies: [[Histogram<33>; Entry::ALL.len()]; Api::ALL.len()],
    runtimes: [Histogram<33>; Api::ALL.len()],
    examples: Histogram<15>,
    n_examples: AtomicU64,
    /// Names in requests that the model does not have, and that were ignored.
    n_unknown_keys: AtomicU64,
}

impl Default for ModelMetrics {
    fn default() -> ModelMetrics {
        ModelMetrics {
            requests: [const { AtomicU64::new(0) }; Code::ALL.len()],
            latencies: Default::default(),
            runtimes: Default::default(),
            examples: Histogram::default(),
            n_examples: AtomicU64::new(0),
            n_unknown_keys: AtomicU64::new(0),
        }
    }
}

impl ModelMetrics {
    /// Counts a request that has been answered. The latency of a failed one is not recorded.
    pub(crate) fn answered(&self, api: Api, entry: Entry, code: Code, latency: Duration) {
        self.requests[code as usize].fetch_add(1, Ordering::Relaxed);
        if code == Code::Ok {
            self.latencies[api as usize][entry as usize].add(&MICROS, micros(latency));
        }
    }

    pub(crate) fn runtime_latency(&self, api: Api, latency: Duration) {
        self.runtimes[api as usize].add(&MICROS, micros(latency));
    }

    /// The latencies of answers as JSON, for each kind of request that was answered. The limits
    /// are those of all buckets but the last, in microseconds.
    pub(crate) fn latencies(&self) -> Vec<serde_json::Value> {
        let mut all = Vec::new();
        for (api, entry) in Api::ALL.iter().flat_map(|api| Entry::ALL.map(|entry| (*api, entry))) {
            let histogram = &self.latencies[api as usize][entry as usize];
            let counts = histogram.counts.iter().chain([&histogram.above]).map(|count| count.load(Ordering::Relaxed));
            let counts: Vec<u64> = counts.collect();
            let n: u64 = counts.iter().sum();
            if n > 0 {
                let mean = histogram.sum.load(Ordering::Relaxed) as f64 / n as f64;
                let entry = if entry == Entry::Rest { "REST" } else { "gRPC" };
                all.push(serde_json::json!({
                    "api": api.name(), "entry": entry, "limits": MICROS.0.to_vec(), "counts": counts, "count": n, "mean_us": mean
                }));
            }
        }
        all
    }

    pub(crate) fn count_unknown_keys(&self, n: usize) {
        self.n_unknown_keys.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_examples(&self, n: usize) {
        self.examples.add(&EXAMPLES, n as u64);
        self.n_examples.fetch_add(n as u64, Ordering::Relaxed);
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
}

/// A label's value with its escapes.
pub(crate) fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The page that Prometheus reads.
pub(crate) fn page(models: &Models) -> String {
    let mut page = requests(models);
    crate::drift::lines(models, &mut page);
    page
}

fn unknown_keys(models: &BTreeMap<String, Arc<Model>>, page: &mut String) {
    line(page, format_args!("# TYPE estimand_unknown_keys_total counter"));
    for (name, model) in models {
        let n = model.metrics.n_unknown_keys.load(Ordering::Relaxed);
        line(page, format_args!("estimand_unknown_keys_total{{model_name=\"{}\"}} {n}", label(name)));
    }
}

/// Counts and latencies of requests.
fn requests(models: &Models) -> String {
    const PREFIX: &str = ":tensorflow:serving:";
    let models = models.all();
    let mut page = String::new();
    let all = || models.iter().map(|(name, model)| (label(name), &model.metrics));

    line(&mut page, format_args!("# TYPE {PREFIX}request_count counter"));
    for (name, metrics) in all() {
        for code in Code::ALL {
            let n = metrics.requests[code as usize].load(Ordering::Relaxed);
            if n > 0 {
                let status = code.name();
                line(&mut page, format_args!("{PREFIX}request_count{{model_name=\"{name}\",status=\"{status}\"}} {n}"));
            }
        }
    }
    line(&mut page, format_args!("# TYPE {PREFIX}request_example_count_total counter"));
    for (name, metrics) in all() {
        let n = metrics.n_examples.load(Ordering::Relaxed);
        line(&mut page, format_args!("{PREFIX}request_example_count_total{{model=\"{name}\"}} {n}"));
    }
    line(&mut page, format_args!("# TYPE {PREFIX}request_example_counts histogram"));
    for (name, metrics) in all() {
        let labels = format!("model=\"{name}\"");
        metrics.examples.lines(&EXAMPLES, &format!("{PREFIX}request_example_counts"), &labels, &mut page);
    }
    line(&mut page, format_args!("# TYPE {PREFIX}request_latency histogram"));
    for (name, metrics) in all() {
        for (api, entry) in Api::ALL.iter().flat_map(|api| Entry::ALL.map(|entry| (*api, entry))) {
            // TF: REST's names are those of its paths.
            let (api_name, entry_name) = match entry {
                Entry::Rest => (api.name().to_lowercase(), "REST"),
                Entry::Grpc => (api.name().to_string(), "GRPC"),
            };
            let labels = format!("model_name=\"{name}\",API=\"{api_name}\",entrypoint=\"{entry_name}\"");
            let histogram = &metrics.latencies[api as usize][entry as usize];
            histogram.lines(&MICROS, &format!("{PREFIX}request_latency"), &labels, &mut page);
        }
    }
    line(&mut page, format_args!("# TYPE {PREFIX}runtime_latency histogram"));
    for (name, metrics) in all() {
        for api in Api::ALL {
            let labels = format!("model_name=\"{name}\",API=\"{}\",runtime=\"Estimand\"", api.name());
            metrics.runtimes[api as usize].lines(&MICROS, &format!("{PREFIX}runtime_latency"), &labels, &mut page);
        }
    }
    unknown_keys(&models, &mut page);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_original() {
        let limits: Vec<String> = MICROS.0.iter().map(|&limit| six_digits(limit)).collect();
        // absl::StrCat of 10 * 1.8^i.
        assert_eq!(limits[..6], ["10", "18", "32.4", "58.32", "104.976", "188.957"]);
        assert_eq!(EXAMPLES.0[14], 16_384.0);
        let histogram = Histogram::<15>::default();
        [0, 1, 3, 20_000].iter().for_each(|&value| histogram.add(&EXAMPLES, value));
        let mut page = String::new();
        histogram.lines(&EXAMPLES, "n", "model=\"m\"", &mut page);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines[0], "n_bucket{model=\"m\",le=\"1\"} 1");
        assert_eq!(lines[2], "n_bucket{model=\"m\",le=\"4\"} 3");
        assert_eq!(
            lines[15..],
            ["n_bucket{model=\"m\",le=\"+Inf\"} 4", "n_sum{model=\"m\"} 20004", "n_count{model=\"m\"} 4"]
        );
    }
}
