//! Crossed hashing.

use estimand_fixture::cases_of;
use estimand_tensor::cpu::text::{Cross, CrossKey, CrossRows, CrossValues, MAX_CROSSED_VALUES};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Result, Strings};

/// A key that owns its values.
enum Values {
    Strings(Strings),
    Ints(Vec<i64>),
}

impl Values {
    fn key<'a>(&'a self, rows: CrossRows<'a>) -> CrossKey<'a> {
        let values = match self {
            Values::Strings(strings) => CrossValues::Strings(strings.as_slice()),
            Values::Ints(ints) => CrossValues::Ints(ints),
        };
        CrossKey { values, rows }
    }
}

fn strings(values: &[&str]) -> Values {
    Values::Strings(values.iter().collect())
}

/// One dense value in each row and key.
fn dense(cross: Cross, keys: &[Values]) -> Vec<i64> {
    let n_rows = match &keys[0] {
        Values::Strings(strings) => strings.len(),
        Values::Ints(ints) => ints.len(),
    };
    let keys: Vec<_> = keys.iter().map(|key| key.key(CrossRows::Dense { width: 1 })).collect();
    cross.apply(&Pool::new(1), n_rows, &keys).unwrap().0
}

#[test]
fn ids_are_tensorflows() {
    for case in cases_of("text_hash", "cross") {
        let (mut values, mut splits) = (vec![], vec![]);
        for i in 0.. {
            values.push(if case.has(&format!("str{i}")) {
                Values::Strings(crate::strings(&case, &format!("str{i}")))
            } else if case.has(&format!("int{i}")) {
                Values::Ints(case.numbers(&format!("int{i}")))
            } else {
                break;
            });
            splits.push(case.numbers::<i64>(&format!("splits{i}")));
        }
        let keys: Vec<_> = values.iter().zip(&splits).map(|(v, s)| v.key(CrossRows::Ragged(s))).collect();
        let cross = Cross::new(case.setting("n_buckets")).unwrap().hash_key(case.setting("hash_key"));
        let n_rows: usize = case.setting("n_rows");
        let expected = (case.numbers::<i64>("ids"), case.numbers::<i64>("splits"));
        for n_threads in [1, 3] {
            assert_eq!(cross.apply(&Pool::new(n_threads), n_rows, &keys).unwrap(), expected, "{case}");
        }
        // Any range of rows on its own gives its part.
        let rows = n_rows / 3..n_rows / 2;
        let range = |s: &'_ Vec<i64>| s[rows.start..=rows.end].to_vec();
        let splits: Vec<_> = splits.iter().map(range).collect();
        let keys: Vec<_> = values.iter().zip(&splits).map(|(v, s)| v.key(CrossRows::Ragged(s))).collect();
        let part = cross.apply(&Pool::new(1), rows.len(), &keys).unwrap().0;
        assert_eq!(part, expected.0[expected.1[rows.start] as usize..expected.1[rows.end] as usize], "{case}");
    }
}

/// Cases 12-16, 19, 20, 22 and 24 of the specification, which were read off TensorFlow 2.15.
#[test]
fn specified_cases() {
    let thousand = Cross::new(1000).unwrap();
    let (a, b) = (|| strings(&["a", "b"]), || strings(&["x", "y"]));
    assert_eq!(dense(thousand, &[a(), b()]), [892, 805]);
    assert_eq!(dense(thousand, &[b(), a()]), [37, 590]);
    assert_eq!(dense(thousand.hash_key(1), &[a(), b()]), [6, 345]);
    assert_eq!(dense(thousand.hash_key(0), &[a(), b()]), [892, 805]);
    let unbounded = Cross::new(0).unwrap();
    assert_eq!(dense(unbounded, &[a(), b()]), [1_484_974_617_627_318_892, 5_470_948_523_078_679_805]);
    assert_eq!(dense(thousand, &[Values::Ints(vec![3, -2]), a()]), [152, 76]);
    // 5 and 150 are in buckets 1 and 3 of (0, 10, 100); the dense text comes after the sparse
    // bucket.
    assert_eq!(dense(thousand, &[Values::Ints(vec![1, 3]), strings(&["HS", "BS"])]), [872, 374]);
    assert_eq!(dense(thousand, &[strings(&["HS", "BS"]), Values::Ints(vec![1, 3])]), [722, 455]);
    assert_eq!(dense(thousand, &[strings(&["a"]), strings(&["b"]), strings(&["c"])]), [792]);
    assert_eq!(dense(thousand, &[strings(&[""]), strings(&["x"])]), [262]);
    assert_eq!(dense(thousand, &[Values::Ints(vec![1]), strings(&["x"])]), [859]);
    assert_eq!(dense(thousand, &[Values::Ints(vec![3]), strings(&["Bachelors"])]), [650]);
    let ten_thousand = Cross::new(10_000).unwrap();
    assert_eq!(dense(ten_thousand, &[strings(&["Bachelors"]), strings(&["Tech-support"])]), [4242]);
}

