//! Sizes beyond 32 bits. The tests take gigabytes of memory and disk: run them with `--ignored`.

use estimand_checkpoint::{BundleReader, BundleWriter, checksum};
use estimand_tensor::{Array, Error, Result};

/// TensorFlow's messages end at 2 GB. The bytes of a tensor are in no message, so a table may be
/// larger; the tensor behind it begins beyond 2 GB too.
#[test]
#[ignore = "takes 5 GB of memory and 2 GB of disk"]
fn a_tensor_over_two_gigabytes() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-large-{}", std::process::id()));
    let prefix = folder.join("model.ckpt-1");
    let mut bytes = vec![0u8; (1 << 31) + 5];
    for at in [0, i32::MAX as usize, 1 << 31, (1 << 31) + 4] {
        bytes[at] = 7 + (at % 11) as u8;
    }
    let table = Array::from_vec([bytes.len()], bytes)?;
    let mut writer = BundleWriter::create(&prefix)?;
    let written = writer.add("a/table", &table)?;
    writer.add("b/after", &Array::from([1f32, 2.0]))?;
    writer.finish()?;
    assert_eq!(written, checksum(&table)?);
    let reader = BundleReader::open(&prefix)?;
    assert_eq!(reader.verify("a/table")?, written);
    assert!(reader.read("a/table")?.bytes() == table.bytes());
    assert_eq!(reader.read("b/after")?.as_slice::<f32>()?, [1.0, 2.0]);
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))
}
