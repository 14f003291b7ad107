//! The page that compares the models of several folders: a table, their learning curves in one
//! chart each, and the metric over each parameter.

use std::collections::BTreeSet;

use super::Report;
use super::chart::{N_COLOURS, Place, Point, Series, chart, scatter};
use super::markup::{Element, Html, el};
use super::page::{card, cell, frame, header, paragraph, section, table};
use super::text::secs;
use crate::console::{number, slice_of};
use crate::hparams::Value;
use crate::{HParams, Metrics};

/// The maximum number of metrics with a chart.
const MAX_CHARTS: usize = 8;

/// One model to compare.
pub(crate) struct Compared<'a> {
    pub(crate) name: &'a str,
    pub(crate) params: &'a HParams,
    pub(crate) metrics: Option<&'a Metrics>,
    pub(crate) note: Option<&'a str>,
    pub(crate) secs: f64,
    /// What its event files hold, if they can be read.
    pub(crate) report: Option<Report>,
    /// Whether its folder has a page of its own.
    pub(crate) has_page: bool,
}

impl Compared<'_> {
    fn value(&self, metric: &str) -> Option<f64> {
        self.metrics?.get(metric).ok()
    }
}

/// The page of some models, the best first. `by` is the criterion in words, `metric` its metric.
pub(crate) fn page(title: &str, by: &str, metric: &str, all: &[Compared<'_>], notes: &[String]) -> String {
    let main = heading(title, by, metric, all)
        .put(models(metric, all))
        .put(parameters(metric, all))
        .put(curves(metric, all))
        .put(remarks(notes));
    frame(&format!("{title}: comparison"), main).into_string()
}

fn heading(title: &str, by: &str, metric: &str, all: &[Compared<'_>]) -> Html {
    let mut cards = el("div").class("cards").newline().line(card("trials", all.len(), &format!("best: {by}")));
    let values: Vec<f64> = all.iter().filter_map(|one| one.value(metric)).filter(|v| !v.is_nan()).collect();
    if let (Some(best), Some(value), Some(last)) = (all.first(), values.first(), values.last()) {
        cards = cards.line(card(by, number(*value), best.name));
        cards = cards.line(card(&format!("{metric} of the worst trial"), number(*last), ""));
    }
    let total: f64 = all.iter().map(|one| one.secs).sum();
    cards = cards.line(card("time of all trials", secs(total), ""));
    let out = el("header").newline().line(el("p").class("kind").text("Comparison of trials"));
    Html::new().line(out.line(el("h1").text(title)).line(cards))
}

/// The colour of the model at a rank: the best have their own.
fn colour(rank: usize) -> usize {
    if rank + 1 < N_COLOURS { rank + 1 } else { 0 }
}

/// The names of the parameters, in the order of the first model that has them.
fn parameter_names<'a>(all: &'a [Compared<'_>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in all.iter().flat_map(|one| one.params.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The metrics of all rows; the one that decides comes first.
fn metric_names<'a>(metric: &'a str, all: &'a [Compared<'_>]) -> Vec<&'a str> {
    let names: BTreeSet<&str> =
        all.iter().filter_map(|one| one.metrics).flat_map(|m| m.iter().map(|(name, _)| name)).collect();
    let is_whole = |name: &&str| slice_of(name, |whole| names.contains(whole)).is_none();
    let others = names.iter().copied().filter(|name| *name != metric).filter(is_whole);
    std::iter::once(metric).chain(others).collect()
}

