//! Checks that `docs/tf-parity.md` is true. The page has all of TensorFlow's names (from a
//! fixture). Every name of ours on it is known to the compiler. Every numbered case of the
//! specification is a test or is listed on the page.
//!
//! `page.rs` reads the page, `tensorflow.rs` the fixture. `ours.rs` is the list that the compiler
//! checks, `cases.rs` finds case numbers in test sources. A check returns its complaints, each with
//! its name, so that tests can check it too.

mod cases;
mod ours;
mod page;
mod tensorflow;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use estimand::export::{FinalExporter, Receiver};
use estimand::prelude::*;
use page::{Page, Status};

const PAGE: &str = include_str!("../docs/tf-parity.md");
/// How many numbered cases there are.
const N_CASES: u32 = 126;
/// What the names of files begin with on the page.
const FILES: &str = "model_dir/";

fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "docs/tf-parity.md:\n  {}", complaints.join("\n  "));
}

/// Each name of TensorFlow is in exactly one row, and each row is about names that there are.
fn about_tensorflow(page: &Page, names: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in names {
        let rows: Vec<_> = page.rows.iter().filter(|row| row.tensorflow.iter().any(|p| matches(p, name))).collect();
        match rows[..] {
            [_] => {}
            [] => complaints.push(format!("TensorFlow's `{name}` has no row")),
            [first, second, ..] => {
                complaints.push(format!("TensorFlow's `{name}` is in lines {} and {}", first.line, second.line));
            }
        }
    }
    for row in &page.rows {
        for pattern in row.tensorflow.iter().filter(|pattern| !names.iter().any(|name| matches(pattern, name))) {
            complaints.push(format!("line {}: TensorFlow has no `{pattern}`", row.line));
        }
    }
    complaints
}

/// `same` and `differs` have names of ours, the others have none; all but `same` have a text.
fn about_statuses(page: &Page) -> Vec<String> {
    let mut complaints = page.mistakes.clone();
    for row in &page.rows {
        let (line, there) = (row.line, matches!(row.status, Status::Same | Status::Differs));
        if there == row.ours.is_empty() {
            let has = if there { "names nothing of ours" } else { "names something of ours" };
            complaints.push(format!("line {line}: the status is {:?} and the row {has}", row.status));
        }
        if row.status != Status::Same && row.deviation.is_empty() {
            complaints.push(format!("line {line}: the status is {:?} and no text says why", row.status));
        }
    }
    complaints.extend(
        (page.cases.iter())
            .filter(|case| case.deviation.is_empty())
            .map(|case| format!("line {}: no text says why case {:?} is {:?}", case.line, case.numbers, case.status)),
    );
    complaints
}

/// The page's names of ours are those of a list.
fn about_ours(page: &Page, known: &BTreeSet<String>, is_of_it: impl Fn(&str) -> bool) -> Vec<String> {
    let named: BTreeSet<&str> =
        page.rows.iter().flat_map(|row| &row.ours).map(String::as_str).filter(|name| is_of_it(name)).collect();
    let unknown = named.iter().filter(|name| !known.contains(**name)).map(|name| format!("we have no `{name}`"));
    let silent =
        known.iter().filter(|name| !named.contains(name.as_str())).map(|name| format!("our `{name}` is missing"));
    unknown.chain(silent).collect()
}

/// A case has a test, or a row that says why not; if it is decided otherwise, both.
fn about_cases(page: &Page, tested: &BTreeSet<u32>) -> Vec<String> {
    let mut complaints = Vec::new();
    for number in 1..=N_CASES {
        let row = page.cases.iter().find(|case| case.numbers.contains(&number));
        match (row.map(|row| row.status), tested.contains(&number)) {
            (None, false) => complaints.push(format!("case {number} has neither a test nor a row")),
            (Some(Status::Differs), false) => complaints.push(format!("case {number} differs, and no test pins it")),
            (Some(status @ (Status::None | Status::Planned)), true) => {
                complaints.push(format!("case {number} is {status:?}, and there is a test for it"));
            }
            (Some(Status::Same), _) => complaints.push(format!("case {number} needs no row: it is the same")),
            _ => {}
        }
    }
    complaints
}

