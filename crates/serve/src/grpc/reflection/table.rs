//! Reads `services.txt` and describes its services: [`Table`].

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use super::descriptor::*;

/// The types of fields that are no messages, with protobuf's numbers.
const TYPES: [(&str, i32); 9] = [
    ("double", 1),
    ("float", 2),
    ("int64", 3),
    ("uint64", 4),
    ("int32", 5),
    ("bool", 8),
    ("string", 9),
    ("bytes", 12),
    ("uint32", 13),
];
const MESSAGE: i32 = 11;
const ENUM: i32 = 14;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 3;

/// Descriptions of services.
#[derive(Default)]
pub(super) struct Table {
    /// The services, by their full names.
    pub(super) services: Vec<String>,
    /// The encoded files, each after those that it imports.
    files: BTreeMap<String, Vec<Vec<u8>>>,
    /// The file of each message, enum, service and method.
    symbols: BTreeMap<String, String>,
}

impl Table {
    /// Reads a table. Lines that cannot be read are left out; a test reads all of them.
    pub(super) fn read(text: &str) -> Table {
        let lines = || text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect());
        let mut enums = BTreeSet::new();
        let mut package = "";
        for words in lines() {
            let words: Vec<&str> = words;
            match words[..] {
                ["file", _, name, ..] => package = name,
                ["enum", name] => _ = enums.insert(format!("{package}.{name}")),
                _ => {}
            }
        }
        let mut table = Table::default();
        let mut file: Option<File> = None;
        for words in lines() {
            let words: Vec<&str> = words;
            if let ["file", name, package, imports @ ..] = &words[..] {
                file.take().into_iter().for_each(|file| table.add(file));
                file = Some(File::new(name, package, imports));
            } else if let Some(file) = &mut file {
                file.line(&words, &enums);
            }
        }
        file.into_iter().for_each(|file| table.add(file));
        table
    }

    fn add(&mut self, file: File) {
        let (proto, symbols) = file.finish();
        let name = proto.name.clone();
        self.symbols.extend(symbols.into_iter().map(|symbol| (symbol, name.clone())));
        self.services.extend(proto.service.iter().map(|one| format!("{}.{}", proto.package, one.name)));
        let mut all: Vec<Vec<u8>> = Vec::new();
        for bytes in proto.dependency.iter().filter_map(|import| self.files.get(import)).flatten() {
            if !all.contains(bytes) {
                all.push(bytes.clone());
            }
        }
        all.push(proto.encode_to_vec());
        self.files.insert(name, all);
    }

    /// The file with a name, after those that it imports.
    pub(super) fn file(&self, name: &str) -> Option<&[Vec<u8>]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// The file of a symbol, after those that it imports.
    pub(super) fn file_of(&self, symbol: &str) -> Option<&[Vec<u8>]> {
        self.file(self.symbols.get(symbol)?)
    }
}

/// A file that is being read.
struct File {
    proto: FileDescriptorProto,
    /// Messages and enums by their names in the package: `Outer.Inner`.
    messages: Vec<(String, DescriptorProto)>,
    enums: Vec<(String, EnumDescriptorProto)>,
    open: Open,
}

/// What the next lines belong to.
enum Open {
    Message,
    Enum,
    Service,
}

/// The part of a name after its last dot, and the part before it.
fn split(name: &str) -> (Option<&str>, &str) {
    name.rsplit_once('.').map_or((None, name), |(outer, inner)| (Some(outer), inner))
}

impl File {
    fn new(name: &str, package: &str, imports: &[&str]) -> File {
        let proto = FileDescriptorProto {
            name: name.to_string(),
            package: package.to_string(),
            dependency: imports.iter().map(|import| import.to_string()).collect(),
            syntax: "proto3".to_string(),
            ..FileDescriptorProto::default()
        };
        File { proto, messages: Vec::new(), enums: Vec::new(), open: Open::Message }
    }

