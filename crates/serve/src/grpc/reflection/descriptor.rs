//! The messages of `google/protobuf/descriptor.proto` that describe services.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FileDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) package: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) dependency: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub(super) message_type: Vec<DescriptorProto>,
    #[prost(message, repeated, tag = "5")]
    pub(super) enum_type: Vec<EnumDescriptorProto>,
    #[prost(message, repeated, tag = "6")]
    pub(super) service: Vec<ServiceDescriptorProto>,
    #[prost(string, tag = "12")]
    pub(super) syntax: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) field: Vec<FieldDescriptorProto>,
    #[prost(message, repeated, tag = "3")]
    pub(super) nested_type: Vec<DescriptorProto>,
    #[prost(message, repeated, tag = "4")]
    pub(super) enum_type: Vec<EnumDescriptorProto>,
    #[prost(message, optional, tag = "7")]
    pub(super) options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    pub(super) oneof_decl: Vec<OneofDescriptorProto>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct MessageOptions {
    #[prost(bool, tag = "7")]
    pub(super) map_entry: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OneofDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) number: i32,
    #[prost(int32, tag = "4")]
    pub(super) label: i32,
    #[prost(int32, tag = "5")]
    pub(super) kind: i32,
    #[prost(string, optional, tag = "6")]
    pub(super) type_name: Option<String>,
    #[prost(int32, optional, tag = "9")]
    pub(super) oneof_index: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EnumDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) value: Vec<EnumValueDescriptorProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EnumValueDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, optional, tag = "2")]
    pub(super) number: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ServiceDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) method: Vec<MethodDescriptorProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MethodDescriptorProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) input_type: String,
    #[prost(string, tag = "3")]
    pub(super) output_type: String,
}
