//! `Predict` as the server reads and writes it. The bytes are those of `PredictRequest` and
//! `PredictResponse`, but tensors stay encoded: a tensor has a list for each type, so a map of them
//! would move kilobytes for a request of a few numbers.

use std::ops::Range;

use bytes::Bytes;
use estimand_tensor::Array;
use estimand_wire::scan::{self, Content};
use estimand_wire::{Message, TensorProto, tensor_bytes};
use prost::encoding::{self, WireType, encoded_len_varint};

use super::messages::ModelSpec;
use super::unary::{FromMessage, HEAD, IntoMessage};
use crate::status::{Answer, Code, Status};

/// A request. Its inputs stay in the bytes that were sent.
pub(crate) struct PredictCall {
    pub(crate) model_spec: Option<ModelSpec>,
    pub(crate) output_filter: Vec<String>,
    bytes: Bytes,
    inputs: Vec<Entry>,
}

/// The places of the name and the tensor of an input.
struct Entry {
    name: Range<usize>,
    tensor: Range<usize>,
}

/// An input, and its encoded `TensorProto`.
#[derive(Clone, Copy)]
pub(crate) struct NamedTensor<'a> {
    pub(crate) name: &'a [u8],
    tensor: &'a [u8],
}

/// The numbers of the fields of a request, and of an entry of its inputs.
mod field {
    pub(super) const MODEL_SPEC: u32 = 1;
    pub(super) const INPUTS: u32 = 2;
    pub(super) const OUTPUT_FILTER: u32 = 3;
    pub(super) const NAME: u32 = 1;
    pub(super) const TENSOR: u32 = 2;
}

impl FromMessage for PredictCall {
    fn from_message(bytes: Bytes) -> Result<PredictCall, String> {
        let mut call = PredictCall {
            model_spec: None,
            output_filter: Vec::new(),
            bytes: Bytes::new(),
            inputs: Vec::with_capacity(8),
        };
        let place = |part: &[u8]| {
            let start = part.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + part.len()
        };
        let text =
            |part: &[u8]| str::from_utf8(part).map(str::to_string).map_err(|e| format!("a name is not UTF-8: {e}"));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let damaged = || format!("the bytes from {at} on are not those of a PredictRequest");
            match scan::next(&mut rest).ok_or_else(damaged)? {
                (field::MODEL_SPEC, Content::Bytes(spec)) => {
                    call.model_spec.get_or_insert_default().merge(spec).map_err(|e| e.to_string())?;
                }
                (field::INPUTS, Content::Bytes(entry)) => {
                    let (name, tensor) = read_entry(entry).ok_or_else(damaged)?;
                    call.inputs.push(Entry { name: place(name), tensor: place(tensor) });
                }
                (field::OUTPUT_FILTER, Content::Bytes(name)) => call.output_filter.push(text(name)?),
                (field::MODEL_SPEC | field::INPUTS | field::OUTPUT_FILTER, _) => return Err(damaged()),
                // Fields that newer clients send.
                _ => {}
            }
        }
        call.bytes = bytes;
        Ok(call)
    }
}

/// The name and the tensor of an entry, which are empty if they are left out.
fn read_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut rest, mut name, mut tensor) = (entry, &entry[..0], &entry[..0]);
    while !rest.is_empty() {
        match scan::next(&mut rest)? {
            (field::NAME, Content::Bytes(bytes)) => name = bytes,
            (field::TENSOR, Content::Bytes(bytes)) => tensor = bytes,
            (field::NAME | field::TENSOR, _) => return None,
            _ => {}
        }
    }
    Some((name, tensor))
}

impl PredictCall {
    pub(crate) fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// All inputs as they were sent.
    pub(crate) fn inputs(&self) -> impl DoubleEndedIterator<Item = NamedTensor<'_>> {
        let tensor = |entry: &Entry| NamedTensor {
            name: &self.bytes[entry.name.clone()],
            tensor: &self.bytes[entry.tensor.clone()],
        };
        self.inputs.iter().map(tensor)
    }

    /// The input with a name. If a message has several, the last one counts.
    pub(crate) fn find(&self, name: &str) -> Option<NamedTensor<'_>> {
        self.inputs().rev().find(|tensor| tensor.name == name.as_bytes())
    }
}

impl NamedTensor<'_> {
    pub(crate) fn to_array(self) -> Answer<Array> {
        if let Some(array) = tensor_bytes::read_simple(self.tensor) {
            return Ok(array);
        }
        let name = String::from_utf8_lossy(self.name);
        let damaged = |e| Status::new(Code::Internal, format!("failed to decode the tensor `{name}`: {e}"));
        let tensor = TensorProto::decode(self.tensor).map_err(damaged)?;
        tensor.to_array().map_err(|e| Status::invalid(format!("tensor parsing error: {name}: {e}")))
    }
}

/// An encoded `PredictResponse`, after the bytes for its head.
pub(crate) struct PredictReply(Vec<u8>);

