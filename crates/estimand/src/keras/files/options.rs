//! Options of reading and writing whole models.

use estimand_tensor::Limits;

use crate::keras::json::KerasVersion;

/// How [`load_model_with`](super::load_model_with) reads a model.
///
/// ```
/// use estimand::keras::LoadModel;
/// // Only the architecture and the weights.
/// let options = LoadModel::new().compile(false);
/// ```
#[derive(Clone, Copy, Default, Debug)]
#[must_use]
pub struct LoadModel {
    pub(super) compile: Option<bool>,
    pub(super) limits: Limits,
}

impl LoadModel {
    /// Compiles the model as its file says, if that is possible here.
    pub fn new() -> LoadModel {
        LoadModel::default()
    }

    /// Whether the model is compiled. With `false`, the file's optimizer, losses and metrics are
    /// not read. With `true`, it is an error if the file has none, or has some that Estimand has
    /// not.
    ///
    /// By default such a model is loaded and not compiled. A warning tells why, and so does the
    /// error of a call that needs a compiled model.
    pub fn compile(mut self, compile: bool) -> LoadModel {
        self.compile = Some(compile);
        self
    }

    /// How much the file may demand of its reader. By default, [`Limits::default`].
    ///
    /// ```
    /// use estimand::keras::{Limits, LoadModel};
    /// // A file with more links than is usual.
    /// let options = LoadModel::new().limits(Limits { entries: 8_000_000, ..Limits::default() });
    /// ```
    pub fn limits(mut self, limits: Limits) -> LoadModel {
        self.limits = limits;
        self
    }
}

/// How [`Model::save_with`](crate::keras::Model::save_with) writes a model.
///
/// ```
/// use estimand::keras::{KerasVersion, SaveModel};
/// let options = SaveModel::new().version(KerasVersion::Keras2).include_optimizer(false);
/// ```
#[derive(Clone, Copy, Default, Debug)]
#[must_use]
pub struct SaveModel {
    pub(super) version: KerasVersion,
    pub(super) include_optimizer: Option<bool>,
}

impl SaveModel {
    /// Writes a file for Keras 3, with the optimizer if Keras has it.
    pub fn new() -> SaveModel {
        SaveModel::default()
    }

    /// The version of Keras that is to open the file. By default Keras 3.
    pub fn version(mut self, version: KerasVersion) -> SaveModel {
        self.version = version;
        self
    }

    /// Whether the file says how the model is compiled, and has the state of its optimizer. With
    /// `true`, it is an error if the model is not compiled, or has an optimizer, a loss or a metric
    /// that Keras has not.
    ///
    /// By default such a model is written without them. A warning tells why, unless the model is
    /// not compiled. A `.h5` file for Keras 3 has the arguments of `compile` and no state, because
    /// Keras 3 cannot go on with it there; `true` is an error then.
    pub fn include_optimizer(mut self, include: bool) -> SaveModel {
        self.include_optimizer = Some(include);
        self
    }
}
