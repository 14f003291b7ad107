//! Random rows, files of them, and what is read back.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use estimand_data::{Dataset, InputContext, Position, slice_rows};
use estimand_tensor::{Array, Batch, Feature, Ragged, Result};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Any number, and often one of few.
    fn number(&mut self) -> u64 {
        if self.below(2) == 0 { self.below(5) } else { self.next() }
    }

    fn text(&mut self) -> String {
        let n = self.below(12);
        (0..n).map(|_| char::from_u32(0x60 + self.below(0x300) as u32).unwrap_or('x')).collect()
    }
}

/// `n` values of a dtype chosen by `kind`.
fn values(dice: &mut Dice, kind: u64, dims: &[usize]) -> Array {
    let n = dims.iter().product::<usize>();
    let numbers: Vec<u64> = (0..n).map(|_| dice.number()).collect();
    let numbers = numbers.into_iter();
    match kind {
        0 => Array::from_vec(dims, numbers.map(|v| v as i32 as f32 / 3.0).collect()),
        1 => Array::from_vec(dims, numbers.map(|v| v as i64 as f64 / 3.0).collect()),
        2 => Array::from_vec(dims, numbers.map(|v| v as i32).collect()),
        3 => Array::from_vec(dims, numbers.map(|v| v as i64).collect()),
        4 => Array::from_vec(dims, numbers.map(|v| v as u8).collect()),
        5 => Array::from_vec(dims, numbers.map(|v| v % 2 == 0).collect()),
        _ => Array::from_strings(dims, (0..n).map(|_| dice.text())),
    }
    .unwrap()
}

/// Rows of random features of every dtype, dense of up to three axes, or ragged.
pub fn random_rows(dice: &mut Dice, n: usize) -> Batch {
    let mut batch = Batch::new();
    for i in 0..1 + dice.below(6) {
        let (kind, width) = (dice.below(7), 1 + dice.below(3) as usize);
        let feature: Feature = match dice.below(4) {
            0 => {
                let mut splits = vec![0];
                (0..n).for_each(|row| splits.push(splits[row] + dice.below(4) as i64));
                Ragged::new(values(dice, kind, &[splits[n] as usize]), splits).unwrap().into()
            }
            1 => values(dice, kind, &[n, width]).into(),
            2 => values(dice, kind, &[n, 2, width]).into(),
            _ => values(dice, kind, &[n]).into(),
        };
        batch = batch.with_feature(&format!("column {i}"), feature).unwrap();
    }
    batch
}

/// A folder of this run of the tests.
pub fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("columnar-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn records<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// A Parquet file as the `parquet` crate writes it.
pub fn parquet_file(name: &str, records: &RecordBatch, group: usize) -> PathBuf {
    let path = folder().join(name);
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, records.schema(), Some(properties)).unwrap();
    writer.write(records).unwrap();
    writer.close().unwrap();
    path
}

pub fn array<A: arrow_array::Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

/// All rows from a position on, pulled in pieces of changing sizes, with the position behind each
/// row or piece.
pub fn pull_all(data: &Dataset, n_threads: usize, from: &Position, wants: &[usize]) -> Result<Vec<(Batch, Position)>> {
    let cx = InputContext { n_threads, ..InputContext::default() };
    let mut stream = data.open(&cx, from)?;
    let mut items = Vec::new();
    for want in wants.iter().cycle() {
        let Some(item) = stream.pull(*want)? else { break };
        assert!((1..=*want).contains(&item.batch.n_rows()));
        items.push((item.batch, item.after));
    }
    Ok(items)
}

/// The rows of a batch one by one.
pub fn one_by_one(batch: &Batch) -> Vec<Batch> {
    (0..batch.n_rows()).map(|i| slice_rows(batch, i..i + 1).unwrap()).collect()
}
