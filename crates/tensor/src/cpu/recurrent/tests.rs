//! Properties of the kernels: a row's bits depend on the row alone, whichever task computes it; the
//! numbers are those of small cases computed by hand.

use super::*;
use crate::cpu::testing::{Dice, pools};
use crate::parallel::Pool;

const CELLS: [Cell; 4] = [Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: true }, Cell::Gru { reset_after: false }];

fn usual(cell: Cell, masked: bool, dropped: bool) -> Recurrent {
    let (activation, recurrent_activation) = (CellFunction::Tanh, CellFunction::Sigmoid);
    Recurrent { cell, activation, recurrent_activation, masked, dropped }
}

/// A row that ends after some steps, with gaps before.
fn mask(time: usize, dice: &mut Dice) -> Vec<bool> {
    let end = dice.below(time + 1);
    (0..time).map(|t| t < end && dice.below(4) > 0).collect()
}

/// The inputs of a cell, and the gradients of its results.
#[derive(Clone)]
struct Case {
    step: Recurrent,
    sizes: Sizes,
    x: Vec<f32>,
    kernel: Vec<f32>,
    bias: Vec<f32>,
    states: [Vec<f32>; 2],
    mask: Vec<bool>,
    keep: Vec<f32>,
    d_sequence: Vec<f32>,
    d_last: [Vec<f32>; 2],
}

impl Case {
    fn new(step: Recurrent, sizes: Sizes, dice: &mut Dice) -> Case {
        let Sizes { batch, time, units } = sizes;
        let width = step.n_gates() * units;
        let two = step.n_states() - 1;
        Case {
            step,
            sizes,
            x: dice.floats(batch * time * width),
            kernel: dice.floats(units * width),
            bias: dice.floats(if step.has_bias() { width } else { 0 }),
            states: [dice.floats(batch * units), dice.floats(batch * units * two)],
            mask: if step.masked { (0..batch).flat_map(|_| mask(time, dice)).collect() } else { Vec::new() },
            keep: (0..if step.dropped { batch * units } else { 0 }).map(|_| dice.below(2) as f32 * 2.0).collect(),
            d_sequence: dice.floats(batch * time * units),
            d_last: [dice.floats(batch * units), dice.floats(batch * units * two)],
        }
    }

