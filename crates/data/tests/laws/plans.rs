//! Random plans, and the rows that they are about.

use std::path::PathBuf;
use std::sync::OnceLock;

use estimand_data::{Csv, Dataset, Files, LibSvm, ListSpec, Unit, npy};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged, Result};
use estimand_wire::example::{ExampleBuilder, SequenceExampleBuilder, encode_batch};
use estimand_wire::record::RecordWriter;

use crate::combined::{generated, random_end, random_step};

/// SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Row i: the number i, two floats, its decimal name, and i % 4 strings.
pub fn rows(n: i64) -> Batch {
    let names = (0..n).map(|i| i.to_string());
    let dense = Batch::new()
        .with_feature("id", Array::from((0..n).collect::<Vec<_>>()))
        .unwrap()
        .with_feature("pair", Array::from_vec([n as usize, 2], (0..2 * n).map(|v| v as f32).collect()).unwrap())
        .unwrap()
        .with_feature("name", Array::from_strings([n as usize], names).unwrap())
        .unwrap();
    with_tags(dense).unwrap()
}

/// Adds the strings of each row's id.
fn with_tags(batch: Batch) -> Result<Batch> {
    let (mut tags, mut splits) = (Vec::new(), vec![0]);
    for id in ids(&batch) {
        tags.extend((0..id % 4).map(|j| format!("{id}/{j}")));
        splits.push(tags.len() as i64);
    }
    batch.with_feature("tags", Ragged::new(Array::from_strings([tags.len()], tags)?, splits)?)
}

pub fn spec() -> [(&'static str, FeatureSpec); 4] {
    [
        ("id", FeatureSpec::dense(DType::I64, [])),
        ("pair", FeatureSpec::dense(DType::F32, [2])),
        ("name", FeatureSpec::dense(DType::Str, [])),
        ("tags", FeatureSpec::ragged(DType::Str)),
    ]
}

/// A folder of this run of the tests.
pub fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("data-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// 23 rows in three files, of which the second is empty.
pub fn files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let all = rows(23);
        let examples = encode_batch(all.features().iter().map(|(name, feature)| (&**name, feature))).unwrap();
        let mut paths = Vec::new();
        for (i, range) in [0..14, 14..14, 14..23].into_iter().enumerate() {
            let mut writer = RecordWriter::new(Vec::new());
            range.for_each(|row| writer.write(examples.get(row)).unwrap());
            paths.push(folder().join(format!("rows-{i}.tfrecord")));
            std::fs::write(&paths[i], writer.into_inner()).unwrap();
        }
        paths
    })
}

/// 19 rows as NPY files of their dense features, read when they are needed.
pub fn npy_files() -> Vec<(&'static str, PathBuf)> {
    static FILES: OnceLock<Vec<(&'static str, PathBuf)>> = OnceLock::new();
    let write = |name: &'static str| {
        let path = folder().join(format!("{name}.npy"));
        let all = rows(19);
        let Feature::Dense(array) = &all.features()[name] else { panic!("`{name}` is dense") };
        npy::write(&path, array).unwrap();
        (name, path)
    };
    FILES.get_or_init(|| ["id", "pair", "name"].map(write).to_vec()).clone()
}

pub fn ids(batch: &Batch) -> Vec<i64> {
    let Feature::Dense(ids) = &batch.features()["id"] else { panic!("ids are dense") };
    ids.as_slice().unwrap().to_vec()
}

/// The ids of all batches.
pub fn all_ids(data: &Dataset) -> Vec<i64> {
    data.iter().flat_map(|batch| ids(&batch.unwrap())).collect()
}

/// Adds 1,000 to the ids.
pub fn add_1000(batch: Batch) -> Result<Batch> {
    let moved: Vec<i64> = ids(&batch).iter().map(|id| id + 1000).collect();
    batch.with_feature("id", Array::from(moved))
}

/// Whether the digits of the id end in anything but 3 and 7.
pub fn not_3_or_7(batch: &Batch) -> Result<Vec<bool>> {
    Ok(ids(batch).iter().map(|id| !matches!(id % 10, 3 | 7)).collect())
}

/// The same rows as CSV, in two files: the number, one of the floats, and the name.
pub fn csv_files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut paths = Vec::new();
        for (i, range) in [0..9, 9..23].into_iter().enumerate() {
            let rows = range.map(|id| format!("{id},{}.5,\"{id}\"\n", 2 * id));
            paths.push(folder().join(format!("rows-{i}.csv")));
            std::fs::write(&paths[i], std::iter::once("id,x,name\n".to_string()).chain(rows).collect::<String>())
                .unwrap();
        }
        paths
    })
}

/// They read by pieces of a size.
pub fn csv(buffer_size: usize) -> Dataset {
    Csv::new(Files::new(csv_files()).buffer_size(buffer_size))
        .feature("id", FeatureSpec::dense(DType::I64, []))
        .dataset()
}

