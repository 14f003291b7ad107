//! Values that are handed on unless one is wrong: the run then fails with an error that names the value and its row.
//!
//! What is fed is checked where it comes in, so that a bad label is found before a step and not by a loss that is NaN.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{HostRules, Inference, Said, Specs};
use crate::graph::Node;
use crate::op::expect;
use crate::op::spelling::{Spelling, typed};
use crate::table::LookupTable;

/// Numbers from `low` to `high`; a second input tells where the rows of ragged ones begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Between {
    /// The bounds' bits, so that equal ones compare equal.
    low: u64,
    high: u64,
    what: String,
}

impl Between {
    pub(crate) fn new(low: f64, high: f64, what: &str) -> Between {
        Between { low: low.to_bits(), high: high.to_bits(), what: what.to_string() }
    }
}

impl HostRules for Between {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect::number(x[0].dtype)?;
        Ok(smallvec![x[0].clone()])
    }

    fn run(&self, x: &[Array]) -> Result<Vec<Array>> {
        let (low, high) = (f64::from_bits(self.low), f64::from_bits(self.high));
        // NaN is not between any two numbers.
        let is_outside = |v: f64| !(low..=high).contains(&v);
        // Labels of every batch come by: the usual kinds without a copy.
        let found = match x[0].dtype() {
            DType::F32 => x[0].as_slice::<f32>()?.iter().position(|&v| is_outside(v.into())),
            DType::I64 => x[0].as_slice::<i64>()?.iter().position(|&v| is_outside(v as f64)),
            _ => x[0].to_f64_vec()?.into_iter().position(is_outside),
        };
        let Some(i) = found else { return Ok(vec![x[0].clone()]) };
        let (value, place) = (x[0].to_f64_vec()?[i], place(x[0].dims(), i, x.get(1))?);
        Err(Error::data(format!("{} {value} {place}, expected {low} to {high}", self.what)))
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        def.input.truncate(1);
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }
}

/// The ids of terms (the first input) that a table has found for them (the second); a third tells where the rows of ragged ones begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub table: LookupTable,
    pub what: String,
}

impl HostRules for Known {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Ok(smallvec![x[1].clone()])
    }

    fn run(&self, x: &[Array]) -> Result<Vec<Array>> {
        match x[1].as_slice::<i64>()?.iter().position(|&id| id < 0) {
            None => Ok(vec![x[1].clone()]),
            Some(i) => Err(self.unknown(&x[0], i, x.get(2))?),
        }
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, mut def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        def.input.truncate(2);
        def.input.remove(0);
        Ok(typed(def, "T", DType::I64))
    }
}

impl Known {
    fn unknown(&self, terms: &Array, i: usize, row_splits: Option<&Array>) -> Result<Error> {
        let term = match terms.dtype() {
            DType::Str => String::from_utf8_lossy(terms.string_slice()?.get(i)).into_owned(),
            _ => terms.to_f64_vec()?.get(i).map_or_else(String::new, f64::to_string),
        };
        let place = place(terms.dims(), i, row_splits)?;
        let error = Error::data(format!("{} `{term}` {place} is not in the vocabulary", self.what));
        let known = self.table.names();
        Ok(error.suggest(&term, known.iter().map(String::as_str)))
    }
}

/// Where the element of a number is, for people.
fn place(dims: &[usize], i: usize, row_splits: Option<&Array>) -> Result<String> {
    if let Some(splits) = row_splits {
        let row = splits.as_slice::<i64>()?.partition_point(|&begin| begin <= i as i64);
        return Ok(format!("in row {}", row.saturating_sub(1)));
    }
    let width: usize = dims.iter().skip(1).product::<usize>().max(1);
    Ok(match width {
        1 => format!("in row {i}"),
        _ => format!("in row {}, column {}", i / width, i % width),
    })
}

#[cfg(test)]
mod tests {
    use estimand_tensor::Dim;

