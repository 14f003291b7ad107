//! Limits on the resources that a file may request.

use estimand_tensor::{Error, Result};
use estimand_wire::{GraphDef, Message, TensorProto, scan};

/// The factor by which a node's result may exceed its inputs if they are large, and by which all
/// nodes may exceed the sizes that the graph begins with.
pub(super) const FACTOR: usize = 4;

/// Limits on graphs that are read from files: [`GraphDef`]s and SavedModels.
///
/// A few kilobytes of a file can request any amount of memory or time. The defaults are far above
/// the needs of real models. A file beyond a limit is refused before the memory is allocated. The
/// error names the limit.
///
/// Messages may be nested 100 deep, as everywhere in protobuf. This limit is not configurable.
///
/// ```
/// use estimand_tf::saved_model::ReadLimits;
/// use estimand_wire::{GraphDef, Message, NodeDef};
///
/// let graph = GraphDef { node: vec![NodeDef::new("a", "NoOp"), NodeDef::new("b", "NoOp")], ..Default::default() };
/// let error = ReadLimits::default().nodes(1).decode_graph_def(&graph.encode_to_vec()).unwrap_err();
/// assert!(error.to_string().contains("2 nodes; the limit is 1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReadLimits {
    file_bytes: u64,
    nodes: usize,
    functions: usize,
    attribute_values: usize,
    repeated_bytes: usize,
    elements: usize,
    evaluated_nodes: usize,
    loop_steps: usize,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            file_bytes: 2 << 30,
            nodes: 1_000_000,
            functions: 100_000,
            attribute_values: 10_000_000,
            repeated_bytes: 1 << 30,
            elements: 1 << 28,
            evaluated_nodes: 20_000_000,
            loop_steps: 100_000,
        }
    }
}

impl ReadLimits {
    /// Limits the bytes of a graph's file. By default, 2 GiB, the maximum of protobuf.
    pub fn file_bytes(mut self, n: u64) -> ReadLimits {
        self.file_bytes = n;
        self
    }

    /// Limits the nodes of all graphs and functions of a file together, with copies of those of
    /// called functions, and with those that the parts of a split tensor take. By default,
    /// 1,000,000.
    pub fn nodes(mut self, n: usize) -> ReadLimits {
        self.nodes = n;
        self
    }

    /// Limits the functions of a file. By default, 100,000.
    pub fn functions(mut self, n: usize) -> ReadLimits {
        self.functions = n;
        self
    }

    /// Limits the attributes of all nodes, with the entries of lists and the sizes of shapes in
    /// them. By default, 10,000,000.
    pub fn attribute_values(mut self, n: usize) -> ReadLimits {
        self.attribute_values = n;
        self
    }

    /// Limits the bytes that constants take beyond those in the file. A constant may store one
    /// value and repeat it. By default, 1 GiB for all constants of a graph.
    pub fn repeated_bytes(mut self, n: usize) -> ReadLimits {
        self.repeated_bytes = n;
        self
    }

    /// Limits the elements that a node may produce, counted for one row of a batch, unless
    /// variables and constants are nearly as large. By default, 2^28.
    pub fn elements(mut self, n: usize) -> ReadLimits {
        self.elements = n;
        self
    }

    /// Limits the nodes computed while a graph is read, to find the values of inputs that must be
    /// constant. A node counts each time it is computed. By default, 20,000,000.
    pub fn evaluated_nodes(mut self, n: usize) -> ReadLimits {
        self.evaluated_nodes = n;
        self
    }

    /// Limits the steps that a loop takes when a model runs, together with the steps of the loops
    /// inside it. By default, 100,000.
    pub fn loop_steps(mut self, n: usize) -> ReadLimits {
        self.loop_steps = n;
        self
    }

    /// The most steps of a loop.
    pub(super) fn most_loop_steps(&self) -> usize {
        self.loop_steps
    }

    /// Decodes the message of a graph. Counts are checked before anything is decoded.
    pub fn decode_graph_def(&self, bytes: &[u8]) -> Result<GraphDef> {
        self.check_file(bytes.len() as u64)?;
        self.check_messages(bytes, &[])?;
        GraphDef::decode(bytes).map_err(|e| Error::config(format!("the bytes are damaged or not a GraphDef: {e}")))
    }

