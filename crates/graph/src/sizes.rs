//! Sizes at run time: checks the fed arrays, and computes the value of every symbol and the sizes
//! of every shape.
//!
//! Executors do this once at the beginning of a run, before any kernel. Results of the host are fed
//! in the same way as placeholders.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_tensor::{Array, DType, Dim, Dims, Error, Result, Shape, Symbol, element_count};

use crate::body::Body;
use crate::looks::look;
use crate::op::Op;
use crate::pass::each_dim;
use crate::program::Program;
use crate::sources::Sources;
use crate::symbols::SymbolDef;
use crate::value::Value;

/// The sizes that a program needs, and the source of each. Computed once, when the program is
/// compiled.
#[derive(Debug)]
pub struct SizePlan {
    /// In the order of definition, so that formulas come after their parts.
    symbols: Arc<[Symbol]>,
    origins: Vec<Origin>,
    feeds: Vec<Fed>,
    /// The axes of feeds whose sizes come from elsewhere.
    shared: Vec<SharedAxis>,
}

/// An axis of a feed whose size is that of a symbol, by its index in the plan.
#[derive(Clone, Copy, Debug)]
struct SharedAxis {
    feed: usize,
    axis: usize,
    at: usize,
}

/// What is expected of a feed.
#[derive(Debug)]
struct Fed {
    dtype: DType,
    dims: Vec<FedDim>,
}

/// What is expected of an axis of a feed.
#[derive(Clone, Copy, Debug)]
enum FedDim {
    Known(usize),
    /// The rows of the batch, and some more.
    Rows(usize),
    /// The value of a symbol, by its index in the plan.
    At(usize),
}

/// The source of a symbol's value in a run.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Batch,
    /// The size of an axis of a feed.
    Axis(usize, usize),
    /// The value of a feed that is a single integer.
    Number(usize),
    Formula(SymbolDef, Operand, Operand),
    /// The size of a value that this program is not fed.
    Unknown,
}

/// An operand of a formula.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Known(usize),
    /// The index of a symbol in the plan.
    At(usize),
}

/// The values of a program's symbols in one run.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    symbols: Arc<[Symbol]>,
    values: Vec<Option<usize>>,
}

impl Sizes {
    fn get(&self, dim: Dim) -> Option<usize> {
        match dim {
            Dim::Known(n) => Some(n),
            Dim::Sym(symbol) => self.symbols.binary_search(&symbol).ok().and_then(|at| self.values.get(at).copied()?),
        }
    }

    /// Whether all values are the same. Both sets must belong to the same program.
    pub fn equal(&self, other: &Sizes) -> bool {
        self.values == other.values
    }

    /// Copies the values of another run of the program, and reuses the memory.
    pub fn copy_from(&mut self, other: &Sizes) {
        self.symbols.clone_from(&other.symbols);
        self.values.clone_from(&other.values);
    }
}

impl SizePlan {
    pub fn new(program: &Program) -> SizePlan {
        let body = program.body();
        let mut sources = Sources::default();
        let mut need = |dim: Dim| sources.each(body.symbols(), dim, &mut |_| {});
        let steps = program.steps();
        let values = steps.iter().flat_map(|step| step.inputs.iter().chain(&step.outputs));
        for &value in values.chain(program.feeds()).chain(program.fetches()) {
            body.spec(value).shape.dims().iter().for_each(|&dim| need(dim));
        }
        for node in steps.iter().flat_map(|step| step.kernel.nodes()) {
            each_dim(body.node(node), &mut need);
        }
        let mut symbols: Vec<Symbol> = sources.into_seen().into_iter().collect();
        symbols.sort_unstable();
        let feeds: HashMap<Value, usize> = program.feeds().iter().enumerate().map(|(i, &value)| (value, i)).collect();
        let operand = |dim: Dim| match dim {
            Dim::Known(n) => Operand::Known(n),
            // The plan contains the parts of every formula that it contains.
            Dim::Sym(symbol) => Operand::At(symbols.binary_search(&symbol).unwrap_or(usize::MAX)),
        };
        let origin = |&symbol: &Symbol| {
            look(1);
            match body.symbols().def(symbol) {
                SymbolDef::Batch => Origin::Batch,
                SymbolDef::Axis(value, axis) => feeds.get(&value).map_or(Origin::Unknown, |&i| Origin::Axis(i, axis)),
                SymbolDef::Number(value) => feeds.get(&value).map_or(Origin::Unknown, |&i| Origin::Number(i)),
                def => match def.parts() {
                    Some((a, b)) => Origin::Formula(def, operand(a), operand(b)),
                    None => Origin::Unknown,
                },
            }
        };
        let origins: Vec<Origin> = symbols.iter().map(origin).collect();
        let fed_dim = |&dim: &Dim| match (body.symbols().beyond_batch(dim), operand(dim)) {
            (Some(beyond), _) => FedDim::Rows(beyond),
            (None, Operand::Known(n)) => FedDim::Known(n),
            (None, Operand::At(at)) => FedDim::At(at),
        };
        let fed = |&value: &Value| {
            let spec = body.spec(value);
            Fed { dtype: spec.dtype, dims: spec.shape.dims().iter().map(fed_dim).collect() }
        };
        let feeds: Vec<Fed> = program.feeds().iter().map(fed).collect();
        let mut shared = Vec::new();
        for (feed, fed) in feeds.iter().enumerate() {
            for (axis, dim) in fed.dims.iter().enumerate() {
                let &FedDim::At(at) = dim else { continue };
                let is_own = matches!(origins.get(at), Some(&Origin::Axis(f, a)) if (f, a) == (feed, axis));
                if !is_own {
                    shared.push(SharedAxis { feed, axis, at });
                }
            }
        }
        SizePlan { origins, feeds, shared, symbols: symbols.into() }
    }

