//! The collections of a graph: what loaders find in it by name.

use std::collections::BTreeMap;

use estimand_wire::collection_def::{Any, AnyList, BytesList, Collection, CollectionDef, NodeList};
use estimand_wire::{AssetFileDef, Message, VariableDef};

use super::nodes::Initial;
use crate::graph_def::{Asset, Handle};

/// TensorFlow's name of the variable that counts training steps.
const GLOBAL_STEP: &str = "global_step";

/// Collections by name.
#[derive(Default)]
pub(super) struct Collections(BTreeMap<String, CollectionDef>);

impl Collections {
    pub(super) fn into_inner(self) -> BTreeMap<String, CollectionDef> {
        self.0
    }

    fn add(&mut self, name: &str, kind: Collection) {
        self.0.insert(name.to_string(), CollectionDef { kind: Some(kind) });
    }

    /// Lists nodes under a name, if there are any.
    pub(super) fn nodes(&mut self, name: &str, nodes: Vec<String>) {
        if !nodes.is_empty() {
            self.add(name, Collection::NodeList(NodeList { value: nodes }));
        }
    }

    /// Lists the variables by their kinds, under TensorFlow's names.
    pub(super) fn variables(&mut self, variables: &[(Handle, Initial)]) {
        let mut list = |name: &str, keep: fn(&Handle) -> bool| {
            let kept = variables.iter().filter(|(handle, _)| keep(handle));
            let value: Vec<_> = kept.map(|(handle, own)| own.message(handle).encode_to_vec()).collect();
            if !value.is_empty() {
                self.add(name, Collection::BytesList(BytesList { value }));
            }
        };
        list("variables", |handle| !handle.is_local);
        list("trainable_variables", |handle| handle.is_trainable);
        list("global_step", |handle| handle.variable == GLOBAL_STEP);
        // TF: whoever evaluates over several batches resets and reads the second.
        list("local_variables", |handle| handle.is_local);
        list("metric_variables", |handle| handle.is_local);
    }

    /// Lists the files that the graph reads.
    pub(super) fn assets(&mut self, assets: &[Asset], files: &[AssetFileDef]) {
        self.nodes("asset_filepaths", assets.iter().map(|asset| asset.tensor.clone()).collect());
        let any = |file: &AssetFileDef| Any {
            type_url: "type.googleapis.com/tensorflow.AssetFileDef".to_string(),
            value: file.encode_to_vec(),
        };
        if !files.is_empty() {
            self.add("saved_model_assets", Collection::AnyList(AnyList { value: files.iter().map(any).collect() }));
        }
    }
}

impl Initial {
    fn message(&self, handle: &Handle) -> VariableDef {
        VariableDef {
            variable_name: format!("{}:0", handle.node),
            initializer_name: self.assign.clone(),
            snapshot_name: format!("{}:0", self.read),
            is_resource: true,
            initial_value_name: format!("{}:0", self.value),
            trainable: handle.is_trainable,
            ..VariableDef::default()
        }
    }
}
