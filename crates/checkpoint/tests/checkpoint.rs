//! Checkpoints: those TensorFlow wrote (oracles/gen/bundle.py, oracles/gen/snappy.py), our own, and
//! damaged ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use estimand_checkpoint::{
    BundleReader, BundleWriter, CheckpointState, latest_checkpoint, read_state, sstable, write_state,
};
use estimand_tensor::{Array, DType, Limits};
use estimand_wire::bundle::{BundleEntryProto, BundleHeaderProto};
use estimand_wire::{DataType, Message, TensorShapeProto};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures").join(name)
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("estimand-checkpoint-{}-{test}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn prefix(&self) -> PathBuf {
        self.0.join("model.ckpt-7")
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A checkpoint of these files, as someone else might have written it.
    fn with_files(&self, index: &[u8], data: &[u8]) -> PathBuf {
        for (suffix, bytes) in [("index", index), ("data-00000-of-00001", data)] {
            let path = self.0.join(format!("model.ckpt-7.{suffix}"));
            // A new file is written much faster than an old one is overwritten.
            let _ = fs::remove_file(&path);
            fs::write(path, bytes).unwrap();
        }
        self.prefix()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_dtype_of_tensorflow() {
    let bundle = BundleReader::open(fixture("bundle_tf")).unwrap();
    let names: Vec<&str> = bundle.names().collect();
    let expected = [
        "byte",
        "columns",
        "dnn/hiddenlayer_0/bias",
        "dnn/hiddenlayer_0/kernel",
        "double",
        "empty",
        "flag",
        "global_step",
        "half",
        "int",
        "rows",
        "word",
        "words",
    ];
    assert_eq!(names, expected);

    let kernel = [1.5f32, -2.0, 0.25, 3.0, 1e-30, f32::NEG_INFINITY];
    assert_eq!(bundle.read("dnn/hiddenlayer_0/kernel").unwrap(), Array::from_slice([2, 3], &kernel).unwrap());
    let bias = bundle.read("dnn/hiddenlayer_0/bias").unwrap();
    assert_eq!(bias.as_slice::<f32>().unwrap().map_bits(), [0.0f32, -0.0, 7.0].map_bits());
    assert_eq!(bundle.read("double").unwrap(), Array::from([std::f64::consts::PI, -1e300]));
    assert_eq!(bundle.read("int").unwrap(), Array::from([i32::MIN, 0, i32::MAX]));
    assert_eq!(bundle.read("global_step").unwrap(), Array::from(1_234_567_890_123i64));
    assert_eq!(bundle.read("byte").unwrap(), Array::from_slice([3, 1], &[0u8, 127, 255]).unwrap());
    assert_eq!(bundle.read("flag").unwrap(), Array::from([true, false, true]));
    assert_eq!(bundle.read("empty").unwrap(), Array::zeros(DType::F32, [0, 5]).unwrap());
    assert_eq!(bundle.read("word").unwrap(), Array::from_strings([], ["alone"]).unwrap());
    let long = [b'x'; 300];
    let words = Array::from_strings([2, 2], [&b"a"[..], b"", b"\x00\xff", &long]).unwrap();
    assert_eq!(bundle.read("words").unwrap(), words);

    let (dtype, dims) = bundle.spec("words").unwrap();
    assert_eq!((dtype, dims.as_slice()), (DType::Str, &[2, 2][..]));
    let error = bundle.read("half").unwrap_err().to_string();
    assert!(error.contains("variable `half`: it holds DT_HALF, which is not supported"), "{error}");
    let error = bundle.read("global_stop").unwrap_err().to_string();
    assert!(error.contains("did you mean `global_step`?"), "{error}");
}

/// Comparing bits tells -0 from 0.
trait MapBits {
    fn map_bits(&self) -> Vec<u32>;
}

impl MapBits for [f32] {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|v| v.to_bits()).collect()
    }
}

#[test]
fn partitioned_variables_of_tensorflow() {
    let bundle = BundleReader::open(fixture("bundle_tf")).unwrap();
    let rows: Vec<f32> = (0..10u8).map(f32::from).collect();
    assert_eq!(bundle.read("rows").unwrap(), Array::from_vec([5, 2], rows).unwrap());
    let columns: Vec<i64> = (0..12).collect();
    assert_eq!(bundle.read("columns").unwrap(), Array::from_vec([3, 4], columns).unwrap());
}

