//! The report as one HTML page: no scripts, no external resources, light or dark by the reader's
//! setting.

use std::collections::BTreeSet;

use super::chart::{N_COLOURS, Series, chart};
use super::escape::escape;
use super::next::advice;
use super::text::secs;
use super::{Report, Suspicion};
use crate::console::{number, slice_of};
use crate::{Evaluated, Metrics};

const STYLE: &str = include_str!("style.css");
/// The maximum number of charts; TensorBoard shows the others.
const MAX_CHARTS: usize = 24;

/// Makes the page.
pub(super) fn page(report: &Report) -> String {
    let name = escape(&report.name);
    let sections = [curves(report), evaluations(report), slices(report), columns(report), runs(report), facts(report)];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name}: training report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}{}</main>\n</body>\n</html>\n",
        head(report),
        sections.concat()
    )
}

/// Same as [`escape`], with names in backticks formatted as code.
fn prose(text: &str) -> String {
    let parts: Vec<String> = escape(text).split('`').map(str::to_string).collect();
    if parts.len().is_multiple_of(2) {
        // A name contains a backtick.
        return parts.join("`");
    }
    let part = |(i, part): (usize, &String)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part.clone() };
    parts.iter().enumerate().map(part).collect()
}

fn head(report: &Report) -> String {
    let mut out = format!("<header>\n<p class=\"kind\">Training report</p>\n<h1>{}</h1>\n", escape(&report.name));
    let mut cards = String::new();
    match report.end() {
        Some(run) => {
            let why = run.reason.as_deref().unwrap_or("not recorded: it was killed, or still runs");
            out += &format!("<p class=\"why\"><b>Why it ended:</b> {}</p>\n", prose(why));
            cards += &card("step", &run.last_step.to_string(), &format!("{} in the last run", run.n_steps()));
            if run.secs > 0.0 && run.n_steps() > 0 {
                let rate = format!("{:.0} steps a second, evaluations included", run.n_steps() as f64 / run.secs);
                cards += &card("time of the last run", &secs(run.secs), &rate);
            }
        }
        None => out += "<p class=\"why\">No training is recorded in the event files.</p>\n",
    }
    if let Some((step, loss)) = report.curves.get("loss").and_then(|curve| curve.last_key_value()) {
        cards += &card("training loss", &number(*loss), &format!("at step {step}"));
    }
    for set in &report.evaluations {
        let Some(best) = &set.best else { continue };
        let metric = set.by.rsplit(' ').next().unwrap_or("loss");
        let value = best.get(metric).or_else(|_| best.get("loss")).map_or("?".to_string(), number);
        let what = format!("{} of {}", set.by, set_name(set));
        cards += &card(&what, &value, &format!("at step {}", best.global_step()));
    }
    if let Some(examined) = &report.examined {
        cards += &card("suspicious columns", &examined.findings.len().to_string(), &examined.extent());
    }
    let advice: String = advice(report).iter().map(|text| format!("<li>{}</li>\n", prose(text))).collect();
    if !advice.is_empty() {
        out += &format!("<p><b>What next:</b></p>\n<ul>\n{advice}</ul>\n");
    }
    out + &format!("<div class=\"cards\">\n{cards}</div>\n</header>\n")
}

fn card(name: &str, value: &str, note: &str) -> String {
    let (name, value, note) = (escape(name), escape(value), escape(note));
    format!("<div class=\"card\"><p>{name}</p><p class=\"value\">{value}</p><p>{note}</p></div>\n")
}

