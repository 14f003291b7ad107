//! Damaged files: every byte of small files changed, files cut short. Always an error that names
//! the file, or the right rows; never a panic, never more memory than the bytes can stand for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use estimand_data::{Dataset, Files, InputContext, Position};
use estimand_data_parquet::{arrow, parquet};
use estimand_tensor::{Limits, Result};
use parquet::Compression;

/// The system's allocator, and the largest piece that was asked of it.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// A file of some kilobytes may need a window or a dictionary of the decoder, not more.
const MOST: usize = 64 << 20;

fn rows() -> RecordBatch {
    let n = 60;
    let words = (0..n).map(|i| format!("word {}", i % 7));
    let dictionary: DictionaryArray<Int32Type> = (0..n).map(|i| ["red", "green", "blue"][i % 3]).collect();
    let lists = (0..n).map(|i| Some((0..i as i32 % 4).map(Some)));
    let columns: [(&str, ArrayRef); 5] = [
        ("number", Arc::new((0..n as i64).map(|i| Some(i * i).filter(|i| i % 5 != 0)).collect::<Int64Array>())),
        ("float", Arc::new((0..n).map(|i| i as f64 / 7.0).collect::<Float64Array>())),
        ("word", Arc::new(StringArray::from_iter_values(words))),
        ("color", Arc::new(dictionary)),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("damage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Reads all rows; says how many there were.
fn read(data: &Dataset) -> Result<usize> {
    let cx = InputContext { n_threads: 1, ..InputContext::default() };
    let mut stream = data.open(&cx, &Position::default())?;
    let mut n = 0;
    while let Some(item) = stream.pull(1_000)? {
        n += item.batch.n_rows();
    }
    Ok(n)
}

/// The bytes of a file with a change at a place: one of eight kinds, by turns.
fn damaged(good: &[u8], i: usize, kind: usize) -> Vec<u8> {
    let mut bytes = good.to_vec();
    match kind {
        0 => bytes[i] ^= 1,
        1 => bytes[i] ^= 0x80,
        2 => bytes[i] = 0,
        3 => bytes[i] = 0xff,
        4 => bytes[i] = bytes[i].wrapping_add(2),
        // Lengths: the largest of a varint, and 2^40 as a little-endian number.
        5 => bytes.iter_mut().skip(i).take(5).for_each(|byte| *byte = 0xff),
        6 => bytes.iter_mut().skip(i).zip((1u64 << 40).to_le_bytes()).for_each(|(byte, new)| *byte = new),
        _ => bytes.truncate(i),
    }
    bytes
}

/// Reads a file with many changes, one at a time; at least a quarter must be noticed, which the
/// formats' checks allow.
fn mutate(path: &Path, open: impl Fn(&Path) -> Dataset) {
    let good = std::fs::read(path).unwrap();
    assert_eq!(read(&open(path)).unwrap(), 60, "{}", path.display());
    let target = path.with_extension("damaged");
    let (mut n_errors, mut n_cases) = (0, 0);
    // Thirteen and eight have no common divisor: every kind meets every part of the file.
    for (n, i) in (0..good.len()).step_by(13).enumerate() {
        std::fs::write(&target, damaged(&good, i, n % 8)).unwrap();
        let what = format!("change {} at byte {i} of {}", n % 8, path.display());
        LARGEST.store(0, Ordering::Relaxed);
        let result = read(&open(&target));
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest < MOST, "{what}: a piece of {largest} bytes was asked for");
        n_cases += 1;
        if let Err(error) = result {
            let text = error.to_string();
            assert!(text.contains(".damaged"), "{what}: the error does not name the file: {text}");
            n_errors += 1;
        }
    }
    assert!(n_errors * 4 > n_cases, "{}: {n_errors} errors of {n_cases}", path.display());
}

/// One test at a time: the memory is everybody's. A decoder's panic is worth a line, not a
/// backtrace.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    turn
}

#[test]
fn parquet_files() {
    let _turn = turn();
    let batch = rows();
    for (i, compression) in [
        Compression::None,
        Compression::Snappy,
        Compression::Gzip,
        Compression::Brotli,
        Compression::Lz4,
        Compression::Zstd,
    ]
    .into_iter()
    .enumerate()
    {
        let records = batch.clone();
        let data = arrow::from_batches(move || {
            Ok(arrow_array::RecordBatchIterator::new([Ok(records.clone())], records.schema()))
        });
        let path = folder().join(format!("{i}.parquet"));
        parquet::Writer::new(&path).compression(compression).row_group_size(25).write(&data.dataset()).unwrap();
        mutate(&path, |path| parquet::read(path).dataset());
    }
}

/// As other writers have them: nulls, dictionaries, encodings of differences, pages of the second
/// version.
#[test]
fn parquet_files_of_other_encodings() {
    use ::parquet::basic::{Compression as Codec, Encoding};
    use ::parquet::file::properties::{WriterProperties, WriterVersion};
    let _turn = turn();
    let batch = rows();
    for (i, encoding) in
        [Encoding::DELTA_BINARY_PACKED, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY, Encoding::PLAIN]
            .into_iter()
            .enumerate()
    {
        let column = if i == 0 { "number" } else { "word" };
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(i == 3)
            .set_writer_version(if i % 2 == 0 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
            .set_compression(if i == 1 { Codec::UNCOMPRESSED } else { Codec::SNAPPY })
            .set_column_encoding(column.into(), encoding)
            .build();
        let path = folder().join(format!("encoding-{i}.parquet"));
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        mutate(&path, |path| parquet::read(path).dataset());
    }
}

#[test]
fn arrow_files_and_streams() {
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    let _turn = turn();
    let batch = rows();
    for (i, codec) in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)].into_iter().enumerate() {
        let options = || IpcWriteOptions::default().try_with_compression(codec).unwrap();
        let path = folder().join(format!("{i}.arrow"));
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options()).unwrap();
        writer.write(&batch.slice(0, 40)).unwrap();
        writer.write(&batch.slice(40, 20)).unwrap();
        writer.finish().unwrap();
        mutate(&path, |path| arrow::read(path).dataset());

        let path = folder().join(format!("{i}.arrows"));
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = StreamWriter::try_new_with_options(file, &batch.schema(), options()).unwrap();
        writer.write(&batch.slice(0, 40)).unwrap();
        writer.write(&batch.slice(40, 20)).unwrap();
        writer.finish().unwrap();
        mutate(&path, |path| arrow::read(path).dataset());
    }
}

