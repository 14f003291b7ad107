//! Reductions, scans, softmax.

use super::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in Reduction::ALL.into_iter().filter(|kind| kind.accepts(DType::F64)) {
        for (shape, dims, axes) in [
            (vec![n(2), n(3)], vec![2, 3], vec![0]),
            (vec![n(2), n(3)], vec![2, 3], vec![1]),
            (vec![n(2), n(3), n(2)], vec![2, 3, 2], vec![0, 2]),
            (vec![n(2), n(3)], vec![2, 3], vec![0, 1]),
            (vec![n(2), n(1)], vec![2, 1], vec![1]),
            (vec![n(2)], vec![2], vec![]),
            (vec![], vec![], vec![]),
            (vec![n(0), n(2)], vec![0, 2], vec![1]),
            (vec![n(2), n(0)], vec![2, 0], vec![1]),
            (vec![BATCH, n(3)], vec![2, 3], vec![0]),
            (vec![BATCH, n(3)], vec![2, 3], vec![1]),
            (vec![BATCH, ANY], vec![2, 3], vec![0, 1]),
        ] {
            for keep_dims in [false, true] {
                let reduce = Op::Reduce(Reduce { kind, axes: AxisSet::from_iter(axes.clone()), keep_dims });
                cases.push(op(reduce, vec![symbolic(&shape, &dims)]));
            }
        }
    }
    // A product of rows with one and with two zeros.
    let zeros = Array::from_slice([2, 3], &[0.0f64, 2.0, 3.0, 0.0, 0.0, 5.0]).unwrap();
    let zeros = Feed { shape: Shape::from([2, 3]), value: zeros };
    cases.push(op(Reduce { kind: Reduction::Prod, axes: AxisSet(2), keep_dims: false }, vec![zeros]));
    for (product, exclusive, reverse) in (0..8).map(|i| (i & 1 > 0, i & 2 > 0, i & 4 > 0)) {
        for axis in 0..2 {
            let scan = Op::Cumulate(Cumulate { product, axis, exclusive, reverse });
            cases.push(op(scan.clone(), vec![floats(&[3, 4])]));
            cases.push(op(scan, vec![symbolic(&[BATCH, n(2)], &[3, 2])]));
        }
    }
    cases.extend([
        op(TopK { k: 2 }, vec![floats(&[5])]),
        op(TopK { k: 3 }, vec![floats(&[2, 2, 4])]),
        op(TopK { k: 1 }, vec![symbolic(&[BATCH, n(3)], &[2, 3])]),
        op(TopK { k: 0 }, vec![floats(&[2, 3])]),
    ]);
    for soft in [Op::Softmax(Softmax), Op::LogSoftmax(LogSoftmax)] {
        cases.push(op(soft.clone(), vec![floats(&[4])]));
        cases.push(op(soft.clone(), vec![floats(&[2, 2, 3])]));
        cases.push(op(soft.clone(), vec![symbolic(&[BATCH, n(3)], &[2, 3])]));
        cases.push(op(soft.clone(), vec![floats(&[2, 1])]));
        cases.push(op(soft, vec![floats(&[0, 3])]));
    }
    for rows in [BATCH, n(2)] {
        // TF: the gradient of the logits is right only if the probabilities sum to 1.
        let labels = Array::from_slice([2, 3], &[0.2, 0.3, 0.5, 0.0, 1.0, 0.0]).unwrap();
        let labels = Feed { shape: Shape::from([rows, n(3)]), value: labels };
        cases.push(op(SoftmaxCrossEntropy, vec![symbolic(&[rows, n(3)], &[2, 3]), labels]));
        let labels = Feed { shape: Shape::from([rows]), value: Array::from([2i32, 0]) };
        cases.push(op(SparseSoftmaxCrossEntropy, vec![symbolic(&[rows, n(3)], &[2, 3]), labels]));
    }
    cases
}
