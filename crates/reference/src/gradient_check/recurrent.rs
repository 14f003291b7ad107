//! Recurrent cells with all their optional inputs, through all their results.

use estimand_graph::{RecurrentInputs, RecurrentOutputs};

use super::*;

const CELLS: [Cell; 4] = [Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: true }, Cell::Gru { reset_after: false }];

/// (gates, states, has a bias) of a cell.
fn form(cell: Cell) -> (usize, usize, bool) {
    match cell {
        Cell::Simple => (1, 1, false),
        Cell::Lstm => (4, 2, false),
        Cell::Gru { reset_after } => (3, 1, reset_after),
    }
}

/// Two rows of three steps and two units. The numbers are small, since they pass through a chain of
/// products.
fn feeds(cell: Cell) -> Vec<Feed> {
    let (gates, states, bias) = form(cell);
    let small = |shape: &[Dim], dims: &[usize], by: f64| floats_by(shape, dims, move |v| by * v + 0.05);
    let fixed = |dims: &[usize], by: f64| small(Shape::from(dims).dims(), dims, by);
    let mut feeds = vec![small(&[BATCH, n(3), n(2 * gates)], &[2, 3, 2 * gates], 0.3), fixed(&[2, 2 * gates], -0.27)];
    feeds.extend(bias.then(|| fixed(&[2 * gates], 0.21)));
    feeds.extend((0..states).map(|i| small(&[BATCH, n(2)], &[2, 2], 0.4 - 0.1 * i as f64)));
    feeds
}

fn inputs(cell: Cell, x: &[Tensor], masked: bool, dropped: bool) -> RecurrentInputs {
    let (_, states, bias) = form(cell);
    let first = 2 + usize::from(bias);
    let graph = x[0].graph();
    // The first row has a gap, the second begins late.
    let mask = || graph.constant(Array::from_vec([2, 3], vec![true, false, true, false, true, true]).unwrap());
    let keep = || graph.constant(Array::from_vec([2, 2], vec![0.0, 1.25, 1.25, 1.25]).unwrap());
    RecurrentInputs {
        kernel: x[1].clone(),
        bias: bias.then(|| x[2].clone()),
        states: x[first..first + states].to_vec(),
        mask: masked.then(mask),
        keep: dropped.then(keep),
    }
}

fn run(cell: Cell, functions: [CellFunction; 2], x: &[Tensor], masked: bool, dropped: bool) -> RecurrentOutputs {
    x[0].recurrent(cell, functions[0], functions[1], &inputs(cell, x, masked, dropped))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let usual = [CellFunction::Tanh, CellFunction::Sigmoid];
    for cell in CELLS {
        for (masked, dropped) in [(false, false), (true, false), (false, true), (true, true)] {
            let name = format!("{cell:?}, masked {masked}, dropped {dropped}");
            cases.push(case(&name, feeds(cell), move |x| run(cell, usual, x, masked, dropped).sequence));
            cases.push(case(&format!("{name}, all results"), feeds(cell), move |x| {
                let RecurrentOutputs { sequence, states } = run(cell, usual, x, masked, dropped);
                let last = states.iter().map(|s| s.sin().sum()).reduce(|a, b| a + b).unwrap();
                sequence * last
            }));
        }
        for function in CellFunction::ALL {
            cases.push(case(&format!("{cell:?}, {function:?}"), feeds(cell), move |x| {
                run(cell, [function, CellFunction::Sigmoid], x, false, false).sequence
            }));
            cases.push(case(&format!("{cell:?}, gates {function:?}"), feeds(cell), move |x| {
                run(cell, [CellFunction::Tanh, function], x, true, false).sequence
            }));
        }
    }
    // A cell without gates ignores the gate function, but must still run with each.
    cases
}

pub(super) fn refused() -> Vec<Case> {
    let cell = Cell::Simple;
    let usual = [CellFunction::Tanh, CellFunction::Sigmoid];
    let second = case("second derivative of a recurrent network", feeds(cell), move |x| {
        let y = run(cell, usual, x, false, false).sequence;
        gradients(&y.square().sum(), &[&x[0]])[0].to_dense(x[0].shape()).unwrap()
    });
    let dropout = case("dropout that depends on a variable", feeds(cell), move |x| {
        let inputs = RecurrentInputs { keep: Some(x[2].clone()), ..inputs(cell, x, false, false) };
        x[0].recurrent(cell, usual[0], usual[1], &inputs).sequence
    });
    vec![second, dropout]
}

/// The op computes the same as its unrolled steps.
#[test]
fn one_op_is_its_steps() {
    for cell in CELLS {
        for (masked, dropped) in [(false, false), (true, true)] {
            let case = case("", feeds(cell), move |x| {
                let RecurrentOutputs { sequence, states } =
                    run(cell, [CellFunction::Tanh, CellFunction::Sigmoid], x, masked, dropped);
                let steps = x[0].recurrent_unrolled(
                    cell,
                    &|x: &Tensor| x.tanh(),
                    &|x: &Tensor| x.sigmoid(),
                    &inputs(cell, x, masked, dropped),
                );
                let state = |a: &Tensor, b: &Tensor| (a - b).abs().sum();
                let states = states.iter().zip(&steps.states).map(|(a, b)| state(a, b)).reduce(|a, b| a + b).unwrap();
                state(&sequence, &steps.sequence) + states
            });
            let (graph, x, difference) = build(&case);
            let result = Runner::new(&graph, &x, &case, &[&difference]).unwrap().run().unwrap();
            assert!(result[0].item::<f64>().unwrap() < 1e-12, "{cell:?} {masked} {dropped}: {}", result[0]);
        }
    }
}
