//! Fingerprints of a model and its learned values, as short texts. Two runs with equal fingerprints
//! are the same.

use estimand_checkpoint::BundleReader;
use estimand_tensor::Result;
use estimand_tensor::cpu::text::fingerprint64;

use crate::own_entries::{is_own, own_number};

/// Formats a fingerprint for people.
pub(super) fn hex(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

/// Returns the fingerprints of a checkpoint, by name.
pub(super) fn of_checkpoint(reader: &BundleReader) -> Result<Vec<(String, String)>> {
    let mut structure = String::new();
    let (mut n_variables, mut n_values) = (0_usize, 0_usize);
    for name in reader.names().filter(|name| !is_own(name)) {
        let (dtype, dims) = reader.spec(name)?;
        structure += &format!("{name} {dtype}{:?}\n", &dims[..]);
        (n_variables, n_values) = (n_variables + 1, n_values + dims.iter().product::<usize>());
    }
    let mut all = vec![
        ("variables".to_string(), format!("{n_variables}, with {n_values} values")),
        (
            "model".to_string(),
            format!("{} (names, types and shapes of variables)", hex(fingerprint64(structure.as_bytes()))),
        ),
    ];
    if let Some(seed) = own_number(reader, "seed")? {
        all.push(("seed".to_string(), seed.to_string()));
    }
    Ok(all)
}

/// Computes a fingerprint of the learned values of a checkpoint's variables.
pub(super) fn of_values(reader: &BundleReader) -> Result<u64> {
    let mut fingerprint = 0;
    for name in reader.names().filter(|name| !is_own(name)) {
        let array = reader.read(name)?;
        let values = match array.strings() {
            Ok(strings) => strings.fold(0, |all, text| join(all, fingerprint64(text))),
            Err(_) => fingerprint64(array.bytes()),
        };
        fingerprint = join(join(fingerprint, fingerprint64(name.as_bytes())), values);
    }
    Ok(fingerprint)
}

/// Combines two fingerprints, in order.
pub(super) fn join(first: u64, second: u64) -> u64 {
    fingerprint64(&[first.to_le_bytes(), second.to_le_bytes()].concat())
}
