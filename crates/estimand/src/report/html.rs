//! The report as one HTML page: no scripts, no external resources, light or dark by the reader's
//! setting.

use std::collections::BTreeSet;

use super::chart::{N_COLOURS, Series, chart};
use super::markup::{Element, Html, el};
use super::next::advice;
use super::page::{card, cell, frame, header, paragraph, prose, section, table};
use super::text::secs;
use super::{Finding, Report, Suspicion, TrainingRun};
use crate::console::{number, slice_of};
use crate::{Evaluated, Metrics};

/// The maximum number of charts; TensorBoard shows the others.
const MAX_CHARTS: usize = 24;

/// The page.
pub(super) fn page(report: &Report) -> Html {
    let sections = [curves(report), evaluations(report), slices(report), columns(report), runs(report), facts(report)];
    frame(&format!("{}: training report", report.name), heading(report).put(Html::from_iter(sections)))
}

fn heading(report: &Report) -> Html {
    let mut out = el("header").newline();
    out = out.line(el("p").class("kind").text("Training report")).line(el("h1").text(&report.name));
    let mut cards = el("div").class("cards").newline();
    match report.end() {
        Some(run) => {
            let why = run.reason.as_deref().unwrap_or("not recorded: it was killed, or still runs");
            out = out.line(el("p").class("why").put(el("b").text("Why it ended:")).text(" ").put(prose(why)));
            cards = cards.line(card("step", run.last_step, &format!("{} in the last run", run.n_steps())));
            if run.secs > 0.0 && run.n_steps() > 0 {
                let rate = format!("{:.0} steps a second, evaluations included", run.n_steps() as f64 / run.secs);
                cards = cards.line(card("time of the last run", secs(run.secs), &rate));
            }
        }
        None => out = out.line(el("p").class("why").text("No training is recorded in the event files.")),
    }
    if let Some((step, loss)) = report.curves.get("loss").and_then(|curve| curve.last_key_value()) {
        cards = cards.line(card("training loss", number(*loss), &format!("at step {step}")));
    }
    for set in &report.evaluations {
        let Some(best) = &set.best else { continue };
        let metric = set.by.rsplit(' ').next().unwrap_or("loss");
        let value = best.get(metric).or_else(|_| best.get("loss")).map_or("?".to_string(), number);
        let what = format!("{} of {}", set.by, set_name(set));
        cards = cards.line(card(&what, value, &format!("at step {}", best.global_step())));
    }
    if let Some(examined) = &report.examined {
        cards = cards.line(card("suspicious columns", examined.findings.len(), &examined.extent()));
    }
    let advice = advice(report);
    if !advice.is_empty() {
        let items = advice.iter().fold(el("ul").newline(), |items, text| items.line(el("li").put(prose(text))));
        out = out.line(el("p").put(el("b").text("What next:"))).line(items);
    }
    Html::new().line(out.line(cards))
}

/// A chart for each tag: that of the training and those of the evaluations together.
fn curves(report: &Report) -> Html {
    let mut tags: Vec<&str> = vec!["loss"];
    for set in &report.evaluations {
        tags.extend(metrics_of(set).into_iter().filter(|tag| !tags.contains(tag)).collect::<Vec<_>>());
    }
    tags.extend(report.curves.keys().map(String::as_str).filter(|tag| !tags.contains(tag)).collect::<Vec<_>>());
    let mut charts: Vec<Element> = Vec::new();
    for tag in tags {
        let mut all: Vec<Series> = Vec::new();
        if let Some(curve) = report.curves.get(tag) {
            let points = curve.iter().map(|(&step, &value)| (step, value)).collect();
            all.push(Series { name: "training".to_string(), points, best: None, colour: 0, is_named: true });
        }
        for (i, set) in report.evaluations.iter().enumerate() {
            let points: Vec<(u64, f64)> =
                set.history.iter().filter_map(|m| Some((m.global_step(), m.get(tag).ok()?))).collect();
            if !points.is_empty() {
                let best = set.best.as_ref().map(Metrics::global_step);
                let colour = 1 + i % (N_COLOURS - 1);
                all.push(Series { name: set_name(set).to_string(), points, best, colour, is_named: true });
            }
        }
        if !all.is_empty() {
            charts.push(chart(tag, &all));
        }
    }
    if charts.is_empty() {
        return section("Learning curves", paragraph("No numbers are recorded in the event files."));
    }
    let n_left = charts.len().saturating_sub(MAX_CHARTS);
    charts.truncate(MAX_CHARTS);
    let mut out = Html::new().line(charts.into_iter().fold(el("div").class("charts").newline(), Element::line));
    if n_left > 0 {
        out = out.put(paragraph(&format!("{n_left} more are in TensorBoard.")));
    }
    section("Learning curves", out)
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

/// What the newest and the best evaluation of each input have found.
fn evaluations(report: &Report) -> Html {
    if report.evaluations.is_empty() {
        let text = "Nothing was evaluated: whether the model works on rows that it has not seen is not known.";
        return section("Evaluations", paragraph(text));
    }
    let (mut sets, mut steps) = (el("tr").put(el("th")), el("tr").put(el("th")));
    let mut shown: Vec<&Metrics> = Vec::new();
    for set in &report.evaluations {
        let last = set.history.last();
        let is_one = last.map(Metrics::global_step) == set.best.as_ref().map(Metrics::global_step);
        let best = set.best.as_ref().map(|m| (m, if is_one { "best and last" } else { "best" }));
        let both: Vec<_> = best.into_iter().chain(last.filter(|_| !is_one).map(|m| (m, "last"))).collect();
        let by = if set.best.is_some() { format!("best: {}", set.by) } else { String::new() };
        let note = el("small").text(format!("evaluated {}, {by}", times(set.history.len())));
        sets = sets.put(el("th").attr("colspan", both.len()).text(set_name(set)).text(" ").put(note));
        for (metrics, what) in both {
            let step = el("small").text(format!("step {}", metrics.global_step()));
            steps = steps.put(el("th").text(what).put(Html::new().literal("<br>")).put(step));
            shown.push(metrics);
        }
    }
    let names: BTreeSet<&str> = report.evaluations.iter().flat_map(metrics_of).collect();
    let row = |name: &str| {
        let cells: Html = shown.iter().map(|metrics| cell(metrics.get(name).ok())).collect();
        el("tr").put(el("th").text(name)).put(cells)
    };
    section("Evaluations", table(el("thead").line(sets).put(steps), names.into_iter().map(row)))
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_string() } else { format!("{n} times") }
}