#[test]
fn several_data_files_of_tensorflow() {
    let bundle = BundleReader::open(fixture("bundle_tf_shards")).unwrap();
    assert_eq!(bundle.read("a").unwrap(), Array::from([1.0f32, 2.0]));
    assert_eq!(bundle.read("b").unwrap(), Array::from([3i32, 4, 5]));
}

/// Keras' files: the names of variables are in a table beside the tensors.
#[test]
fn names_in_a_checkpoint_of_objects() {
    let keys = BundleReader::open(fixture("bundle_tf_objects")).unwrap().object_keys().unwrap();
    assert_eq!(keys["dense_1/kernel"], "model/layer_with_weights-1/kernel/.ATTRIBUTES/VARIABLE_VALUE");
    assert_eq!(
        keys["Adam/dense/bias/m"],
        "model/layer_with_weights-0/bias/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"
    );
    assert!(BundleReader::open(fixture("bundle_tf")).unwrap().object_keys().unwrap().is_empty());

    let folder = Folder::new("objects");
    // A node with one value whose key is no tensor, bytes that are no message, and a number where a
    // table should be.
    let stray = b"\x0a\x0a\x12\x08\x12\x01v\x1a\x03key";
    let write = |value: Array| {
        let prefix = folder.prefix();
        let mut writer = BundleWriter::create(&prefix).unwrap();
        writer.add("_CHECKPOINTABLE_OBJECT_GRAPH", &value).unwrap();
        writer.finish().unwrap();
        BundleReader::open(prefix).unwrap().object_keys()
    };
    assert!(write(Array::from_strings([], [stray]).unwrap()).unwrap().is_empty());
    assert!(write(Array::from_strings([], [b"\x0a\xff"]).unwrap()).unwrap_err().to_string().contains("is damaged"));
    assert!(write(Array::from(1i64)).is_err());
}

#[test]
fn compressed_index() {
    let folder = Folder::new("snappy");
    let index = fs::read(fixture("bundle_snappy.index")).unwrap();
    let data = fs::read(fixture("bundle_tf_names.data-00000-of-00001")).unwrap();
    let bundle = BundleReader::open(folder.with_files(&index, &data)).unwrap();
    assert_eq!(bundle.names().count(), 100);
    assert_eq!(bundle.read("scope_3/variable_52").unwrap(), Array::from(52i32));
}

