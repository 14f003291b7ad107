//! Exports of Keras models to ONNX.

use std::path::{Path, PathBuf};

use estimand_graph::{Graph, State};
use estimand_tensor::{Error, Mode, Result};
use indexmap::IndexMap;

use super::model::Model;
use super::replay::{Flags, Replay};
use crate::export::OnnxGraph;

impl Model {
    /// Exports the model as an ONNX file to `base/SECONDS/model.onnx`, where SECONDS is the time in
    /// seconds since 1970, and returns the folder. The feature `onnx` is needed.
    ///
    /// The file has opset 17. Its inputs and outputs have the names of the model's; the size of the
    /// batch is free.
    ///
    /// ```
    /// use estimand::keras::Sequential;
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-keras-onnx-{}", std::process::id()));
    /// let mut model = Sequential::new().input([4]).add(Dense::new(3).softmax()).build()?;
    /// let export = model.export_onnx(&folder)?;
    /// assert!(export.join("model.onnx").exists());
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    pub fn export_onnx(&mut self, base: impl AsRef<Path>) -> Result<PathBuf> {
        let place = |e: Error, name: &str| e.context(format!("in model `{name}`"));
        let graph = Graph::with_mode(Mode::Predict);
        let inputs = self.recipe.placeholders(&graph);
        let flags = Flags::of_model(None, self.trainable);
        let outputs = Replay::new(&self.recipe).call_masked(&graph, &inputs, flags);
        graph.check()?;
        self.weights.extend(graph.body().variables())?;
        let names = self.recipe.input_names().into_iter().map(str::to_string);
        let inputs: IndexMap<String, _> = names.zip(inputs).collect();
        let outputs = self.recipe.output_names().into_iter().zip(outputs.into_iter().map(|output| output.tensor));
        let onnx = OnnxGraph { graph: &graph, inputs, outputs: outputs.collect() };
        let export = |state: &dyn State| onnx.export(base.as_ref(), &*self.weights.executor, state);
        self.weights.with_state(export).map_err(|e| place(e, self.name()))
    }
}