    /// Checks one array for each of the program's feeds and computes all sizes.
    pub fn bind(&self, program: &Program, feeds: &[Array], sizes: &mut Sizes) -> Result<()> {
        let body = program.body();
        if feeds.len() != program.feeds().len() {
            let names: Vec<String> = program.feeds().iter().map(|v| format!("`{}`", body.node(v.node).name)).collect();
            return Err(Error::config(format!(
                "{} values were fed for {} placeholders; expected one for each of {}",
                feeds.len(),
                names.len(),
                names.join(", ")
            )));
        }
        let batch = self.batch(program, feeds)?;
        if !Arc::ptr_eq(&sizes.symbols, &self.symbols) {
            sizes.symbols = self.symbols.clone();
        }
        let values = &mut sizes.values;
        values.clear();
        look(self.origins.len());
        for origin in &self.origins {
            let size = |operand: Operand| match operand {
                Operand::Known(n) => Some(n),
                Operand::At(at) => values.get(at).copied().flatten(),
            };
            let value = match *origin {
                Origin::Batch => batch,
                Origin::Axis(feed, axis) => feeds[feed].dims().get(axis).copied(),
                Origin::Number(feed) => Some(number(body, program.feeds()[feed], &feeds[feed])?),
                Origin::Formula(def, a, b) => match (size(a), size(b)) {
                    (Some(a), Some(b)) => Some(def.apply(a, b).map_err(|e| self.located(program, values.len(), e))?),
                    _ => None,
                },
                Origin::Unknown => None,
            };
            values.push(value);
        }
        // A placeholder may be declared with sizes of other placeholders, which are known only now.
        for &SharedAxis { feed, axis, at } in &self.shared {
            let array = &feeds[feed];
            let expected = values.get(at).copied().flatten();
            if expected.is_some_and(|expected| array.dims()[axis] != expected) {
                return Err(unexpected(body, program.feeds()[feed], array, Error::shape));
            }
        }
        Ok(())
    }