    pub(super) fn check_file(&self, n: u64) -> Result<()> {
        within(n, self.file_bytes, "bytes in the file", "file_bytes")
    }

    /// Checks a graph that was decoded elsewhere.
    pub(super) fn check_graph(&self, graph: &GraphDef) -> Result<()> {
        let functions = graph.library.as_ref().map_or(&[][..], |library| &library.function[..]);
        let inside: usize = functions.iter().map(|function| function.node_def.len()).sum();
        within(functions.len(), self.functions, "functions", "functions")?;
        within(graph.node.len().saturating_add(inside), self.nodes, "nodes", "nodes")
    }

    /// Counts messages in the bytes of a file. `graph` is the field path of its graphs.
    pub(super) fn check_messages(&self, bytes: &[u8], graph: &[u32]) -> Result<()> {
        let count = |paths: &[&[u32]]| -> usize {
            paths.iter().map(|path| scan::count(bytes, &[graph, *path].concat())).fold(0, usize::saturating_add)
        };
        // GraphDef.library.function, GraphDef.node and FunctionDef.node_def.
        within(count(&[&[2, 1]]), self.functions, "functions", "functions")?;
        let nodes: [&[u32]; 2] = [&[1], &[2, 1, 3]];
        within(count(&nodes), self.nodes, "nodes", "nodes")?;
        // NodeDef.attr; in it AttrValue.shape.dim, AttrValue.tensor.tensor_shape.dim, and
        // AttrValue.list with its strings, shapes, their sizes, tensors, their sizes, and
        // functions.
        let values: [&[u32]; 9] = [
            &[5],
            &[5, 2, 7, 2],
            &[5, 2, 8, 2, 2],
            &[5, 2, 1, 2],
            &[5, 2, 1, 7],
            &[5, 2, 1, 7, 2],
            &[5, 2, 1, 8],
            &[5, 2, 1, 8, 2, 2],
            &[5, 2, 1, 9],
        ];
        let paths: Vec<Vec<u32>> = nodes.iter().flat_map(|node| values.map(|value| [*node, value].concat())).collect();
        let paths: Vec<&[u32]> = paths.iter().map(Vec::as_slice).collect();
        within(count(&paths), self.attribute_values, "values of attributes", "attribute_values")
    }

    /// Adds the repeated bytes of a constant that is about to be created to the sum, and checks the
    /// sum.
    pub(super) fn add_repeated(&self, sum: &mut usize, tensor: &TensorProto) -> Result<()> {
        *sum = sum.saturating_add(tensor.declared_bytes()?.saturating_sub(tensor.encoded_len()));
        within(*sum, self.repeated_bytes, "bytes of repeated constants", "repeated_bytes")
    }

    /// Checks the sums of nodes and bytes that calls of functions copy.
    pub(super) fn check_copies(&self, nodes: usize, bytes: usize) -> Result<()> {
        within(nodes, self.nodes, "nodes with those of called functions", "nodes")?;
        within(bytes, self.repeated_bytes, "bytes in the nodes of called functions", "repeated_bytes")
    }

    /// Checks the sum of nodes, with those that the parts of tensors take.
    pub(super) fn check_parts(&self, nodes: usize) -> Result<()> {
        within(nodes, self.nodes, "nodes with those for the parts of tensors", "nodes")
    }

    /// Checks the number of elements that a node produces, given `sources` elements of variables,
    /// constants and feeds.
    pub(super) fn check_elements(&self, n: usize, sources: usize) -> Result<()> {
        if n <= sources.saturating_mul(FACTOR) {
            return Ok(());
        }
        within(n, self.elements, "elements for each row of a batch", "elements")
    }

    /// Adds nodes that are about to be computed to the sum, and checks the sum.
    pub(super) fn add_evaluated(&self, sum: &mut usize, n: usize) -> Result<()> {
        *sum = sum.saturating_add(n);
        within(*sum, self.evaluated_nodes, "nodes to compute while reading", "evaluated_nodes")
    }
}

fn within<T: PartialOrd + std::fmt::Display>(n: T, limit: T, what: &str, setter: &str) -> Result<()> {
    if n <= limit {
        return Ok(());
    }
    Err(Error::unsupported(format!("there are {n} {what}; the limit is {limit}"))
        .help(format!("the file may be damaged; if not, raise the limit with ReadLimits::default().{setter}(..)")))
}
