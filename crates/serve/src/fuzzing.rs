//! The readers of requests, for the fuzz targets in `fuzz/`. Not a part of the interface.

use estimand_tensor::{Array, DType};
use prost::Message;

use crate::grpc::FromMessage;
use crate::grpc::inference_messages::ModelInferRequest;
use crate::grpc::messages::{ExampleRequest, MultiInferenceRequest, PredictionLog, ReloadConfigRequest};
use crate::grpc::predict_call::PredictCall;
use crate::json::{Input, UnknownKeys, read_examples, read_predict};
use crate::status::Answer;

/// Inputs of all types; some have defaults, one is padded.
fn inputs() -> Vec<Input> {
    let types = [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::Bool, DType::Str];
    let mut inputs: Vec<Input> =
        types.iter().zip("abcdefg".chars()).map(|(dtype, name)| Input::new(name, *dtype)).collect();
    for (i, default) in [Array::from_vec([], vec![1.5f32]), Array::from_strings([], ["x"])].into_iter().enumerate() {
        let input = &mut inputs[6 * i];
        input.default = default.ok();
        input.is_padded = i == 1;
    }
    inputs
}

/// Reads a body of `:predict`, `:classify` or `:regress`.
pub fn rest(body: &[u8]) {
    let all = inputs();
    for (some, policy) in
        [(&all[..], UnknownKeys::Ignore), (&all[..1], UnknownKeys::TensorFlow), (&all[6..], UnknownKeys::Error)]
    {
        let Ok(request) = read_predict(body, policy, |_| Answer::Ok(some.to_vec())) else { continue };
        assert_eq!((request.rows.arrays.len(), request.rows.defaulted.len()), (some.len(), some.len()));
        for ((input, array), defaulted) in some.iter().zip(&request.rows.arrays).zip(&request.rows.defaulted) {
            assert_eq!(array.dtype(), input.dtype);
            let n_rows = array.dims().first().copied().unwrap_or(1);
            assert!(defaulted.iter().all(|row| *row < n_rows.max(1)), "{defaulted:?} of {n_rows} rows");
        }
    }
    if let Ok(examples) = read_examples(body) {
        assert!(!examples.serialized.is_empty());
    }
}

/// Reads a body of KServe's `infer`: the first two bytes are the length of its JSON.
pub fn infer(bytes: &[u8]) {
    let Some((length, body)) = bytes.split_first_chunk::<2>() else { return };
    let (json, rest) = body.split_at(usize::from(u16::from_le_bytes(*length)).min(body.len()));
    crate::kserve::read_for_fuzzing(json, rest);
}

/// Reads a message of gRPC: the first byte says of which kind.
pub fn grpc(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => {
            let Ok(request) = PredictCall::from_message(message.to_vec().into()) else { return };
            for tensor in request.inputs() {
                let Ok(array) = tensor.to_array() else { continue };
                assert_eq!(array.len(), array.dims().iter().product::<usize>());
            }
        }
        1 => {
            let Ok(request) = ModelInferRequest::decode(message) else { return };
            let Ok(arrays) = crate::grpc::inference::arrays(&request) else { return };
            assert_eq!(arrays.len(), request.inputs.len());
        }
        2 => {
            let Ok(request) = ExampleRequest::decode(message) else { return };
            let _ = crate::grpc::examples(&request.input);
        }
        3 => _ = MultiInferenceRequest::decode(message),
        4 => _ = PredictionLog::decode(message),
        _ => _ = ReloadConfigRequest::decode(message),
    }
}

#[cfg(test)]
mod tests {
    type Check = fn(&[u8]);

    /// The seeds of the fuzz targets, and changes of them, until a fuzzer finds better ones.
    #[test]
    fn seeds_and_their_changes() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let targets: [(&str, Check); 3] =
            [("serve_rest", super::rest), ("serve_infer", super::infer), ("serve_grpc", super::grpc)];
        let mut dice = 1u64;
        let mut throw = |n: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % n.max(1)
        };
        for (name, check) in targets {
            let mut n = 0;
            for entry in std::fs::read_dir(corpus.join(name)).unwrap() {
                let seed = std::fs::read(entry.unwrap().path()).unwrap();
                check(&seed);
                n += 1;
                for _ in 0..500 {
                    let mut changed = seed.clone();
                    for _ in 0..=throw(3) {
                        let (at, byte) = (throw(changed.len()), throw(256) as u8);
                        match throw(4) {
                            0 => changed[at] = byte,
                            1 => changed.insert(at, byte),
                            2 => changed.truncate(at.max(1)),
                            _ => {
                                let copied = changed[at..].to_vec();
                                changed.extend_from_slice(&copied);
                            }
                        }
                    }
                    check(&changed);
                }
            }
            assert!(n >= 3, "{name} has {n} seeds");
        }
    }
}
