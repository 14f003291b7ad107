//! Nodes without inputs: what is fed, fixed, read, counted or drawn.

use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_wire::{NodeDef, TensorProto, TensorShapeProto};

use super::{Writer, typed};
use crate::graph::NodeId;
use crate::op::RandomKind;
use crate::variables::VarId;

impl Writer<'_> {
    /// Writes a placeholder unless it is written already, and returns its name.
    pub(super) fn placeholder(&mut self, id: NodeId) -> String {
        let name = self.names.node(id).to_string();
        if self.placeholders.insert(id) {
            let spec = &self.body.node(id).outputs[0];
            let sizes = spec.shape.dims().iter().map(|d| d.known().map_or(-1, |n| n as i64));
            let def = typed(NodeDef::new(name.clone(), "Placeholder"), "dtype", spec.dtype);
            self.written.push(def.attr("shape", TensorShapeProto::of(sizes)));
        }
        name
    }

    /// Reads a variable.
    pub(super) fn variable(&mut self, def: NodeDef, id: VarId) -> NodeDef {
        let handle = self.handle(id);
        self.reads.entry(id).or_default().push(def.name.clone());
        typed(NodeDef { op: "ReadVariableOp".into(), ..def }, "dtype", self.body.variables().spec(id).dtype)
            .input(handle)
    }

    /// The node that holds a variable's handle. Checkpoints know a variable by its `shared_name`.
    pub(super) fn handle(&mut self, id: VarId) -> String {
        if let Some(name) = self.handles.get(&id) {
            return name.clone();
        }
        let spec = self.body.variables().spec(id);
        let def = NodeDef::new(self.names.unused(&spec.name), "VarHandleOp");
        let def = typed(def, "dtype", spec.dtype)
            .attr("shape", TensorShapeProto::of(spec.dims.iter().map(|&n| n as i64)))
            .attr("shared_name", spec.name.as_str());
        let name = self.add(def);
        self.handles.insert(id, name.clone());
        name
    }

    pub(super) fn dim_size(&mut self, def: NodeDef, dim: Dim, dtype: DType) -> Result<NodeDef> {
        let size = self.size(dim, &def.name, "size")?;
        Ok(typed(typed(NodeDef { op: "Cast".into(), ..def }, "SrcT", DType::I32), "DstT", dtype).input(size))
    }

    pub(super) fn range(&mut self, def: NodeDef, dim: Dim, dtype: DType) -> Result<NodeDef> {
        let start = self.int(&def.name, "start", 0)?;
        let limit = self.size(dim, &def.name, "limit")?;
        let delta = self.int(&def.name, "delta", 1)?;
        // TF: counts in floats differ from counts in integers at the end; ours are integers.
        let numbers = self.part(&def.name, "range", "Range").input(start).input(limit).input(delta);
        let numbers = self.add(typed(numbers, "Tidx", DType::I32));
        Ok(typed(typed(NodeDef { op: "Cast".into(), ..def }, "SrcT", DType::I32), "DstT", dtype).input(numbers))
    }

    /// Draws from the same distribution as ours, but other numbers.
    pub(super) fn random(&mut self, def: NodeDef, kind: RandomKind, shape: &Shape, key: &str) -> Result<NodeDef> {
        let sizes = self.shape(&def.name, "shape", shape.dims(), DType::I32)?;
        let def = typed(def, "T", DType::I32).input(sizes).attr("seed", 0i64).attr("seed2", seed(key));
        let floats = |op: &str, def: NodeDef| typed(NodeDef { op: op.into(), ..def }, "dtype", DType::F32);
        Ok(match kind {
            RandomKind::Uniform => floats("RandomUniform", def),
            RandomKind::Normal => floats("RandomStandardNormal", def),
            RandomKind::TruncatedNormal => floats("TruncatedNormal", def),
            RandomKind::Integers { low, high } => {
                let low = self.constant(&def.name, "minval", &Array::scalar(low))?;
                let high = self.constant(&def.name, "maxval", &Array::scalar(high))?;
                let def = NodeDef { op: "RandomUniformInt".into(), ..def };
                typed(def, "Tout", DType::I64).input(low).input(high)
            }
        })
    }
}

/// A seed that tells streams apart by their keys: positive, since TensorFlow takes 0 for "none".
fn seed(key: &str) -> i64 {
    let hash =
        key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 33) as i64 | 1
}

/// A value fixed in the graph.
pub(super) fn constant(def: NodeDef, value: &Array) -> Result<NodeDef> {
    Ok(typed(def, "dtype", value.dtype()).attr("value", TensorProto::from_array(value)))
}
