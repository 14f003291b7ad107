//! The cut and the host's interpreter; what each op computes is tested where the op is.

use estimand_tensor::{Array, DType, Dim};

use crate::{Graph, Init, Session, Tensor};

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
    let w = g.variable("w", [], Init::Ones);
    let y = &x.string_length().cast(DType::F32) * &w;
    let program = Session::new(&g).unwrap().program(&[&y]).unwrap();
    let text =
        "host:\n  %0 i32[batch] = StringLength(feed:x)\nstep:\n  %1 f32[batch] = Cast+Mul(%0, var:w)\nfetch: %1\n";
    assert_eq!(program.to_string(), text);
}

#[test]
fn the_host_reads_no_variables() {
    let g = Graph::new();
    let w = g.variable_with("w", DType::Str, [1], Init::Zeros, crate::Role::Model { trainable: false });
    let error = Session::new(&g).and_then(|mut s| s.run(&[&w.string_length()], &[])).unwrap_err().to_string();
    assert!(error.contains("StringLength runs on the host, before a step, and reads variable `w`"), "{error}");
}