/// Four million zeros pack to a thousandth of their bytes. Nothing in such a file is damaged: a
/// limit refuses it, by name, or it is read whole.
#[test]
fn packed_zeros_are_read_up_to_the_limit() {
    use ::parquet::basic::{Compression as Codec, GzipLevel};
    use ::parquet::file::properties::WriterProperties;
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    let _turn = turn();
    let n = 4_000_000;
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; n]));
    let batch = RecordBatch::try_from_iter([("zeros", zeros)]).unwrap();
    let limits = Limits { free_bytes: 1 << 20, ratio: 100, ..Limits::default() };
    let refused = |data: Dataset, name: &str| {
        let error = read(&data).unwrap_err().to_string();
        assert!(error.contains("the limit is 100 (`ratio`)") && error.contains(name), "{error}");
    };

    let path = folder().join("zeros.parquet");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_compression(Codec::GZIP(GzipLevel::default()))
        .build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    assert_eq!(read(&parquet::read(&path).dataset()).unwrap(), n);
    refused(parquet::read(Files::new(&path).limits(limits)).dataset(), "zeros.parquet");

    let path = folder().join("zeros.arrow");
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 200_000);
    assert_eq!(read(&arrow::read(&path).dataset()).unwrap(), n);
    refused(arrow::read(Files::new(&path).limits(limits)).dataset(), "zeros.arrow");
}
