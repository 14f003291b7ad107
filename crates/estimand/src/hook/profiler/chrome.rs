//! A timeline as JSON in Chrome's trace format, which chrome://tracing and Perfetto show: complete
//! events (`"ph": "X"`) in microseconds, and names of tracks (`"ph": "M"`).

use serde_json::{Value, json};

use crate::{Span, Timeline};

/// The numbers of tracks that are not threads; they come after all threads.
const INPUT: usize = 1_000;
const HOOKS: usize = 1_001;

/// Returns the content of the file.
pub(super) fn trace(timeline: &Timeline, hooks: Span, step: u64) -> String {
    let mut events = vec![name("process_name", 0, &format!("step {step}"))];
    for (tid, thread) in timeline.trace().threads().enumerate() {
        events.push(name("thread_name", tid, &format!("steps, thread `{thread}`")));
    }
    events.push(name("thread_name", INPUT, "input"));
    events.push(name("thread_name", HOOKS, "hooks and checkpoints"));
    for timed in timeline.trace().steps() {
        let (op, name) = timeline.program().describe(timed);
        let span = Span { start: timed.start, duration: timed.duration };
        let args = json!({
            "name": name,
            "op": op,
            "bytes read": timed.cost.read,
            "bytes written": timed.cost.written,
            "flops": timed.cost.flops,
        });
        events.push(event(&op, "Op", timed.thread, span, args));
    }
    events.push(event("wait for input", "Loop", INPUT, timeline.input(), json!({})));
    events.push(event("hooks and checkpoints", "Loop", HOOKS, hooks, json!({})));
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}

fn name(kind: &str, tid: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": 0, "tid": tid, "args": { "name": name } })
}

fn event(name: &str, category: &str, tid: usize, span: Span, args: Value) -> Value {
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let (ts, dur) = (micros(span.start), micros(span.duration));
    json!({ "ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args })
}