/// The strongest statement about the writer: from the same tensors, the same bytes as TensorFlow's.
#[test]
fn our_files_equal_those_of_tensorflow() {
    let theirs = fixture("bundle_tf_names");
    let bundle = BundleReader::open(&theirs).unwrap();
    let folder = Folder::new("equal");
    let mut writer = BundleWriter::create(folder.prefix()).unwrap();
    for name in bundle.names() {
        writer.add(name, &bundle.read(name).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    for suffix in ["index", "data-00000-of-00001"] {
        let ours = fs::read(folder.0.join(format!("model.ckpt-7.{suffix}"))).unwrap();
        assert!(ours == fs::read(fixture(&format!("bundle_tf_names.{suffix}"))).unwrap(), "{suffix}");
    }
}

#[test]
fn data_bytes_by_hand() {
    let folder = Folder::new("by-hand");
    let mut writer = BundleWriter::create(folder.prefix()).unwrap();
    writer.add("b", &Array::from([1.0f32])).unwrap();
    writer.add("a", &Array::from([258i32])).unwrap();
    writer.finish().unwrap();
    // In the order of adding: 1.0 is 0x3f800000, 258 is 0x102, low bytes first.
    let data = fs::read(folder.0.join("model.ckpt-7.data-00000-of-00001")).unwrap();
    assert_eq!(data, [0, 0, 0x80, 0x3f, 2, 1, 0, 0]);
}

#[test]
fn round_trip_of_every_dtype_and_odd_shapes() {
    let folder = Folder::new("round-trip");
    let arrays = [
        ("z/f32", Array::from([f32::MIN_POSITIVE, f32::MAX])),
        ("f64", Array::from_vec([1, 1, 2], vec![f64::INFINITY, -0.5]).unwrap()),
        ("i32", Array::from(-5i32)),
        ("i64", Array::from([i64::MIN])),
        ("u8", Array::from(vec![255u8; 100_000])),
        ("bool", Array::from([false, true])),
        ("strings", Array::from_strings([1, 3], ["", "π", "long enough to matter"]).unwrap()),
        ("no strings", Array::from_strings([0], [""; 0]).unwrap()),
        ("empty", Array::zeros(DType::I64, [3, 0, 2]).unwrap()),
        ("ünïcode", Array::from((0..100_000).map(|i| i as f32).collect::<Vec<_>>())),
        ("rows of a larger one", Array::from_vec([3, 2], vec![1i32, 2, 3, 4, 5, 6]).unwrap().rows(1..2).unwrap()),
    ];
    let mut writer = BundleWriter::create(folder.prefix()).unwrap();
    for (name, array) in &arrays {
        writer.add(name, array).unwrap();
    }
    writer.add_bytes("_ESTIMAND/position", b"\x00\x01").unwrap();
    writer.finish().unwrap();

    let bundle = BundleReader::open(folder.prefix()).unwrap();
    assert_eq!(bundle.names().count(), arrays.len() + 1);
    for (name, array) in &arrays {
        assert_eq!(&bundle.read(name).unwrap(), array, "{name}");
    }
    let position = bundle.read("_ESTIMAND/position").unwrap();
    assert_eq!((position.rank(), position.strings().unwrap().next().unwrap()), (0, &b"\x00\x01"[..]));
    assert_eq!(folder.files(), ["model.ckpt-7.data-00000-of-00001", "model.ckpt-7.index"]);
}

#[test]
fn ten_thousand_names() {
    let folder = Folder::new("many");
    let name = |i: i32| format!("tower_{}/layer_{i}/kernel", i % 13);
    let mut writer = BundleWriter::create(folder.prefix()).unwrap();
    for i in 0..10_000 {
        writer.add(&name(i), &Array::from(i)).unwrap();
    }
    writer.finish().unwrap();
    let bundle = BundleReader::open(folder.prefix()).unwrap();
    assert_eq!(bundle.names().count(), 10_000);
    for i in (0..10_000).step_by(97) {
        assert_eq!(bundle.read(&name(i)).unwrap(), Array::from(i));
    }
}

#[test]
fn names_that_cannot_be() {
    let folder = Folder::new("names");
    let mut writer = BundleWriter::create(folder.prefix()).unwrap();
    writer.add("twice", &Array::from(1i32)).unwrap();
    for (name, reason) in [("twice", "already added"), ("", "must not be empty"), ("\0x", "zero byte")] {
        let error = writer.add(name, &Array::from(2i32)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn unfinished_or_failed_leaves_what_was_there() {
    let folder = Folder::new("failed");
    let save = |value: i32| {
        let mut writer = BundleWriter::create(folder.prefix())?;
        writer.add("x", &Array::from(value))?;
        writer.finish()
    };
    let load = || BundleReader::open(folder.prefix()).unwrap().read("x").unwrap();
    save(1).unwrap();
    let before = folder.files();

    let mut dropped = BundleWriter::create(folder.prefix()).unwrap();
    dropped.add("x", &Array::from(2i32)).unwrap();
    drop(dropped);
    assert_eq!((folder.files(), load()), (before.clone(), Array::from(1i32)));

    save(3).unwrap();
    assert_eq!((folder.files(), load()), (before, Array::from(3i32)));

    // The index cannot be renamed over a folder: the data must be the old one again.
    let index = folder.0.join("model.ckpt-7.index");
    let aside = folder.0.join("aside");
    fs::rename(&index, &aside).unwrap();
    fs::create_dir(&index).unwrap();
    save(4).unwrap_err();
    fs::remove_dir(&index).unwrap();
    fs::rename(&aside, &index).unwrap();
    assert_eq!(load(), Array::from(3i32));
    assert_eq!(folder.files().len(), 2);
}

#[test]
fn a_damaged_index_is_never_a_panic() {
    let folder = Folder::new("damaged-index");
    let index = fs::read(fixture("bundle_tf.index")).unwrap();
    let data = fs::read(fixture("bundle_tf.data-00000-of-00001")).unwrap();
    let read_all = |index: &[u8]| {
        let bundle = BundleReader::open(folder.with_files(index, &data))?;
        bundle.names().try_for_each(|name| bundle.read(name).map(drop))
    };
    for length in 0..index.len() {
        let error = read_all(&index[..length]).unwrap_err().to_string();
        assert!(error.contains("model.ckpt-7.index"), "{error}");
    }
    for position in 0..index.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = index.clone();
            damaged[position] ^= flip;
            let _ = read_all(&damaged);
        }
    }
}

/// Behind the checksums: the messages in an index that is otherwise whole.
#[test]
fn a_damaged_entry_is_never_a_panic() {
    let folder = Folder::new("damaged-entry");
    let pairs =
        sstable::read(Path::new("index"), &fs::read(fixture("bundle_tf.index")).unwrap(), &Default::default()).unwrap();
    let data = fs::read(fixture("bundle_tf.data-00000-of-00001")).unwrap();
    for damaged in 0..pairs.len() {
        for position in 0..pairs[damaged].1.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut table = sstable::TableWriter::new(Vec::new());
                for (i, (key, value)) in pairs.iter().enumerate() {
                    let mut value = value.clone();
                    if i == damaged {
                        value[position] ^= flip;
                    }
                    table.add(key, &value).unwrap();
                }
                if let Ok(bundle) = BundleReader::open(folder.with_files(&table.finish().unwrap(), &data)) {
                    bundle.names().for_each(|name| drop(bundle.read(name)));
                }
            }
        }
    }
}

/// A small file may list the same bytes under any number of names.
#[test]
fn tensors_over_the_same_bytes_are_refused() {
    let folder = Folder::new("overlapping");
    let pairs =
        sstable::read(Path::new("index"), &fs::read(fixture("bundle_tf.index")).unwrap(), &Default::default()).unwrap();
    let data = fs::read(fixture("bundle_tf.data-00000-of-00001")).unwrap();
    let copied = pairs.iter().find(|(key, value)| {
        !key.is_empty() && BundleEntryProto::decode(value.as_slice()).is_ok_and(|entry| entry.size > 0)
    });
    let copied = copied.unwrap().1.clone();
    let mut table = sstable::TableWriter::new(Vec::new());
    pairs.iter().for_each(|(key, value)| table.add(key, value).unwrap());
    (0..100).for_each(|i| table.add(format!("~{i:03}").as_bytes(), &copied).unwrap());
    let error = BundleReader::open(folder.with_files(&table.finish().unwrap(), &data)).err().unwrap().to_string();
    assert!(error.contains("overlap in the data file") && error.contains("~0"), "{error}");
}

#[test]
fn tensors_are_counted() {
    let path = fixture("bundle_tf");
    let limits = Limits { entries: 3, ..Limits::default() };
    let error = BundleReader::open_within(&path, &limits).err().unwrap().to_string();
    assert!(error.contains("more than 3 entries; the limit is 3 (`entries`)"), "{error}");
    assert!(error.contains("bundle_tf.index") && error.contains("Limits { entries: .."), "{error}");
    assert!(BundleReader::open(&path).is_ok());
}

#[test]
fn damaged_data_names_the_variable() {
    let folder = Folder::new("damaged-data");
    let index = fs::read(fixture("bundle_tf.index")).unwrap();
    let data = fs::read(fixture("bundle_tf.data-00000-of-00001")).unwrap();
    for position in 0..data.len() {
        let mut damaged = data.clone();
        damaged[position] ^= 0x02;
        let bundle = BundleReader::open(folder.with_files(&index, &damaged)).unwrap();
        let failed: Vec<_> = bundle.names().filter(|&name| name != "half" && bundle.read(name).is_err()).collect();
        // Every byte belongs to exactly one tensor; two of them are the half's.
        assert!(failed.len() <= 1, "byte {position}: {failed:?}");
        if let [name] = failed[..] {
            let error = bundle.read(name).unwrap_err().to_string();
            assert!(error.contains(&format!("variable `{name}`")) && error.contains("model.ckpt-7"), "{error}");
        }
    }
    let bundle = BundleReader::open(folder.with_files(&index, &data[..100])).unwrap();
    let error = bundle.read("words").unwrap_err().to_string();
    assert!(error.contains("lie outside the 100 bytes of the data file"), "{error}");
    fs::remove_file(folder.0.join("model.ckpt-7.data-00000-of-00001")).unwrap();
    assert!(BundleReader::open(folder.prefix()).is_err());
    let error = BundleReader::open(&folder.0).map(drop).unwrap_err().to_string();
    assert!(error.contains("name a checkpoint by its prefix"), "{error}");
}

/// Indexes that are whole but lie.
#[test]
fn hostile_entries() {
    let folder = Folder::new("hostile");
    let open = |header: BundleHeaderProto, entry: BundleEntryProto| {
        let mut table = sstable::TableWriter::new(Vec::new());
        table.add(b"", &header.encode_to_vec()).unwrap();
        table.add(b"x", &entry.encode_to_vec()).unwrap();
        BundleReader::open(folder.with_files(&table.finish().unwrap(), &[0; 8]))
    };
    let header = || BundleHeaderProto { num_shards: 1, ..Default::default() };
    let entry = |dtype: DataType, dims: &[i64], size: i64| BundleEntryProto {
        dtype: dtype.into(),
        shape: Some(TensorShapeProto::of(dims.iter().copied())),
        size,
        ..Default::default()
    };
    let float = |dims: &[i64], size| entry(DataType::Float, dims, size);
    for (entry, reason) in [
        (float(&[2], 4), "4 bytes, which do not fit f32 [2]"),
        (float(&[1 << 40, 1 << 40], 8), "does not fit into the address space"),
        (float(&[1 << 50], 1 << 52), "lie outside the 8 bytes"),
        (float(&[-1], 8), "negative size"),
        (float(&[2], 8), "checksum is wrong"),
        (float(&[1; 9], 4), "at most 8"),
        (BundleEntryProto { offset: i64::MAX, ..float(&[2], 8) }, "lie outside the 8 bytes"),
        (BundleEntryProto { offset: -8, ..float(&[2], 8) }, "lie outside the 8 bytes"),
        (BundleEntryProto { shard_id: 1, ..float(&[2], 8) }, "data file 1, but there are only 1"),
        (BundleEntryProto { shard_id: -1, ..float(&[2], 8) }, "data file -1, but there are only 1"),
        (BundleEntryProto { dtype: 77, ..float(&[2], 8) }, "element type 77"),
        (entry(DataType::String, &[1 << 50], 8), "strings are cut off"),
        (entry(DataType::String, &[1], 8), "checksum of its strings' lengths"),
        (BundleEntryProto { slices: vec![Default::default()], ..float(&[1 << 50], 0) }, "not inside"),
    ] {
        let error = open(header(), entry).unwrap().read("x").unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("variable `x`"), "{error} should contain {reason}");
    }
    let big_endian = BundleHeaderProto { endianness: 1, ..header() };
    let newer = BundleHeaderProto {
        version: Some(estimand_wire::VersionDef { producer: 2, min_consumer: 2, bad_consumers: vec![] }),
        ..header()
    };
    let many = BundleHeaderProto { num_shards: i32::MAX, ..header() };
    for (header, reason) in [
        (big_endian, "big-endian"),
        (newer, "newer"),
        (many, "data-00000-of-2147483647"),
        (BundleHeaderProto { num_shards: -1, ..header() }, "-1 data files"),
    ] {
        let error = open(header, float(&[2], 8)).map(drop).unwrap_err().to_string();
        assert!(error.contains(reason), "{error} should contain {reason}");
    }
}

