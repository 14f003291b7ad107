//! The file `checkpoint` of a model folder: any text is a state or an error, and what is read can
//! be written and read again.

use estimand_wire::CheckpointState;

/// Reads a state.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(state) = CheckpointState::parse(text) else { return };
    let written = state.to_string();
    let again = CheckpointState::parse(&written).expect("what was written can be read");
    // Not the states: a NaN is not equal to itself.
    assert_eq!(again.to_string(), written);
}
