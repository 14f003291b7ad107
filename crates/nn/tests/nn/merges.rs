//! Merges: against Keras's, through their contract, and with inputs that do not fit.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor, gradients};
use estimand_nn::layer::{Config, LayerCall};
use estimand_nn::testing::{check_layer_of, spread};
use estimand_nn::*;
use estimand_tensor::{Array, DType, Dim, Result};

use crate::fixture::{assert_close, cases, rows};

/// The merge of a case.
fn merge(name: &str, normalize: bool) -> Box<dyn Layer> {
    match name {
        "dot" => Box::new(Dot::new(1).normalize(normalize)),
        "dot last" => Box::new(Dot::new(-1).normalize(normalize)),
        "dot pair" => Box::new(Dot::axes(2, 1).normalize(normalize)),
        "dot ranks" => Box::new(Dot::axes(1, 2).normalize(normalize)),
        "dot images" => Box::new(Dot::axes(1, 3).normalize(normalize)),
        "concat" | "concat one" => Box::new(Concat::new()),
        "concat axis" => Box::new(Concat::new().axis(1)),
        other => match other.split(' ').next() {
            Some("add") => Box::new(Add::new()),
            Some("subtract") => Box::new(Subtract::new()),
            Some("multiply") => Box::new(Multiply::new()),
            Some("average") => Box::new(Average::new()),
            Some("maximum") => Box::new(Maximum::new()),
            Some("minimum") => Box::new(Minimum::new()),
            _ => panic!("the fixture has a merge `{name}` that the test does not know"),
        },
    }
}

/// Layers of several inputs that are no merges; other fixtures have them.
const OTHERS: [&str; 4] = ["multi_head_attention", "hashed_crossing", "attention", "additive_attention"];

#[test]
fn merges_agree_with_keras() -> Result<()> {
    let mut kinds = BTreeSet::new();
    for case in cases("keras_layers").iter().filter(|case| case.name() == "merge") {
        let name: String = case.settings.setting("merge");
        let merge = merge(&name, case.settings.option("normalize").unwrap_or(false));
        kinds.insert(merge.kind());
        let g = Graph::new();
        let values: Vec<&Array> = case.with_prefix("in:").map(|(_, value)| value).collect();
        let x: Vec<Tensor> = values.iter().enumerate().map(|(i, value)| rows(&g, &format!("x{i}"), value)).collect();
        let coef = rows(&g, "coef", case.array("coef"));
        let y = merge.apply(&x);
        let found = gradients(&(&y * &coef).sum(), &x.iter().collect::<Vec<_>>());
        let dense: Vec<Tensor> = found.iter().zip(&x).filter_map(|(found, x)| found.to_dense(x.shape())).collect();
        let mut feeds: Vec<(&Tensor, Array)> = x.iter().zip(values.into_iter().cloned()).collect();
        feeds.push((&coef, case.array("coef").clone()));
        let fetches: Vec<&Tensor> = [&y].into_iter().chain(&dense).collect();
        let results = Session::new(&g)?.run(&fetches, &feeds)?;
        assert_close(&name, &results[0], case.array("out"));
        assert_eq!(dense.len(), x.len());
        for ((i, expected), actual) in case.with_prefix("grad:").zip(&results[1..]) {
            assert_close(&format!("{name}, gradient of input {i}"), actual, expected);
        }
    }
    let of_several = ALL_LAYERS.iter().map(|make| make()).filter(|layer| *layer.n_inputs().end() > 1);
    let of_several = of_several.map(|layer| layer.kind()).filter(|&kind| !OTHERS.contains(&kind));
    assert_eq!(kinds, of_several.collect());
    Ok(())
}

#[test]
fn every_merge_keeps_the_contract() -> Result<()> {
    // Other numbers in the second, so that no element is equal to its neighbour.
    let second = Array::from_vec([3, 4], spread(&[4, 4])?.as_slice::<f32>()?[3..15].to_vec())?;
    for layer in ALL_LAYERS.iter().map(|make| make()).filter(|layer| layer.n_inputs().contains(&2)) {
        match layer.kind() {
            "multi_head_attention" | "attention" | "additive_attention" => {}
            "hashed_crossing" => {
                let words = Array::from_strings([3, 1], ["a", "b", "a"])?;
                check_layer_of(&*layer, &[words, Array::from_vec([3, 1], vec![1i64, 1, 2])?])?;
            }
            _ => check_layer_of(&*layer, &[spread(&[3, 4])?, second.clone()])?,
        }
    }
    check_layer_of(&MultiHeadAttention::new(2, 2), &[spread(&[3, 4, 2])?, spread(&[3, 3, 5])?])?;
    check_layer_of(&Attention::new(), &[spread(&[3, 4, 2])?, spread(&[3, 3, 5])?, spread(&[3, 3, 2])?])?;
    check_layer_of(&Attention::new().use_scale(true).concat_scores(), &[spread(&[3, 4, 2])?, spread(&[3, 3, 2])?])?;
    check_layer_of(&AdditiveAttention::new(), &[spread(&[3, 4, 2])?, spread(&[3, 3, 2])?])?;
    check_layer_of(&Add::new(), &[spread(&[3, 4])?, spread(&[3, 2, 4])?, spread(&[3, 1])?])?;
    check_layer_of(&Concat::new().axis(1), &[spread(&[3, 4, 2])?, spread(&[3, 1, 2])?])?;
    check_layer_of(&Dot::axes(1, 2).normalize(true), &[spread(&[3, 4, 2])?, spread(&[3, 2, 4])?])
}

