//! Softmax and cross entropy against their definitions in `f64`, and their bits.

use crate::naive::Random;
use estimand_tensor::DType;
use estimand_tensor::cpu::isa::Isa;
use estimand_tensor::cpu::softmax::{cross_entropy, log_softmax, softmax, sparse_cross_entropy};
use estimand_tensor::parallel::Pool;

/// Everything that can be computed from one set of logits.
#[derive(Clone, PartialEq, Debug, Default)]
struct All {
    softmax: Vec<f32>,
    log_softmax: Vec<f32>,
    dense: (Vec<f32>, Vec<f32>),
    sparse: (Vec<f32>, Vec<f32>),
}

impl All {
    fn of(pool: &Pool, classes: usize, logits: &[f32], labels: &[f32], sparse: &[i32]) -> All {
        let (n, rows) = (logits.len(), sparse.len());
        let zeros = || (vec![0f32; rows], vec![0f32; n]);
        let mut all = All { softmax: vec![0.0; n], log_softmax: vec![0.0; n], dense: zeros(), sparse: zeros() };
        let shape = [rows, classes];
        let x = logits.as_ptr().cast();
        let wide: Vec<i64> = sparse.iter().map(|l| (*l).into()).collect();
        let mut again = zeros();
        // SAFETY: all arrays have the sizes of the shape.
        unsafe {
            softmax(pool, DType::F32, shape, x, all.softmax.as_mut_ptr().cast()).unwrap();
            log_softmax(pool, DType::F32, shape, x, all.log_softmax.as_mut_ptr().cast()).unwrap();
            let (loss, grad) = (all.dense.0.as_mut_ptr().cast(), all.dense.1.as_mut_ptr().cast());
            cross_entropy(pool, DType::F32, shape, x, labels.as_ptr().cast(), loss, grad).unwrap();
            let (loss, grad) = (all.sparse.0.as_mut_ptr().cast(), all.sparse.1.as_mut_ptr().cast());
            sparse_cross_entropy(pool, DType::F32, shape, x, DType::I32, sparse.as_ptr().cast(), loss, grad).unwrap();
            let (loss, grad) = (again.0.as_mut_ptr().cast(), again.1.as_mut_ptr().cast());
            sparse_cross_entropy(pool, DType::F32, shape, x, DType::I64, wide.as_ptr().cast(), loss, grad).unwrap();
        }
        let bits = |x: &(Vec<f32>, Vec<f32>)| x.0.iter().chain(&x.1).map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&all.sparse), bits(&again));
        all
    }

    /// All results of one row, one after the other.
    fn row(&self, row: usize, classes: usize) -> Vec<u32> {
        let range = row * classes..(row + 1) * classes;
        let mut values = vec![self.dense.0[row], self.sparse.0[row]];
        for x in [&self.softmax, &self.log_softmax, &self.dense.1, &self.sparse.1] {
            values.extend(&x[range.clone()]);
        }
        values.into_iter().map(f32::to_bits).collect()
    }
}

fn data(rows: usize, classes: usize, seed: u64) -> (Vec<f32>, Vec<f32>, Vec<i32>) {
    let mut random = Random(seed);
    let logits = (0..rows * classes).map(|_| (random.unit() as f32 - 0.5) * 20.0).collect();
    let labels = (0..rows * classes).map(|_| random.unit() as f32 / classes as f32).collect();
    (logits, labels, (0..rows).map(|_| random.below(classes) as i32).collect())
}

#[test]
fn rows_follow_the_definition() {
    for (rows, classes) in
        [(0, 3), (1, 1), (33, 1), (32, 3), (5, 10), (17, 16), (3, 17), (2, 100), (4, 1000), (2, 3000)]
    {
        let (logits, labels, sparse) = data(rows, classes, 3);
        let all = All::of(&Pool::new(2), classes, &logits, &labels, &sparse);
        for r in 0..rows {
            let at = |c: usize| r * classes + c;
            let x: Vec<f64> = (0..classes).map(|c| logits[at(c)].into()).collect();
            let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log = x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() + largest;
            let near = |got: f32, want: f64, what: &str| {
                assert!(
                    (f64::from(got) - want).abs() < 1e-6 * (1.0 + want.abs()),
                    "{what} {rows}x{classes}: {got} {want}"
                );
            };
            let mut loss = 0.0;
            for c in 0..classes {
                let p = (x[c] - log).exp();
                assert!((f64::from(all.softmax[at(c)]) / p - 1.0).abs() < 2e-6);
                near(all.log_softmax[at(c)], x[c] - log, "log softmax");
                near(all.dense.1[at(c)], p - f64::from(labels[at(c)]), "gradient");
                near(all.sparse.1[at(c)], p - f64::from(u8::from(c as i32 == sparse[r])), "sparse gradient");
                loss += f64::from(labels[at(c)]) * (log - x[c]);
            }
            near(all.dense.0[r], loss, "loss");
            near(all.sparse.0[r], log - x[sparse[r] as usize], "sparse loss");
        }
    }
}