/// Read off `tf.raw_ops.SparseCross(hash_key=0, ...)`: the node takes 0 at its word, only Python
/// replaces it.
#[test]
fn a_node_with_key_zero() {
    let cross = Cross::new(1000).unwrap().raw_hash_key(0);
    assert_eq!(dense(cross, &[strings(&["a", "b"]), strings(&["x", "y"])]), [997, 44]);
}

fn refusal(result: Result<(Vec<i64>, Vec<i64>)>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn bad_keys_are_named() {
    let pool = Pool::new(2);
    let cross = Cross::new(10).unwrap();
    assert!(Cross::new(-1).unwrap_err().to_string().contains("buckets of the cross is -1"));
    assert!(refusal(cross.apply(&pool, 1, &[])).contains("no keys"));
    let ints = Values::Ints(vec![1, 2, 3]);
    for (rows, n_rows, text) in [
        (CrossRows::Dense { width: 2 }, 2, "3 values; expected 2 rows of 2 values"),
        (CrossRows::Dense { width: usize::MAX }, 3, "3 values; expected 3 rows"),
        (CrossRows::Ragged(&[]), 0, "there are 0 for 0 rows"),
        (CrossRows::Ragged(&[0, 3]), usize::MAX, "there are 2 for"),
        (CrossRows::Ragged(&[0, 1, 3]), 1, "there are 3 for 1 rows"),
        (CrossRows::Ragged(&[-1, 3]), 1, "from -1 to 3, but there are 3 values"),
        (CrossRows::Ragged(&[0, 4]), 1, "from 0 to 4, but there are 3 values"),
        (CrossRows::Ragged(&[0, i64::MIN, 3]), 2, "fall from 0 to -9223372036854775808 at row 0"),
        (CrossRows::Ragged(&[0, i64::MAX, 3]), 2, "fall from 9223372036854775807 to 3 at row 1"),
    ] {
        let error = refusal(cross.apply(&pool, n_rows, &[ints.key(rows)]));
        assert!(error.contains(text) && error.contains("in key 0"), "{error}");
    }
}

#[test]
fn products_beyond_all_measure_are_refused() {
    let cross = Cross::new(10).unwrap();
    let ints = Values::Ints(vec![7; 1 << 14]);
    let wide = ints.key(CrossRows::Dense { width: 1 << 14 });
    let empty = Values::Ints(vec![]);
    let none = empty.key(CrossRows::Dense { width: 0 });
    for n_keys in [2, 5, 20] {
        let error = refusal(cross.apply(&Pool::new(2), 1, &vec![wide; n_keys]));
        assert!(error.contains(&format!("more than {MAX_CROSSED_VALUES}")) && error.contains("16384"), "{error}");
    }
    // A key without a value leaves nothing, however large the others are.
    assert_eq!(cross.apply(&Pool::new(2), 1, &[wide, wide, none, wide]).unwrap(), (vec![], vec![0, 0]));
    assert_eq!(cross.apply(&Pool::new(2), 0, &[none]).unwrap(), (vec![], vec![0]));
    assert!(refusal(cross.apply(&Pool::new(2), usize::MAX, &[none])).contains("expected at most"));
}