/// A merge that mixes rows.
#[derive(Debug)]
struct Mixing(Config);

impl Layer for Mixing {
    fn kind(&self) -> &'static str {
        "mixing"
    }

    fn config(&self) -> &Config {
        &self.0
    }

    fn n_inputs(&self) -> std::ops::RangeInclusive<usize> {
        2..=2
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        &call.inputs()[0] + call.inputs()[1].mean()
    }
}

#[test]
fn the_contract_finds_what_is_broken() {
    let text = check_layer_of(&Mixing(Config::default()), &[spread(&[3, 4]).unwrap(), spread(&[3, 4]).unwrap()])
        .unwrap_err()
        .to_string();
    assert!(text.contains("alone and in its batch") && text.contains("Mixing"), "{text}");
}

/// Sequences of one length that only the run knows are merged; lengths that differ are an error of
/// the run.
#[test]
fn sizes_may_be_unknown() -> Result<()> {
    let g = Graph::new();
    let shape = || [Dim::BATCH, Graph::ANY, 2.into()];
    let (a, b) = (g.placeholder("a", DType::F32, shape()), g.placeholder("b", DType::F32, shape()));
    let (sum, dot) = (Add::new().apply(&[&a, &b]), Dot::new(2).apply(&[&a, &b]));
    let mut session = Session::new(&g)?;
    let ones = |n: usize| Array::from_vec([1, n, 2], vec![1.0f32; 2 * n]).unwrap();
    let results = session.run(&[&sum, &dot], &[(&a, ones(3)), (&b, ones(3))])?;
    assert_eq!(results[0].as_slice::<f32>()?, [2.0; 6]);
    assert_eq!((results[1].dims(), results[1].as_slice::<f32>()?), (&[1, 3, 3][..], &[2.0f32; 9][..]));
    let text = session.run(&[&sum], &[(&a, ones(3)), (&b, ones(2))]).unwrap_err().to_string();
    assert!(text.contains("sizes 3 and 2") && text.contains("cannot be broadcast"), "{text}");
    Ok(())
}

/// A mistake, and what its error must contain.
type Case = (fn(&[&Tensor; 4]) -> Tensor, &'static [&'static str]);

#[test]
fn merges_say_what_they_got() {
    let cases: &[Case] = &[
        (
            |[x, y, ..]| Add::new().apply(&[x, y]),
            &["add got `x` f32[batch, 4], `y` f32[batch, 3]: the sizes 4 and 3", "equal sizes, or 1"],
        ),
        (|[x, .., image, _]| Maximum::new().apply(&[x, image]), &["maximum got `x`", "sizes 4 and 2"]),
        (|[x, .., number]| Multiply::new().apply(&[x, number]), &["multiply got `x`", "expected [batch, ...]"]),
        (|[x, ..]| Subtract::new().apply(&[x]), &["subtract got 1 tensors: `x`", "expected two"]),
        (|[x, y, ..]| Dot::new(1).apply(&[x, y, x]), &["dot got 3 tensors", "expected two"]),
        (|[x, y, ..]| Dot::new(1).apply(&[x, y]), &["dot along the axes (1, 1) of `x`", "sizes 4 and 3"]),
        (|[x, ..]| Dot::axes(0, 1).apply(&[x, x]), &["axes (0, 1)", "after the batch"]),
        (|[x, ..]| Dot::axes(1, 2).apply(&[x, x]), &["axes (1, 2)", "after the batch"]),
        (
            |[x, y, ..]| Concat::new().axis(2).apply(&[x, y]),
            &["concatenate cannot join `x`", "along axis 2", "help: make all sizes equal"],
        ),
        (
            |[x, _, image, _]| Concat::new().apply(&[x, image]),
            &["concatenate cannot join `x`", "`image`", "along axis -1"],
        ),
        (|[x, ..]| Average::new().apply(&[x, &x.cast(DType::F64)]), &["average got `x` f32", "f64", "the same dtype"]),
    ];
    for (build, parts) in cases {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
        let y = g.placeholder("y", DType::F32, [Dim::BATCH, 3.into()]);
        let image = g.placeholder("image", DType::F32, [Dim::BATCH, 5.into(), 2.into()]);
        assert!(build(&[&x, &y, &image, &g.constant(1.0f32)]).is_poisoned());
        let text = g.check().unwrap_err().to_string();
        for part in parts.iter().chain(&["merges.rs:"]) {
            assert!(text.contains(part), "{text}\nshould contain {part}");
        }
    }
    let (a, b) = (Graph::new().constant([1.0f32]), Graph::new().constant([1.0f32]));
    assert!(Add::new().apply(&[&a, &b]).is_poisoned());
    assert!(a.graph().check().unwrap_err().to_string().contains("different graphs"));
    let nothing = Add::new().apply(&[] as &[Tensor; 0]);
    assert!(nothing.graph().check().unwrap_err().to_string().contains("add got no tensors"));
    // Batches of two known sizes.
    let g = Graph::new();
    let ones = |n: usize| g.constant(Array::from_vec([n, 1], vec![1.0f32; n]).unwrap());
    assert!(Add::new().apply(&[&ones(1), &ones(2)]).is_poisoned());
    assert!(g.check().unwrap_err().to_string().contains("expected the same batch size"));
}
