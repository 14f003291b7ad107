//! `plot_model`: a model as a picture, in Graphviz' language or as SVG.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use estimand_tensor::{Error, Result};

use super::model::Model;
use super::replay::shown;
use crate::report::escape;

/// The picture of a model: a box for each layer, and an arrow for each value.
///
/// ```
/// use estimand::keras::{Sequential, plot_model};
/// use estimand::prelude::*;
///
/// let model = Sequential::new().input([4]).add(Dense::new(8).relu()).add(Dense::new(1)).build()?;
/// let plot = plot_model(&model).show_shapes();
/// assert!(plot.dot().contains("\"dense\" -> \"dense_1\";"));
/// assert!(plot.svg().starts_with("<svg "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Plot {
    boxes: Vec<Boxed>,
    /// Pairs of boxes.
    arrows: BTreeSet<(usize, usize)>,
    shows_shapes: bool,
}

/// A layer in the picture.
#[derive(Clone, Debug)]
struct Boxed {
    name: String,
    class: String,
    shapes: String,
    /// The number of layers above it.
    row: usize,
}

/// Makes a picture of a model, as `tf.keras.utils.plot_model` does.
pub fn plot_model(model: &Model) -> Plot {
    let recipe = &model.recipe;
    let mut rows: Vec<usize> = Vec::new();
    let mut boxes: Vec<Boxed> = recipe
        .layers
        .iter()
        .map(|layer| Boxed { name: layer.name.clone(), class: layer.step.class_name(), shapes: String::new(), row: 0 })
        .collect();
    let mut arrows = BTreeSet::new();
    for call in &recipe.calls {
        let above = call.inputs.iter().map(|&(from, _)| rows[from] + 1).max().unwrap_or(0);
        rows.push(above);
        let own = &mut boxes[call.layer];
        own.row = own.row.max(above);
        if own.shapes.is_empty() {
            own.shapes = call.outputs.iter().map(|spec| shown(&spec.shape)).collect::<Vec<_>>().join(", ");
        }
        arrows.extend(call.inputs.iter().map(|&(from, _)| (recipe.calls[from].layer, call.layer)));
    }
    Plot { boxes, arrows, shows_shapes: false }
}

/// Sizes in the picture.
const LINE: usize = 18;
const LETTER: usize = 8;
const GAP: usize = 40;

impl Plot {
    /// Shows the shapes of outputs. By default only names and classes.
    pub fn show_shapes(mut self) -> Plot {
        self.shows_shapes = true;
        self
    }

    fn lines<'a>(&self, of: &'a Boxed) -> Vec<&'a str> {
        let mut lines = vec![of.name.as_str(), of.class.as_str()];
        if self.shows_shapes {
            lines.push(&of.shapes);
        }
        lines
    }

    /// The picture in the language of Graphviz (`dot -Tpng`).
    pub fn dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = String::from("digraph G {\n  rankdir=TB;\n  node [shape=box];\n");
        // Writing to a string cannot fail.
        for of in &self.boxes {
            let label = self.lines(of).iter().map(|line| quoted(line)).collect::<Vec<_>>().join("\\n");
            let _ = writeln!(text, "  \"{}\" [label=\"{label}\"];", quoted(&of.name));
        }
        for &(from, to) in &self.arrows {
            let _ = writeln!(text, "  \"{}\" -> \"{}\";", quoted(&self.boxes[from].name), quoted(&self.boxes[to].name));
        }
        text + "}\n"
    }

    /// The picture as SVG. Layers are in rows, each below the layers it needs.
    pub fn svg(&self) -> String {
        let n_rows = self.boxes.iter().map(|of| of.row + 1).max().unwrap_or(0);
        let width_of = |of: &Boxed| 16 + LETTER * self.lines(of).iter().map(|l| l.chars().count()).max().unwrap_or(0);
        let height = 12 + LINE * if self.shows_shapes { 3 } else { 2 };
        let in_row = |row: usize| self.boxes.iter().enumerate().filter(move |(_, of)| of.row == row);
        let row_width = |row: usize| in_row(row).map(|(_, of)| width_of(of) + GAP).sum::<usize>();
        let width = (0..n_rows).map(row_width).max().unwrap_or(0);
        let mut places = vec![(0, 0, 0); self.boxes.len()];
        for row in 0..n_rows {
            let mut x = (width - row_width(row)) / 2 + GAP / 2;
            for (i, of) in in_row(row) {
                places[i] = (x, GAP / 2 + row * (height + GAP), width_of(of));
                x += width_of(of) + GAP;
            }
        }
        let total = n_rows * (height + GAP);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" font-family=\"monospace\" \
             font-size=\"13\">\n<defs><marker id=\"arrow\" markerWidth=\"8\" markerHeight=\"8\" refX=\"8\" refY=\"4\" \
             orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n"
        );
        for &(from, to) in self.arrows.iter().filter(|(from, to)| from != to) {
            let ((x, y, w), (to_x, to_y, to_w)) = (places[from], places[to]);
            let (x, y, to_x) = (x + w / 2, y + height, to_x + to_w / 2);
            let _ = writeln!(
                text,
                "<line x1=\"{x}\" y1=\"{y}\" x2=\"{to_x}\" y2=\"{to_y}\" stroke=\"black\" marker-end=\"url(#arrow)\"/>"
            );
        }
        for (of, &(x, y, w)) in self.boxes.iter().zip(&places) {
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{height}\" fill=\"white\" stroke=\"black\"/>"
            );
            for (i, line) in self.lines(of).into_iter().enumerate() {
                let _ = write!(text, "<text x=\"{}\" y=\"{}\">", x + 8, y + LINE * (i + 1));
                escape(line, &mut text);
                text.push_str("</text>\n");
            }
        }
        text + "</svg>\n"
    }

    /// Writes the picture to a file that ends in `.svg` or `.dot`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let text = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => self.svg(),
            Some("dot" | "gv") => self.dot(),
            _ => {
                return Err(Error::config(format!("the picture is to be {}", path.display()))
                    .help("name a file that ends in .svg or .dot; `dot -Tpng` makes a PNG of the latter"));
            }
        };
        std::fs::write(path, text).map_err(|e| Error::io(path, "write", &e))
    }
}
