//! Feeds placeholders of a model from functions, step by step.

use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};

use super::{BeginContext, Feed, Hook, HookContext};

/// Feeds placeholders that are neither features nor labels. Each has a function, which is called
/// before every step.
///
/// ```
/// use estimand::hook::FeedFnHook;
/// use estimand::prelude::*;
///
/// fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let w = cx.graph().variable("w", [], Initializer::Zeros);
///     let scale = cx.graph().placeholder("scale", DType::F32, [0_usize; 0]);
///     let loss = (cx.feature("x") * &w - cx.label()).square().mean() * scale;
///     Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
/// }
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-feed-{}", std::process::id()));
/// let rows = [("x", Array::from([1.0f32, 2.0])), ("y", Array::from([3.0f32, 6.0]))];
/// let data = Dataset::from_arrays(rows).label("y").repeat(50).batch(2);
/// let hook = FeedFnHook::new().named("scale", |cx| Ok(Array::from(if cx.global_step() < 10 { 0.1f32 } else { 1.0 })));
/// Estimator::new(model).model_dir(&folder).build()?.train(TrainSpec::new(&data).hook(hook))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct FeedFnHook<'a> {
    fed: Vec<Fed<'a>>,
}

type FeedFn<'a> = Box<dyn FnMut(&HookContext<'_>) -> Result<Array> + 'a>;

struct Fed<'a> {
    target: Target,
    value: FeedFn<'a>,
}

enum Target {
    /// Its name, and the line that named it.
    Named(String, &'static Location<'static>),
    Tensor(Tensor),
    Feed(Feed),
}

impl<'a> FeedFnHook<'a> {
    /// Makes a hook without placeholders.
    pub fn new() -> FeedFnHook<'a> {
        FeedFnHook::default()
    }

    /// Adds a placeholder by name. Use it in hooks that are made outside of the model function.
    #[track_caller]
    pub fn named(
        self,
        name: impl Into<String>,
        value: impl FnMut(&HookContext<'_>) -> Result<Array> + 'a,
    ) -> FeedFnHook<'a> {
        self.add(Target::Named(name.into(), Location::caller()), value)
    }

    /// Adds a placeholder. Use it in hooks that a model function makes.
    pub fn tensor(
        self,
        placeholder: &Tensor,
        value: impl FnMut(&HookContext<'_>) -> Result<Array> + 'a,
    ) -> FeedFnHook<'a> {
        self.add(Target::Tensor(placeholder.clone()), value)
    }

    fn add(mut self, target: Target, value: impl FnMut(&HookContext<'_>) -> Result<Array> + 'a) -> FeedFnHook<'a> {
        self.fed.push(Fed { target, value: Box::new(value) });
        self
    }
}

impl Hook for FeedFnHook<'_> {
    fn name(&self) -> &str {
        "feed_fn"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        for Fed { target, .. } in &mut self.fed {
            let tensor = match target {
                Target::Named(name, site) => cx.graph().find(name).map_err(|error| error.at(site))?,
                Target::Tensor(tensor) => tensor.clone(),
                Target::Feed(_) => continue,
            };
            *target = Target::Feed(cx.feed(&tensor)?);
        }
        Ok(())
    }

    #[inline]
    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        for Fed { target, value } in &mut self.fed {
            if let Target::Feed(feed) = target {
                let value = value(cx)?;
                cx.feed(*feed, value);
            }
        }
        Ok(())
    }
}