/// The same rows as SequenceExamples: the number and the name, and lists of tags, two to a step,
/// and of pairs.
pub fn sequence_files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut paths = Vec::new();
        for (i, range) in [0..11i64, 11..23].into_iter().enumerate() {
            let mut writer = RecordWriter::new(Vec::new());
            for id in range {
                let context = ExampleBuilder::new().ints("id", &[id]).strings("name", [id.to_string()]);
                let mut row = SequenceExampleBuilder::new().context(context);
                let tags: Vec<String> = (0..id % 4).map(|j| format!("{id}/{j}")).collect();
                for step in tags.chunks(2) {
                    row = row.step_strings("tags", step);
                }
                for j in 0..id % 3 {
                    row = row.step_floats("pairs", &[id as f32, j as f32]);
                }
                writer.write(&row.build()).unwrap();
            }
            paths.push(folder().join(format!("sequences-{i}.tfrecord")));
            std::fs::write(&paths[i], writer.into_inner()).unwrap();
        }
        paths
    })
}

/// They read by pieces of a size.
pub fn sequences(buffer_size: usize) -> Dataset {
    Dataset::from_sequence_tfrecord(
        Files::new(sequence_files()).buffer_size(buffer_size),
        [("id", FeatureSpec::dense(DType::I64, [])), ("name", FeatureSpec::dense(DType::Str, []))],
        [("tags", ListSpec::ragged(DType::Str)), ("pairs", ListSpec::optional(DType::F32, [2]))],
    )
}

/// Row i of 21 in two LIBSVM files: the query i, the label i % 3, and i % 4 pairs; with comments
/// and empty lines.
pub fn libsvm_files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut paths = Vec::new();
        for (i, range) in [0..13i64, 13..21].into_iter().enumerate() {
            let mut text = "# rows\n".to_string();
            for id in range {
                let pairs: String = (0..id % 4).map(|j| format!(" {}:{}.5", 1 + id + 2 * j, j)).collect();
                text += &format!("{} qid:{id}{pairs}{}\n", id % 3, [" # odd", "", "\n"][id as usize % 3]);
            }
            paths.push(folder().join(format!("rows-{i}.svm")));
            std::fs::write(&paths[i], text).unwrap();
        }
        paths
    })
}

/// They read by pieces of a size, with the query as the number, dense or not.
pub fn libsvm(buffer_size: usize, dense: bool) -> Dataset {
    let files = LibSvm::new(Files::new(libsvm_files()).buffer_size(buffer_size)).query_id().label_dtype(DType::I64);
    let files = if dense { files.dense() } else { files };
    files.dataset().map(|batch| {
        let id = batch.feature("qid")?.clone();
        batch.with_feature("id", id)
    })
}

/// A source under up to seven transformations.
pub fn random_plan(dice: &mut Dice) -> Dataset {
    let mut data = match dice.below(7) {
        6 => libsvm(1 + dice.below(60) as usize, dice.below(2) == 0),
        4 => sequences(1 + dice.below(200) as usize),
        3 => csv(1 + dice.below(100) as usize),
        0 => Dataset::from_batch(rows(dice.below(30) as i64)),
        1 => generated(dice.below(30) as i64),
        2 => Dataset::from_npy_files(npy_files()).map(with_tags),
        _ => Dataset::from_tfrecord(Files::new(files()).buffer_size(1 + dice.below(200) as usize), spec()),
    };
    if dice.below(4) == 0 {
        let parts = data.split([0.6, 0.25, 0.15], dice.below(3));
        data = parts[dice.below(3) as usize].clone();
    }
    for _ in 0..dice.below(8) {
        data = match dice.below(15) {
            0 if dice.below(2) == 0 => {
                data.shuffle(1 + dice.below(9) as usize, dice.below(3)).reshuffle_each_iteration(false)
            }
            0 | 1 => data.shuffle(1 + dice.below(9) as usize, dice.below(3)),
            2 => data.repeat(dice.below(4)),
            3 => data.take(dice.below(40)),
            4 => data.skip(dice.below(6)),
            5 => {
                let n = 1 + dice.below(3);
                data.shard(n as usize, dice.below(n) as usize)
            }
            6 => data.map(add_1000),
            7 => data.filter(not_3_or_7),
            9 => data.parallel_map(add_1000),
            8 => data.prefetch(1 + dice.below(3) as usize),
            10..=12 => random_step(&data, dice),
            _ if data.unit() == Unit::Row => {
                let batches = data.batch(1 + dice.below(5) as usize);
                if dice.below(2) == 0 { batches.drop_remainder() } else { batches }
            }
            _ => data.repeat_forever().take(dice.below(60)),
        };
    }
    random_end(data, dice)
}
