//! The guard of an export to ONNX. Before a folder gets its name, the file that was written runs on
//! the golden rows, and its answers are compared with those of the live model.

use estimand_onnx::message::ModelProto;
use estimand_onnx::{Interface, Precision, Runner};
use estimand_tensor::{Array, DType, Error, Result};
use estimand_tf::golden::{Feed, Golden, difference};
use tracing::info;

/// The file may sum in another order than the model: so many times its own rounding is allowed.
const ROUNDING: f64 = 4.0;

/// The answers of a signature: the number of a feed, and all outputs.
pub(super) fn answers<'g>(golden: &'g Golden, signature: &str) -> &'g [(usize, Vec<(String, Array)>)] {
    let of = |name: &str| golden.answers.iter().find(|answers| answers.signature == name);
    let own = of(signature);
    let same_as = own.and_then(|answers| of(answers.same_as.as_ref()?));
    same_as.or(own).map_or(&[], |answers| &answers.of)
}

/// Compares a file with the answers of the live model. Returns the places of those that were
/// compared. Images that are smaller than a window are left out, since runtimes differ there.
pub(super) fn check(model: &ModelProto, golden: &Golden, signature: &str, interface: &Interface) -> Result<Vec<usize>> {
    let answers = answers(golden, signature);
    let checked = || -> Result<Vec<usize>> {
        let runner = Runner::new(model, Precision::AsWritten)?;
        let mut compared = Vec::new();
        for (i, (feed, expected)) in answers.iter().enumerate() {
            let feed = golden.feeds.get(*feed).ok_or_else(|| Error::internal("an answer without a feed"))?;
            let place = |e: Error| e.context(format!("{} rows", feed.rows));
            let Some(found) = run(&runner, feed).map_err(place)? else {
                info!("The file is not checked with {} rows: an image is smaller than a window", feed.rows);
                continue;
            };
            compare(model, feed, &interface.output_names(), expected, &found)?;
            compared.push(i);
        }
        Ok(compared)
    };
    checked().map_err(|e| {
        e.context("the export was refused, because the ONNX file is not what the model is").help(
            "nothing was published; this is a defect of the disk or of Estimand: please report it, and export the \
             model with export_saved_model until then",
        )
    })
}

/// The answers of a file; `None` if an image is smaller than a window.
fn run(runner: &Runner<'_>, feed: &Feed) -> Result<Option<Vec<(String, Array)>>> {
    let inputs: Vec<(&str, Array)> = feed.inputs.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    runner.run_if_defined(&inputs)
}

/// Whether no image of a feed is smaller than a window. Other mistakes are found by the check.
pub(super) fn fits(model: &ModelProto, feed: &Feed) -> Result<bool> {
    let found = run(&Runner::new(model, Precision::AsWritten)?, feed);
    Ok(!matches!(found, Ok(None)))
}

/// Compares the outputs of one feed. Only if they differ, the file runs in f64 too, which tells
/// what rounding does to them.
fn compare(
    model: &ModelProto,
    feed: &Feed,
    names: &[String],
    expected: &[(String, Array)],
    found: &[(String, Array)],
) -> Result<()> {
    let mut exact = None;
    for (i, (name, (_, expected))) in names.iter().zip(expected).enumerate() {
        let known = || found.iter().map(|(name, _)| name.as_str());
        let (_, answer) =
            found.get(i).filter(|(found, _)| found == name).ok_or_else(|| Error::unknown("output", name, known()))?;
        if difference(expected, answer, 0.0).is_none() {
            continue;
        }
        let exact: &Vec<(String, Array)> = match &exact {
            Some(exact) => exact,
            None => exact.insert(run(&Runner::new(model, Precision::Double)?, feed)?.unwrap_or_default()),
        };
        let rounding = exact.get(i).map_or(Ok(0.0), |(_, exact)| rounding(answer, exact))?;
        if let Some(difference) = difference(expected, answer, ROUNDING * rounding) {
            return Err(Error::data(format!(
                "the file answers differently from the model: output `{name}`, {} rows, {difference}",
                feed.rows
            )));
        }
    }
    Ok(())
}

/// The largest difference between answers and those in f64.
fn rounding(answer: &Array, exact: &Array) -> Result<f64> {
    if answer.dtype() != DType::F32 || answer.dims() != exact.dims() {
        return Ok(0.0);
    }
    let pairs = answer.to_f64_vec()?.into_iter().zip(exact.to_f64_vec()?);
    Ok(pairs.map(|(a, b)| (a - b).abs()).filter(|difference| difference.is_finite()).fold(0.0, f64::max))
}