/// Whether a name fits a pattern, in which `*` stands for one letter or more of a part of the name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let part = rest.find(['.', '(', ')', '/']).unwrap_or(rest.len());
    (1..=part).filter(|&n| rest.is_char_boundary(n)).any(|n| matches(after, &rest[n..]))
}

#[test]
fn every_name_of_tensorflow_has_a_row() {
    assert_none(about_tensorflow(&Page::read(PAGE), &tensorflow::names()));
}

#[test]
fn every_row_has_a_status_and_a_reason() {
    assert_none(about_statuses(&Page::read(PAGE)));
}

#[test]
fn every_name_of_ours_exists() {
    assert_none(about_ours(&Page::read(PAGE), &ours::names(), |name| !name.starts_with(FILES)));
}

#[test]
fn every_case_is_a_test_or_a_row() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert_none(about_cases(&Page::read(PAGE), &cases::tested(&root)));
}

#[test]
fn the_files_of_a_model_folder() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-parity-{}", std::process::id()));
    let estimator = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
    let rows = [("x", Array::from([1.0f32, 2.0])), ("y", Array::from([0i64, 1]))];
    let data = Dataset::from_arrays(rows).label("y").batch(2);
    let exporter = FinalExporter::new("NAME", Receiver::like(&data)?);
    estimator.train_and_evaluate(TrainSpec::new(&data).max_steps(1), EvalSpec::new(&data).exporter(exporter))?;
    estimator.evaluate(EvalSpec::new(&data).name("NAME"))?;
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(file_name(path.strip_prefix(&folder).unwrap().to_path_buf()))),
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert_none(about_ours(&Page::read(PAGE), &found, |name| name.starts_with(FILES)));
    Ok(())
}

/// A file as the page calls it: steps, times and hosts by letters.
fn file_name(path: PathBuf) -> String {
    let is_time = |part: &str| part.len() == 10 && part.bytes().all(|byte| byte.is_ascii_digit());
    let name = path.to_str().unwrap().replace('\\', "/");
    let name = name.split('/').map(|part| if is_time(part) { "T" } else { part }).collect::<Vec<_>>().join("/");
    let name = match (name.split_once("tfevents."), name.split_once("ckpt-")) {
        (Some((before, _)), _) => format!("{before}tfevents.T.H"),
        (_, Some((before, after))) => {
            format!("{before}ckpt-N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => name,
    };
    format!("{FILES}{name}")
}

#[test]
fn a_page_that_is_wrong_is_found_out() {
    let page = Page::read(
        "| `a.B` | `B` | same | |\n| `a.B(x)`, `a.*(x)` | `B::x` | differs | |\n| `a.C` | | same | |\n| `a.D` | | gone | |\n\
         | 1 | none | |\n| 2 | differs | why |\n| 3 to 4 | planned | why |\n",
    );
    let names = ["a.B", "a.B(x)", "a.B(y)"].map(String::from);
    assert_eq!(
        about_tensorflow(&page, &names),
        ["TensorFlow's `a.B(y)` has no row", "line 3: TensorFlow has no `a.C`"]
    );
    let statuses = about_statuses(&page);
    assert_eq!(statuses[0], "line 4: the status `gone` is none of same, differs, planned, none");
    assert_eq!(statuses[1], "line 2: the status is Differs and no text says why");
    assert_eq!(statuses[2], "line 3: the status is Same and the row names nothing of ours");
    assert_eq!(statuses[3], "line 5: no text says why case [1] is None");
    assert_eq!(statuses.len(), 4);
    let known = ["B", "E"].map(String::from).into();
    assert_eq!(about_ours(&page, &known, |_| true), ["we have no `B::x`", "our `E` is missing"]);
    let tested = (4..N_CASES).collect();
    let complaints = about_cases(&page, &tested);
    assert_eq!(complaints[0], "case 2 differs, and no test pins it");
    assert_eq!(complaints[1], "case 4 is Planned, and there is a test for it");
    assert_eq!(complaints[2], "case 126 has neither a test nor a row");
    assert_eq!(complaints.len(), 3);
    assert!(matches("a.*Hook", "a.NanHook") && !matches("a.*Hook", "a.Hook") && !matches("a.*", "a.b.c"));
}
