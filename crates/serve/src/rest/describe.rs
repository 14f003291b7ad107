//! Status and metadata of a model as JSON, laid out as protobuf's printer does.

use estimand_wire::saved_model::Encoding;
use estimand_wire::{DataType, SignatureDef, TensorInfo};

use crate::json::Writer;
use crate::model::{Loaded, VersionStatus};

/// JSON with an indentation of one space, as protobuf prints it.
struct Printer {
    writer: Writer,
    depth: usize,
    /// Whether the open bracket has a member already.
    has_member: bool,
}

impl Printer {
    fn new() -> Printer {
        Printer { writer: Writer::default(), depth: 0, has_member: false }
    }

    fn new_line(&mut self) {
        self.writer.raw("\n");
        self.writer.out.resize(self.writer.out.len() + self.depth, b' ');
    }

    fn member(&mut self) {
        if self.has_member {
            self.writer.raw(",");
        }
        if self.depth > 0 {
            self.new_line();
        }
        self.has_member = true;
    }

    fn name(&mut self, name: &str) {
        self.member();
        self.writer.text(name.as_bytes()).raw(": ");
        // The value follows on the same line.
    }

    fn block(&mut self, brackets: [&str; 2], fill: impl FnOnce(&mut Printer)) {
        self.writer.raw(brackets[0]);
        self.depth += 1;
        self.has_member = false;
        fill(self);
        self.depth -= 1;
        if self.has_member {
            self.new_line();
        }
        self.writer.raw(brackets[1]);
        self.has_member = true;
    }

    fn object(&mut self, fill: impl FnOnce(&mut Printer)) {
        self.block(["{", "}"], fill);
    }

    fn named_object(&mut self, name: &str, fill: impl FnOnce(&mut Printer)) {
        self.name(name);
        self.object(fill);
    }

    fn named_list(&mut self, name: &str, fill: impl FnOnce(&mut Printer)) {
        self.name(name);
        self.block(["[", "]"], fill);
    }

    fn named_text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.writer.text(text.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        self.writer.raw("\n");
        self.writer.out
    }
}

/// A `GetModelStatusResponse`.
pub(super) fn statuses(all: &[VersionStatus]) -> Vec<u8> {
    let mut printer = Printer::new();
    printer.object(|printer| {
        printer.named_list("model_version_status", |printer| {
            for one in all {
                printer.member();
                printer.object(|printer| {
                    printer.named_text("version", &one.version.to_string());
                    printer.named_text("state", one.state.name());
                    printer.named_object("status", |printer| {
                        let error = one.error.as_ref();
                        printer.named_text("error_code", error.map_or("OK", |error| error.code.name()));
                        printer.named_text("error_message", error.map_or("", |error| &error.message));
                    });
                });
            }
        });
    });
    printer.finish()
}

/// A `GetModelMetadataResponse` with the signatures.
pub(super) fn metadata(name: &str, loaded: &Loaded) -> Vec<u8> {
    let mut printer = Printer::new();
    printer.object(|printer| {
        printer.named_object("model_spec", |printer| {
            printer.named_text("name", name);
            printer.named_text("signature_name", "");
            printer.named_text("version", &loaded.version.to_string());
        });
        printer.named_object("metadata", |printer| {
            printer.named_object("signature_def", |printer| {
                printer.named_object("signature_def", |printer| {
                    for (name, def) in &loaded.defs {
                        printer.named_object(name, |printer| signature(printer, def));
                    }
                });
            });
        });
    });
    printer.finish()
}

fn signature(printer: &mut Printer, def: &SignatureDef) {
    for (role, tensors) in [("inputs", &def.inputs), ("outputs", &def.outputs)] {
        printer.named_object(role, |printer| {
            for (name, info) in tensors {
                printer.named_object(name, |printer| tensor(printer, info));
            }
        });
    }
    printer.named_text("method_name", &def.method_name);
}

fn tensor(printer: &mut Printer, info: &TensorInfo) {
    printer.named_text("dtype", &DataType::describe(info.dtype));
    if let Some(shape) = &info.tensor_shape {
        printer.named_object("tensor_shape", |printer| {
            printer.named_list("dim", |printer| {
                for dim in &shape.dim {
                    printer.member();
                    printer.object(|printer| {
                        printer.named_text("size", &dim.size.to_string());
                        printer.named_text("name", &dim.name);
                    });
                }
            });
            printer.name("unknown_rank");
            printer.writer.raw(if shape.unknown_rank { "true" } else { "false" });
        });
    }
    match &info.encoding {
        Some(Encoding::Name(name)) => printer.named_text("name", name),
        Some(Encoding::CooSparse(sparse)) => printer.named_object("coo_sparse", |printer| {
            printer.named_text("values_tensor_name", &sparse.values_tensor_name);
            printer.named_text("indices_tensor_name", &sparse.indices_tensor_name);
            printer.named_text("dense_shape_tensor_name", &sparse.dense_shape_tensor_name);
        }),
        Some(Encoding::CompositeTensor(_)) | None => {}
    }
}
