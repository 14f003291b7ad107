//! Times of parsing `tf.Example`s: `cargo bench -p estimand-wire --bench example`.
//!
//! The rows are made as those of the census data are: six integers and eight short strings. Beside
//! each time stands its bound: copying the serialized bytes once. Every figure is the minimum of
//! many runs.
#![allow(clippy::print_stdout)] // a bench prints

use std::hint::black_box;
use std::time::Instant;

use estimand_tensor::parallel::Pool;
use estimand_tensor::{DType, FeatureSpec};
use estimand_wire::example::{ExampleBuilder, ExampleParser};

const N_ROWS: usize = 12_288;

const INTS: [(&str, u64, u64); 6] = [
    ("age", 17, 90),
    ("fnlwgt", 12_285, 500_000),
    ("educational-num", 1, 16),
    ("capital-gain", 0, 10_000),
    ("capital-loss", 0, 2_000),
    ("hours-per-week", 1, 99),
];

const STRINGS: [(&str, &[&str]); 8] = [
    ("workclass", &["Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Self-emp-inc", "Federal-gov", "?"]),
    ("education", &["HS-grad", "Some-college", "Bachelors", "Masters", "Assoc-voc", "11th", "Assoc-acdm", "10th"]),
    ("marital-status", &["Married-civ-spouse", "Never-married", "Divorced", "Separated", "Widowed"]),
    (
        "occupation",
        &["Prof-specialty", "Craft-repair", "Exec-managerial", "Adm-clerical", "Sales", "Other-service", "?"],
    ),
    ("relationship", &["Husband", "Not-in-family", "Own-child", "Unmarried", "Wife"]),
    ("race", &["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo"]),
    ("gender", &["Male", "Female"]),
    ("native-country", &["United-States", "United-States", "United-States", "Mexico", "Philippines", "?"]),
];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % n
    }
}

fn row(dice: &mut Dice) -> Vec<u8> {
    let mut row = ExampleBuilder::new();
    for (name, low, high) in INTS {
        // Most people have neither gains nor losses.
        let value = if name.starts_with("capital") && dice.below(10) > 0 { 0 } else { low + dice.below(high - low) };
        row = row.ints(name, &[value as i64]);
    }
    for (name, values) in STRINGS {
        row = row.strings(name, [values[dice.below(values.len() as u64) as usize]]);
    }
    row.build()
}

/// The same row with its features in another order, as writers leave them that do not sort.
fn shuffled(row: &[u8], dice: &mut Dice) -> Vec<u8> {
    // Every length here fits one byte, but that of the whole has two.
    let mut entries: Vec<&[u8]> = Vec::new();
    let mut rest = &row[3..];
    while !rest.is_empty() {
        let (entry, after) = rest.split_at(2 + usize::from(rest[1]));
        entries.push(entry);
        rest = after;
    }
    for i in (1..entries.len()).rev() {
        entries.swap(i, dice.below(i as u64 + 1) as usize);
    }
    [&row[..3], &entries.concat()].concat()
}

/// The least nanoseconds of one row.
fn time(mut all_batches: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 500 {
        let start = Instant::now();
        all_batches();
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    best / N_ROWS as f64
}

fn main() {
    let mut dice = Dice(7);
    let rows: Vec<Vec<u8>> = (0..N_ROWS).map(|_| row(&mut dice)).collect();
    let disordered: Vec<Vec<u8>> = rows.iter().map(|row| shuffled(row, &mut dice)).collect();
    let ints = INTS.map(|(name, ..)| name);
    let names = ints.into_iter().map(|name| (name, DType::I64)).chain(STRINGS.map(|(name, _)| (name, DType::Str)));
    let spec: Vec<_> = names.collect();
    let dense = ExampleParser::new(spec.iter().map(|&(name, dtype)| (name, FeatureSpec::dense(dtype, [])))).unwrap();
    let ragged = ExampleParser::new(spec.iter().map(|&(name, dtype)| (name, FeatureSpec::ragged(dtype)))).unwrap();
    let three =
        ExampleParser::new(spec[..3].iter().map(|&(name, dtype)| (name, FeatureSpec::dense(dtype, [])))).unwrap();

    let bytes: usize = rows.iter().map(Vec::len).sum();
    println!("example_bytes = {:.0}", bytes as f64 / rows.len() as f64);
    let mut copy = Vec::with_capacity(bytes);
    let bound = time(|| {
        copy.clear();
        rows.iter().for_each(|row| copy.extend_from_slice(row));
        black_box(&copy);
    });
    println!("example_copy_ns = {bound:.0}");

    let pool = Pool::new(2);
    let report = |name: &str, parser: &ExampleParser, rows: &[Vec<u8>], batch: usize, pool: Option<&Pool>| {
        let ns = time(|| {
            for batch in rows.chunks(batch) {
                let features = match pool {
                    Some(pool) => parser.parse_parallel(batch, pool),
                    None => parser.parse(batch),
                };
                black_box(features.unwrap());
            }
        });
        let million = 1e3 / ns;
        println!("{name}_ns = {ns:.0}   # {million:.2} million a second; copying takes {bound:.0}");
    };
    report("example_dense", &dense, &rows, 512, None);
    report("example_dense_disordered", &dense, &disordered, 512, None);
    report("example_ragged", &ragged, &rows, 512, None);
    report("example_three_of_fourteen", &three, &rows, 512, None);
    report("example_dense_two_threads", &dense, &rows, 4096, Some(&pool));
}