/// Makes one chart per tag, with the curves of the training and of the evaluations.
fn curves(report: &Report) -> String {
    let mut tags: Vec<&str> = vec!["loss"];
    for set in &report.evaluations {
        tags.extend(metrics_of(set).into_iter().filter(|tag| !tags.contains(tag)).collect::<Vec<_>>());
    }
    tags.extend(report.curves.keys().map(String::as_str).filter(|tag| !tags.contains(tag)).collect::<Vec<_>>());
    let mut charts: Vec<String> = Vec::new();
    for tag in tags {
        let mut all: Vec<Series> = Vec::new();
        if let Some(curve) = report.curves.get(tag) {
            let points = curve.iter().map(|(&step, &value)| (step, value)).collect();
            all.push(Series { name: "training".to_string(), points, best: None, colour: 0 });
        }
        for (i, set) in report.evaluations.iter().enumerate() {
            let points: Vec<(u64, f64)> =
                set.history.iter().filter_map(|m| Some((m.global_step(), m.get(tag).ok()?))).collect();
            if !points.is_empty() {
                let best = set.best.as_ref().map(Metrics::global_step);
                let colour = 1 + i % (N_COLOURS - 1);
                all.push(Series { name: set_name(set).to_string(), points, best, colour });
            }
        }
        if !all.is_empty() {
            charts.push(chart(tag, &all));
        }
    }
    if charts.is_empty() {
        return section("Learning curves", "<p>No numbers are recorded in the event files.</p>\n");
    }
    let n_left = charts.len().saturating_sub(MAX_CHARTS);
    charts.truncate(MAX_CHARTS);
    let more = if n_left > 0 { format!("<p>{n_left} more are in TensorBoard.</p>\n") } else { String::new() };
    section("Learning curves", &format!("<div class=\"charts\">\n{}\n</div>\n{more}", charts.join("\n")))
}

fn set_name(set: &Evaluated) -> &str {
    set.name.as_deref().unwrap_or("evaluation")
}

/// Returns the metrics of all rows, in the order of their names.
fn metrics_of(set: &Evaluated) -> Vec<&str> {
    let all: BTreeSet<&str> =
        set.history.iter().chain(&set.best).flat_map(|m| m.iter().map(|(name, _)| name)).collect();
    all.iter().copied().filter(|key| slice_of(key, |whole| all.contains(whole)).is_none()).collect()
}

/// Shows the newest and the best evaluation of each input.
fn evaluations(report: &Report) -> String {
    if report.evaluations.is_empty() {
        let text = "<p>Nothing was evaluated: whether the model works on rows that it has not seen is not known.</p>\n";
        return section("Evaluations", text);
    }
    let (mut sets, mut steps) = (String::new(), String::new());
    let mut shown: Vec<&Metrics> = Vec::new();
    for set in &report.evaluations {
        let last = set.history.last();
        let is_one = last.map(Metrics::global_step) == set.best.as_ref().map(Metrics::global_step);
        let best = set.best.as_ref().map(|m| (m, if is_one { "best and last" } else { "best" }));
        let both: Vec<_> = best.into_iter().chain(last.filter(|_| !is_one).map(|m| (m, "last"))).collect();
        let by = if set.best.is_some() { format!("best: {}", set.by) } else { String::new() };
        sets += &format!(
            "<th colspan=\"{}\">{} <small>evaluated {}, {}</small></th>",
            both.len(),
            escape(set_name(set)),
            times(set.history.len()),
            escape(&by)
        );
        for (metrics, what) in both {
            steps += &format!("<th>{what}<br><small>step {}</small></th>", metrics.global_step());
            shown.push(metrics);
        }
    }
    let names: BTreeSet<&str> = report.evaluations.iter().flat_map(metrics_of).collect();
    let mut body = String::new();
    for name in names {
        let cells: String = shown.iter().map(|metrics| cell(metrics.get(name).ok())).collect();
        body += &format!("<tr><th>{}</th>{cells}</tr>\n", escape(name));
    }
    let table = format!(
        "<div class=\"wide\"><table>\n<thead><tr><th></th>{sets}</tr>\n<tr><th></th>{steps}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    );
    section("Evaluations", &table)
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_string() } else { format!("{n} times") }
}

fn cell(value: Option<f64>) -> String {
    format!("<td class=\"n\">{}</td>", value.map_or(String::new(), number))
}

