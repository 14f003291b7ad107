//! Parses the page, row by row.

use super::cases;

/// How a name of TensorFlow stands with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Same,
    Differs,
    Planned,
    None,
}

/// A row about names: `| TensorFlow | Estimand | status | deviation |`.
#[derive(Debug)]
pub struct Row {
    pub line: usize,
    pub tensorflow: Vec<String>,
    pub ours: Vec<String>,
    pub status: Status,
    pub deviation: String,
}

/// A row about numbered cases: `| case | status | deviation |`.
#[derive(Debug)]
pub struct Case {
    pub line: usize,
    pub numbers: Vec<u32>,
    pub status: Status,
    pub deviation: String,
}

/// All rows, and what is wrong with those that could not be read.
#[derive(Debug, Default)]
pub struct Page {
    pub rows: Vec<Row>,
    pub cases: Vec<Case>,
    pub mistakes: Vec<String>,
}

impl Page {
    pub fn read(text: &str) -> Page {
        let mut page = Page::default();
        for (line, text) in (1..).zip(text.lines()) {
            let Some(text) = text.strip_prefix('|').and_then(|text| text.strip_suffix('|')) else { continue };
            let cells: Vec<&str> = text.split('|').map(str::trim).collect();
            let begins = |with: fn(char) -> bool| cells[0].starts_with(with);
            if !begins(|c| c == '`') && !begins(|c| c.is_ascii_digit()) {
                continue; // the head of a table
            }
            if let Err(mistake) = page.add(line, &cells) {
                page.mistakes.push(format!("line {line}: {mistake}"));
            }
        }
        page
    }

    fn add(&mut self, line: usize, cells: &[&str]) -> Result<(), String> {
        match *cells {
            [tensorflow, ours, status, deviation] => {
                let (tensorflow, ours) = (quoted(tensorflow)?, quoted(ours)?);
                let (status, deviation) = (read_status(status)?, deviation.to_string());
                self.rows.push(Row { line, tensorflow, ours, status, deviation });
            }
            [numbers, status, deviation] => {
                let numbers = cases::numbers(numbers);
                self.cases.push(Case { line, numbers, status: read_status(status)?, deviation: deviation.to_string() });
            }
            _ => return Err(format!("{} cells, expected 4, or 3 for a case", cells.len())),
        }
        Ok(())
    }
}

fn read_status(text: &str) -> Result<Status, String> {
    match text {
        "same" => Ok(Status::Same),
        "differs" => Ok(Status::Differs),
        "planned" => Ok(Status::Planned),
        "none" => Ok(Status::None),
        _ => Err(format!("the status `{text}` is none of same, differs, planned, none")),
    }
}

/// The names of a cell: each between back quotes, with a comma in between.
fn quoted(cell: &str) -> Result<Vec<String>, String> {
    if cell.is_empty() {
        return Ok(Vec::new());
    }
    let name = |part: &str| part.strip_prefix('`').and_then(|part| part.strip_suffix('`')).map(String::from);
    cell.split(", ").map(|part| name(part).ok_or_else(|| format!("`{part}` is not between back quotes"))).collect()
}
