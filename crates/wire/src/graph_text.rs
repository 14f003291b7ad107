//! Prints a graph as text, the format of `graph.pbtxt`: for people, for diffs, and for TensorFlow's
//! `text_format`.

use std::fmt::Display;

use crate::graph_def::{Attr, AttrValue, GraphDef, ListValue, NameAttrList, NodeDef, VersionDef};
use crate::tensor_proto::{DataType, TensorProto, TensorShapeProto};
use crate::text::Quote;

impl GraphDef {
    /// Prints the graph in protobuf's text format, line by line as TensorFlow prints it. The
    /// library of functions and the fields that are kept as encoded bytes are left out.
    pub fn to_text(&self) -> String {
        let mut text = Text { out: String::new(), depth: 0 };
        for node in &self.node {
            text.message("node", |t| t.node(node));
        }
        if let Some(versions) = &self.versions {
            text.message("versions", |t| t.versions(versions));
        }
        text.out
    }
}

/// A text writer. Fields that have their default value are not written, as is usual in protobuf.
struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: impl Display) {
        self.out.push_str(&format!("{:1$}{line}\n", "", 2 * self.depth));
    }

    fn field(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("{name}: {value}"));
    }

    fn fields<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.field(name, value));
    }

    fn message(&mut self, name: &str, body: impl FnOnce(&mut Text)) {
        self.line(format_args!("{name} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    fn string(&mut self, name: &str, value: &[u8]) {
        if !value.is_empty() {
            self.field(name, Quote(value));
        }
    }

    fn integer(&mut self, name: &str, value: i32) {
        if value != 0 {
            self.field(name, value);
        }
    }

    fn node(&mut self, node: &NodeDef) {
        self.string("name", node.name.as_bytes());
        self.string("op", node.op.as_bytes());
        self.fields("input", node.input.iter().map(|input| Quote(input.as_bytes())));
        self.string("device", node.device.as_bytes());
        self.attrs(&node.attr);
    }

    fn versions(&mut self, versions: &VersionDef) {
        self.integer("producer", versions.producer);
        self.integer("min_consumer", versions.min_consumer);
        self.fields("bad_consumers", &versions.bad_consumers);
    }

    fn attrs<'a>(&mut self, attrs: impl IntoIterator<Item = (&'a String, &'a AttrValue)>) {
        for (key, value) in attrs {
            self.message("attr", |t| {
                t.field("key", Quote(key.as_bytes()));
                t.message("value", |t| value.value.iter().for_each(|value| t.attr(value)));
            });
        }
    }

    fn attr(&mut self, value: &Attr) {
        match value {
            Attr::List(list) => self.message("list", |t| t.list(list)),
            Attr::S(bytes) => self.field("s", Quote(bytes)),
            Attr::I(value) => self.field("i", value),
            Attr::F(value) => self.field("f", float(*value)),
            Attr::B(value) => self.field("b", value),
            Attr::Type(code) => self.field("type", data_type(*code)),
            Attr::Shape(shape) => self.message("shape", |t| t.shape(shape)),
            Attr::Tensor(tensor) => self.message("tensor", |t| t.tensor(tensor)),
            Attr::Placeholder(name) => self.field("placeholder", Quote(name.as_bytes())),
            Attr::Func(func) => self.message("func", |t| t.func(func)),
        }
    }

    fn list(&mut self, list: &ListValue) {
        self.fields("s", list.s.iter().map(|s| Quote(s)));
        self.fields("i", &list.i);
        self.fields("f", list.f.iter().map(|&f| float(f)));
        self.fields("b", &list.b);
        self.fields("type", list.r#type.iter().map(|&code| data_type(code)));
        list.shape.iter().for_each(|shape| self.message("shape", |t| t.shape(shape)));
        list.tensor.iter().for_each(|tensor| self.message("tensor", |t| t.tensor(tensor)));
        list.func.iter().for_each(|func| self.message("func", |t| t.func(func)));
    }

    fn func(&mut self, func: &NameAttrList) {
        self.string("name", func.name.as_bytes());
        self.attrs(&func.attr);
    }

    fn shape(&mut self, shape: &TensorShapeProto) {
        for dim in &shape.dim {
            self.message("dim", |t| {
                if dim.size != 0 {
                    t.field("size", dim.size);
                }
                t.string("name", dim.name.as_bytes());
            });
        }
        if shape.unknown_rank {
            self.field("unknown_rank", true);
        }
    }

    fn tensor(&mut self, tensor: &TensorProto) {
        if tensor.dtype != 0 {
            self.field("dtype", data_type(tensor.dtype));
        }
        if let Some(shape) = &tensor.tensor_shape {
            self.message("tensor_shape", |t| t.shape(shape));
        }
        self.integer("version_number", tensor.version_number);
        self.string("tensor_content", &tensor.tensor_content);
        self.fields("float_val", tensor.float_val.iter().map(|&v| float(v)));
        self.fields("double_val", tensor.double_val.iter().map(|&v| float(v)));
        self.fields("int_val", &tensor.int_val);
        self.fields("string_val", tensor.string_val.iter().map(|s| Quote(s)));
        self.fields("scomplex_val", tensor.scomplex_val.iter().map(|&v| float(v)));
        self.fields("int64_val", &tensor.int64_val);
        self.fields("bool_val", &tensor.bool_val);
        self.fields("dcomplex_val", tensor.dcomplex_val.iter().map(|&v| float(v)));
        self.fields("half_val", &tensor.half_val);
        self.fields("uint32_val", &tensor.uint32_val);
        self.fields("uint64_val", &tensor.uint64_val);
        self.string("float8_val", &tensor.float8_val);
    }
}

/// Formats the shortest digits that parse to the same number; `inf` and `nan` as the format spells
/// them.
fn float(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn data_type(code: i32) -> String {
    DataType::try_from(code).map_or_else(|_| code.to_string(), |known| known.tf_name().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values() {
        assert_eq!([float(f32::NAN), float(f64::NEG_INFINITY), float(-0.0f32)], ["nan", "-inf", "-0.0"]);
        assert_eq!([data_type(1), data_type(101)], ["DT_FLOAT", "101"]);
    }
}
