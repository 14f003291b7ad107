//! The contract of every hook, as a check that also runs on custom hooks.
//!
//! ```
//! use estimand::hook::testing::check_hook;
//! use estimand::hook::{Hook, HookContext};
//! use estimand::prelude::*;
//!
//! /// The longest run of steps whose loss fell, over all runs.
//! #[derive(Default)]
//! struct Streak { last: Option<f32>, n: u8, most: u8 }
//!
//! impl Hook for Streak {
//!     fn name(&self) -> &str {
//!         "streak"
//!     }
//!     fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
//!         let fell = self.last.zip(cx.loss()).is_some_and(|(last, loss)| loss < last);
//!         self.n = if fell { self.n.saturating_add(1) } else { 0 };
//!         self.most = self.most.max(self.n);
//!         self.last = cx.loss();
//!         Ok(())
//!     }
//!     fn state(&self) -> Option<Vec<u8>> {
//!         Some(vec![self.n, self.most])
//!     }
//!     fn restore(&mut self, state: &[u8]) -> Result<()> {
//!         let [n, most] = state else { return Err(Error::data("the state of a streak has two bytes")) };
//!         (self.n, self.most) = (*n, *most);
//!         Ok(())
//!     }
//! }
//! check_hook(|_| Box::new(Streak::default()))?;
//! # Ok::<(), Error>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_checkpoint::BundleReader;
use estimand_graph::{Initializer, Optimizer};
use estimand_tensor::{Array, Error, Mode, Result};
use estimand_update::Adam;

use super::Hook;
use super::all::rows;
use crate::own_entries::{hook_state, is_own};
use crate::{Estimator, EstimatorSpec, EvalSpec, Every, ModelFnContext, PredictSpec, RunConfig, TrainSpec};

/// The number of steps of a training, and the step at which it is interrupted.
const STEPS: u64 = 9;
const INTERRUPTED: u64 = 5;

/// Checks a hook for an estimator of one weight `w`. The hook must not end the training itself.
///
/// The hook's name must be valid in a checkpoint. Training must end with the same bits with and
/// without the hook, whether it is interrupted or not. The hook's state must be restored unchanged,
/// and damaged state must be an error or be ignored. Evaluation and prediction must accept the hook
/// too.
pub fn check_hook(make: impl for<'a> Fn(&'a Estimator) -> Box<dyn Hook + 'a>) -> Result<()> {
    let name = {
        let folder = Scratch::new();
        make(&estimator(folder.path())?).name().to_string()
    };
    let place = |what: &str| format!("in the hook contract, {what}, for `{name}`");
    let check = |what: &str, law: Result<()>| law.map_err(|e| e.context(place(what)));
    check("names", name_can_be_stored(&name))?;
    check("bits", training_is_the_same(&make))?;
    check("state", state_comes_back(&make))?;
    check("modes", other_modes_take_it(&make))
}

/// A folder that is removed when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("estimand-hook-contract-{}-{number}", std::process::id())))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the folder cannot be removed, it is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let y = cx.feature("x") * &w;
    let spec = EstimatorSpec::new(cx).prediction("y", &y);
    match cx.mode() {
        Mode::Predict => Ok(spec),
        _ => {
            let loss = (&y - cx.label()).square().mean();
            Ok(spec.loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.1)))
        }
    }
}

fn estimator(folder: &Path) -> Result<Estimator> {
    let config = RunConfig::new().tf_random_seed(3).threads(1).save_checkpoints(Every::Steps(1_000));
    Estimator::new(model).config(config).model_dir(folder).build()
}

fn train(estimator: &Estimator, hook: Option<Box<dyn Hook + '_>>, max_steps: u64) -> Result<()> {
    let spec = TrainSpec::new(rows().repeat_forever()).max_steps(max_steps);
    let finished = match hook {
        Some(hook) => estimator.train(spec.hook(hook))?,
        None => estimator.train(spec)?,
    };
    let reason = finished.reason;
    ensure(finished.global_step == max_steps, || format!("training ended at step {}: {reason}", finished.global_step))
}

/// Returns all variables of the newest checkpoint.
fn variables(folder: &Path) -> Result<Vec<(String, Array)>> {
    let reader = BundleReader::open(folder.join(format!("model.ckpt-{STEPS}")))?;
    let names = reader.names().filter(|name| !is_own(name)).map(str::to_string).collect::<Vec<_>>();
    names.into_iter().map(|name| Ok((name.clone(), reader.read(&name)?))).collect()
}

fn name_can_be_stored(name: &str) -> Result<()> {
    let fine = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    ensure(fine, || format!("the name of the hook is `{name}`; expected small letters, digits and `_`"))
}

fn training_is_the_same(make: &impl for<'a> Fn(&'a Estimator) -> Box<dyn Hook + 'a>) -> Result<()> {
    let (bare, whole, parts) = (Scratch::new(), Scratch::new(), Scratch::new());
    train(&estimator(bare.path())?, None, STEPS)?;
    let expected = variables(bare.path())?;
    for (folder, stops) in [(&whole, &[STEPS][..]), (&parts, &[INTERRUPTED, STEPS])] {
        for &stop in stops {
            let estimator = estimator(folder.path())?;
            train(&estimator, Some(make(&estimator)), stop)?;
        }
        let found = variables(folder.path())?;
        ensure(found == expected, || format!("variables differ after stops at {stops:?}"))?;
    }
    Ok(())
}

fn state_comes_back(make: &impl for<'a> Fn(&'a Estimator) -> Box<dyn Hook + 'a>) -> Result<()> {
    let folder = Scratch::new();
    let estimator = estimator(folder.path())?;
    let mut restored = make(&estimator);
    train(&estimator, Some(make(&estimator)), STEPS)?;
    let reader = BundleReader::open(folder.path().join(format!("model.ckpt-{STEPS}")))?;
    let Some(state) = hook_state(&reader, restored.name())? else { return Ok(()) };
    restored.restore(&state)?;
    ensure(restored.state().as_ref() == Some(&state), || "the state is different after it was restored".to_string())?;
    for length in 0..state.len() {
        let refused = make(&estimator).restore(&state[..length]).is_err();
        ensure(refused, || {
            format!("the hook accepted {length} bytes of a state of {}; expected an error", state.len())
        })?;
    }
    Ok(())
}

fn other_modes_take_it(make: &impl for<'a> Fn(&'a Estimator) -> Box<dyn Hook + 'a>) -> Result<()> {
    let folder = Scratch::new();
    let estimator = estimator(folder.path())?;
    estimator.evaluate(EvalSpec::new(rows()).hook(make(&estimator)))?;
    let asked = PredictSpec::new(rows()).untrained().hook(make(&estimator));
    let n_rows = estimator.predict(asked).collect::<Result<Vec<_>>>()?.len();
    ensure(n_rows == 10, || format!("there were {n_rows} predictions for 10 rows"))
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::config(message())) }
}
