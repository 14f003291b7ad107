//! `Predict` as the server reads and writes it. The bytes are those of `PredictRequest` and
//! `PredictResponse`, but tensors stay encoded: a tensor has a list for each type, so a map of them
//! would move kilobytes for a request of a few numbers.

use bytes::Bytes;
use estimand_tensor::Array;
use estimand_wire::{Message, TensorProto, tensor_bytes};
use prost::encoding::{self, WireType};

use super::messages::ModelSpec;
use crate::status::{Answer, Code, Status};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictCall {
    #[prost(message, optional, tag = "1")]
    pub(crate) model_spec: Option<ModelSpec>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) inputs: Vec<NamedTensor>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) output_filter: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PredictReply {
    /// Encoded entries of a map from names to tensors.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) outputs: Vec<Bytes>,
    #[prost(message, optional, tag = "2")]
    pub(crate) model_spec: Option<ModelSpec>,
}

impl PredictReply {
    /// All entries are in one piece of memory.
    pub(crate) fn new<'a>(
        outputs: impl Iterator<Item = (&'a str, &'a Array)>,
        model_spec: Option<ModelSpec>,
    ) -> Answer<PredictReply> {
        let (mut all, mut ends, mut tensor) = (Vec::with_capacity(512), Vec::new(), Vec::with_capacity(128));
        for (name, array) in outputs {
            tensor.clear();
            tensor_bytes::write(array, &mut tensor)?;
            for (tag, bytes) in [(1, name.as_bytes()), (2, &tensor)] {
                encoding::encode_key(tag, WireType::LengthDelimited, &mut all);
                encoding::encode_varint(bytes.len() as u64, &mut all);
                all.extend_from_slice(bytes);
            }
            ends.push(all.len());
        }
        let (all, mut start) = (Bytes::from(all), 0);
        let entry = |end| all.slice(std::mem::replace(&mut start, end)..end);
        Ok(PredictReply { outputs: ends.into_iter().map(entry).collect(), model_spec })
    }
}

/// An entry of a map from names to tensors.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NamedTensor {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// An encoded `TensorProto`.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) tensor: Bytes,
}

impl NamedTensor {
    pub(crate) fn to_array(&self) -> Answer<Array> {
        if let Some(array) = tensor_bytes::read_simple(&self.tensor) {
            return Ok(array);
        }
        let damaged = |e| Status::new(Code::Internal, format!("failed to decode the tensor `{}`: {e}", self.name));
        let tensor = TensorProto::decode(self.tensor.clone()).map_err(damaged)?;
        tensor.to_array().map_err(|e| Status::invalid(format!("tensor parsing error: {}: {e}", self.name)))
    }
}

/// The entry with a name. If a message has several, the last one counts.
pub(crate) fn find<'a>(tensors: &'a [NamedTensor], name: &str) -> Option<&'a NamedTensor> {
    tensors.iter().rev().find(|tensor| tensor.name == name)
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
        let call = PredictCall::decode(&request.encode_to_vec()[..]).unwrap();
        assert_eq!((&call.model_spec, &call.output_filter), (&request.model_spec, &request.output_filter));
        assert_eq!(find(&call.inputs, "age").unwrap().to_array().unwrap(), age);
        assert_eq!(find(&call.inputs, "job").unwrap().to_array().unwrap(), job);
        assert!(find(&call.inputs, "no").is_none());

        let outputs = [("age", &age), ("job", &job)];
        let reply = PredictReply::new(outputs.into_iter(), Some(ModelSpec::default())).unwrap();
        let response = PredictResponse::decode(&reply.encode_to_vec()[..]).unwrap();
        assert_eq!(response.outputs["age"].to_array().unwrap(), age);
        assert_eq!(response.outputs["job"].to_array().unwrap(), job);
        assert_eq!(response.outputs.len(), 2);
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let tensors = [1f32, 2.0].map(|value| NamedTensor {
            name: "x".to_string(),
            tensor: TensorProto::from_array(&Array::from([value])).encode_to_vec().into(),
        });
        assert_eq!(find(&tensors, "x").unwrap().to_array().unwrap(), Array::from([2f32]));
        let damaged = NamedTensor { name: "x".to_string(), tensor: Bytes::from_static(b"\xff") };
        assert!(damaged.to_array().unwrap_err().message.contains("failed to decode the tensor `x`"));
    }
}