    /// Checks dtype, rank and known sizes of the feeds, and returns the number of rows of those
    /// with a batch axis. All must have the same number.
    fn batch(&self, program: &Program, feeds: &[Array]) -> Result<Option<usize>> {
        let body = program.body();
        let name = |i: usize| &body.node(program.feeds()[i].node).name;
        let mut batch: Option<(usize, usize)> = None;
        for (i, (fed, array)) in self.feeds.iter().zip(feeds).enumerate() {
            let differs = |(dim, &size): (&FedDim, &usize)| match *dim {
                FedDim::Known(known) => known != size,
                FedDim::Rows(beyond) => size < beyond,
                FedDim::At(_) => false,
            };
            let dims = array.dims();
            let is_other = array.dtype() != fed.dtype || dims.len() != fed.dims.len();
            if is_other || fed.dims.iter().zip(dims).any(differs) {
                let fed = program.feeds()[i];
                check_feed(body, fed, array)?;
                return Err(unexpected(body, fed, array, Error::shape));
            }
            for (dim, &size) in fed.dims.iter().zip(dims) {
                let &FedDim::Rows(beyond) = dim else { continue };
                let rows = size - beyond;
                match batch {
                    None => batch = Some((i, rows)),
                    Some((first, n)) if n != rows => {
                        let (first, fed) = (name(first), name(i));
                        return Err(Error::shape(format!(
                            "placeholder `{first}` was fed {n} rows, but `{fed}` was fed {rows}; \
                             expected the same number of rows"
                        )));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(batch.map(|(_, rows)| rows))
    }

    /// Adds the name of the first node that has this size to the error.
    fn located(&self, program: &Program, at: usize, error: Error) -> Error {
        let (body, symbol) = (program.body(), self.symbols[at]);
        let has = |value: &&Value| body.spec(**value).shape.dims().contains(&Dim::Sym(symbol));
        let outputs = program.steps().iter().flat_map(|step| &step.outputs);
        match outputs.chain(program.fetches()).find(has) {
            None => error,
            Some(value) => {
                let node = body.node(value.node);
                error.context(format!("in {} `{}`", node.op.name(), node.name)).at(node.site)
            }
        }
    }
}

/// Reads a size from a computed value.
fn number(body: &Body, value: Value, array: &Array) -> Result<usize> {
    let n = match array.dtype() {
        DType::I32 => i64::from(array.item::<i32>()?),
        _ => array.item::<i64>()?,
    };
    usize::try_from(n).map_err(|_| {
        let node = body.node(value.node);
        Error::shape(format!("`{}` computes the size {n}; expected 0 or more", node.name)).at(node.site)
    })
}

/// Checks dtype, rank and known sizes of an array that is fed to a placeholder.
pub fn check_feed(body: &Body, fed: Value, array: &Array) -> Result<()> {
    let spec = body.spec(fed);
    if array.dtype() != spec.dtype {
        return Err(unexpected(body, fed, array, |text| Error::dtype(Some(spec.dtype), array.dtype(), text)));
    }
    let differs = |(dim, &size): (&Dim, &usize)| dim.known().is_some_and(|known| known != size);
    if array.rank() != spec.shape.rank() || spec.shape.dims().iter().zip(array.dims()).any(differs) {
        return Err(unexpected(body, fed, array, Error::shape));
    }
    Ok(())
}

fn unexpected(body: &Body, fed: Value, array: &Array, error: impl FnOnce(String) -> Error) -> Error {
    let node = body.node(fed.node);
    let (dtype, dims, spec) = (array.dtype(), array.dims(), body.spec(fed));
    let text = match node.op {
        Op::Placeholder(_) => format!("placeholder `{}` was fed {dtype}{dims:?}, expected {spec}", node.name),
        _ => format!("output {} of `{}` is {dtype}{dims:?}, expected {spec}", fed.output, node.name),
    };
    error(text).at(node.site)
}

/// Returns the value of one size.
pub fn resolve_dim(dim: Dim, sizes: &Sizes) -> Result<usize> {
    sizes.get(dim).ok_or_else(|| {
        Error::shape(format!("the size `{dim}` is not known in this run"))
            .help("feed the placeholder that the size comes from")
    })
}

/// Returns the sizes of a shape. An array of these sizes fits the address space.
pub fn resolve(shape: &Shape, sizes: &Sizes) -> Result<Dims> {
    let dims: Dims = shape.dims().iter().map(|&dim| resolve_dim(dim, sizes)).collect::<Result<_>>()?;
    element_count(&dims)?;
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Tensor};

    fn bind(fetch: &Tensor, feeds: &[Array]) -> Result<Sizes> {
        let program = Program::plain(Arc::new(fetch.graph().body().clone()), &[fetch.value()])?;
        let mut sizes = Sizes::default();
        SizePlan::new(&program).bind(&program, feeds, &mut sizes).map(|()| sizes)
    }

    fn array(dims: &[usize]) -> Array {
        Array::zeros(DType::F32, dims).unwrap()
    }

    #[test]
    fn what_is_fed_decides_every_size() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY]);
        let y = g.placeholder("y", DType::F32, [Dim::BATCH, 2.into()]);
        let joined = Tensor::concat(&[&x, &y], 1);
        let values = bind(&joined, &[array(&[3, 5]), array(&[3, 2])]).unwrap();
        assert_eq!(resolve(joined.shape(), &values).unwrap().as_slice(), [3, 7]);
    }

    #[test]
    fn errors_name_placeholders_and_sizes() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
        let y = g.placeholder("y", DType::F32, [Dim::BATCH, 2.into()]);
        let width = g.placeholder("w", DType::F32, [Graph::ANY]);
        let same = g.placeholder("v", DType::F32, [width.shape().dims()[0]]);
        let sum = &x + &y;
        let vectors = &width + &same;
        for (error, text) in [
            (bind(&sum, &[array(&[3, 2])]), "1 values were fed for 2 placeholders; expected one for each of `x`, `y`"),
            (bind(&sum, &[array(&[3, 2]), array(&[4, 2])]), "`x` was fed 3 rows, but `y` was fed 4"),
            (bind(&sum, &[array(&[3, 2]), array(&[3, 1])]), "`y` was fed f32[3, 1], expected f32[batch, 2]"),
            (bind(&sum, &[array(&[3, 2]), array(&[3])]), "`y` was fed f32[3], expected f32[batch, 2]"),
            (bind(&x, &[Array::zeros(DType::I64, [3, 2]).unwrap()]), "`x` was fed i64[3, 2], expected f32[batch, 2]"),
            (bind(&vectors, &[array(&[3]), array(&[4])]), "`v` was fed f32[4], expected"),
        ] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains(text), "{error} should contain {text}");
        }
        assert!(resolve(x.shape(), &Sizes::default()).unwrap_err().to_string().contains("`batch` is not known"));
    }
}