fn models(metric: &str, all: &[Compared<'_>]) -> Html {
    let (params, metrics) = (parameter_names(all), metric_names(metric, all));
    let names = std::iter::once("").chain(params.iter().copied()).chain(metrics.iter().copied());
    let row = |(rank, one): (usize, &Compared<'_>)| {
        let key = el("span").class(format!("key c{}", colour(rank))).text(rank + 1);
        let mut row = el("tr").put(el("th").attr("title", one.name).put(key));
        for name in &params {
            row = row.put(el("td").text(one.params.get(name).map_or(String::new(), Value::to_string)));
        }
        for name in &metrics {
            row = row.put(match one.value(name) {
                Some(value) if rank == 0 && *name == metric => el("td").class("n").put(el("b").text(number(value))),
                value => cell(value),
            });
        }
        row = row.put(cell(one.metrics.map(|metrics| metrics.global_step() as f64)));
        row = row.put(el("td").class("n").text(secs(one.secs)));
        let page = match one.has_page {
            true => el("a").attr("href", format!("{}/report.html", href(one.name))).text("report").into(),
            false => Html::new(),
        };
        let note = one.note.map_or(Html::new(), |note| el("span").class("note").text(note).into());
        row.put(el("td").put(page).put(note))
    };
    section("Trials", table(header(names.chain(["step", "time", ""])), all.iter().enumerate().map(row)))
}

/// The name of a folder as a relative address. A name has ASCII characters only.
fn href(name: &str) -> String {
    let escaped = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' => c.to_string(),
        c => c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    format!("./{}", name.chars().map(escaped).collect::<String>())
}

/// The metric over each parameter that has more than one value.
fn parameters(metric: &str, all: &[Compared<'_>]) -> Html {
    let place = |value: &Value| match value {
        Value::Int(number) => Place::Number(*number as f64),
        Value::Float(number) => Place::Number(*number),
        other => Place::Name(other.to_string()),
    };
    let mut charts: Vec<Element> = Vec::new();
    for name in parameter_names(all) {
        let point = |(rank, one): (usize, &Compared<'_>)| {
            let (at, value) = (place(one.params.get(name)?), one.value(metric)?);
            Some(Point { at, value, name: one.name.to_string(), colour: colour(rank) })
        };
        let points: Vec<Point> = all.iter().enumerate().filter_map(point).collect();
        if points.iter().any(|point| point.at != points[0].at) {
            charts.push(scatter(metric, name, &points));
        }
    }
    match charts.is_empty() {
        true => Html::new(),
        false => section("Parameters", in_grid(charts)),
    }
}

fn in_grid(charts: Vec<Element>) -> Html {
    Html::new().line(charts.into_iter().fold(el("div").class("charts").newline(), Element::line))
}

/// A chart for each metric, with a line for each model; that of the training loss comes last.
fn curves(metric: &str, all: &[Compared<'_>]) -> Html {
    let line = |rank: usize, one: &Compared<'_>, points: Vec<(u64, f64)>| {
        let (name, colour) = (format!("{}: {}", rank + 1, one.name), colour(rank));
        Series { name, points, best: None, colour, is_named: colour > 0 }
    };
    let mut charts: Vec<Element> = Vec::new();
    for name in metric_names(metric, all).into_iter().take(MAX_CHARTS) {
        let series = |(rank, one): (usize, &Compared<'_>)| {
            let set = one.report.as_ref()?.evaluations().first()?;
            let points = set.history.iter().filter_map(|m| Some((m.global_step(), m.get(name).ok()?)));
            Some(line(rank, one, points.collect()))
        };
        charts.extend(lines(name, all.iter().enumerate().filter_map(series)));
    }
    let losses = |(rank, one): (usize, &Compared<'_>)| Some(line(rank, one, one.report.as_ref()?.curve("loss").ok()?));
    charts.extend(lines("loss of the training", all.iter().enumerate().filter_map(losses)));
    match charts.is_empty() {
        true => section("Learning curves", paragraph("No numbers are recorded in the event files.")),
        false => section("Learning curves", in_grid(charts)),
    }
}

/// The chart of some lines; the best are drawn last, above the others. One value each is no curve.
fn lines(title: &str, series: impl Iterator<Item = Series>) -> Option<Element> {
    let mut series: Vec<Series> = series.filter(|one| !one.points.is_empty()).collect();
    series.reverse();
    series.iter().any(|one| one.points.len() > 1).then(|| chart(title, &series))
}

fn remarks(notes: &[String]) -> Html {
    match notes.is_empty() {
        true => Html::new(),
        false => section("Notes", notes.iter().map(|note| el("p").class("note").text(note)).collect()),
    }
}