    /// The case with a range of its rows.
    fn rows(&self, rows: std::ops::Range<usize>) -> Case {
        let Sizes { batch, .. } = self.sizes;
        fn part<T: Clone>(all: &[T], batch: usize, rows: &std::ops::Range<usize>) -> Vec<T> {
            let width = all.len() / batch;
            all[rows.start * width..rows.end * width].to_vec()
        }
        let floats = |all: &[f32]| part(all, batch, &rows);
        Case {
            sizes: Sizes { batch: rows.len(), ..self.sizes },
            x: floats(&self.x),
            states: [floats(&self.states[0]), floats(&self.states[1])],
            mask: part(&self.mask, batch, &rows),
            keep: floats(&self.keep),
            d_sequence: floats(&self.d_sequence),
            d_last: [floats(&self.d_last[0]), floats(&self.d_last[1])],
            ..self.clone()
        }
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            kernel: &self.kernel,
            bias: &self.bias,
            states: [&self.states[0], &self.states[1]],
            mask: self.step.masked.then_some(&self.mask[..]),
            keep: self.step.dropped.then_some(&self.keep[..]),
        }
    }

    /// The sequence, the last states, the gradients of x, of the first states, of kernel and bias.
    fn run(&self, pool: &Pool) -> [Vec<f32>; 7] {
        let Sizes { batch, time, units } = self.sizes;
        let two = self.step.n_states() - 1;
        let zeros = |n: usize| vec![0.0; n];
        let mut sequence = zeros(batch * time * units);
        let [mut h, mut c] = [zeros(batch * units), zeros(batch * units * two)];
        let mut kept = zeros(batch * time * units * self.step.n_kept());
        let mut scratch = vec![f32::NAN; forward_scratch_len(&self.step, self.sizes)];
        let results = Results { sequence: &mut sequence, last: [&mut h, &mut c], kept: &mut kept };
        forward(pool, &self.step, self.sizes, &self.x, self.inputs(), results, &mut scratch);
        let (mut dx, mut d_kernel) = (zeros(self.x.len()), zeros(self.kernel.len()));
        let (mut d_bias, mut d_h, mut d_c) = (zeros(self.bias.len()), zeros(h.len()), zeros(c.len()));
        let upstream = Upstream {
            kept: &kept,
            sequence: &sequence,
            d_sequence: &self.d_sequence,
            d_last: [&self.d_last[0], &self.d_last[1]],
        };
        let gradients =
            Gradients { x: &mut dx, kernel: &mut d_kernel, bias: &mut d_bias, states: [&mut d_h, &mut d_c] };
        let mut scratch = vec![f32::NAN; backward_scratch_len(&self.step, self.sizes)];
        backward(pool, &self.step, self.sizes, self.inputs(), upstream, gradients, &mut scratch);
        d_h.extend(d_c);
        [sequence, h, c, dx, d_h, d_kernel, d_bias]
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn threads_and_neighbours_change_no_bit() {
    let mut dice = Dice::new("recurrent");
    for cell in CELLS {
        for (batch, time, units) in [(1, 1, 1), (29, 3, 17), (40, 2, 33), (0, 3, 2), (3, 0, 2)] {
            let step = usual(cell, dice.below(2) == 1, dice.below(2) == 1);
            let case = Case::new(step, Sizes { batch, time, units }, &mut dice);
            let [one, three] = pools().map(|pool| case.run(&pool));
            for (a, b) in one.iter().zip(&three) {
                assert_eq!(bits(a), bits(b), "{cell:?} {batch} x {time} x {units}");
            }
            for rows in [0..batch.min(1), batch / 3..batch / 2, 0..batch.min(13)] {
                if rows.is_empty() {
                    continue;
                }
                let few = case.rows(rows.clone()).run(&Pool::new(1));
                // Without the gradients of kernel and bias, which are sums over rows; d_h is
                // followed by d_c.
                for (all, few) in one.iter().zip(&few).take(4) {
                    let width = all.len() / batch;
                    assert_eq!(bits(&all[rows.start * width..rows.end * width]), bits(few), "{cell:?} rows {rows:?}");
                }
            }
        }
    }
}

/// The gradient of the kernel is the sum over the rows, although steps after a row's end are left
/// out: here the steps of several rows share a block of a product.
#[test]
fn kernel_gradients_are_sums_over_rows() {
    let mut dice = Dice::new("sums over rows");
    for (cell, masked) in CELLS.into_iter().flat_map(|cell| [(cell, true), (cell, false)]) {
        let case = Case::new(usual(cell, masked, true), Sizes { batch: 25, time: 60, units: 20 }, &mut dice);
        let [.., kernel, bias] = case.run(&Pool::new(2));
        let (mut of_kernel, mut of_bias) = (vec![0.0; kernel.len()], vec![0.0; bias.len()]);
        for row in 0..25 {
            let [.., kernel, bias] = case.rows(row..row + 1).run(&Pool::new(1));
            of_kernel.iter_mut().zip(kernel).for_each(|(sum, one)| *sum += one);
            of_bias.iter_mut().zip(bias).for_each(|(sum, one)| *sum += one);
        }
        for (all, sum) in kernel.iter().chain(&bias).zip(of_kernel.iter().chain(&of_bias)) {
            assert!((all - sum).abs() <= 1e-4 * sum.abs().max(1.0), "{cell:?}, masked: {masked}: {all} {sum}");
        }
    }
}

/// h = x + h / 2 from h = 8: x = 1, 2, 3 give 5, 4.5, 5.25. Of the last h: d x = 1/4, 1/2, 1, d
/// h0 = 1/8, d r = 8/4 + 5/2 + 4.5 = 9.
#[test]
fn a_linear_cell_by_hand() {
    let step = Recurrent { activation: CellFunction::Linear, ..usual(Cell::Simple, false, false) };
    let case = Case {
        step,
        sizes: Sizes { batch: 1, time: 3, units: 1 },
        x: vec![1.0, 2.0, 3.0],
        kernel: vec![0.5],
        bias: vec![],
        states: [vec![8.0], vec![]],
        mask: vec![],
        keep: vec![],
        d_sequence: vec![0.0; 3],
        d_last: [vec![1.0], vec![]],
    };
    let [sequence, last, _, dx, dh, d_kernel, _] = case.run(&Pool::new(1));
    assert_eq!((sequence, last), (vec![5.0, 4.5, 5.25], vec![5.25]));
    assert_eq!((dx, dh, d_kernel), (vec![0.25, 0.5, 1.0], vec![0.125], vec![9.0]));
}

/// As above with the second step masked: 5, 5, 5.5; d x = 1/2, 0, 1, d h0 = 1/4, d r = 8/2 + 5 = 9.
#[test]
fn a_step_that_does_not_count_by_hand() {
    let step = Recurrent { activation: CellFunction::Linear, ..usual(Cell::Simple, true, false) };
    let case = Case {
        step,
        sizes: Sizes { batch: 1, time: 3, units: 1 },
        x: vec![1.0, 2.0, 3.0],
        kernel: vec![0.5],
        bias: vec![],
        states: [vec![8.0], vec![]],
        mask: vec![true, false, true],
        keep: vec![],
        d_sequence: vec![0.0; 3],
        d_last: [vec![1.0], vec![]],
    };
    let [sequence, last, _, dx, dh, d_kernel, _] = case.run(&Pool::new(1));
    assert_eq!((sequence, last), (vec![5.0, 5.0, 5.5], vec![5.5]));
    assert_eq!((dx, dh, d_kernel), (vec![0.5, 0.0, 1.0], vec![0.25], vec![9.0]));
}
