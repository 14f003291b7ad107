//! HTML that cannot hold text by mistake: everything that is not an element of this program is
//! escaped.
//!
//! [`Html`] can be made only here. Names of elements and attributes are literals; text and values
//! of attributes go through [`escape`].

use std::fmt::Display;

/// A piece of a page.
#[derive(Default)]
pub(super) struct Html(String);

impl Html {
    /// Nothing yet.
    pub(super) fn new() -> Html {
        Html::default()
    }

    /// Markup as it is: a literal, never text that was made at run time.
    pub(super) fn literal(mut self, markup: &'static str) -> Html {
        self.0.push_str(markup);
        self
    }

    /// Appends text, escaped.
    pub(super) fn text(mut self, text: impl Display) -> Html {
        escape(&text.to_string(), &mut self.0);
        self
    }

    /// Appends a piece.
    pub(super) fn put(mut self, piece: impl Into<Html>) -> Html {
        self.0.push_str(&piece.into().0);
        self
    }

    /// Appends a piece and the end of a line.
    pub(super) fn line(self, piece: impl Into<Html>) -> Html {
        self.put(piece).literal("\n")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The finished page.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

impl<T: Into<Html>> FromIterator<T> for Html {
    fn from_iter<I: IntoIterator<Item = T>>(pieces: I) -> Html {
        pieces.into_iter().fold(Html::new(), Html::put)
    }
}

/// An element: its name, its attributes and what is in it.
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    body: Html,
}

/// An element without attributes, with nothing in it.
pub(super) fn el(name: &'static str) -> Element {
    Element { name, attributes: String::new(), body: Html::new() }
}

impl Element {
    /// Sets an attribute; its value is escaped.
    pub(super) fn attr(mut self, name: &'static str, value: impl Display) -> Element {
        self.attributes += &format!(" {name}=\"");
        escape(&value.to_string(), &mut self.attributes);
        self.attributes.push('"');
        self
    }

    /// Sets the attribute `class`.
    pub(super) fn class(self, value: impl Display) -> Element {
        self.attr("class", value)
    }

    /// Appends text, escaped.
    pub(super) fn text(mut self, text: impl Display) -> Element {
        self.body = self.body.text(text);
        self
    }

    /// Appends a piece.
    pub(super) fn put(mut self, piece: impl Into<Html>) -> Element {
        self.body = self.body.put(piece);
        self
    }

    /// Appends a piece and the end of a line.
    pub(super) fn line(mut self, piece: impl Into<Html>) -> Element {
        self.body = self.body.line(piece);
        self
    }

    /// Ends a line, for people who read the source of the page.
    pub(super) fn newline(self) -> Element {
        self.line(Html::new())
    }
}

impl From<Element> for Html {
    fn from(element: Element) -> Html {
        let Element { name, attributes, body } = element;
        Html(format!("<{name}{attributes}>{}</{name}>", body.0))
    }
}

/// Appends text as HTML shows it. Characters that HTML cannot hold are replaced.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_of_attributes_are_escaped() {
        let bad = "\"'><script>&\u{0}\n";
        let page: Html = el("p").attr("title", bad).text(bad).put(el("b").class(1)).into();
        let escaped = "&quot;&#39;&gt;&lt;script&gt;&amp;\u{fffd}\n";
        assert_eq!(page.into_string(), format!("<p title=\"{escaped}\">{escaped}<b class=\"1\"></b></p>"));
    }
}
