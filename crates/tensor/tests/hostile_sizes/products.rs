//! Products and what is made of them: matrices, recurrent cells.

use estimand_tensor::cpu::matmul::{Epilogue, PackedShape, Product, batched_matmul, matmul, matmul_packed};
use estimand_tensor::cpu::recurrent::{
    self, Cell, CellFunction, Gradients, Inputs, Recurrent, Results, Sizes, Upstream, backward_scratch_len,
    forward_scratch_len,
};

use crate::attack::{HALF, HUGE, in_child, none};

/// m, n and k, and whether no slices have as many elements.
fn products() -> Vec<([usize; 3], bool)> {
    let mut all = vec![([HALF, HALF, HALF], true), ([HALF, HALF, 2], true), ([2, HALF, HALF], true)];
    for huge in HUGE {
        for place in 0..3 {
            let mut sizes = [4; 3];
            sizes[place] = huge;
            all.push((sizes, true));
            for zero in (0..3).filter(|&zero| zero != place) {
                let mut sizes = sizes;
                sizes[zero] = 0;
                all.push((sizes, false));
            }
        }
    }
    all
}

#[test]
fn matmuls() {
    in_child("products::matmuls", |attacks| {
        for ([m, n, k], is_impossible) in products() {
            for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
                let product = Product { m, n, k, transpose_a, transpose_b };
                for len in [0, 16] {
                    let name = format!("{product:?} with {len} floats");
                    let (a, b) = (vec![1.0; len], vec![1.0; len]);
                    let bias = [1.0; 4];
                    let one = |pool: &_| {
                        let epilogue =
                            Epilogue { bias: (n == 4).then_some(&bias[..]), relu: true, ..Epilogue::default() };
                        none(matmul(pool, &product, &a, &b, &mut vec![0.0; len], epilogue, &mut [0.0; 64]))
                    };
                    let many =
                        |pool: &_| none(batched_matmul(pool, 3, &product, &a, &b, &mut vec![0.0; len], &mut [0.0; 64]));
                    let packed = |pool: &_| {
                        let shape = PackedShape { k, n };
                        let mut packed = vec![0.0; if len == 0 { 0 } else { 64 }];
                        shape.pack(pool, &b, transpose_b, &mut packed);
                        none(matmul_packed(
                            pool,
                            m,
                            transpose_a,
                            &a,
                            shape,
                            &packed,
                            &mut vec![0.0; len],
                            Epilogue::default(),
                        ))
                    };
                    if is_impossible {
                        attacks.refused(&name, one);
                        attacks.refused(&format!("three times {name}"), many);
                        attacks.refused(&format!("packed, {name}"), packed);
                    } else {
                        attacks.harmless(&name, one);
                        attacks.harmless(&format!("three times {name}"), many);
                        attacks.harmless(&format!("packed, {name}"), packed);
                    }
                }
            }
        }
        for batch in HUGE {
            attacks.refused(&format!("{batch} products"), |pool| {
                none(batched_matmul(pool, batch, &Product::new(4, 4, 4), &[], &[], &mut [], &mut []))
            });
            attacks.harmless(&format!("{batch} empty products"), |pool| {
                none(batched_matmul(pool, batch, &Product::new(0, 4, 4), &[], &[], &mut [], &mut []))
            });
        }
    });
}

#[test]
fn short_operands() {
    in_child("products::short_operands", |attacks| {
        // With B transposed there is scratch memory.
        let product = Product { m: 40, n: 24, k: 8, transpose_a: false, transpose_b: true };
        let (a, b, c) = (40 * 8, 8 * 24, 40 * 24);
        for (a, b, c, scratch) in
            [(0, b, c, 4096), (a, 0, c, 4096), (a, b, 0, 4096), (a, b, c, 0), (a, b, c - 1, 4096), (a + 1, b, c, 4096)]
        {
            attacks.refused(&format!("{a}, {b}, {c}, {scratch}"), |pool| {
                let (a, b, mut c) = (vec![1.0; a], vec![1.0; b], vec![0.0; c]);
                none(matmul(pool, &product, &a, &b, &mut c, Epilogue::default(), &mut vec![0.0; scratch]))
            });
        }
        attacks.refused("a bias of another length", |pool| {
            let epilogue = Epilogue { bias: Some(&[1.0; 3]), relu: false, ..Epilogue::default() };
            none(matmul(pool, &Product::new(4, 4, 4), &[1.0; 16], &[1.0; 16], &mut [0.0; 16], epilogue, &mut [0.0; 64]))
        });
    });
}

fn cells() -> Vec<Recurrent> {
    let cells = [Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: true }, Cell::Gru { reset_after: false }];
    let (activation, recurrent_activation) = (CellFunction::Tanh, CellFunction::Sigmoid);
    let of = |cell| Recurrent { cell, activation, recurrent_activation, masked: false, dropped: false };
    cells.map(of).to_vec()
}

/// Batch, time and units.
fn sequences() -> Vec<(Sizes, bool)> {
    let sizes = |[batch, time, units]: [usize; 3]| Sizes { batch, time, units };
    let mut all = vec![(sizes([HALF, HALF, 4]), true), (sizes([HALF, 4, HALF]), true), (sizes([4, HALF, HALF]), true)];
    for ([batch, time, units], is_impossible) in products() {
        all.push((sizes([batch, time, units]), is_impossible));
    }
    all
}

#[test]
fn recurrent_forward() {
    in_child("products::recurrent_forward", |attacks| {
        for (sizes, is_impossible) in sequences() {
            for step in cells() {
                for len in [0, 64] {
                    let name = format!("{step:?}, {sizes:?}, {len} floats");
                    let x = vec![0.5; len];
                    let attack = |pool: &_| {
                        let inputs = Inputs { kernel: &x, bias: &x, states: [&x, &x], mask: None, keep: None };
                        let (mut sequence, mut kept) = (x.clone(), x.clone());
                        let (mut h, mut c) = (x.clone(), x.clone());
                        let results = Results { sequence: &mut sequence, last: [&mut h, &mut c], kept: &mut kept };
                        none(recurrent::forward(pool, &step, sizes, &x, inputs, results, &mut [0.0; 4096]))
                    };
                    if is_impossible { attacks.refused(&name, attack) } else { attacks.harmless(&name, attack) }
                }
                let name = format!("scratch of {step:?}, {sizes:?}");
                attacks
                    .harmless(&name, |_| none((forward_scratch_len(&step, sizes), backward_scratch_len(&step, sizes))));
            }
        }
    });
}

#[test]
fn recurrent_backward() {
    in_child("products::recurrent_backward", |attacks| {
        for (sizes, is_impossible) in sequences() {
            for step in cells() {
                for len in [0, 64] {
                    let name = format!("{step:?}, {sizes:?}, {len} floats");
                    let x = vec![0.5; len];
                    let attack = |pool: &_| {
                        let inputs = Inputs { kernel: &x, bias: &x, states: [&x, &x], mask: None, keep: None };
                        let upstream = Upstream { kept: &x, sequence: &x, d_sequence: &x, d_last: [&x, &x] };
                        let mut g = [(); 5].map(|()| x.clone());
                        let [dx, kernel, bias, h, c] = &mut g;
                        let gradients = Gradients { x: dx, kernel, bias, states: [h, c] };
                        none(recurrent::backward(pool, &step, sizes, inputs, upstream, gradients, &mut [0.0; 4096]))
                    };
                    if is_impossible { attacks.refused(&name, attack) } else { attacks.harmless(&name, attack) }
                }
            }
        }
    });
}