/// Shows the metrics of slices, for the best evaluation of each input.
fn slices(report: &Report) -> String {
    let mut out = String::new();
    for set in &report.evaluations {
        let Some(metrics) = set.best.as_ref().or(set.history.last()) else { continue };
        let parts = |key| slice_of(key, |whole| metrics.get(whole).is_ok());
        let keys: Vec<(&str, &str)> = metrics.iter().filter_map(|(key, _)| parts(key)).collect();
        let names: BTreeSet<&str> = keys.iter().map(|(whole, _)| *whole).collect();
        let slices: BTreeSet<&str> = keys.iter().map(|(_, slice)| *slice).collect();
        if slices.is_empty() {
            continue;
        }
        let header: String = names.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
        let row = |slice: Option<&str>| -> String {
            let key = |name: &str| slice.map_or(name.to_string(), |slice| format!("{name}/{slice}"));
            let cells: String = names.iter().map(|name| cell(metrics.get(&key(name)).ok())).collect();
            format!("<tr><th>{}</th>{cells}</tr>\n", escape(slice.unwrap_or("all rows")))
        };
        let rows: String = std::iter::once(None).chain(slices.into_iter().map(Some)).map(row).collect();
        out += &format!(
            "<h3>{} <small>at step {}</small></h3>\n<div class=\"wide\"><table>\n<thead><tr><th>slice</th>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
            escape(set_name(set)),
            metrics.global_step()
        );
    }
    if out.is_empty() { out } else { section("Slices", &out) }
}

fn columns(report: &Report) -> String {
    let Some(examined) = &report.examined else {
        return section(
            "Columns",
            "<p>No dataset was examined: <code>report.examine(&amp;data)</code> looks at one.</p>\n",
        );
    };
    let mut out = format!("<p>Looked at {}.", examined.extent());
    if !examined.not_examined.is_empty() {
        let names = examined.not_examined.join(", ");
        out += &format!(" Columns of several values a row were not: {}.", escape(&names));
    }
    out += "</p>\n";
    if examined.findings.is_empty() {
        return section("Columns", &(out + "<p>Nothing suspicious.</p>\n"));
    }
    let mut rows = String::new();
    for finding in &examined.findings {
        let level = if finding.suspicion == Suspicion::Leaking { "bad" } else { "odd" };
        rows += &format!(
            "<tr><th>{}</th><td><span class=\"{level}\">{}</span></td><td>{}</td><td>{}</td></tr>\n",
            escape(&finding.column),
            finding.suspicion,
            prose(&finding.evidence),
            prose(&finding.advice)
        );
    }
    let header = "<th>column</th><th>looks</th><th>evidence</th><th>what to do</th>";
    out += &format!(
        "<div class=\"wide\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    );
    section("Columns", &out)
}

/// Lists all runs, if there were several, and the parts that could not be read.
fn runs(report: &Report) -> String {
    let mut out = String::new();
    if report.runs.len() > 1 {
        let row = |(i, run): (usize, &super::TrainingRun)| {
            let reason = run.reason.as_deref().unwrap_or("not recorded");
            let (first, time) = (run.first_step.map(|step| step as f64), secs(run.secs));
            let (first, last) = (cell(first), cell(Some(run.last_step as f64)));
            format!("<tr><th>{}</th>{first}{last}<td class=\"n\">{time}</td><td>{}</td></tr>\n", i + 1, prose(reason))
        };
        let rows: String = report.runs.iter().enumerate().map(row).collect();
        let header = "<th>run</th><th>first step</th><th>last step</th><th>time</th><th>why it ended</th>";
        out += &format!(
            "<div class=\"wide\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
        );
    }
    for note in &report.notes {
        out += &format!("<p class=\"note\">{}</p>\n", escape(note));
    }
    if out.is_empty() { out } else { section("Runs", &out) }
}

/// Shows fingerprints and parameters.
fn facts(report: &Report) -> String {
    let table = |facts: &[(String, String)]| {
        let row = |(name, value): &(String, String)| {
            format!("<tr><th>{}</th><td><code>{}</code></td></tr>\n", escape(name), escape(value))
        };
        format!(
            "<div class=\"wide\"><table><tbody>\n{}</tbody></table></div>\n",
            facts.iter().map(row).collect::<String>()
        )
    };
    let mut out = section("Fingerprints", &table(&report.fingerprints()));
    if !report.parameters.is_empty() {
        out += &section("Parameters", &table(&report.parameters));
    }
    out
}

fn section(title: &str, body: &str) -> String {
    format!("<section>\n<h2>{title}</h2>\n{body}</section>\n")
}
