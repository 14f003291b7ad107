//! Event files: any input gives events or an error, both as one message and as a file of records.

use estimand_wire::record::RecordReader;
use estimand_wire::{Event, Message};

/// Decodes the bytes as one event and as a file of events; writes the result and reads it again.
pub fn check(bytes: &[u8]) {
    decode(bytes);
    let mut records = RecordReader::new(bytes);
    while let Ok(Some(payload)) = records.read() {
        decode(payload);
    }
}

fn decode(bytes: &[u8]) {
    let Ok(event) = Event::decode(bytes) else { return };
    let written = event.encode_to_vec();
    let again = Event::decode(written.as_slice()).expect("what was written can be read");
    // Compare bytes and not events: a NaN is not equal to itself.
    assert!(again.encode_to_vec() == written);
}

/// Returns the payloads of a file of records, which mutations can reach without a checksum, and the
/// file itself.
pub fn seeds(file: &[u8]) -> Vec<Vec<u8>> {
    let mut seeds = vec![file.to_vec()];
    let mut records = RecordReader::new(file);
    while let Ok(Some(payload)) = records.read() {
        seeds.push(payload.to_vec());
    }
    seeds
}
