//! Feeds the input of a run once its session is there.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use estimand_tensor::{Error, Result};

use super::{Hook, HookContext};

/// Initializes the iterator of an input function: the `IteratorInitializerHook` that programs of
/// TensorFlow 1 define. A new program returns a [`Dataset`](estimand_data::Dataset) that holds its
/// data, and needs no such hook.
///
/// The input function makes [`Placeholders`](estimand_data::Placeholders) and gives the hook a
/// function that feeds them. The hook calls it in `after_create_session`: after variables got their
/// initial or restored values, and before the first batch. A clone of the hook is the same hook.
///
/// A resumed training goes on at the next row of the arrays, as with any input. TensorFlow begins
/// them anew. Neither the arrays nor the function are in checkpoints.
///
/// ```
/// use estimand::data::Placeholders;
/// use estimand::hook::IteratorInitializerHook;
/// use estimand::prelude::*;
///
/// fn get_train_inputs(x: Array, y: Array) -> (impl Fn(&InputFnContext<'_>) -> Result<Dataset>, IteratorInitializerHook<'static>) {
///     let hook = IteratorInitializerHook::new();
///     let initializer = hook.clone();
///     let train_inputs = move |_: &InputFnContext<'_>| {
///         let placeholders = Placeholders::like([("x", &x), ("y", &y)]);
///         let dataset = placeholders.dataset().label("y").repeat_forever().shuffle(1000, 7).batch(2);
///         // The arrays share their memory with the dataset.
///         let (x, y) = (x.clone(), y.clone());
///         initializer.iterator_initializer_func(move |_| placeholders.feed([("x", x.clone()), ("y", y.clone())]));
///         Ok(dataset)
///     };
///     (train_inputs, hook)
/// }
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-iterator-{}", std::process::id()));
/// # let columns = columns![numeric_column("x")];
/// # let estimator = LinearRegressor::new(columns).model_dir(&folder).build()?;
/// let (x, y) = (Array::from([1f32, 2.0, 3.0, 4.0]), Array::from([3f32, 6.0, 9.0, 12.0]));
/// let (train_inputs, train_input_hook) = get_train_inputs(x, y);
/// estimator.train(TrainSpec::new(train_inputs).hook(train_input_hook).max_steps(10))?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct IteratorInitializerHook<'a> {
    initializer: Rc<RefCell<Option<Initializer<'a>>>>,
}

type Initializer<'a> = Box<dyn FnMut(&mut HookContext<'_>) -> Result<()> + 'a>;

impl<'a> IteratorInitializerHook<'a> {
    /// Makes a hook without a function.
    pub fn new() -> IteratorInitializerHook<'a> {
        IteratorInitializerHook::default()
    }

    /// Sets the function that initializes the iterator, in place of an earlier one. The input
    /// function calls this: it runs once in each training, evaluation and prediction.
    pub fn iterator_initializer_func(&self, initializer: impl FnMut(&mut HookContext<'_>) -> Result<()> + 'a) {
        *self.initializer.borrow_mut() = Some(Box::new(initializer));
    }
}

impl Hook for IteratorInitializerHook<'_> {
    fn name(&self) -> &str {
        "iterator_initializer"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &mut *self.initializer.borrow_mut() {
            Some(initialize) => initialize(cx),
            None => Err(Error::config("the IteratorInitializerHook has no function to call").help(
                "call iterator_initializer_func in the input function of this run, on the hook or a clone of it",
            )),
        }
    }
}

impl fmt::Debug for IteratorInitializerHook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.initializer.try_borrow().is_ok_and(|function| function.is_some());
        f.debug_struct("IteratorInitializerHook").field("is_set", &is_set).finish()
    }
}
