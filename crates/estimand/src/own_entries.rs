//! The entries of a checkpoint that are ours: what TensorFlow has no room for, and ignores.

use estimand_checkpoint::BundleReader;
use estimand_tensor::Result;

use crate::model_fn::GLOBAL_STEP;

/// What TensorFlow has no room for goes under this prefix, which it ignores.
pub(crate) const OWN: &str = "_estimand/";

/// The entry of a checkpoint whose numbers are not finite. It says what is wrong.
pub(crate) const MARK: &str = "_estimand/not_finite";

/// The entry with the names of variables that may be infinite or NaN.
pub(crate) const UNJUDGED: &str = "_estimand/unjudged";

/// One of our own numbers in a checkpoint, if it is there.
pub(crate) fn own_number(reader: &BundleReader, name: &str) -> Result<Option<u64>> {
    let name = format!("{OWN}{name}");
    match reader.contains(&name) {
        true => Ok(Some(reader.read(&name)?.item::<i64>()? as u64)),
        false => Ok(None),
    }
}

/// The number of training steps of a checkpoint.
pub(crate) fn global_step(reader: &BundleReader) -> Result<u64> {
    Ok(u64::try_from(reader.read(GLOBAL_STEP)?.item::<i64>()?).unwrap_or(0))
}

/// Why the run that saved a checkpoint was about to end, if it was.
pub(crate) fn stop_reason(reader: &BundleReader) -> Result<Option<String>> {
    let name = format!("{OWN}stop");
    match reader.contains(&name) {
        true => Ok(Some(String::from_utf8_lossy(reader.read(&name)?.as_slice::<u8>()?).into_owned())),
        false => Ok(None),
    }
}

/// The state that a hook left in a checkpoint.
pub(crate) fn hook_state(reader: &BundleReader, hook: &str) -> Result<Option<Vec<u8>>> {
    let name = format!("{OWN}hook/{hook}");
    match reader.contains(&name) {
        true => Ok(Some(reader.read(&name)?.as_slice::<u8>()?.to_vec())),
        false => Ok(None),
    }
}

/// Whether a checkpoint is marked as one whose numbers are not finite.
pub(crate) fn is_marked(reader: &BundleReader) -> bool {
    reader.contains(MARK)
}

/// Whether an entry of a checkpoint is ours and no variable.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(OWN)
}