/// The metrics of slices, of the best evaluation of each input.
fn slices(report: &Report) -> Html {
    let mut out = Html::new();
    for set in &report.evaluations {
        let Some(metrics) = set.best.as_ref().or(set.history.last()) else { continue };
        let parts = |key| slice_of(key, |whole| metrics.get(whole).is_ok());
        let keys: Vec<(&str, &str)> = metrics.iter().filter_map(|(key, _)| parts(key)).collect();
        let names: BTreeSet<&str> = keys.iter().map(|(whole, _)| *whole).collect();
        let slices: BTreeSet<&str> = keys.iter().map(|(_, slice)| *slice).collect();
        if slices.is_empty() {
            continue;
        }
        let row = |slice: Option<&str>| {
            let key = |name: &str| slice.map_or(name.to_string(), |slice| format!("{name}/{slice}"));
            let cells: Html = names.iter().map(|name| cell(metrics.get(&key(name)).ok())).collect();
            el("tr").put(el("th").text(slice.unwrap_or("all rows"))).put(cells)
        };
        let note = el("small").text(format!("at step {}", metrics.global_step()));
        out = out.line(el("h3").text(set_name(set)).text(" ").put(note));
        let header = header(std::iter::once("slice").chain(names.iter().copied()));
        out = out.put(table(header, std::iter::once(None).chain(slices.into_iter().map(Some)).map(row)));
    }
    if out.is_empty() { out } else { section("Slices", out) }
}

fn columns(report: &Report) -> Html {
    let Some(examined) = &report.examined else {
        let call = el("code").text("report.examine(&data)");
        let text = el("p").text("No dataset was examined: ").put(call).text(" looks at one.");
        return section("Columns", Html::new().line(text));
    };
    let mut text = el("p").text(format!("Looked at {}.", examined.extent()));
    if !examined.not_examined.is_empty() {
        let names = examined.not_examined.join(", ");
        text = text.text(format!(" Columns of several values a row were not: {names}."));
    }
    let out = Html::new().line(text);
    if examined.findings.is_empty() {
        return section("Columns", out.put(paragraph("Nothing suspicious.")));
    }
    let row = |finding: &Finding| {
        let level = if finding.suspicion == Suspicion::Leaking { "bad" } else { "odd" };
        el("tr")
            .put(el("th").text(&finding.column))
            .put(el("td").put(el("span").class(level).text(finding.suspicion)))
            .put(el("td").put(prose(&finding.evidence)))
            .put(el("td").put(prose(&finding.advice)))
    };
    let header = header(["column", "looks", "evidence", "what to do"]);
    section("Columns", out.put(table(header, examined.findings.iter().map(row))))
}

/// All runs, if there were several, and what could not be read.
fn runs(report: &Report) -> Html {
    let mut out = Html::new();
    if report.runs.len() > 1 {
        let row = |(i, run): (usize, &TrainingRun)| {
            el("tr")
                .put(el("th").text(i + 1))
                .put(cell(run.first_step.map(|step| step as f64)))
                .put(cell(Some(run.last_step as f64)))
                .put(el("td").class("n").text(secs(run.secs)))
                .put(el("td").put(prose(run.reason.as_deref().unwrap_or("not recorded"))))
        };
        let header = header(["run", "first step", "last step", "time", "why it ended"]);
        out = out.put(table(header, report.runs.iter().enumerate().map(row)));
    }
    for note in &report.notes {
        out = out.line(el("p").class("note").text(note));
    }
    if out.is_empty() { out } else { section("Runs", out) }
}

/// Fingerprints and parameters.
fn facts(report: &Report) -> Html {
    let table = |facts: &[(String, String)]| {
        let row = |(name, value): &(String, String)| {
            el("tr").put(el("th").text(name)).put(el("td").put(el("code").text(value)))
        };
        let rows = facts.iter().map(row).fold(el("tbody").newline(), Element::line);
        Html::new().line(el("div").class("wide").put(el("table").put(rows)))
    };
    let out = section("Fingerprints", table(&report.fingerprints()));
    if report.parameters.is_empty() {
        return out;
    }
    out.put(section("Parameters", table(&report.parameters)))
}
