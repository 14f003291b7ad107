//! The list of hooks that the contract test covers.

use estimand_data::Dataset;
use estimand_tensor::Array;

use super::{
    CheckpointSaverHook, CsvLogHook, EarlyStoppingHook, FeedFnHook, FinalOpsHook, GlobalStepWaiterHook, Hook,
    InMemoryEvaluatorHook, IteratorInitializerHook, LoggingTensorHook, NanTensorHook, ProfilerHook, StepCounterHook,
    StopAtStepHook, StopIfHook, SummarySaverHook,
};
use crate::{Estimator, Every};

/// A function that makes a hook for a training of an estimator.
pub type HookExample = for<'a> fn(&'a Estimator) -> Box<dyn Hook + 'a>;

/// Every hook of this crate with minimal settings, as examples for the contract test.
pub const ALL_HOOKS: [HookExample; 19] = [
    |_| Box::new(CheckpointSaverHook::new(Every::Steps(2))),
    |_| Box::new(CsvLogHook::new("training.csv", Every::Steps(2)).named("w")),
    |_| Box::new(EarlyStoppingHook::new(|_| Ok(None))),
    |_| Box::new(FeedFnHook::new()),
    |_| Box::new(FinalOpsHook::new().named("w")),
    |_| Box::new(GlobalStepWaiterHook::new(0)),
    |estimator| Box::new(InMemoryEvaluatorHook::new(estimator, rows()).every_n_iter(2)),
    |_| {
        let hook = IteratorInitializerHook::new();
        hook.iterator_initializer_func(|_| Ok(()));
        Box::new(hook)
    },
    |_| Box::new(LoggingTensorHook::new(Every::Steps(2)).named("w").at_end(true)),
    |_| Box::new(NanTensorHook::new()),
    |_| Box::new(ProfilerHook::every(Every::Steps(2))),
    |_| Box::new(StepCounterHook::new(Every::Steps(2))),
    |_| Box::new(StopAtStepHook::at_step(1_000)),
    |_| Box::new(StopAtStepHook::after_steps(1_000)),
    |_| Box::new(StopIfHook::higher("loss", 1e9).every(Every::Steps(1))),
    |_| Box::new(StopIfHook::lower("loss", -1.0).every(Every::Steps(1))),
    |_| Box::new(StopIfHook::no_increase("loss", 1_000).every(Every::Steps(1))),
    |_| Box::new(StopIfHook::no_decrease("loss", 1_000).every(Every::Steps(1))),
    |estimator| Box::new(SummarySaverHook::new(Every::Steps(2)).output_dir(estimator.eval_dir(None))),
];

/// Returns training data for the contract test's model: y = 3 x.
pub(super) fn rows() -> Dataset {
    let x: Vec<f32> = (0..10).map(|i| i as f32 / 10.0).collect();
    let y: Vec<f32> = x.iter().map(|x| 3.0 * x).collect();
    Dataset::from_arrays([("x", Array::from(x)), ("y", Array::from(y))]).label("y").shuffle(10, 1).batch(4)
}