impl PredictReply {
    pub(crate) fn new<'a>(
        outputs: impl Iterator<Item = (&'a str, &'a Array)>,
        model_spec: &ModelSpec,
    ) -> Answer<PredictReply> {
        let (mut all, mut tensor) = (Vec::with_capacity(512), Vec::with_capacity(128));
        all.extend([0; HEAD]);
        let length_of = |n: usize| 1 + encoded_len_varint(n as u64) + n;
        let start = |tag: u32, n: usize, all: &mut Vec<u8>| {
            encoding::encode_key(tag, WireType::LengthDelimited, all);
            encoding::encode_varint(n as u64, all);
        };
        for (name, array) in outputs {
            tensor.clear();
            tensor_bytes::write(array, &mut tensor)?;
            // An entry of the map of outputs.
            start(1, length_of(name.len()) + length_of(tensor.len()), &mut all);
            for (tag, bytes) in [(field::NAME, name.as_bytes()), (field::TENSOR, &tensor)] {
                start(tag, bytes.len(), &mut all);
                all.extend_from_slice(bytes);
            }
        }
        encoding::message::encode(2, model_spec, &mut all);
        Ok(PredictReply(all))
    }
}

impl IntoMessage for PredictReply {
    fn into_message(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::messages::{PredictRequest, PredictResponse};
    use super::*;

    /// What a client writes is read, and what is written a client reads.
    #[test]
    fn the_bytes_are_those_of_maps() {
        let (age, job) = (Array::from([41.5f32, 7.0]), Array::from_strings([2], ["cook", ""]).unwrap());
        let inputs: BTreeMap<_, _> = [("age", &age), ("job", &job)]
            .map(|(name, array)| (name.to_string(), TensorProto::from_array(array)))
            .into_iter()
            .collect();
        let output_filter = vec!["p".to_string()];
        let request = PredictRequest { model_spec: Some(ModelSpec::default()), inputs, output_filter };
        let call = PredictCall::from_message(request.encode_to_vec().into()).unwrap();
        assert_eq!((&call.model_spec, &call.output_filter), (&request.model_spec, &request.output_filter));
        assert_eq!(call.find("age").unwrap().to_array().unwrap(), age);
        assert_eq!(call.find("job").unwrap().to_array().unwrap(), job);
        assert!(call.find("no").is_none());

        let outputs = [("age", &age), ("job", &job)];
        let reply =
            PredictReply::new(outputs.into_iter(), &ModelSpec { name: "m".into(), ..ModelSpec::default() }).unwrap();
        let response = PredictResponse::decode(&reply.into_message()[HEAD..]).unwrap();
        assert_eq!(response.model_spec.unwrap().name, "m");
        assert_eq!(response.outputs["age"].to_array().unwrap(), age);
        assert_eq!(response.outputs["job"].to_array().unwrap(), job);
        assert_eq!(response.outputs.len(), 2);
    }

    /// The bytes of a field with a length.
    fn bytes_field(tag: u32, bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        encoding::bytes::encode(tag, &bytes.to_vec(), &mut all);
        all
    }

    /// As protobuf says: the last of equal names counts, messages of one field are joined, unknown
    /// fields are skipped, and what is left out is empty.
    #[test]
    fn unusual_messages() {
        let entry = |value: f32| {
            let tensor = TensorProto::from_array(&Array::from([value])).encode_to_vec();
            bytes_field(2, &[bytes_field(1, b"x"), bytes_field(2, &tensor)].concat())
        };
        let name = ModelSpec { name: "m".into(), ..ModelSpec::default() }.encode_to_vec();
        let signature = ModelSpec { signature_name: "s".into(), ..ModelSpec::default() }.encode_to_vec();
        // Field 9 is a varint, 10 has 4 bytes.
        let unknown = [9 << 3, 7, 10 << 3 | 5, 1, 2, 3, 4].to_vec();
        let nothing = bytes_field(2, b"");
        let parts = [bytes_field(1, &name), entry(1.0), unknown, bytes_field(1, &signature), nothing, entry(2.0)];
        let call = PredictCall::from_message(parts.concat().into()).unwrap();
        assert_eq!(call.find("x").unwrap().to_array().unwrap(), Array::from([2f32]));
        assert_eq!((call.n_inputs(), call.find("").unwrap().tensor), (3, &b""[..]));
        let spec = call.model_spec.unwrap();
        assert_eq!((spec.name.as_str(), spec.signature_name.as_str()), ("m", "s"));

        let damaged = [bytes_field(1, b"x"), bytes_field(2, b"\xff")].concat();
        let call = PredictCall::from_message(bytes_field(2, &damaged).into()).unwrap();
        let error = call.find("x").unwrap().to_array().unwrap_err();
        assert!(error.message.contains("failed to decode the tensor `x`"));
        for bytes in [&b"\x12\x05\x0a"[..], b"\x10\x01", b"\x12\x02\x08\x01", b"\x0b", b"\x1a\x01\xff", b"\x0a\x01\xff"]
        {
            assert!(PredictCall::from_message(Bytes::from_static(bytes)).is_err(), "{bytes:?}");
        }
    }
}
