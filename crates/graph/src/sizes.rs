//! Sizes at run time: what is fed is checked, gives every symbol its value, and every shape its sizes.
//!
//! Executors do this once at the beginning of a run, before any kernel.

use estimand_tensor::{Array, Dim, Dims, Error, Result, Shape, TensorSpec, element_count};

use crate::graph::{Body, NodeId};
use crate::program::Program;

/// Checks one array for each of the program's placeholders and evaluates all symbols into `values`.
pub(crate) fn bind_sizes(program: &Program, feeds: &[Array], values: &mut Vec<Option<usize>>) -> Result<()> {
    let body = program.body();
    if feeds.len() != program.feeds().len() {
        let names: Vec<String> = program.feeds().iter().map(|&id| format!("`{}`", body.node(id).name)).collect();
        return Err(Error::config(format!(
            "{} values for {} placeholders: {}",
            feeds.len(),
            names.len(),
            names.join(", ")
        )));
    }
    let mut batch: Option<(NodeId, usize)> = None;
    for (&id, array) in program.feeds().iter().zip(feeds) {
        check_feed(body, id, array)?;
        for (&dim, &size) in declared(body, id).shape.dims().iter().zip(array.dims()) {
            match batch {
                _ if dim != Dim::BATCH => {}
                None => batch = Some((id, size)),
                Some((first, rows)) if rows != size => {
                    return Err(Error::shape(format!(
                        "placeholder `{}` was fed {rows} rows and `{}` {size}: a batch has one number of rows",
                        body.node(first).name,
                        body.node(id).name,
                    )));
                }
                Some(_) => {}
            }
        }
    }
    let fed = |node: NodeId, axis: usize| {
        let at = program.feeds().iter().position(|&id| id == node)?;
        feeds[at].dims().get(axis).copied()
    };
    body.symbols().evaluate(batch.map(|(_, rows)| rows), fed, values)?;
    // A placeholder may be declared with sizes of others; those are known only now.
    for (&id, array) in program.feeds().iter().zip(feeds) {
        let fits = |(dim, &size): (&Dim, &usize)| size_of(*dim, values).is_none_or(|expected| expected == size);
        if !declared(body, id).shape.dims().iter().zip(array.dims()).all(fits) {
            return Err(unexpected(body, id, array, Error::shape));
        }
    }
    Ok(())
}

/// Checks dtype, rank and known sizes of what is fed to a placeholder.
pub(crate) fn check_feed(body: &Body, placeholder: NodeId, array: &Array) -> Result<()> {
    let spec = declared(body, placeholder);
    if array.dtype() != spec.dtype {
        return Err(unexpected(body, placeholder, array, |text| Error::dtype(Some(spec.dtype), array.dtype(), text)));
    }
    let differs = |(dim, &size): (&Dim, &usize)| dim.known().is_some_and(|known| known != size);
    if array.rank() != spec.shape.rank() || spec.shape.dims().iter().zip(array.dims()).any(differs) {
        return Err(unexpected(body, placeholder, array, Error::shape));
    }
    Ok(())
}

fn declared(body: &Body, placeholder: NodeId) -> &TensorSpec {
    &body.node(placeholder).outputs[0]
}

fn unexpected(body: &Body, placeholder: NodeId, array: &Array, error: impl FnOnce(String) -> Error) -> Error {
    let node = body.node(placeholder);
    error(format!(
        "placeholder `{}` was fed {}{:?}, expected {}",
        node.name,
        array.dtype(),
        array.dims(),
        node.outputs[0]
    ))
    .at(node.site)
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

    use estimand_tensor::DType;

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
