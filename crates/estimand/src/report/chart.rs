//! Charts as hand-written SVG, with round numbers on the axes: lines over steps, with the best
//! steps marked, and points over the values of a parameter.

use std::fmt::Display;

use super::markup::{Element, Html, el};
use crate::console::number;

/// The size of the image, and of the margins around the plot.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 36.0;
/// The space between the extreme values and the edges.
const INSET: f64 = 8.0;
/// A longer series is reduced to the minimum and maximum of neighbouring points.
const MAX_POINTS: usize = 400;
/// A longer series has no dots at its points.
const MAX_DOTS: usize = 80;
/// If the ratio of the largest to the smallest value reaches this, the axis is logarithmic.
const LOG_RATIO: f64 = 1000.0;
/// The same for an axis of a parameter: learning rates are usually tried in powers of ten.
const LOG_RATIO_OF_PARAMETERS: f64 = 20.0;
/// If a parameter has more values, not all of them are marked.
const MAX_MARKS: usize = 8;
/// The width of a character at an axis, about.
const CHARACTER: f64 = 6.5;
/// The number of colours; they repeat after that.
pub(super) const N_COLOURS: usize = 6;

/// One line of a chart.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(u64, f64)>,
    pub(super) best: Option<u64>,
    /// The index of the line's colour.
    pub(super) colour: usize,
    /// Whether the names above the picture include it.
    pub(super) is_named: bool,
}

/// The picture of some lines, and the names of them above it. What is not finite is left out, and
/// counted.
pub(super) fn chart(title: &str, series: &[Series]) -> Element {
    let finite = || series.iter().flat_map(|s| &s.points).filter(|(_, value)| value.is_finite());
    let key = |Series { name, points, colour, best, .. }: &Series| {
        let n_odd = points.iter().filter(|(_, value)| !value.is_finite()).count();
        let odd = if n_odd > 0 { format!(", {n_odd} not finite") } else { String::new() };
        let best = best.map_or(String::new(), |step| format!(", best at step {step}"));
        el("span").class(format!("key c{colour}")).text(format!("{name}{best}{odd}"))
    };
    let mut named: Vec<&Series> = series.iter().filter(|one| one.is_named).collect();
    named.sort_by_key(|one| one.colour);
    let legend: Html = named.into_iter().map(key).collect();
    let values: Vec<f64> = finite().map(|(_, value)| *value).collect();
    let steps = finite().map(|(step, _)| *step);
    let (Some(first), Some(last)) = (steps.clone().min(), steps.max()) else {
        let caption = el("figcaption").text(title).put(legend);
        return el("figure").put(caption).put(el("p").text("No finite values."));
    };
    // Start at step 0, so that all charts of a training have the same scale, unless the series
    // starts late.
    let first = if first <= last / 2 { 0 } else { first };
    let x = Axis::new(first as f64, last as f64, false, LEFT, WIDTH - RIGHT);
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    let is_log = low > 0.0 && high / low >= LOG_RATIO;
    let y = Axis::new(low, high, is_log, HEIGHT - BOTTOM - INSET, TOP + INSET);

    let ticks = x.ticks(6).into_iter().filter(|step| step.fract() == 0.0);
    let ticks = ticks.map(|step| (x.place(step), number(step)));
    let mut picture = axes(&format!("{title} by step"), "step", ticks, &y);
    for one in series {
        picture = picture.put(draw(one, &x, &y));
    }
    el("figure").line(caption(title, is_log).text(" ").put(legend)).put(picture)
}

fn caption(title: &str, is_log: bool) -> Element {
    let caption = el("figcaption").put(el("b").text(title));
    match is_log {
        true => caption.text(" ").put(el("small").text("(log scale)")),
        false => caption,
    }
}

/// The axes of a picture: places and names on the lower one, numbers and grid lines on the left.
fn axes(label_of_all: &str, x_name: &str, x_ticks: impl Iterator<Item = (f64, String)>, y: &Axis) -> Element {
    let picture = el("svg").attr("viewBox", format!("0 0 {WIDTH} {HEIGHT}")).attr("role", "img");
    let mut picture = picture.attr("aria-label", label_of_all);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    picture = picture.put(path("axis", format!("M{LEFT} {bottom}H{right}")));
    picture = picture.put(label(right, HEIGHT - 3.0, "end").text(x_name));
    for (at, name) in x_ticks {
        picture = picture.put(path("axis", format!("M{at:.1} {bottom}v4")));
        picture = picture.put(label(format!("{at:.1}"), bottom + 16.0, "middle").text(name));
    }
    for value in y.ticks(5) {
        let at = y.place(value);
        picture = picture.put(path("grid", format!("M{LEFT} {at:.1}H{right}")));
        picture = picture.put(label(LEFT - 6.0, format!("{:.1}", at + 4.0), "end").text(number(value)));
    }
    picture
}

