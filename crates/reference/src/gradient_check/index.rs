//! Indexing, and host code.

use estimand_graph::custom::CustomOp;
use estimand_tensor::TensorSpec;

use super::*;

fn gather(axis: usize, batch_dims: usize) -> Op {
    Op::Gather(Gather { axis, batch_dims })
}

fn segments(kind: Reduction, num_segments: Dim) -> Op {
    Op::UnsortedSegment(UnsortedSegment { kind, num_segments })
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        op(gather(0, 0), vec![floats(&[4, 2]), ids(&[3], &[2, 0, 2])]),
        op(gather(0, 0), vec![floats(&[4]), ids(&[2, 2], &[3, 3, 0, 1])]),
        op(gather(0, 0), vec![floats(&[4, 2]), ids(&[], &[1])]),
        op(gather(0, 0), vec![floats(&[4, 2]), ids(&[0], &[])]),
        op(gather(1, 0), vec![floats(&[2, 3, 2]), ids(&[2], &[2, 2])]),
        op(gather(2, 0), vec![floats(&[2, 3, 2]), ids(&[2, 1], &[1, 0])]),
        op(gather(1, 0), vec![symbolic(&[BATCH, n(3)], &[2, 3]), ids(&[4], &[2, 2, 0, 1])]),
        op(gather(1, 1), vec![floats(&[2, 3, 2]), ids(&[2, 2], &[0, 0, 2, 1])]),
        op(gather(1, 1), vec![floats(&[2, 3]), ids(&[2], &[2, 1])]),
        op(gather(2, 2), vec![floats(&[2, 2, 3]), ids(&[2, 2, 1], &[0, 2, 1, 1])]),
        op(
            gather(1, 1),
            vec![symbolic(&[BATCH, n(3)], &[2, 3]), { Feed { shape: Shape::from([BATCH]), ..ids(&[2], &[2, 1]) } }],
        ),
        case("rows and rows", vec![floats(&[3, 2]), ids(&[2], &[2, 1])], |x| {
            x[0].gather(&x[1]) * &x[0].gather(&x[1]).exp()
        }),
        case("rows and dense", vec![floats(&[3, 2]), ids(&[3], &[2, 1, 2])], |x| x[0].gather(&x[1]) * &x[0].sin()),
        op(GatherNd, vec![floats(&[3, 2]), ids(&[2, 2], &[2, 1, 2, 1])]),
        op(GatherNd, vec![floats(&[3, 2]), ids(&[2, 2, 1], &[2, 0, 2, 1])]),
        op(GatherNd, vec![symbolic(&[BATCH, n(2)], &[3, 2]), ids(&[2, 1], &[2, 0])]),
        op(GatherNd, vec![floats(&[3, 2]), ids(&[2, 0], &[])]),
        scatter(ids(&[3, 1], &[2, 0, 2]), floats(&[3, 2]), Shape::from([4, 2])),
        scatter(ids(&[2, 2], &[1, 1, 1, 1]), floats(&[2]), Shape::from([2, 2])),
        op(segments(Reduction::Sum, n(3)), vec![floats(&[4, 2]), ids(&[4], &[2, 0, 2, -1])]),
        op(segments(Reduction::Sum, n(2)), vec![floats(&[2, 2, 3]), ids(&[2, 2], &[1, 1, -1, 0])]),
        op(segments(Reduction::Sum, n(2)), vec![floats(&[0, 3]), ids(&[0], &[])]),
        op(segments(Reduction::Max, n(2)), vec![floats(&[5]), ids(&[5], &[1, 0, 1, -1, 1])]),
        op(segments(Reduction::Min, n(2)), vec![floats(&[5, 2]), ids(&[5], &[1, 0, 1, -1, 1])]),
        case("mean of segments", vec![floats(&[5, 2]), ids(&[5], &[1, 0, 1, -1, 1])], |x| x[0].segment_mean(&x[1], 3)),
    ];
    for combiner in [Combiner::Sum, Combiner::Mean, Combiner::SqrtN] {
        // Rows [3, 0], [], [3, 3, 1]: row 2 is never looked up.
        let lookups = || [ids(&[5], &[3, 0, 3, 3, 1]), ids(&[4], &[0, 2, 2, 5])];
        let with = |first: Feed| [first].into_iter().chain(lookups()).collect::<Vec<_>>();
        cases.push(op(SparseSegment { combiner }, with(floats(&[4, 2]))));
        cases.push(op(SparseSegment { combiner }, with(floats(&[4, 2, 3]))));
        cases.push(op(SparseSegmentGrad { combiner, n_rows: n(4) }, with(floats(&[3, 2]))));
        let mut weighted = with(floats(&[4, 2]));
        weighted.push(floats(&[5]));
        cases.push(case("weighted lookup", weighted, move |x| {
            node(SparseSegment { combiner }, &[x[0].clone(), x[1].clone(), x[2].clone(), x[3].exp()])
        }));
        cases.push(case("gradient of a weighted lookup", with(floats(&[3, 2])), move |x| {
            let weights = x[0].graph().constant([0.5f64, 2.0, 1.0, 0.25, 3.0]);
            node(SparseSegmentGrad { combiner, n_rows: n(4) }, &[x[0].clone(), x[1].clone(), x[2].clone(), weights])
        }));
    }
    let elementwise = |f: fn(f64) -> f64| {
        move |x: &[Array]| {
            let scale = |i: usize| x.get(1).map_or(Ok(1.0), |dy| dy.as_slice::<f64>().map(|dy| dy[i]));
            let values: Result<Vec<f64>> =
                x[0].as_slice::<f64>()?.iter().enumerate().map(|(i, &v)| Ok(f(v) * scale(i)?)).collect();
            Ok(vec![Array::from(values?)])
        }
    };
    let cube = CustomOp::new("cube", [TensorSpec::new(DType::F64, [BATCH])], elementwise(|v| v * v * v))
        .gradient(elementwise(|v| 3.0 * v * v));
    cases.push(op(cube, vec![symbolic(&[BATCH], &[3])]));
    cases
}

fn scatter(indices: Feed, updates: Feed, shape: Shape) -> Case {
    // The updates come second, as in TensorFlow.
    op(ScatterNd { shape }, vec![indices, updates])
}

pub(super) fn refused() -> Vec<Case> {
    let silent = CustomOp::new("silent", [TensorSpec::new(DType::F64, [2])], |x: &[Array]| Ok(x.to_vec()));
    vec![
        op(segments(Reduction::Prod, n(2)), vec![floats(&[2]), ids(&[2], &[1, 0])]),
        op(silent, vec![floats(&[2])]),
        op(gather(2, 1), vec![floats(&[2, 2, 3]), ids(&[2, 1], &[0, 2])]),
        case("second derivative of a cross entropy", vec![floats(&[2, 3]), floats(&[2, 3])], |x| {
            let loss = node(SoftmaxCrossEntropy, x);
            loss.graph().output(&loss, 1)
        }),
    ]
}
