//! The cut and the host's interpreter; what single ops compute is in the files beside this one.

use estimand_engine::Session;
use estimand_graph::{Encoding, Graph, Initializer, SymbolDef, Tensor};
use estimand_tensor::{Array, DType, Dim};

fn words(dims: &[usize], words: &[&str]) -> Array {
    Array::from_strings(dims, words).unwrap()
}

#[test]
fn strings_move_as_numbers_do() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH, 2.into()]);
    let pick = g.placeholder("pick", DType::I64, [Graph::ANY]);
    let end = g.constant(words(&[1, 2], &["<", ">"]));
    // [batch, 2] -> [batch + 1, 2] -> [2, batch + 1]
    let turned = Tensor::concat(&[&x, &end], 0).transpose(&[1, 0]);
    let flat = x.reshape([-1]).gather(&pick);
    let mut session = Session::new(&g).unwrap();
    let feeds = [(&x, words(&[2, 2], &["a", "b", "c", "d"])), (&pick, Array::from([3i64, 0, 3]))];
    let out = session.run(&[&turned, &flat], &feeds).unwrap();
    assert_eq!(out[0], words(&[2, 3], &["a", "c", "<", "b", "d", ">"]));
    assert_eq!(out[1], words(&[3], &["d", "a", "d"]));
    assert!(session.program(&[&turned]).unwrap().steps().is_empty());
}

#[test]
fn the_text_form_shows_the_cut() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH]);
    let w = g.variable("w", [], Initializer::Ones);
    let y = &x.string_length(Encoding::Bytes).cast(DType::F32) * &w;
    let program = Session::new(&g).unwrap().program(&[&y]).unwrap();
    let text =
        "host:\n  %0 i32[batch] = StringLength(feed:x)\nstep:\n  %1 f32[batch] = Cast+Mul(%0, var:w)\nfetch: %1\n";
    assert_eq!(program.to_string(), text);
}

#[test]
fn host_ops_on_what_a_step_computes_run_after_it() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let w = g.variable("w", [], Initializer::Constant(2.0));
    let doubled = &x * &w;
    let (distinct, places) = doubled.cast(DType::I64).unique();
    // A result of unknown size goes on in numbers: [4, 2] -> 6.
    let total = distinct.cast(DType::F32).sum();
    let fixed = g.constant(words(&[1], &["!"]));
    let mut session = Session::new(&g).unwrap();
    let fetches = [&doubled, &places, &total, &fixed, &w, &total];
    let out = session.run(&fetches, &[(&x, Array::from([2f32, 1.0, 2.0]))]).unwrap();
    assert_eq!(out[0].as_slice::<f32>().unwrap(), [4.0, 2.0, 4.0]);
    assert_eq!(out[1].as_slice::<i32>().unwrap(), [0, 1, 0]);
    assert_eq!([&out[2], &out[4], &out[5]].map(|a| a.item::<f32>().unwrap()), [6.0, 2.0, 6.0]);
    assert_eq!(out[3], words(&[1], &["!"]));
    let text = session.program(&[&total]).unwrap().to_string();
    let expected = "  %0 i64[batch] = Mul+Cast(feed:x, var:w)\nafter:\n  %1 i64[s1], %2 i32[batch] = Unique(%0)\n\
        \x20 %3 f32[s1] = Cast(%1)\n  %4 f32[] = Sum(%3)\nfetch: %4\n";
    assert_eq!(text, expected);
}

#[test]
fn what_comes_after_a_step_is_too_late_for_variables() {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Ones);
    let assign = w.assign(&w.unique().1.cast(DType::F32));
    let error = Session::new(&g).and_then(|mut s| s.run(&[&assign], &[])).unwrap_err().to_string();
    assert!(error.contains("Assign uses strings, tables or sizes that depend on variables"), "{error}");
}

#[test]
fn what_only_tells_a_size_is_computed() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::I64, [Graph::ANY]);
    // Two nodes that compute the same number, of which the second is a size.
    let (_, size) = (x.max(), x.max());
    let n = Dim::Sym(g.symbols_mut(|s| s.intern(SymbolDef::Number(size.value()))));
    let count = x.unique().0.size(0);
    let mut session = Session::new(&g).unwrap();
    let fetches = [&g.range(n, DType::I64), &x.max(), &count];
    let out = session.run(&fetches, &[(&x, Array::from([2i64, 3, 2]))]).unwrap();
    assert_eq!(out[0].as_slice::<i64>().unwrap(), [0, 1, 2]);
    assert_eq!([&out[1], &out[2]].map(|a| a.item::<i64>().unwrap()), [3, 2]);
    let error = session.run(&fetches, &[(&x, Array::from([-1i64]))]).unwrap_err().to_string();
    assert!(error.contains("computes the size -1; expected 0 or more"), "{error}");
}
