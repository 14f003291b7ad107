//! Networks as JSON: `{"class_name": "Dnn", "config": {"hidden_units": [4], ..}}`.

use std::sync::Arc;

use estimand_graph::Combiner;
use estimand_nn::config::{self, Described, Field, Json, Node, Read};
use estimand_tensor::Result;

use super::{Baseline, Dnn, DnnLinearCombined, Linear, Network, RnnModel};

/// Where a document says that its networks come from.
const MODULE: &str = "estimand.networks";

/// The combiners by their names in TensorFlow.
pub(super) const COMBINERS: [(&str, Combiner); 3] =
    [("sum", Combiner::Sum), ("mean", Combiner::Mean), ("sqrtn", Combiner::SqrtN)];

/// A class with its reader.
const fn class<N: Network + Described + 'static>() -> (&'static str, Read<Arc<dyn Network>>) {
    (N::CLASS, |config| config::read::<N>(config).map(|network| Arc::new(network) as Arc<dyn Network>))
}

/// Every class that can be read.
const CLASSES: [(&str, Read<Arc<dyn Network>>); 5] =
    [class::<Baseline>(), class::<Dnn>(), class::<DnnLinearCombined>(), class::<Linear>(), class::<RnnModel>()];

/// A network as JSON.
pub(super) fn written<N: Network + Described>(network: &N) -> Result<Json> {
    config::write(MODULE, network)
}

/// Reads a network. Mistakes in its settings are errors.
pub(crate) fn read_network(node: &Node<'_>) -> Result<Arc<dyn Network>> {
    let network = config::read_object(node, "network", &CLASSES)?;
    network.check().map_err(|error| error.context(format!("at {}", node.path())))?;
    Ok(network)
}

/// A network that is a part of another.
#[derive(Clone)]
pub(super) struct Part<N>(pub N);

impl<N: Network + Described + Clone> Field for Part<N> {
    fn write(&self) -> Result<Json> {
        self.0.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Part<N>> {
        let class = node.field("class_name")?;
        match class.text()? == N::CLASS {
            true => config::read(&node.field("config")?).map(Part),
            false => Err(class.expected(&format!("{:?}", N::CLASS))),
        }
    }
}
