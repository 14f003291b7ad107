//! The page: one self-contained file, for any content.

use std::fs;

use estimand::Report;
use estimand::events::EventWriter;
use estimand::prelude::*;

use super::{Failing, endless, estimator, rows};
use crate::models::{Folder, line, linear};

/// That every element is closed by its own end, as in XML; returns how many there are.
fn check_elements(page: &str) -> usize {
    let (mut open, mut n): (Vec<&str>, usize) = (Vec::new(), 0);
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap_or_else(|| panic!("no end of <{tag}"));
        assert!(!text.contains('>'), "a > in text: {text}");
        n += 1;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {open:?}");
        } else if !tag.ends_with('/') && !tag.starts_with("meta") && !tag.starts_with("br") {
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    n
}

#[test]
fn the_page_of_a_training() -> Result<()> {
    let folder = Folder::new();
    let model = estimator(&folder);
    let evaluate = EvalSpec::new(rows()).name("test").every(Every::Steps(2));
    model.train_and_evaluate(TrainSpec::new(endless()).max_steps(9), evaluate)?;
    let report = model.report()?.examine(&line(100))?;
    let path = folder.path().join("report.html");
    report.write_html(&path)?;
    let page = fs::read_to_string(&path).unwrap();
    assert!(check_elements(&page) > 100);
    for part in
        ["Why it ended", "best and last<br><small>step 9</small>", "<h2>Fingerprints</h2>", "class=\"best\"", "mae"]
    {
        assert!(page.contains(part), "{part} is not in the page");
    }
    for elsewhere in ["http", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(elsewhere), "{elsewhere} is in the page");
    }
    // Another process later: the same bytes.
    assert_eq!(estimator(&folder).report()?.examine(&line(100))?.html(), page);
    Ok(())
}

