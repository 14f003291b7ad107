//! Checks that features are the expected ones: across datasets that are read together, and by name.

use estimand_tensor::{BatchSpec, Error, FeatureSpec, Result};

use crate::Dataset;

/// Checks that there is at least one input, and that all inputs yield rows or all yield batches.
pub(crate) fn check_units(stage: &str, inputs: &[Dataset]) -> Result<()> {
    let Some(first) = inputs.first() else {
        return Err(Error::config(format!("`{stage}` was given no datasets")).help("give it at least one"));
    };
    match inputs.iter().position(|input| input.unit() != first.unit()) {
        None => Ok(()),
        Some(i) => {
            let (ours, theirs) = (first.unit(), inputs[i].unit());
            let message =
                format!("`{stage}` was given dataset 0 of {ours} and dataset {i} of {theirs}; expected one kind");
            Err(Error::config(message).help("batch all of them, or batch none of them and then the result"))
        }
    }
}

/// Returns the spec that all inputs share.
pub(crate) fn spec(stage: &str, inputs: &[Dataset]) -> Result<BatchSpec> {
    let specs = inputs.iter().map(|input| Ok(Some(input.spec()?))).collect::<Result<Vec<_>>>()?;
    compare(stage, &specs)?;
    specs.into_iter().flatten().next().ok_or_else(|| Error::config(format!("`{stage}` was given no datasets")))
}

/// Checks that the specs of all inputs agree, before any row is read. A spec that could only be
/// found from rows, where there are no rows, agrees with every other spec.
pub(crate) fn check_specs(stage: &str, inputs: &[Dataset]) -> Result<()> {
    compare(stage, &inputs.iter().map(|input| input.spec().ok()).collect::<Vec<_>>())
}

fn compare(stage: &str, specs: &[Option<BatchSpec>]) -> Result<()> {
    let mut known = specs.iter().enumerate().filter_map(|(i, spec)| Some((i, spec.as_ref()?)));
    let Some((i, first)) = known.next() else { return Ok(()) };
    for (j, other) in known {
        if let Some(what) = difference(first, other, &format!("in dataset {i}"), &format!("in dataset {j}")) {
            return Err(Error::config(format!("the datasets of `{stage}` differ: {what}"))
                .help("give them the same features with `map`, or with the specs of their sources"));
        }
    }
    Ok(())
}

/// Describes the first difference between two specs. Defaults and padding values are not compared.
pub(crate) fn difference(a: &BatchSpec, b: &BatchSpec, here: &str, there: &str) -> Option<String> {
    for (name, ours) in a {
        match b.get(name) {
            None => return Some(format!("feature `{name}` is {here} but not {there}")),
            Some(theirs) if !alike(ours, theirs) => {
                return Some(format!("feature `{name}` is {} {here} and {} {there}", text(ours), text(theirs)));
            }
            Some(_) => {}
        }
    }
    if let Some(name) = b.keys().find(|name| !a.contains_key(*name)) {
        return Some(format!("feature `{name}` is {there} but not {here}"));
    }
    let order = |spec: &BatchSpec| spec.keys().cloned().collect::<Vec<_>>();
    (order(a) != order(b)).then(|| format!("the order of features is {:?} {here} and {:?} {there}", order(a), order(b)))
}

fn alike(a: &FeatureSpec, b: &FeatureSpec) -> bool {
    use FeatureSpec::{Dense, Padded, Ragged};
    match (a, b) {
        (Dense { dims: ours, .. }, Dense { dims: theirs, .. })
        | (Padded { dims: ours, .. }, Padded { dims: theirs, .. }) => ours == theirs && a.dtype() == b.dtype(),
        (Ragged { .. }, Ragged { .. }) => a.dtype() == b.dtype(),
        // A padded batch is dense and as wide as its longest row.
        (Dense { dims: wide, .. }, Padded { dims: inner, .. })
        | (Padded { dims: inner, .. }, Dense { dims: wide, .. }) => {
            wide.get(1..) == Some(inner) && a.dtype() == b.dtype()
        }
        _ => false,
    }
}

/// An error for a missing feature. `purpose` says why the feature is needed.
pub(crate) fn missing<'a>(name: &str, purpose: &str, known: impl Iterator<Item = &'a str> + Clone) -> Error {
    Error::config(format!("there is no feature `{name}` {purpose}")).suggest(name, known)
}

pub(crate) fn text(spec: &FeatureSpec) -> String {
    match spec {
        FeatureSpec::Dense { dtype, dims, .. } => format!("{dtype}{dims:?}"),
        FeatureSpec::Ragged { dtype } => format!("ragged {dtype}"),
        FeatureSpec::Padded { dtype, dims, .. } => format!("padded {dtype}{dims:?}"),
    }
}
