//! The parts that all pages share: the frame with the style, sections, tables and cards.

use std::fmt::Display;

use super::markup::{Element, Html, el};
use crate::console::number;

const STYLE: &str = include_str!("style.css");

/// A whole page with a title.
pub(super) fn frame(title: &str, main: Html) -> Html {
    let style = el("style").newline().put(Html::new().literal(STYLE));
    let head = el("head")
        .newline()
        .put(Html::new().literal("<meta charset=\"utf-8\">\n"))
        .put(Html::new().literal("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"))
        .line(el("title").text(title))
        .line(style);
    let body = el("body").newline().line(el("main").newline().put(main));
    let page = el("html").attr("lang", "en").newline().line(head).line(body);
    Html::new().literal("<!DOCTYPE html>\n").line(page)
}

/// Text with names in backticks, which are set as code.
pub(super) fn prose(text: &str) -> Html {
    if !text.matches('`').count().is_multiple_of(2) {
        // A name has a backtick of its own.
        return Html::new().text(text);
    }
    let part = |(i, part)| if i % 2 == 1 { el("code").text(part).into() } else { Html::new().text(part) };
    text.split('`').enumerate().map(part).collect()
}

pub(super) fn card(name: &str, value: impl Display, note: &str) -> Element {
    let value = el("p").class("value").text(value);
    el("div").class("card").put(el("p").text(name)).put(value).put(el("p").text(note))
}

pub(super) fn cell(value: Option<f64>) -> Element {
    el("td").class("n").text(value.map_or(String::new(), number))
}

/// A table that can be scrolled where it is wider than the page.
pub(super) fn table(header: Element, rows: impl Iterator<Item = Element>) -> Html {
    let rows = rows.fold(el("tbody").newline(), Element::line);
    Html::new().line(el("div").class("wide").put(el("table").newline().line(header).line(rows)))
}

/// The head of a table with one name for each column.
pub(super) fn header<'a>(names: impl IntoIterator<Item = &'a str>) -> Element {
    el("thead").put(names.into_iter().fold(el("tr"), |row, name| row.put(el("th").text(name))))
}

pub(super) fn paragraph(text: &str) -> Html {
    Html::new().line(el("p").text(text))
}

pub(super) fn section(title: &str, body: Html) -> Html {
    Html::new().line(el("section").newline().line(el("h2").text(title)).put(body))
}
