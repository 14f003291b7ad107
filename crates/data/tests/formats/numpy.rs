//! NPY and NPZ against files that numpy wrote.

use std::path::PathBuf;

use estimand_data::{Dataset, npy, npz};
use estimand_fixture as fixture;
use estimand_tensor::{Array, DType, Result};

/// A file of the fixture, and the arrays that numpy put into it.
pub struct Case {
    pub format: String,
    pub name: String,
    pub bytes: Vec<u8>,
    pub arrays: Vec<(String, Array)>,
}

pub fn cases() -> Vec<Case> {
    let case = |case: fixture::Case| Case {
        format: case.setting("format"),
        name: case.name().to_string(),
        bytes: case.bytes("file"),
        arrays: case.arrays("arrays").into_iter().map(|(name, values)| (name, array(&values).unwrap())).collect(),
    };
    fixture::cases("array_files").into_iter().map(case).collect()
}

fn array(array: &fixture::Array) -> Result<Array> {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == array.dtype).unwrap();
    match dtype {
        DType::Str => Array::from_strings(&array.dims, array.strings()),
        _ => Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()),
    }
}

#[test]
fn numpys_files_are_read() {
    let mut n_files = 0;
    for case in cases() {
        let arrays = match case.format.as_str() {
            "npy" => vec![(case.name.clone(), npy::from_bytes(&case.bytes).unwrap())],
            _ => npz::from_bytes(&case.bytes).unwrap(),
        };
        assert_eq!(arrays, case.arrays, "{}", case.name);
        n_files += 1;
    }
    assert_eq!(n_files, 33);
}

/// Byte for byte, where numpy wrote a type that arrays have, row-major, in version 1.
#[test]
fn we_write_what_numpy_writes() {
    let mut n_files = 0;
    for case in cases().into_iter().filter(|case| case.format == "npy") {
        let widened = ["int8", "int16", "uint16", "uint32", "unicode"].contains(&case.name.as_str());
        if widened || ["big", "fortran", "version_2", "version_3"].iter().any(|other| case.name.starts_with(other)) {
            continue;
        }
        assert_eq!(npy::to_bytes(&case.arrays[0].1).unwrap(), case.bytes, "{}", case.name);
        n_files += 1;
    }
    assert_eq!(n_files, 13);
}

/// Values that look random, of any type; bits of floats that are no numbers among them.
fn values(dtype: DType, dims: &[usize], seed: u64) -> Result<Array> {
    let n = dims.iter().product::<usize>();
    let words: Vec<u64> =
        (0..n as u64).map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)).collect();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take(n * dtype.size());
    match dtype {
        DType::Str => Array::from_strings(dims, words.iter().map(|word| word.to_string().repeat((word % 3) as usize))),
        DType::Bool => Array::from_bytes(dtype, dims, &bytes.map(|b| b & 1).collect::<Vec<_>>()),
        _ => Array::from_bytes(dtype, dims, &bytes.collect::<Vec<_>>()),
    }
}

#[test]
fn every_dtype_survives_the_round_trip() -> Result<()> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("round-{}.npy.gz", std::process::id()));
    for (seed, dtype) in (1..).zip(DType::ALL) {
        for dims in [&[][..], &[0], &[7], &[2, 3], &[1, 2, 3, 4, 1, 2, 1, 2]] {
            let array = values(dtype, dims, seed)?;
            npy::write(&path, &array)?;
            let again = npy::read(&path)?;
            assert_eq!((again.dtype(), again.dims()), (dtype, dims));
            match dtype {
                DType::Str => assert!(again.strings()?.eq(array.strings()?)),
                _ => assert_eq!(again.bytes(), array.bytes(), "{dtype} {dims:?}"),
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
    let lost = npy::to_bytes(&Array::from_strings([2], ["fine", "not\0"])?).unwrap_err().to_string();
    assert!(lost.contains("string 2 ends with a NUL"), "{lost}");
    Ok(())
}

#[test]
fn arrays_of_an_archive_are_features() -> Result<()> {
    let case = cases().into_iter().find(|case| case.name == "stored").unwrap();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("features-{}.npz", std::process::id()));
    let data = Dataset::from_npz(&path).label("y").batch(4).drop_remainder();
    // Nothing is read until it is needed, and what failed is tried again.
    assert!(data.explain().contains(&format!("npz: {}", path.display())));
    assert!(data.iter().next().unwrap().unwrap_err().to_string().contains("cannot open"));
    std::fs::write(&path, case.bytes).unwrap();
    let batch = data.iter().next().unwrap()?;
    assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["x", "word"]);
    assert_eq!(batch.labels()["y"], case.arrays[1].1.clone().into());
    std::fs::remove_file(&path).unwrap();
    // Read once: the rows are in memory now.
    assert_eq!(data.iter().next().unwrap()?, batch);
    assert_eq!(data.spec()?["x"].dtype(), DType::F32);
    Ok(())
}
