//! The checkpoint entries that only Estimand writes. TensorFlow ignores them.

use estimand_checkpoint::BundleReader;
use estimand_tensor::Result;

use crate::model_fn::GLOBAL_STEP;

/// The prefix of our own entries, which TensorFlow ignores.
pub(crate) const OWN: &str = "_estimand/";

/// The entry that marks a checkpoint with numbers that are not finite. Its text describes the
/// problem.
pub(crate) const MARK: &str = "_estimand/not_finite";

/// The entry with the names of variables that may be infinite or NaN.
pub(crate) const UNJUDGED: &str = "_estimand/unjudged";

/// Reads one of our own numbers from a checkpoint, if it is there.
pub(crate) fn own_number(reader: &BundleReader, name: &str) -> Result<Option<u64>> {
    let name = format!("{OWN}{name}");
    match reader.contains(&name) {
        true => Ok(Some(reader.read(&name)?.item::<i64>()? as u64)),
        false => Ok(None),
    }
}

/// Reads the number of training steps of a checkpoint.
pub(crate) fn global_step(reader: &BundleReader) -> Result<u64> {
    Ok(u64::try_from(reader.read(GLOBAL_STEP)?.item::<i64>()?).unwrap_or(0))
}

/// Reads why the run that saved a checkpoint was about to end, if it was.
pub(crate) fn stop_reason(reader: &BundleReader) -> Result<Option<String>> {
    let name = format!("{OWN}stop");
    match reader.contains(&name) {
        true => Ok(Some(String::from_utf8_lossy(reader.read(&name)?.as_slice::<u8>()?).into_owned())),
        false => Ok(None),
    }
}

/// Reads the state that a hook saved in a checkpoint.
pub(crate) fn hook_state(reader: &BundleReader, hook: &str) -> Result<Option<Vec<u8>>> {
    let name = format!("{OWN}hook/{hook}");
    match reader.contains(&name) {
        true => Ok(Some(reader.read(&name)?.as_slice::<u8>()?.to_vec())),
        false => Ok(None),
    }
}

/// Returns whether a checkpoint is marked as having numbers that are not finite.
pub(crate) fn is_marked(reader: &BundleReader) -> bool {
    reader.contains(MARK)
}

/// Returns whether an entry of a checkpoint is ours and not a variable.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(OWN)
}
