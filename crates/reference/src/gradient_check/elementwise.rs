//! Element-wise ops: every unary and binary op on floats, with the ways two shapes are broadcast.

use super::*;

/// Second derivatives that are not implemented.
pub(super) const REFUSED: [Binary; 7] = [
    Binary::EluGrad,
    Binary::SeluGrad,
    Binary::SoftplusGrad,
    Binary::SoftsignGrad,
    Binary::SqrtGrad,
    Binary::RsqrtGrad,
    Binary::ReciprocalGrad,
];

fn makes_floats(output: DType) -> bool {
    output == DType::F64
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &u in Unary::ALL.iter().filter(|u| u.accepts(DType::F64) && makes_floats(u.output(DType::F64))) {
        let needs_positive = matches!(u, Unary::Log | Unary::Log1p | Unary::Sqrt | Unary::Rsqrt);
        let value = move |v: f64| match u {
            _ if needs_positive => v.abs() + 0.1,
            // Also beyond the upper kink.
            Unary::Relu6 => v * 4.0,
            _ => v,
        };
        for (shape, dims) in
            [(vec![n(2), n(7)], vec![2, 7]), (vec![BATCH, n(2)], vec![3, 2]), (vec![], vec![]), (vec![n(0)], vec![0])]
        {
            cases.push(op(u, vec![floats_by(&shape, &dims, value)]));
        }
    }
    for &b in Binary::ALL.iter().filter(|b| b.accepts(DType::F64) && makes_floats(b.output(DType::F64))) {
        if !REFUSED.contains(&b) {
            cases.extend(PAIRS.into_iter().map(|pair| op(b, operands(b, pair))));
        }
    }
    for (condition, x, y) in [
        (vec![2, 3], vec![2, 3], vec![2, 3]),
        (vec![2, 1], vec![2, 3], vec![3]),
        (vec![2, 3], vec![], vec![1, 3]),
        (vec![3], vec![2, 3], vec![2, 1]),
        (vec![0, 3], vec![3], vec![1, 1]),
    ] {
        let bools = (0..value::count(&condition)).map(|i| i % 3 != 1).collect();
        let condition = Feed { shape: Shape::from(&condition[..]), value: Array::from_vec(&condition, bools).unwrap() };
        cases.push(op(Select, vec![condition, floats(&x), more(&y)]));
    }
    cases.push(op(Cast { to: DType::F32 }, vec![symbolic(&[BATCH, n(2)], &[2, 2])]));
    cases.push(op(Print { label: "a label".into() }, vec![floats(&[])]));
    // An input that is used twice, and one that is used by two outputs of one node.
    cases.push(case("x * x + x", vec![floats(&[3])], |x| &(&x[0] * &x[0]) + &x[0]));
    cases
}

type Declared = (&'static [Dim], &'static [usize]);

const TWO_THREE: Declared = (&[n(2), n(3)], &[2, 3]);

/// Pairs of shapes: as declared, and in the run.
const PAIRS: [[Declared; 2]; 14] = [
    [TWO_THREE, TWO_THREE],
    [TWO_THREE, (&[n(3)], &[3])],
    [(&[n(2), n(1)], &[2, 1]), (&[n(1), n(3)], &[1, 3])],
    [(&[], &[]), TWO_THREE],
    [TWO_THREE, (&[n(1), n(1), n(1)], &[1, 1, 1])],
    [(&[n(0), n(3)], &[0, 3]), (&[n(3)], &[3])],
    [(&[BATCH, n(3)], &[2, 3]), (&[n(3)], &[3])],
    [(&[BATCH, n(3)], &[2, 3]), (&[BATCH, n(1)], &[2, 1])],
    [(&[BATCH, n(2)], &[0, 2]), (&[n(2)], &[2])],
    // Which of these is broadcast is known only at run time.
    [(&[ANY], &[3]), (&[ANY], &[1])],
    [(&[ANY], &[1]), (&[ANY], &[3])],
    [(&[ANY], &[3]), (&[ANY], &[3])],
    [(&[ANY, n(2)], &[1, 2]), (&[n(3), n(2)], &[3, 2])],
    [(&[ANY, n(1)], &[2, 1]), (&[BATCH, n(3)], &[2, 3])],
];

/// Values where the op is smooth.
fn operands(b: Binary, [x, y]: [Declared; 2]) -> Vec<Feed> {
    let first = match b {
        Binary::Pow => |v: f64| v.abs() + 0.2,
        _ => |v: f64| v,
    };
    let second = match b {
        // A divisor whose multiples lie between the values.
        Binary::FloorDiv | Binary::FloorMod => |v: f64| 3.17 + 0.01 * v,
        _ => |v: f64| 0.71 - 0.83 * v,
    };
    vec![floats_by(x.0, x.1, first), floats_by(y.0, y.1, second)]
}

pub(super) fn refused() -> Vec<Case> {
    REFUSED.iter().map(|&b| op(b, vec![positive(&[2]), positive(&[2])])).collect()
}