/// Names that mean something to HTML, and numbers that mean nothing to SVG.
#[test]
fn hostile_names_and_numbers() -> Result<()> {
    let folder = Folder::new();
    let inner = folder.path().join("a&b\"'<script>");
    let bad = "<script>alert(1)</script>";
    let mut events = EventWriter::create(&inner)?;
    for (step, loss) in [(1, f32::NAN), (2, f32::INFINITY), (3, 1.0), (4, f32::NEG_INFINITY), (5, f32::MAX)] {
        events.scalar(step, "loss", loss)?;
        events.scalar(step, bad, f32::NAN)?;
        events.scalar(step, "a\u{0}b", -f32::MAX)?;
    }
    let mut evaluated = EventWriter::create(inner.join(format!("eval_{}", bad.replace('/', "|"))))?;
    for (name, value) in [("loss", f32::NAN), ("auc", 0.5), ("auc/sex=<i>", 0.25), ("auc/age=\"30\"", 1.0)] {
        evaluated.scalar(5, name, value)?;
    }
    let names = Array::from_strings([60], vec!["<b>"; 60])?;
    let columns = [("<img src=x>", names.clone()), ("<script>", names), ("y", Array::from(vec![1f32; 60]))];
    let odd = Dataset::from_arrays(columns).label("y");
    let params = HParams::new().set("<p>", "</td>").set("<script>", "<script>");
    let model = Estimator::new(linear).model_dir(&inner).params(params).build()?;
    let report = model.report()?.examine(&odd)?;
    let page = report.html();
    check_elements(&page);
    for part in ["<script", "<img", "<b>\"", "sex=<i>", "NaN ", "\u{0}", ">inf\""] {
        assert!(!page.contains(part), "{part}");
    }
    for part in
        ["&lt;script&gt;", "&lt;img src=x&gt;", "sex=&lt;i&gt;", "a&amp;b&quot;&#39;", "&lt;p&gt;", "No finite values"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(report.to_string().contains("evaluated once"), "{report}");
    Ok(())
}

/// Slices stand below all rows, and an evaluation without a best one has its last.
#[test]
fn slices_and_runs_have_tables() -> Result<()> {
    let folder = Folder::new();
    for step in [10, 20] {
        EventWriter::create(folder.path())?.scalar(step, "loss", 0.5)?;
        let mut evaluated = EventWriter::create(folder.path().join("eval"))?;
        for (name, value) in [("loss", 0.5), ("auc", 0.75), ("auc/sex=f", 0.25), ("auc/sex=m", 0.125)] {
            evaluated.scalar(step, name, value)?;
        }
    }
    let page = Report::read(folder.path())?.html();
    check_elements(&page);
    let expected = "<thead><tr><th>slice</th><th>auc</th></tr></thead>\n<tbody>\n\
                    <tr><th>all rows</th><td class=\"n\">0.75</td></tr>\n\
                    <tr><th>sex=f</th><td class=\"n\">0.25</td></tr>\n\
                    <tr><th>sex=m</th><td class=\"n\">0.125</td></tr>\n";
    assert!(page.contains(expected), "{page}");
    assert!(page.contains("<h2>Runs</h2>") && page.contains("<th>2</th><td class=\"n\">20</td>"), "{page}");
    assert!(
        page.contains("best<br><small>step 10</small>") && page.contains("last<br><small>step 20</small>"),
        "{page}"
    );
    Ok(())
}

/// Training writes the page by itself where it is asked to, also if it fails; a report that cannot
/// be made costs nothing.
#[test]
fn at_the_end_of_training() -> Result<()> {
    let folder = Folder::new();
    let (model, path) = (estimator(&folder), folder.path().join("report.html"));
    let page = || fs::read_to_string(&path).unwrap();
    model.train(TrainSpec::new(endless()).max_steps(3))?;
    assert!(!path.exists());
    model.train_and_evaluate(TrainSpec::new(endless()).max_steps(6).report(&line(100)), rows())?;
    assert!(page().contains("step 6 is reached") && page().contains("all 100 rows of 2 columns"), "{}", page());
    model.train(TrainSpec::new(endless()).report(&line(100)).hook(Failing(8))).unwrap_err();
    assert!(page().contains("no more"), "{}", page());
    let finished = model.train(TrainSpec::new(endless()).steps(1).report(&line(100).take(0)))?;
    assert_eq!(finished.n_steps, 1);
    Ok(())
}

fn advice(of: impl Fn(&mut EventWriter, &mut EventWriter) -> Result<()>) -> Result<String> {
    let folder = Folder::new();
    let mut training = EventWriter::create(folder.path())?;
    let mut evaluated = EventWriter::create(folder.path().join("eval_test"))?;
    of(&mut training, &mut evaluated)?;
    let text = Report::read(folder.path())?.to_string();
    Ok(text.split_once("what next:").map_or("", |(_, advice)| advice.trim()).to_string())
}

#[test]
fn what_to_do_next() -> Result<()> {
    let losses = |writer: &mut EventWriter, losses: &[f32]| {
        losses.iter().zip(1..).try_for_each(|(&loss, step)| writer.scalar(step, "loss", loss))
    };
    assert_eq!(
        advice(|training, _| losses(training, &[1.0]))?,
        "evaluate on rows that it is not trained on: train_and_evaluate does so in between"
    );
    assert_eq!(
        advice(|_, test| losses(test, &[3.0, 2.0, 1.0]))?,
        "`test` was best (lowest loss) when it ended: train longer"
    );
    let text = advice(|_, test| losses(test, &[3.0, 1.0, 2.0]))?;
    assert!(
        text.starts_with("`test` was best (lowest loss) at step 2, not at step 3: its checkpoint is not"),
        "{text}"
    );
    let text = advice(|training, test| losses(training, &[1.0, f32::NAN]).and(losses(test, &[1.0])))?;
    assert!(text.starts_with("the training loss is NaN at step 2"), "{text}");
    Ok(())
}