    use super::*;
    use crate::{Graph, Session};

    #[test]
    fn a_number_outside_is_named_with_its_place() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
        let checked = x.ensure_between(0.0, 1.0, "label");
        let run = |values: [f32; 4]| {
            let fed = Array::from_vec([2, 2], values.to_vec()).unwrap();
            Session::new(&g).unwrap().run(&[&checked], &[(&x, fed)])
        };
        assert_eq!(run([0.0, 1.0, 0.5, 0.25]).unwrap()[0].as_slice::<f32>().unwrap(), [0.0, 1.0, 0.5, 0.25]);
        for (values, text) in [
            ([0.0, 1.0, 0.5, 2.0], "label 2 in row 1, column 1, expected 0 to 1"),
            ([0.0, f32::NAN, 0.5, 1.0], "label NaN in row 0, column 1"),
            ([-0.5, 0.0, 0.0, 0.0], "label -0.5 in row 0, column 0"),
        ] {
            let error = run(values).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let g = Graph::new();
        g.placeholder("x", DType::Str, [Dim::BATCH]).ensure_between(0.0, 1.0, "label");
        assert!(g.check().is_err());
    }

    #[test]
    fn ragged_values_are_named_with_their_row() {
        let g = Graph::new();
        let (numbers, words) = (g.ragged_placeholder("numbers", DType::I64), g.ragged_placeholder("words", DType::Str));
        let numbers_checked = numbers.ensure_between(0.0, 3.0, "label").values;
        let ids = LookupTable::from_list(["a", "b"]).unwrap().lookup_known_ragged(&words, "label").values;
        let rows = |values: Array| estimand_tensor::Ragged::new(values, [0, 2, 2, 3]).unwrap();
        let run = |last_number: i64, last_word: &str| {
            let fed = [
                numbers.feed(&rows(Array::from([1i64, 2, last_number]))),
                words.feed(&rows(Array::from_strings([3], ["a", "b", last_word]).unwrap())),
            ];
            Session::new(&g).unwrap().run(&[&numbers_checked, &ids], &fed.concat())
        };
        let out = run(3, "a").unwrap();
        assert_eq!(
            (out[0].as_slice::<i64>().unwrap(), out[1].as_slice::<i64>().unwrap()),
            (&[1i64, 2, 3][..], &[0i64, 1, 0][..])
        );
        assert!(run(4, "a").unwrap_err().to_string().contains("label 4 in row 2, expected 0 to 3"));
        assert!(run(3, "c").unwrap_err().to_string().contains("label `c` in row 2 is not in the vocabulary"));
    }

    #[test]
    fn a_term_that_is_not_known_is_named_with_its_row() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::Str, [Dim::BATCH]);
        let ids = LookupTable::from_list(["yes", "no"]).unwrap().lookup_known(&x, "label");
        let run = |values: [&str; 2]| {
            Session::new(&g).unwrap().run(&[&ids], &[(&x, Array::from_strings([2], values).unwrap())])
        };
        assert_eq!(run(["no", "yes"]).unwrap()[0].as_slice::<i64>().unwrap(), [1, 0]);
        let error = run(["no", "yess"]).unwrap_err().to_string();
        assert!(error.contains("label `yess` in row 1 is not in the vocabulary"), "{error}");
        assert!(error.contains("did you mean `yes`?"), "{error}");
        let error = run(["maybe", "yes"]).unwrap_err().to_string();
        assert!(error.contains("`maybe` in row 0") && error.contains("there are yes, no"), "{error}");
        let g = Graph::new();
        let x = g.placeholder("x", DType::I64, [Dim::BATCH]);
        let ids = LookupTable::from_ints([10, 20]).unwrap().lookup_known(&x, "label");
        let error = Session::new(&g).unwrap().run(&[&ids], &[(&x, Array::from([20i64, 30]))]).unwrap_err().to_string();
        assert!(error.contains("label `30` in row 1"), "{error}");
    }
}
