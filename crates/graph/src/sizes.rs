//! Sizes at run time: what is fed is checked, gives every symbol its value, and every shape its sizes.
//!
//! Executors do this once at the beginning of a run, before any kernel. What the host has made is fed as a placeholder's value is.

use estimand_tensor::{Array, DType, Dim, Dims, Error, Result, Shape, element_count};

use crate::graph::{Body, Value};
use crate::op::Op;
use crate::program::Program;
use crate::symbols::SymbolDef;

/// Checks one array for each of the program's feeds and evaluates all symbols into `values`.
pub(crate) fn bind_sizes(program: &Program, feeds: &[Array], values: &mut Vec<Option<usize>>) -> Result<()> {
    let body = program.body();
    if feeds.len() != program.feeds().len() {
        let names: Vec<String> = program.feeds().iter().map(|v| format!("`{}`", body.node(v.node).name)).collect();
        return Err(Error::config(format!(
            "{} values for {} placeholders: {}",
            feeds.len(),
            names.len(),
            names.join(", ")
        )));
    }
    let mut batch: Option<(Value, usize)> = None;
    for (&fed, array) in program.feeds().iter().zip(feeds) {
        check_feed(body, fed, array)?;
        for (&dim, &size) in body.spec(fed).shape.dims().iter().zip(array.dims()) {
            let Some(beyond) = body.symbols().beyond_batch(dim) else { continue };
            let Some(rows) = size.checked_sub(beyond) else { return Err(unexpected(body, fed, array, Error::shape)) };
            match batch {
                None => batch = Some((fed, rows)),
                Some((first, n)) if n != rows => {
                    return Err(Error::shape(format!(
                        "placeholder `{}` was fed {n} rows and `{}` {rows}: a batch has one number of rows",
                        body.node(first.node).name,
                        body.node(fed.node).name,
                    )));
                }
                Some(_) => {}
            }
        }
    }
    let array = |value: Value| program.feeds().iter().position(|&fed| fed == value).map(|at| &feeds[at]);
    let given = |def: SymbolDef| match def {
        SymbolDef::Batch => Ok(batch.map(|(_, rows)| rows)),
        SymbolDef::Axis(value, axis) => Ok(array(value).and_then(|a| a.dims().get(axis).copied())),
        SymbolDef::Number(value) => array(value).map(|a| number(body, value, a)).transpose(),
        _ => Ok(None),
    };
    body.symbols().evaluate(given, values)?;
    // A placeholder may be declared with sizes of others; those are known only now.
    for (&fed, array) in program.feeds().iter().zip(feeds) {
        let fits = |(dim, &size): (&Dim, &usize)| size_of(*dim, values).is_none_or(|expected| expected == size);
        if !body.spec(fed).shape.dims().iter().zip(array.dims()).all(fits) {
            return Err(unexpected(body, fed, array, Error::shape));
        }
    }
    Ok(())
}

/// A size that was computed.
fn number(body: &Body, value: Value, array: &Array) -> Result<usize> {
    let n = match array.dtype() {
        DType::I32 => i64::from(array.item::<i32>()?),
        _ => array.item::<i64>()?,
    };
    usize::try_from(n).map_err(|_| {
        let node = body.node(value.node);
        Error::shape(format!("`{}` computes a size of {n}", node.name)).at(node.site)
    })
}

/// Checks dtype, rank and known sizes of what is fed to a placeholder.
pub(crate) fn check_feed(body: &Body, fed: Value, array: &Array) -> Result<()> {
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
        Op::Placeholder => format!("placeholder `{}` was fed {dtype}{dims:?}, expected {spec}", node.name),
        _ => format!("output {} of `{}` is {dtype}{dims:?}, expected {spec}", fed.output, node.name),
    };
    error(text).at(node.site)
}

fn size_of(dim: Dim, values: &[Option<usize>]) -> Option<usize> {
    match dim {
        Dim::Known(n) => Some(n),
        Dim::Sym(symbol) => values.get(symbol.0 as usize).copied().flatten(),
    }
}

/// The value of one size.
pub(crate) fn resolve_dim(dim: Dim, values: &[Option<usize>]) -> Result<usize> {
    size_of(dim, values).ok_or_else(|| {
        Error::shape(format!("the size `{dim}` is unknown in this run"))
            .help("feed the placeholder that the size comes from")
    })
}

/// The sizes of a shape. An array of them fits the address space.
pub(crate) fn resolve(shape: &Shape, values: &[Option<usize>]) -> Result<Dims> {
    let dims: Dims = shape.dims().iter().map(|&dim| resolve_dim(dim, values)).collect::<Result<_>>()?;
    element_count(&dims)?;
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Graph, Tensor};

    fn bind(fetch: &Tensor, feeds: &[Array]) -> Result<Vec<Option<usize>>> {
        let program = Program::plain(Arc::new(fetch.graph().body().clone()), &[fetch.value()])?;
        let mut values = Vec::new();
        bind_sizes(&program, feeds, &mut values).map(|()| values)
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
            (bind(&sum, &[array(&[3, 2])]), "1 values for 2 placeholders: `x`, `y`"),
            (bind(&sum, &[array(&[3, 2]), array(&[4, 2])]), "`x` was fed 3 rows and `y` 4"),
            (bind(&sum, &[array(&[3, 2]), array(&[3, 1])]), "`y` was fed f32[3, 1], expected f32[batch, 2]"),
            (bind(&sum, &[array(&[3, 2]), array(&[3])]), "`y` was fed f32[3], expected f32[batch, 2]"),
            (bind(&x, &[Array::zeros(DType::I64, [3, 2]).unwrap()]), "`x` was fed i64[3, 2], expected f32[batch, 2]"),
            (bind(&vectors, &[array(&[3]), array(&[4])]), "`v` was fed f32[4], expected"),
        ] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains(text), "{error} should contain {text}");
        }
        assert!(resolve(x.shape(), &[None]).unwrap_err().to_string().contains("`batch` is unknown"));
    }
}
