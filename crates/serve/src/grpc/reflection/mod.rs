//! Reflection (`grpc.reflection.v1` and `v1alpha`): clients such as grpcurl ask which services
//! there are, and what their messages look like.
//!
//! `services.txt` is the list, `table.rs` reads it, and `descriptor.rs` has protobuf's own messages
//! for such descriptions.

mod descriptor;
mod table;

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::{Request, Response};
use tonic::Streaming;
use tonic::codegen::tokio_stream::Stream;
use tonic::server::{Grpc, StreamingService};
use tonic_prost::ProstCodec;

use super::Boxed;
use table::Table;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("services.txt")));

/// The largest question.
const MAX_BYTES: usize = 1 << 16;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReflectionRequest {
    #[prost(string, tag = "1")]
    pub(crate) host: String,
    #[prost(oneof = "Question", tags = "3, 4, 6, 7")]
    pub(crate) question: Option<Question>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Question {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReflectionResponse {
    #[prost(string, tag = "1")]
    pub(crate) valid_host: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) original_request: Option<ReflectionRequest>,
    #[prost(oneof = "Reply", tags = "4, 6, 7")]
    pub(crate) reply: Option<Reply>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Reply {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Failure),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) file_descriptor_proto: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Services {
    #[prost(message, repeated, tag = "1")]
    pub(crate) service: Vec<Service>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Service {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Failure {
    #[prost(int32, tag = "1")]
    pub(crate) error_code: i32,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

/// Answers the questions of a client, as many as it has.
pub(super) async fn answer(request: Request<Incoming>) -> Response<tonic::body::Body> {
    let codec = ProstCodec::<ReflectionResponse, ReflectionRequest>::default();
    let mut grpc = Grpc::new(codec).apply_max_message_size_config(Some(MAX_BYTES), None);
    grpc.streaming(Reflection, request).await
}

struct Reflection;

impl StreamingService<ReflectionRequest> for Reflection {
    type Response = ReflectionResponse;
    type ResponseStream = Replies;
    type Future = Boxed<Result<tonic::Response<Replies>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<ReflectionRequest>>) -> Self::Future {
        Box::pin(async move { Ok(tonic::Response::new(Replies(request.into_inner()))) })
    }
}

/// The answers to a stream of questions.
struct Replies(Streaming<ReflectionRequest>);

impl Stream for Replies {
    type Item = Result<ReflectionResponse, tonic::Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|asked| Some(asked?.map(reply)))
    }
}

fn reply(request: ReflectionRequest) -> ReflectionResponse {
    let files = |found: Option<&[Vec<u8>]>, what: &str| match found {
        Some(files) => Reply::Files(Files { file_descriptor_proto: files.to_vec() }),
        None => Reply::Error(Failure { error_code: 5, error_message: format!("there is no {what}") }),
    };
    let reply = match &request.question {
        Some(Question::FileByFilename(name)) => files(TABLE.file(name), &format!("file `{name}`")),
        Some(Question::FileContainingSymbol(name)) => files(TABLE.file_of(name), &format!("symbol `{name}`")),
        Some(Question::ListServices(_)) => {
            let service = TABLE.services.iter().map(|name| Service { name: name.clone() }).collect();
            Reply::Services(Services { service })
        }
        Some(Question::AllExtensionNumbersOfType(_)) | None => {
            let error_message = "there are no extensions of messages".to_string();
            Reply::Error(Failure { error_code: 12, error_message })
        }
    };
    ReflectionResponse { valid_host: request.host.clone(), original_request: Some(request), reply: Some(reply) }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::descriptor::{DescriptorProto, FileDescriptorProto};
    use super::*;

    /// Every line is read, and every type that a field or method names is there.
    #[test]
    fn the_table_is_whole() {
        let text = include_str!("services.txt");
        let words = |n: usize, first: &str| {
            text.lines()
                .filter(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    words.len() >= n && words[0] == first
                })
                .count()
        };
        let n_fields = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count();
        let files: Vec<FileDescriptorProto> = text
            .lines()
            .filter_map(|line| line.strip_prefix("file ")?.split(' ').next())
            .map(|name| FileDescriptorProto::decode(TABLE.file(name).unwrap().last().unwrap().as_slice()).unwrap())
            .collect();
        fn count(message: &DescriptorProto) -> [usize; 2] {
            let is_map = message.options.is_some_and(|options| options.map_entry);
            let own = if is_map { [0, 0] } else { [1, message.field.len()] };
            let enums: usize = message.enum_type.iter().map(|one| one.value.len()).sum();
            let inner = message.nested_type.iter().map(count).fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
            [own[0] + inner[0], own[1] + inner[1] + enums]
        }
        let messages = files.iter().flat_map(|file| &file.message_type).map(count);
        let [n_messages, n_found] = messages.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let n_values: usize = files.iter().flat_map(|file| &file.enum_type).map(|one| one.value.len()).sum();
        assert_eq!((n_messages, n_found + n_values), (words(2, "message"), n_fields));
        let methods: Vec<_> = files.iter().flat_map(|file| &file.service).flat_map(|service| &service.method).collect();
        assert_eq!(methods.len(), words(4, "rpc"));
        let fields = files.iter().flat_map(|file| &file.message_type).flat_map(|message| &message.field);
        let named = fields.filter_map(|field| field.type_name.clone()).filter(|name| !name.ends_with("Entry"));
        for name in named.chain(methods.iter().flat_map(|one| [one.input_type.clone(), one.output_type.clone()])) {
            assert!(TABLE.file_of(name.trim_start_matches('.')).is_some(), "{name}");
        }
        assert_eq!(TABLE.services.len(), 4);
    }
}
