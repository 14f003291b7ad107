//! The file `checkpoint` of a model folder: any text gives a state or an error, and the state can
//! be written and read again.

use estimand_wire::CheckpointState;

/// Parses a state.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(state) = CheckpointState::parse(text) else { return };
    let written = state.to_string();
    let again = CheckpointState::parse(&written).expect("what was written can be read");
    // Compare texts and not states: a NaN is not equal to itself.
    assert_eq!(again.to_string(), written);
}
