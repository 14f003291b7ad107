//! Event files: any bytes are events or an error, as a message and as a file of records.

use estimand_wire::record::RecordReader;
use estimand_wire::{Event, Message};

/// Reads bytes as one event and as a file of them; what was read is written and read again.
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
    // Not the events: a NaN is not equal to itself.
    assert!(again.encode_to_vec() == written);
}

/// The payloads of a file of records, which damage reaches without a checksum in the way; and the
/// file.
pub fn seeds(file: &[u8]) -> Vec<Vec<u8>> {
    let mut seeds = vec![file.to_vec()];
    let mut records = RecordReader::new(file);
    while let Ok(Some(payload)) = records.read() {
        seeds.push(payload.to_vec());
    }
    seeds
}
