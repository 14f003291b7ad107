//! Ops that move elements.

use super::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        op(Reshape { shape: Shape::from([3, 2]) }, vec![floats(&[2, 3])]),
        op(Reshape { shape: Shape::from([1, 1]) }, vec![floats(&[])]),
        op(Reshape { shape: Shape::from([0, 5]) }, vec![floats(&[3, 0])]),
        case("flatten of a batch", vec![symbolic(&[BATCH, n(2), n(2)], &[3, 2, 2])], |x| x[0].flatten()),
        op(BroadcastTo { shape: Shape::from([2, 3]) }, vec![floats(&[3])]),
        op(BroadcastTo { shape: Shape::from([2, 4, 3]) }, vec![floats(&[4, 1])]),
        op(BroadcastTo { shape: Shape::from([0, 3]) }, vec![floats(&[1, 3])]),
        case("broadcast to a batch", vec![symbolic(&[BATCH, n(2)], &[3, 2]), floats(&[2])], |x| {
            let wide = x[1].broadcast_to(x[0].shape().clone());
            // Only the size of x0 is needed, but a case must use all its feeds.
            (&x[0] * &wide).broadcast_to(Shape::from([n(2), BATCH, n(2)]))
        }),
        op(SumTo, vec![floats(&[2, 3]), more(&[3])]),
        op(SumTo, vec![floats(&[2, 3, 2]), more(&[3, 1])]),
        op(SumTo, vec![symbolic(&[BATCH, n(2)], &[3, 2]), symbolic(&[ANY, n(2)], &[1, 2])]),
        op(SumTo, vec![symbolic(&[BATCH, n(2)], &[3, 2]), symbolic(&[ANY, n(2)], &[3, 2])]),
        op(Transpose { perm: axes(&[1, 2, 0]) }, vec![floats(&[2, 3, 4])]),
        op(Transpose { perm: axes(&[2, 0, 1]) }, vec![symbolic(&[BATCH, n(3), n(2)], &[2, 3, 2])]),
        op(Concat { axis: 0 }, vec![floats(&[2, 3]), more(&[1, 3]), floats(&[0, 3])]),
        op(Concat { axis: 1 }, vec![floats(&[2, 3]), more(&[2, 1])]),
        op(Concat { axis: 1 }, vec![symbolic(&[BATCH, n(1)], &[2, 1]), symbolic(&[BATCH, n(2)], &[2, 2])]),
        op(Concat { axis: 0 }, vec![floats(&[1, 2]), symbolic(&[BATCH, n(2)], &[3, 2])]),
        op(Slice { begin: vec![1, 0], size: Shape::from([1, 2]) }, vec![floats(&[3, 3])]),
        op(Slice { begin: vec![3], size: Shape::from([0]) }, vec![floats(&[3])]),
        op(Slice { begin: vec![0, 1], size: Shape::from([BATCH, n(2)]) }, vec![symbolic(&[BATCH, n(3)], &[2, 3])]),
        case("rows after the first", vec![symbolic(&[BATCH, n(2)], &[3, 2])], |x| x[0].slice(&[1, 0], &[-1, 2])),
        case("two rows of a batch", vec![symbolic(&[BATCH, n(2)], &[3, 2])], |x| x[0].slice(&[1, 0], &[2, 2])),
        case("a batch without its ends", vec![symbolic(&[BATCH, n(3)], &[4, 3])], |x| x[0].crop(&[(1, 2), (0, 1)])),
        op(StridedSlice { begin: vec![3, 0], strides: vec![-2, 1], size: vec![2, 2] }, vec![floats(&[4, 3])]),
        op(StridedSlice { begin: vec![1], strides: vec![3], size: vec![2] }, vec![floats(&[6])]),
        op(
            Op::StridedSliceGrad(StridedSliceGrad {
                begin: vec![3, 0],
                strides: vec![-2, 1],
                shape: Shape::from([4, 3]),
            }),
            vec![floats(&[2, 2])],
        ),
        op(pad(&[1, 0], &[0, 2]), vec![floats(&[2, 3]), more(&[])]),
        op(pad(&[1, 0], &[1, 1]), vec![symbolic(&[BATCH, n(2)], &[2, 2]), more(&[])]),
        op(pad(&[2], &[1]), vec![floats(&[0]), more(&[])]),
        op(Reverse { axes: AxisSet::from_iter([0, 2]) }, vec![floats(&[2, 3, 2])]),
        op(Reverse { axes: AxisSet::from_iter([0]) }, vec![symbolic(&[BATCH, n(2)], &[3, 2])]),
        op(BandPart { lower: Some(1), upper: Some(0) }, vec![floats(&[2, 3, 4])]),
        op(BandPart { lower: None, upper: Some(1) }, vec![symbolic(&[BATCH, n(4)], &[3, 4])]),
        op(Tile { multiples: vec![2, 3] }, vec![floats(&[2, 2])]),
        op(Tile { multiples: vec![1, 2] }, vec![symbolic(&[BATCH, n(2)], &[3, 2])]),
        op(Tile { multiples: vec![2, 1] }, vec![symbolic(&[BATCH, n(2)], &[3, 2])]),
        op(Tile { multiples: vec![0, 2] }, vec![floats(&[2, 2])]),
    ];
    for symmetric in [false, true] {
        let paddings = vec![(1, 2), (0, 1)];
        cases.push(op(MirrorPad { paddings: paddings.clone(), symmetric }, vec![floats(&[3, 2])]));
        cases.push(op(MirrorPadGrad { paddings, symmetric }, vec![floats(&[6, 3])]));
        let rows_alone = vec![(0, 0), (2, 1)];
        cases.push(op(MirrorPad { paddings: rows_alone, symmetric }, vec![symbolic(&[BATCH, n(3)], &[2, 3])]));
    }
    cases
}

fn pad(before: &[usize], after: &[usize]) -> Op {
    Op::Pad(Pad { before: Shape::from(before), after: Shape::from(after) })
}
