//! Our side of the exchange of checkpoints with TensorFlow (oracles/live/bundle.py).
//!
//! `write PREFIX` saves fixed tensors of every dtype; `read PREFIX` prints every tensor of a
//! checkpoint as `name = dtype[dims] values`, floats as their bits, strings as hexadecimal bytes.

use std::io::{self, Write};
use std::path::Path;

use estimand_checkpoint::{BundleReader, BundleWriter, CheckpointState, write_state};
use estimand_tensor::{Array, DType, Error, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", prefix] => write(Path::new(prefix)),
        ["read", prefix] => read(Path::new(prefix)),
        _ => Err(Error::config("expected `write PREFIX` or `read PREFIX`")),
    }
}

fn write(prefix: &Path) -> Result<()> {
    let mut writer = BundleWriter::create(prefix)?;
    writer.add("scope/kernel", &Array::from_vec([2, 3], vec![1.5f32, -0.0, f32::NAN, f32::INFINITY, 1e-45, -7.25])?)?;
    writer.add("double", &Array::from([std::f64::consts::E, -1e-300]))?;
    writer.add("int", &Array::from([i32::MIN, -1, i32::MAX]))?;
    writer.add("global_step", &Array::from(i64::MAX))?;
    writer.add("byte", &Array::from_vec([2, 1], vec![0u8, 255])?)?;
    writer.add("flag", &Array::from([true, false]))?;
    writer.add("empty", &Array::zeros(DType::F32, [4, 0])?)?;
    writer.add("words", &Array::from_strings([3], [&b"a"[..], b"", b"\x00\xff"])?)?;
    writer.add("no_words", &Array::from_strings([0], [b""; 0])?)?;
    writer.add("large", &Array::from((0..1_000_000).map(|i| i as f32).collect::<Vec<_>>()))?;
    writer.add_bytes("_ESTIMAND/note", b"TensorFlow has no room for this")?;
    // Enough names for several blocks of the index, out of order.
    for i in (0..10_000).rev() {
        writer.add(&format!("many/tower_{}/layer_{i}/kernel", i % 13), &Array::from(i))?;
    }
    writer.finish()?;
    let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let state = CheckpointState {
        all_model_checkpoint_paths: vec![name.clone()],
        model_checkpoint_path: name,
        ..Default::default()
    };
    write_state(prefix.parent().unwrap_or(Path::new(".")), &state)
}

fn read(prefix: &Path) -> Result<()> {
    let reader = BundleReader::open(prefix)?;
    let mut out = io::stdout().lock();
    for name in reader.names() {
        let array = reader.read(name)?;
        let line = format!("{name} = {}{:?} {}", array.dtype(), array.dims(), values(&array)?.join(" "));
        writeln!(out, "{line}").map_err(|e| Error::io("standard output", "write", &e))?;
    }
    Ok(())
}

/// The elements, written so that nothing is rounded.
fn values(array: &Array) -> Result<Vec<String>> {
    Ok(match array.dtype() {
        DType::F32 => array.as_slice::<f32>()?.iter().map(|v| format!("{:08x}", v.to_bits())).collect(),
        DType::F64 => array.as_slice::<f64>()?.iter().map(|v| format!("{:016x}", v.to_bits())).collect(),
        DType::I32 => array.as_slice::<i32>()?.iter().map(i32::to_string).collect(),
        DType::I64 => array.as_slice::<i64>()?.iter().map(i64::to_string).collect(),
        DType::U8 => array.as_slice::<u8>()?.iter().map(u8::to_string).collect(),
        DType::Bool => array.as_slice::<bool>()?.iter().map(bool::to_string).collect(),
        DType::Str => {
            let hex = |string: &[u8]| format!("x{}", string.iter().map(|b| format!("{b:02x}")).collect::<String>());
            array.strings()?.map(hex).collect()
        }
    })
}
