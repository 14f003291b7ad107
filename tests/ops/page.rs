//! The page, row by row.

use std::collections::BTreeSet;

/// A row about operations: `| Estimand | TensorFlow | nodes | remark |`.
#[derive(Debug)]
pub struct Row {
    pub line: usize,
    pub ours: Vec<String>,
    pub tensorflow: Vec<String>,
    pub nodes: Vec<String>,
}

/// The tables of the page.
#[derive(Debug, Default)]
pub struct Page {
    pub rows: Vec<Row>,
    /// Nodes that only gradients add.
    pub gradients: BTreeSet<String>,
    /// Ops that TensorFlow does not have.
    pub own: BTreeSet<String>,
}

impl Page {
    pub fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut section = "";
        for (line, text) in (1..).zip(text.lines()) {
            section = text.strip_prefix("## ").unwrap_or(section);
            let Some(text) = text.strip_prefix("| `").and_then(|text| text.strip_suffix('|')) else { continue };
            let cells: Vec<Vec<String>> = format!("`{text}").split('|').map(quoted).collect();
            match (section, &cells[..]) {
                ("Ops of gradients", [nodes]) => page.gradients.extend(nodes.iter().cloned()),
                ("Ops of our own", [name, _]) => page.own.extend(name.iter().cloned()),
                (_, [ours, tensorflow, nodes, _]) => page.rows.push(Row {
                    line,
                    ours: ours.clone(),
                    tensorflow: tensorflow.clone(),
                    nodes: nodes.clone(),
                }),
                _ => panic!("docs/ops.md, line {line}: {} cells", cells.len()),
            }
        }
        page
    }
}

/// The names between back quotes of a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(String::from).collect()
}