#[test]
fn the_state_file() {
    let folder = Folder::new("state");
    assert_eq!(read_state(&folder.0).unwrap(), None);
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), None);

    let state = CheckpointState {
        model_checkpoint_path: "model.ckpt-7".to_string(),
        all_model_checkpoint_paths: vec!["model.ckpt-0".to_string(), "model.ckpt-7".to_string()],
        ..Default::default()
    };
    write_state(&folder.0, &state).unwrap();
    assert_eq!(read_state(&folder.0).unwrap(), Some(state.clone()));
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), None, "its files are missing");

    BundleWriter::create(folder.prefix()).unwrap().finish().unwrap();
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.prefix()));
    // An absolute path in the file is taken as it is.
    let moved =
        CheckpointState { model_checkpoint_path: folder.prefix().to_str().unwrap().to_string(), ..Default::default() };
    write_state(folder.0.join("elsewhere"), &moved).unwrap();
    assert_eq!(latest_checkpoint(folder.0.join("elsewhere")).unwrap(), Some(folder.prefix()));

    for text in [&b"\xff\xfe"[..], b"model_checkpoint_path: \"x", b"what: 1"] {
        fs::write(folder.0.join("checkpoint"), text).unwrap();
        let error = latest_checkpoint(&folder.0).unwrap_err().to_string();
        assert!(error.contains("checkpoint"), "{error}");
    }
}
