//! Statistics are NumPy's and pandas', on any number of threads and however rows are cut.

use std::sync::OnceLock;

use estimand_data::statistics::{NumberStatistics, StatisticsPass};
use estimand_data::{Dataset, Statistics};
use estimand_fixture::cases;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, Batch, DType, Feature, Ragged};

use crate::plans::{Dice, rows};

const QUANTILES: [f64; 9] = [0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0];

/// The rows of oracles/gen/statistics.py.
fn fixture_rows() -> &'static Batch {
    static ROWS: OnceLock<Batch> = OnceLock::new();
    ROWS.get_or_init(|| {
        let dice = &mut Dice(4);
        let (mut uniform, mut shifted, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut age, mut large, mut word) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..20_000 {
            uniform.push(dice.below(1 << 53) as f64 / (1u64 << 53) as f64);
            shifted.push(1e9 + dice.below(1000) as f64 / 8.0);
            let gap = dice.below(50) as f32 - 10.0;
            gaps.push(match i {
                i if i % 7 == 3 => f32::NAN,
                i if i % 1001 == 5 => f32::NEG_INFINITY,
                _ => gap,
            });
            let most = dice.below(74);
            age.push(17 + dice.below(1 + most) as i64);
            large.push(dice.below(1 << 62) as i64 - (1 << 61));
            let is_missing = i % 9 == 1;
            let most = if is_missing { 0 } else { dice.below(40) };
            word.push(if is_missing { String::new() } else { format!("w{}", dice.below(1 + most)) });
        }
        Batch::new()
            .with_feature("uniform", Array::from(uniform))
            .and_then(|b| b.with_feature("shifted", Array::from(shifted)))
            .and_then(|b| b.with_feature("gaps", Array::from(gaps)))
            .and_then(|b| b.with_label("age", Array::from(age)))
            .and_then(|b| b.with_feature("large", Array::from(large)))
            .and_then(|b| b.with_feature("word", Array::from_strings([20_000], word)?))
            .unwrap()
    })
}

fn close(ours: f64, theirs: f64) -> bool {
    ours == theirs || (ours - theirs).abs() <= 1e-13 * theirs.abs()
}

#[test]
fn numbers_and_terms_of_numpy_and_pandas() {
    let statistics = Dataset::from_batch(fixture_rows().clone()).statistics().unwrap();
    assert_eq!(statistics.n_rows(), 20_000);
    let cases = cases("statistics");
    assert_eq!(cases.len(), 13);
    for case in &cases {
        let name = &case.setting::<String>("name");
        match case.name() {
            "numbers" => {
                let ours = statistics.numbers(name).unwrap();
                let counts = [ours.n_values, ours.n_missing, ours.n_infinite, ours.n_zeros, ours.n_distinct().unwrap()];
                assert_eq!(counts.to_vec(), case.setting::<Vec<u64>>("counts"), "{name}");
                let moments = [ours.mean, ours.std, ours.min, ours.max];
                assert_eq!(moments.len(), case.setting::<Vec<f64>>("moments").len());
                for (ours, theirs) in moments.into_iter().zip(case.setting::<Vec<_>>("moments")) {
                    assert!(close(ours, theirs), "{name}: {ours} is not {theirs}");
                }
            }
            "quantiles" => {
                let ours = statistics.numbers(name).unwrap();
                assert_eq!(ours.rank_error(), 0.0);
                let expected: Vec<f64> = case.setting("values");
                assert_eq!(expected.len(), QUANTILES.len());
                for (q, theirs) in QUANTILES.into_iter().zip(expected) {
                    assert!(close(ours.quantile(q), theirs), "{name} at {q}: {} is not {theirs}", ours.quantile(q));
                }
            }
            "terms" => {
                let ours = statistics.terms(name).unwrap();
                assert_eq!(vec![ours.n_missing, ours.n_distinct().unwrap()], case.setting::<Vec<u64>>("counts"));
                assert!(close(ours.mean_length, case.setting("mean_length")));
            }
            "top" => {
                let expected: Vec<(String, u64)> = case.setting("terms");
                let ours = statistics.terms(name).unwrap().top(expected.len() + 1, 1);
                let ours: Vec<(String, u64)> = ours.iter().map(|(term, count)| (term.to_string(), *count)).collect();
                assert_eq!(ours, expected, "{name}");
            }
            other => panic!("a case of {other}"),
        }
    }
}