/// One point of a chart over the values of a parameter.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) at: Place,
    pub(super) value: f64,
    pub(super) name: String,
    pub(super) colour: usize,
}

/// The place of a point on the lower axis: a number or a name.
#[derive(Clone, PartialEq)]
pub(super) enum Place {
    Number(f64),
    Name(String),
}

/// The picture of a value over a parameter. Numbers are on an axis, names stand side by side.
/// Points that are not finite are left out.
pub(super) fn scatter(y_name: &str, x_name: &str, points: &[Point]) -> Element {
    let title = format!("{y_name} by {x_name}");
    let points: Vec<&Point> = points.iter().filter(|point| point.value.is_finite()).collect();
    let range = |values: &[f64]| values.iter().fold((f64::MAX, f64::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    if values.is_empty() {
        return el("figure").put(caption(&title, false)).put(el("p").text("No finite values."));
    }
    let (low, high) = range(&values);
    let y_is_log = low > 0.0 && high / low >= LOG_RATIO;
    let y = Axis::new(low, high, y_is_log, HEIGHT - BOTTOM - INSET, TOP + INSET);

    let number_of = |point: &&Point| match point.at {
        Place::Number(number) if number.is_finite() => Some(number),
        _ => None,
    };
    let numbers: Option<Vec<f64>> = points.iter().map(number_of).collect();
    let (places, ticks): (Vec<f64>, Vec<(f64, String)>) = match numbers {
        Some(numbers) => {
            let (low, high) = range(&numbers);
            let is_log = low > 0.0 && high / low >= LOG_RATIO_OF_PARAMETERS;
            let x = Axis::new(low, high, is_log, LEFT + INSET, WIDTH - RIGHT - INSET);
            let mut different = numbers.clone();
            different.sort_by(f64::total_cmp);
            different.dedup();
            // A grid has few values: they are better marks than round numbers.
            let marks = if different.len() <= MAX_MARKS { different } else { x.ticks(6) };
            (numbers.iter().map(|&v| x.place(v)).collect(), marks.iter().map(|&v| (x.place(v), number(v))).collect())
        }
        None => {
            let name_of = |place: &Place| match place {
                Place::Number(number) => number.to_string(),
                Place::Name(name) => name.clone(),
            };
            let mut names: Vec<String> = points.iter().map(|point| name_of(&point.at)).collect();
            names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            names.dedup();
            let width = (WIDTH - RIGHT - LEFT) / names.len() as f64;
            let place = |i: usize| LEFT + width * (i as f64 + 0.5);
            let at = |point: &&Point| names.iter().position(|name| *name == name_of(&point.at)).map_or(LEFT, place);
            let marks = if names.len() <= MAX_MARKS { names.len() } else { 0 };
            let fitting = (width / CHARACTER) as usize;
            let ticks = names.iter().take(marks).enumerate().map(|(i, name)| (place(i), shortened(name, fitting)));
            (points.iter().map(at).collect(), ticks.collect())
        }
    };
    let mut picture = axes(&title, x_name, ticks.into_iter(), &y);
    // Good trials are drawn last, above the others.
    for (Point { value, name, colour, .. }, at) in points.iter().zip(places).rev() {
        let says = el("title").text(format!("{name}: {}", number(*value)));
        let circle = el("circle").class(format!("c{colour}")).attr("cx", format!("{at:.1}"));
        picture = picture.put(circle.attr("cy", format!("{:.1}", y.place(*value))).attr("r", 4.5).put(says));
    }
    el("figure").line(caption(&title, y_is_log)).put(picture)
}

/// The first characters of a name, if all of them do not fit.
fn shortened(name: &str, n: usize) -> String {
    match name.chars().count() <= n.max(2) {
        true => name.to_string(),
        false => name.chars().take(n.max(2) - 1).chain(['…']).collect(),
    }
}

/// A line through some points.
fn path(class: &str, points: String) -> Element {
    el("path").class(class).attr("d", points)
}

/// The place of a number or word at an axis.
fn label(x: impl Display, y: impl Display, anchor: &str) -> Element {
    el("text").class("t").attr("x", x).attr("y", y).attr("text-anchor", anchor)
}

/// The line of a series: broken where values are not finite.
fn draw(series: &Series, x: &Axis, y: &Axis) -> Element {
    let Series { name, points, best, colour, .. } = series;
    let mut out = el("g").class(format!("c{colour}"));
    let says = |step: u64, value: f64| el("title").text(format!("{name}: {} at step {step}", number(value)));
    if let Some(step) = best.filter(|&step| x.contains(step as f64)) {
        let at = x.place(step as f64);
        let title = el("title").text(format!("best of {name}: step {step}"));
        out = out.put(path("best", format!("M{at:.1} {TOP}V{:.1}", HEIGHT - BOTTOM)).put(title));
    }
    let mut line = String::new();
    let mut is_broken = true;
    for (step, value) in thinned(points) {
        if value.is_finite() {
            let command = if is_broken { 'M' } else { 'L' };
            line += &format!("{command}{:.1} {:.1}", x.place(step as f64), y.place(value));
        }
        is_broken = !value.is_finite();
    }
    let last = points.iter().rev().find(|(_, value)| value.is_finite());
    let title = last.map_or(Html::new(), |&(step, value)| says(step, value).into());
    out = out.put(path("line", line).put(title));
    for &(step, value) in points.iter().filter(|(_, value)| value.is_finite()) {
        let is_best = *best == Some(step);
        if points.len() <= MAX_DOTS || is_best {
            let (cx, cy) = (format!("{:.1}", x.place(step as f64)), format!("{:.1}", y.place(value)));
            let r = if is_best { 4.5 } else { 2.5 };
            out = out.put(el("circle").attr("cx", cx).attr("cy", cy).attr("r", r).put(says(step, value)));
        }
    }
    out
}

/// Reduces each group of neighbours to its minimum and maximum, in order. Values that are not
/// finite stay.
fn thinned(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let size = points.len().div_ceil(MAX_POINTS / 2).max(1);
    if size <= 2 {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for some in points.chunks(size) {
        let by_value = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
        let ends = [some.iter().min_by(by_value), some.iter().max_by(by_value)];
        let odd = some.iter().find(|(_, value)| !value.is_finite());
        let mut of_these: Vec<(u64, f64)> = ends.into_iter().flatten().chain(odd).copied().collect();
        of_these.sort_by_key(|(step, _)| *step);
        of_these.dedup_by_key(|(step, _)| *step);
        kept.extend(of_these);
    }
    kept
}

/// An axis: maps numbers to positions in the image.
struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(low: f64, high: f64, is_log: bool, from: f64, to: f64) -> Axis {
        // A single value is in the middle.
        let around = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        let (low, high) = if low == high { (low - around, high + around) } else { (low, high) };
        Axis { low, high, is_log, from, to }
    }

    fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            // Use halves, since the difference of two finite numbers may overflow.
            false => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
        };
        self.from + share * (self.to - self.from)
    }

    /// Returns about `n` round numbers within the axis.
    fn ticks(&self, n: usize) -> Vec<f64> {
        if self.is_log {
            let (low, high) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            let every = ((high - low) / n as i32).max(0) as usize + 1;
            return (low..=high).step_by(every).map(|power| 10f64.powi(power)).collect();
        }
        let rough = self.high / n as f64 - self.low / n as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&step| step >= rough * 0.999);
        let Some(step) = step.filter(|step| *step > 0.0 && step.is_finite()) else { return vec![self.low] };
        let first = (self.low / step).ceil();
        // Products of whole numbers, so that errors do not accumulate; zero has no sign.
        let ticks = (0..=2 * n).map(|i| (first + i as f64) * step + 0.0);
        ticks.take_while(|&tick| tick <= self.high + step * 1e-9).filter(|tick| tick.is_finite()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(title: &str, series: &[Series]) -> String {
        Html::from(super::chart(title, series)).into_string()
    }

    fn series(points: &[(u64, f64)]) -> Series {
        Series { name: "test <b>".to_string(), points: points.to_vec(), best: None, colour: 0, is_named: true }
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |low, high| {
            let ticks = Axis::new(low, high, false, 0.0, 1.0).ticks(5);
            ticks.into_iter().map(number).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(0.0, 10.0), "0 2 4 6 8 10");
        assert_eq!(ticks(0.13, 0.87), "0.2 0.4 0.6 0.8");
        assert_eq!(ticks(-3.0, 4.0), "-2 0 2 4");
        assert_eq!(ticks(1.0, 1.0), "0.9 0.95 1 1.05 1.1");
        assert_eq!(ticks(1e-7, 9e-7), "2e-7 4e-7 6e-7 8e-7");
        assert_eq!(Axis::new(0.002, 3000.0, true, 0.0, 1.0).ticks(5), [0.01, 1.0, 100.0]);
    }

    /// For any values, the image contains only finite numbers.
    #[test]
    fn values_that_are_not_finite_break_the_line() {
        let big = f64::from(f32::MAX);
        for points in [
            vec![],
            vec![(1, f64::NAN)],
            vec![(5, 1.0)],
            vec![(0, 0.0), (0, 0.0)],
            vec![(1, -big), (2, big)],
            vec![(1, f64::MIN), (u64::MAX, f64::MAX)],
            vec![(1, 1.0), (2, f64::INFINITY), (3, 2.0), (4, 1.5), (5, f64::NEG_INFINITY)],
            vec![(1, 1e-38), (2, 1e38)],
        ] {
            let picture = chart("loss", &[series(&points)]);
            for bad in ["NaN", "inf", "<b>\"", "test <b>"] {
                assert!(!picture.contains(bad), "{bad} of {points:?} is in {picture}");
            }
        }
        let broken = chart("loss", &[series(&[(1, 1.0), (2, f64::INFINITY), (3, 2.0), (4, 1.5), (5, f64::NAN)])]);
        let line = broken.split("class=\"line\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(line.matches('M').count(), 2, "{line}");
        assert_eq!(line.matches('L').count(), 1, "{line}");
        assert!(broken.contains("test &lt;b&gt;, 2 not finite"), "{broken}");
        assert!(chart("loss", &[series(&[(1, f64::NAN)])]).contains("No finite values"));
    }

    /// Steps 0 to 10 and values 0 to 1 in an image of known size: the ends of the line are corners
    /// of the inner area, 8 from its edges.
    #[test]
    fn points_are_where_they_should_be() {
        let picture = chart("loss", &[Series { best: Some(10), ..series(&[(0, 0.0), (10, 1.0)]) }]);
        assert!(picture.contains("d=\"M66.0 236.0L544.0 20.0\""), "{picture}");
        assert!(picture.contains("<path class=\"best\" d=\"M544.0 12V244.0\">"), "{picture}");
        assert!(picture.contains("best at step 10"), "{picture}");
    }

    /// Three rates at equal distances on a logarithmic axis, and names in the order of their
    /// length.
    #[test]
    fn points_over_a_parameter() {
        let point = |at: Place, value: f64| Point { at, value, name: "trial <1>".to_string(), colour: 1 };
        let rates = [0.01, 0.1, 1.0].map(|rate| point(Place::Number(rate), rate));
        let picture = Html::from(scatter("loss", "rate", &rates)).into_string();
        for at in ["cx=\"74.0\"", "cx=\"305.0\"", "cx=\"536.0\"", ">0.01<", ">0.1<", "loss by rate", "trial &lt;1&gt;"]
        {
            assert!(picture.contains(at), "{at} is not in {picture}");
        }
        let units = ["[10,10]", "[4]"].map(|units| point(Place::Name(units.to_string()), 1.0));
        let odd = [point(Place::Name("[4]".to_string()), f64::NAN), point(Place::Number(f64::NAN), 1.0)];
        let picture = Html::from(scatter("loss", "units", &[&units[..], &odd].concat())).into_string();
        let places: Vec<usize> = ["NaN", "[4]", "[10,10]"].iter().map(|name| picture.find(name).unwrap()).collect();
        assert!(places.is_sorted() && picture.matches("<circle").count() == 3, "{picture}");
        assert!(Html::from(scatter("loss", "units", &odd[..1])).into_string().contains("No finite values"));
    }

    #[test]
    fn long_lines_keep_their_extremes() {
        let mut points: Vec<(u64, f64)> = (0..10_000).map(|step| (step, 1.0)).collect();
        (points[5_000].1, points[5_001].1, points[777].1) = (9.0, -9.0, f64::NAN);
        let kept = thinned(&points);
        assert!(kept.len() <= MAX_POINTS + 2, "{}", kept.len());
        assert!(kept.contains(&(5_000, 9.0)) && kept.contains(&(5_001, -9.0)));
        assert!(kept.iter().any(|(_, value)| value.is_nan()) && kept.is_sorted_by_key(|(step, _)| *step));
    }
}