/// The only test that limits the instruction set: the limit holds for the whole process.
#[test]
fn bits_depend_on_the_row_alone() {
    for classes in [1, 3, 10, 16, 17, 100, 1500] {
        let (logits, labels, sparse) = data(128, classes, 11);
        let mut first = None;
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            Isa::limit(isa);
            for threads in [1, 2, 3, 8] {
                let all = All::of(&Pool::new(threads), classes, &logits, &labels, &sparse);
                assert!(
                    *first.get_or_insert_with(|| all.clone()) == all,
                    "{classes} classes, {threads} threads, {isa:?}"
                );
            }
        }
        Isa::limit(Isa::Avx512);
        let all = first.unwrap();
        for (batch, start) in [(1, 0), (1, 127), (7, 0), (7, 60)] {
            let elements = start * classes..(start + batch) * classes;
            let rows = start..start + batch;
            let part = All::of(&Pool::new(2), classes, &logits[elements.clone()], &labels[elements], &sparse[rows]);
            for r in 0..batch {
                assert_eq!(part.row(r, classes), all.row(start + r, classes), "{classes} classes, row {}", start + r);
            }
        }
    }
}

#[test]
fn large_and_infinite_logits() {
    let pool = Pool::new(1);
    let inf = f32::INFINITY;
    for pad in [0, 30] {
        // Classes of minus infinity have no probability.
        let classes = 3 + pad;
        let mut logits = vec![-inf; classes];
        (logits[0], logits[1]) = (1000.0, 999.0);
        let mut labels = vec![0f32; classes];
        labels[0] = 1.0;
        let all = All::of(&pool, classes, &logits, &labels, &[1]);
        // 1 / (1 + e^-1) and the logarithms of it and of the rest.
        assert!((all.softmax[0] - 0.731_058_6).abs() < 1e-6 && all.softmax[2] == 0.0, "{:?}", all.softmax);
        assert!((all.log_softmax[1] + 1.313_261_7).abs() < 1e-6 && all.log_softmax[2] == -inf);
        assert!((all.sparse.0[0] - 1.313_261_7).abs() < 1e-6);
        // TF: the loss is NaN, because it has the term 0 * inf; the gradient is not.
        assert!(all.dense.0[0].is_nan() && (all.dense.1[0] + 0.268_941_4).abs() < 1e-6);
        // All minus infinity: NaN, as in TensorFlow.
        let all = All::of(&pool, classes, &vec![-inf; classes], &labels, &[1]);
        assert!(all.softmax.iter().all(|p| p.is_nan()));
    }
}

#[test]
fn softmax_in_place_and_in_f64() {
    let pool = Pool::new(1);
    for classes in [5, 50] {
        let (logits, labels, sparse) = data(9, classes, 1);
        let want = All::of(&pool, classes, &logits, &labels, &sparse).softmax;
        let mut x = logits.clone();
        let mut wide: Vec<f64> = logits.iter().map(|x| (*x).into()).collect();
        // SAFETY: softmax may overwrite its logits.
        unsafe {
            softmax(&pool, DType::F32, [9, classes], x.as_ptr().cast(), x.as_mut_ptr().cast()).unwrap();
            softmax(&pool, DType::F64, [9, classes], wide.as_ptr().cast(), wide.as_mut_ptr().cast()).unwrap();
        }
        assert_eq!(x, want);
        for row in wide.chunks(classes) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        }
        assert!(wide.iter().zip(&want).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-6));
    }
}

#[test]
fn a_label_that_is_no_class_is_an_error_with_its_row() {
    let (logits, mut loss, mut grad) = ([0f32; 6], [0f32; 3], [0f32; 6]);
    for (labels, words) in [
        ([0, 1, 2], "label 2 in row 2 is not a class; expected 0 or more and less than 2"),
        ([0, -1, 7], "label -1 in row 1"),
    ] {
        // SAFETY: the arrays have 3 rows of 2 classes.
        let result = unsafe {
            let (x, labels) = (logits.as_ptr().cast(), labels.as_ptr().cast());
            let (loss, grad) = (loss.as_mut_ptr().cast(), grad.as_mut_ptr().cast());
            sparse_cross_entropy(&Pool::new(1), DType::F32, [3, 2], x, DType::I32, labels, loss, grad)
        };
        let message = result.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}