    fn line(&mut self, words: &[&str], enums: &BTreeSet<String>) {
        match (words, &self.open) {
            (["message", name], _) => {
                let message = DescriptorProto { name: split(name).1.to_string(), ..DescriptorProto::default() };
                self.messages.push((name.to_string(), message));
                self.open = Open::Message;
            }
            (["enum", name], _) => {
                let new = EnumDescriptorProto { name: split(name).1.to_string(), value: Vec::new() };
                self.enums.push((name.to_string(), new));
                self.open = Open::Enum;
            }
            (["service", name], _) => {
                let service = ServiceDescriptorProto { name: name.to_string(), method: Vec::new() };
                self.proto.service.push(service);
                self.open = Open::Service;
            }
            (["rpc", name, input, output], Open::Service) => {
                let method = MethodDescriptorProto {
                    name: name.to_string(),
                    input_type: format!(".{input}"),
                    output_type: format!(".{output}"),
                };
                self.proto.service.last_mut().into_iter().for_each(|service| service.method.push(method.clone()));
            }
            ([number, name], Open::Enum) => {
                let value = EnumValueDescriptorProto { name: name.to_string(), number: number.parse().ok() };
                self.enums.last_mut().into_iter().for_each(|(_, all)| all.value.push(value.clone()));
            }
            ([number, kind, name, oneof @ ..], Open::Message) => {
                if let (Ok(number), Some((path, message))) = (number.parse(), self.messages.last_mut()) {
                    let full = format!("{}.{path}", self.proto.package);
                    add_field(message, &full, number, kind, name, oneof.first().copied(), enums);
                }
            }
            _ => {}
        }
    }

    /// The description, with the names of all that it describes.
    fn finish(mut self) -> (FileDescriptorProto, Vec<String>) {
        let package = self.proto.package.clone();
        let names = self.messages.iter().map(|(name, _)| name).chain(self.enums.iter().map(|(name, _)| name));
        let mut symbols: Vec<String> = names.map(|name| format!("{package}.{name}")).collect();
        for service in &self.proto.service {
            symbols.push(format!("{package}.{}", service.name));
            symbols.extend(service.method.iter().map(|one| format!("{package}.{}.{}", service.name, one.name)));
        }
        let mut messages = self.messages;
        for (name, one) in self.enums {
            match messages.iter_mut().find(|(known, _)| Some(known.as_str()) == split(&name).0) {
                Some((_, parent)) => parent.enum_type.push(one),
                None => self.proto.enum_type.push(one),
            }
        }
        // Messages move into their parents, the deepest and last first.
        let depth = |name: &str| name.matches('.').count();
        while let Some(at) =
            (0..messages.len()).max_by_key(|&i| depth(&messages[i].0)).filter(|&i| depth(&messages[i].0) > 0)
        {
            let (name, message) = messages.remove(at);
            let parent = messages.iter_mut().find(|(known, _)| Some(known.as_str()) == split(&name).0);
            parent.into_iter().for_each(|(_, parent)| parent.nested_type.insert(0, message.clone()));
        }
        self.proto.message_type = messages.into_iter().map(|(_, message)| message).collect();
        (self.proto, symbols)
    }
}

/// Adds a field; a map is a repeated message of its own, with a key and a value.
fn add_field(
    message: &mut DescriptorProto,
    full: &str,
    number: i32,
    kind: &str,
    name: &str,
    oneof: Option<&str>,
    enums: &BTreeSet<String>,
) {
    let mut field = FieldDescriptorProto { name: name.to_string(), number, label: OPTIONAL, ..Default::default() };
    if let Some(value) = kind.strip_prefix("{}") {
        let entry = format!("{}Entry", camel(name));
        let mut map = DescriptorProto {
            name: entry.clone(),
            options: Some(MessageOptions { map_entry: true }),
            ..Default::default()
        };
        add_field(&mut map, "", 1, "string", "key", None, enums);
        add_field(&mut map, "", 2, value, "value", None, enums);
        message.nested_type.push(map);
        (field.label, field.kind, field.type_name) = (REPEATED, MESSAGE, Some(format!(".{full}.{entry}")));
    } else {
        let (label, kind) = kind.strip_prefix("[]").map_or((OPTIONAL, kind), |kind| (REPEATED, kind));
        field.label = label;
        match TYPES.iter().find(|(known, _)| *known == kind) {
            Some((_, number)) => field.kind = *number,
            None => {
                field.kind = if enums.contains(kind) { ENUM } else { MESSAGE };
                field.type_name = Some(format!(".{kind}"));
            }
        }
    }
    if let Some(oneof) = oneof {
        let known = message.oneof_decl.iter().position(|one| one.name == oneof);
        let index = known.unwrap_or_else(|| {
            message.oneof_decl.push(OneofDescriptorProto { name: oneof.to_string() });
            message.oneof_decl.len() - 1
        });
        field.oneof_index = i32::try_from(index).ok();
    }
    message.field.push(field);
}

/// `model_spec` as `ModelSpec`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('_').map(word).collect()
}
