//! Our messages equal those of the onnx package (`oracles/gen/onnx_models.py`), and models that
//! ONNX cannot express are refused.

use estimand_graph::{Encoding, Graph, Initializer, LookupTable, Tensor};
use estimand_onnx::message::ModelProto;
use estimand_onnx::{Interface, decode, encode, onnx_model};
use estimand_tensor::{Array, DType, Dim, Result};

fn written(graph: &Graph, inputs: &[(&str, &Tensor)], outputs: &[(&str, &Tensor)]) -> Result<ModelProto> {
    let named = |list: &[(&str, &Tensor)]| list.iter().map(|(name, t)| (name.to_string(), t.value())).collect();
    let interface = Interface { inputs: named(inputs), outputs: named(outputs) };
    onnx_model(&graph.body(), &interface, |_| Array::from_vec([3, 1], vec![0.5f32, -1.0, 2.0]))
}

/// Compares a model with that of the package, which sorts attributes by their names.
fn check(case: &str, mut model: ModelProto) {
    for node in model.graph.iter_mut().flat_map(|graph| &mut graph.node) {
        node.attribute.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let expected = estimand_fixture::cases_of("onnx_models", case)[0].bytes("bytes");
    assert_eq!(model, decode(&expected).unwrap(), "{case}");
    assert_eq!(encode(&model).unwrap(), expected, "{case}");
}

#[test]
fn messages_are_those_of_onnx() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let y = x.matmul(&g.variable("w", [3, 1], Initializer::Zeros));
    check("product", written(&g, &[("x", &x)], &[("y", &y)]).unwrap());

    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    check("softmax", written(&g, &[("x", &x)], &[("y", &x.softmax())]).unwrap());

    let g = Graph::new();
    let word = g.placeholder("word", DType::Str, [Dim::BATCH]);
    let id = LookupTable::from_list(["a", "\u{f6}"]).unwrap().lookup(&word);
    check("vocabulary", written(&g, &[("word", &word)], &[("id", &id)]).unwrap());
}

#[test]
fn what_onnx_cannot_express_is_refused_by_name() {
    let g = Graph::new();
    let (x, word) = (g.placeholder("x", DType::F32, [Dim::BATCH]), g.placeholder("word", DType::Str, [Dim::BATCH]));
    let binary = LookupTable::from_list([b"\xff"]).unwrap().lookup(&word);
    let cases: [(Tensor, &[&str]); 5] = [
        (x.cumprod(0), &["in node `Cumprod` (Cumprod)", "running sums only"]),
        (word.hash_bucket(7), &["hashed to 7 buckets", "three choices", "export_saved_model"]),
        (g.random_uniform([Dim::BATCH]), &["(RandomUniform)", "random numbers"]),
        (binary, &["the text \"\\xff\" is not UTF-8"]),
        (word.substr(0, 1, Encoding::Bytes), &["(Substr)", "ASCII letters only"]),
    ];
    for (tensor, parts) in cases {
        let error = written(&g, &[("x", &x), ("word", &word)], &[("y", &tensor)]).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = written(&g, &[("x", &x)], &[("y", &word)]).unwrap_err().to_string();
    assert!(error.contains("placeholder `word` is not an input of the signature"), "{error}");
    let error = written(&g, &[("x", &x)], &[("y", &x), ("y", &x)]).unwrap_err().to_string();
    assert!(error.contains("two inputs or outputs of the ONNX model are called `y`"), "{error}");
}

#[test]
fn damaged_bytes_are_an_error() {
    let bytes = estimand_fixture::cases_of("onnx_models", "vocabulary")[0].bytes("bytes");
    for end in 0..bytes.len() {
        // Any cut is an error or another model; it does not panic.
        _ = decode(&bytes[..end]);
        let mut damaged = bytes.clone();
        damaged[end] ^= 0xff;
        _ = decode(&damaged);
    }
    assert!(decode(&bytes[..bytes.len() - 1]).unwrap_err().to_string().contains("not an ONNX model"));
}
