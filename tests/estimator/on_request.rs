//! Values that hooks fetch on request: other steps do not compute them, and all steps train to the
//! same bits.

use std::cell::RefCell;
use std::rc::Rc;

use estimand::graph::Encoding;
use estimand::hook::{BeginContext, Fetch, Hook, HookContext};
use estimand::prelude::*;

use crate::models::{Folder, network};

/// Rows with a word that the loss does not need.
fn rows() -> Dataset {
    let x: Vec<f32> = (0..4 * 60).map(|i| ((i * 37 % 101) as f32 / 101.0).sin()).collect();
    let y: Vec<i64> = (0..60).map(|i| i * 7 % 3).collect();
    let words = Array::from_strings([60], (0..60).map(|i| ["a", "bc", "def"][i % 3])).unwrap();
    let arrays = [("x", Array::from_vec([60, 4], x).unwrap()), ("word", words), ("y", Array::from(y))];
    Dataset::from_arrays(arrays).label("y").repeat_forever().batch(6).drop_remainder()
}

/// Asks for values at every third step: one that the step computes anyway, and one of a feature
/// that only it reads.
struct EveryThird {
    names: &'static [&'static str],
    fetches: Vec<Fetch>,
    /// By step: the number of values that were there, and the sum of the last one.
    seen: Rc<RefCell<Vec<(u64, usize, f64)>>>,
}

impl Hook for EveryThird {
    fn name(&self) -> &str {
        "every_third"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        for name in self.names {
            let tensor = cx.graph().find(name)?;
            self.fetches.push(cx.fetch_on_request(&tensor)?);
        }
        Ok(())
    }

    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if cx.global_step().is_multiple_of(3) {
            cx.request_values();
        }
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let values: Vec<&Array> = self.fetches.iter().filter_map(|&fetch| cx.value(fetch)).collect();
        let sum = values.last().map_or(0.0, |array| array.to_f64_vec().unwrap().iter().sum());
        self.seen.borrow_mut().push((cx.global_step(), values.len(), sum));
        Ok(())
    }
}

/// The network, and the lengths of words beside it.
fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let spec = network(cx)?;
    let _scope = cx.graph().scope("seldom");
    cx.feature("word").string_length(Encoding::Bytes).cast(DType::F32).sum();
    Ok(spec)
}

type Seen = Vec<(u64, usize, f64)>;

/// All variables after eight steps, and what the hook saw.
fn trained(names: &'static [&'static str]) -> Result<(Vec<Vec<u8>>, Seen)> {
    let folder = Folder::new();
    let config = RunConfig::new().tf_random_seed(1).threads(2);
    let estimator = Estimator::new(model).config(config).model_dir(folder.path()).build()?;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let hook = EveryThird { names, fetches: Vec::new(), seen: seen.clone() };
    estimator.train(TrainSpec::new(rows()).steps(8).hook(hook))?;
    let names = estimator.variable_names()?;
    let values = names.iter().map(|name| Ok(estimator.variable_value(name)?.bytes().to_vec()));
    Ok((values.collect::<Result<_>>()?, seen.take()))
}

#[test]
fn values_are_there_when_they_were_requested() -> Result<()> {
    let (_, seen) = trained(&["dense/Relu", "seldom/Sum"])?;
    // Two of each word in a batch: 2 * (1 + 2 + 3) = 12 letters.
    let expected = (1..=8).map(|step| if step % 3 == 1 { (step, 2, 12.0) } else { (step, 0, 0.0) });
    assert_eq!(seen, expected.collect::<Seen>());
    Ok(())
}

#[test]
fn looking_changes_no_bit() -> Result<()> {
    let (bits, _) = trained(&[])?;
    for names in [&["dense/Relu"][..], &["seldom/Sum"], &["dense/Relu", "dense_1/MatMul", "seldom/Sum"]] {
        assert!(trained(names)?.0 == bits, "other bits when {names:?} are looked at");
    }
    Ok(())
}