/// Everything that can be asked, with the bits of floats.
fn bits(statistics: &Statistics) -> Vec<String> {
    let of_numbers = |n: &NumberStatistics| {
        let mut floats = vec![n.mean, n.std, n.min, n.max, n.rank_error()];
        floats.extend((0..=1000).map(|i| n.quantile(f64::from(i) / 1000.0)));
        let floats: Vec<u64> = floats.iter().map(|v| v.to_bits()).collect();
        format!("{:?} {floats:?}", [n.n_values, n.n_missing, n.n_infinite, n.n_zeros])
    };
    let lines = statistics.columns().iter().map(|column| {
        let numbers = column.numbers.as_ref().map(of_numbers);
        let terms = column.terms.as_ref().map(|t| (t.n_distinct(), t.undercount(), t.mean_length, t.top(1000, 2)));
        format!("{} {:?} {:?} {numbers:?} {terms:?}", column.name, column.dims, column.lengths)
    });
    lines.collect()
}

/// A million values, more distinct ones than are kept.
fn many_rows() -> Batch {
    let dice = &mut Dice(5);
    let x: Vec<f32> = (0..500_000).map(|_| (dice.below(1 << 24) as f32).sqrt() - 1000.0).collect();
    let ids: Vec<i64> = (0..250_000).map(|_| dice.below(1 << 40).isqrt() as i64).collect();
    Batch::new()
        .with_feature("x", Array::from_vec([250_000, 2], x).unwrap())
        .and_then(|b| b.with_feature("id", Array::from(ids)))
        .unwrap()
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_in_any_pieces() {
    let pass = StatisticsPass::new().max_terms(1000);
    for batch in [fixture_rows().clone(), many_rows(), rows(1000)] {
        let data = Dataset::from_batch(batch);
        let expected = bits(&pass.run_on(&Pool::new(1), &data).unwrap());
        for n_threads in [2, 3, 8] {
            assert_eq!(bits(&pass.run_on(&Pool::new(n_threads), &data).unwrap()), expected, "{n_threads} threads");
        }
        for n in [77, 5000] {
            assert_eq!(bits(&pass.run(&data.batch(n)).unwrap()), expected, "batches of {n}");
        }
    }
}

#[test]
fn quantiles_of_many_values_are_as_near_as_they_say() {
    let batch = many_rows();
    let statistics = Dataset::from_batch(batch.clone()).statistics().unwrap();
    for name in ["x", "id"] {
        let Feature::Dense(values) = &batch.features()[name] else { panic!("{name} is dense") };
        let mut sorted = values.to_f64_vec().unwrap();
        sorted.sort_by(f64::total_cmp);
        let ours = statistics.numbers(name).unwrap();
        let error = ours.rank_error();
        // 1 + log2(500,000 / 8,192) levels, 6 whole ones, are emptied, with an error of 1 / 8,192
        // each.
        assert!(error > 0.0 && error <= 6.0 / 8192.0, "{error}");
        assert_eq!((ours.quantile(0.0), ours.quantile(1.0)), (sorted[0], sorted[sorted.len() - 1]));
        for i in 1..1000 {
            let q = f64::from(i) / 1000.0;
            let n = sorted.len() as f64;
            let rank = |share: f64| sorted[(share.clamp(0.0, 1.0) * (n - 1.0)) as usize];
            let (low, high) = (rank(q - error - 1.0 / n), rank(q + error + 2.0 / n));
            assert!((low..=high).contains(&ours.quantile(q)), "{name} at {q}: {} of {low}..{high}", ours.quantile(q));
        }
    }
    assert_eq!(statistics.numbers("x").unwrap().n_distinct(), None);
}

#[test]
fn vocabularies_and_boundaries() {
    let words = ["b", "a", "b", "c", "a", "b", "", "d"];
    let data = Dataset::from_arrays([
        ("word", Array::from_strings([8], words).unwrap()),
        ("id", Array::from([-5i64, 7, -5, 7, 1, 2, 3, 10])),
        ("flag", Array::from([true, true, false, true, true, true, true, true])),
        ("x", Array::from([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
    ]);
    let statistics = data.statistics().unwrap();
    let words = statistics.terms("word").unwrap();
    // b three times, a twice, then c and d once: c is smaller.
    assert_eq!(words.top(3, 1), [("b".into(), 3), ("a".into(), 2), ("c".into(), 1)]);
    assert_eq!(words.vocabulary(10, 2).unwrap().terms().to_lines().unwrap(), b"b\na\n");
    assert!(words.vocabulary(10, 4).unwrap_err().to_string().contains("no term of 7 values"));
    let ids = statistics.terms("id").unwrap();
    assert_eq!(ids.vocabulary(3, 1).unwrap().terms().ints(), [-5, 7, 1]);
    assert_eq!(statistics.terms("flag").unwrap().top(2, 1), [("true".into(), 7), ("false".into(), 1)]);
    let x = statistics.numbers("x").unwrap();
    // Of 1 to 8 the quarters are at 1 + 7/4, 1 + 14/4, 1 + 21/4.
    assert_eq!(x.quantile_boundaries(4), [2.75, 4.5, 6.25]);
    assert_eq!(x.quantile_boundaries(1), [0.0; 0]);
    assert!(x.quantile(1.5).is_nan() && x.quantile(f64::NAN).is_nan());
    // Half of the flags lie at 1 already, and the smallest value is no boundary.
    assert_eq!(statistics.numbers("flag").unwrap().quantile_boundaries(10), [0.7, 1.0]);
}

#[test]
fn the_table() {
    let tags = Ragged::new(Array::from_strings([3], ["x", "y", "x"]).unwrap(), [0, 2, 2, 3]).unwrap();
    let batch = Batch::new()
        .with_feature("age", Array::from([39i64, 50, 38]))
        .and_then(|b| b.with_feature("pair", Array::from_vec([3, 2], vec![0.5f32, f32::NAN, 0.0, 1.0, 1e-9, 0.0])?))
        .and_then(|b| b.with_feature("tags", tags))
        .and_then(|b| b.with_label("job", Array::from_strings([3], ["clerk", "", "clerk"])?))
        .unwrap();
    let statistics = Dataset::from_batch(batch).statistics().unwrap();
    // 39, 50, 38: mean 127/3, squares of deviations 100/9 + 529/9 + 169/9 = 798/9, std
    // sqrt(266/9) = 5.4365. 0.5, 0, 1, 1e-9, 0: mean 0.3, squares 0.04 + 0.09 + 0.49 + 0.09 +
    // 0.09 = 0.8, std sqrt(0.16) = 0.4.
    let expected = "\
3 rows

numbers  type    missing  zeros  mean    std     min  25%   50%   75%   max  distinct
age      i64     0        0      42.333  5.4365  38   38.5  39    44.5  50   3
pair     f32[2]  1        2      0.3     0.4     0    0     1e-9  0.5   1    4

strings      type                missing  distinct  length  most frequent
tags         string ragged 0..2  0        2         1       \"x\" 2, \"y\" 1
job (label)  string              1        1         5       \"clerk\" 2
";
    assert_eq!(statistics.to_string(), expected);
    let nothing = Dataset::from_arrays([("x", Array::zeros(DType::F32, [0]).unwrap())]).statistics().unwrap();
    assert_eq!(nothing.to_string(), "0 rows\n");
}

#[test]
fn bad_input_is_named() {
    let data = Dataset::from_batch(rows(3));
    let statistics = data.statistics().unwrap();
    let numbers = Dataset::from_array(Array::from([1.0f32])).statistics().unwrap();
    let changes = |batch: Batch| match batch.n_rows() {
        2 => batch.with_feature("id", Array::from_strings([2], ["a", "b"])?),
        _ => Batch::new().with_feature("ident", Array::from([1i64])),
    };
    for (error, text) in [
        (statistics.numbers("idd").unwrap_err(), "did you mean `id`?"),
        (statistics.numbers("name").unwrap_err(), "holds string, not numbers"),
        (numbers.terms("").unwrap_err(), "holds f32, not terms"),
        (StatisticsPass::new().max_terms(0).run(&data).unwrap_err(), "the largest number of terms is 0"),
        (data.batch(2).map(changes).statistics().unwrap_err(), "from row 3 on have [\"feature `ident`\"]"),
        (data.batch(0).statistics().unwrap_err(), "the batch size is 0"),
    ] {
        assert!(error.to_string().contains(text), "{error} should contain {text}");
    }
}
