//! Our side of the exchange of HDF5 files with h5py and Keras (oracles/live/hdf5.py).
//!
//! `print FILE` prints every object, attribute and value, with floats as their bits and strings as
//! hexadecimal bytes. `copy FILE COPY` reads a file and writes it again, with strings of variable
//! length; `copy-fixed FILE COPY` with strings of fixed length. `weights LAYOUT FILE` writes the
//! weights of a model of two dense layers, `a` (2 to 3) and `b` (3 to 1), in one of Keras' layouts:
//! `legacy` (`layer_names` and `weight_names`) or `layers` (files that end with `.weights.h5`).

use std::fs;
use std::io::{self, Write};

use estimand_hdf5::{File, Group, Node, Writer};
use estimand_tensor::{Array, DType, Error, Limits, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["print", path] => {
            let file = File::open(path, &Limits::default())?;
            let mut lines = Vec::new();
            print(&Node::Group(file.root()), &mut lines);
            let text = lines.join("\n") + "\n";
            io::stdout().write_all(text.as_bytes()).map_err(|e| Error::io("standard output", "write", &e))
        }
        ["copy", from, to] => copy(from, to, Writer::dataset, Writer::attribute),
        ["copy-fixed", from, to] => copy(from, to, Writer::fixed_dataset, Writer::fixed_attribute),
        ["weights", layout, to] => save(to, &weights(layout)?),
        _ => Err(Error::config(
            "expected `print FILE`, `copy FILE COPY`, `copy-fixed FILE COPY` or `weights LAYOUT FILE`",
        )),
    }
}

/// A line for each object and each attribute. What cannot be read is printed with its reason.
fn print(node: &Node<'_>, lines: &mut Vec<String>) {
    let path = node.path();
    match node {
        Node::Group(group) => {
            let order = group.names_by_creation().filter(|names| !names.is_empty());
            lines.push(format!("{path} group {}", order.map_or("-".to_string(), |names| names.join(" "))));
        }
        Node::Dataset(dataset) => lines.push(format!("{path} = {}", show(dataset.read()))),
    }
    match node.attribute_names() {
        Ok(names) => lines.extend(names.iter().map(|name| format!("{path}@{name} = {}", show(node.attribute(name))))),
        Err(error) => lines.push(format!("{path}@ = error {}", error.message())),
    }
    if let Node::Group(group) = node {
        for (child, name) in group.children().zip(group.names()) {
            match child {
                Ok(child) => print(&child, lines),
                Err(error) => lines.push(format!("{}/{name} = error {}", path.trim_end_matches('/'), error.message())),
            }
        }
    }
}

fn show(array: Result<Array>) -> String {
    let shown =
        array.and_then(|array| Ok(format!("{}{:?} {}", array.dtype(), array.dims(), values(&array)?.join(" "))));
    shown.unwrap_or_else(|error| format!("error {}", error.message()))
}

/// The elements, written so that nothing is rounded.
fn values(array: &Array) -> Result<Vec<String>> {
    Ok(match array.dtype() {
        DType::F32 => array.as_slice::<f32>()?.iter().map(|v| format!("{:08x}", v.to_bits())).collect(),
        DType::F64 => array.as_slice::<f64>()?.iter().map(|v| format!("{:016x}", v.to_bits())).collect(),
        DType::I32 => array.as_slice::<i32>()?.iter().map(i32::to_string).collect(),
        DType::I64 => array.as_slice::<i64>()?.iter().map(i64::to_string).collect(),
        DType::U8 => array.as_slice::<u8>()?.iter().map(u8::to_string).collect(),
        DType::Bool => array.as_slice::<bool>()?.iter().map(bool::to_string).collect(),
        DType::Str => {
            let hex = |string: &[u8]| format!("x{}", string.iter().map(|b| format!("{b:02x}")).collect::<String>());
            array.strings()?.map(hex).collect()
        }
    })
}

type Put = fn(&mut Writer, &str, &Array) -> Result<()>;
type PutAttribute = fn(&mut Writer, &str, &str, &Array) -> Result<()>;

fn copy(from: &str, to: &str, put: Put, put_attribute: PutAttribute) -> Result<()> {
    fn add(group: &Group<'_>, writer: &mut Writer, put: Put, put_attribute: PutAttribute) -> Result<()> {
        writer.group(group.path())?;
        for child in group.children() {
            match child? {
                Node::Group(group) => add(&group, writer, put, put_attribute)?,
                Node::Dataset(dataset) => {
                    put(writer, dataset.path(), &dataset.read()?)?;
                    for name in dataset.attribute_names()? {
                        put_attribute(writer, dataset.path(), &name, &dataset.attribute(&name)?)?;
                    }
                }
            }
        }
        for name in group.attribute_names()? {
            put_attribute(writer, group.path(), &name, &group.attribute(&name)?)?;
        }
        Ok(())
    }
    let file = File::open(from, &Limits::default())?;
    let mut writer = Writer::new();
    add(&file.root(), &mut writer, put, put_attribute)?;
    save(to, &writer)
}

fn save(path: &str, writer: &Writer) -> Result<()> {
    let mut out = io::BufWriter::new(fs::File::create(path).map_err(|e| Error::io(path, "create", &e))?);
    writer.write_to(&mut out)?;
    out.flush().map_err(|e| Error::io(path, "write", &e))
}

/// The weights of the two layers. The live check has the same numbers.
fn weights(layout: &str) -> Result<Writer> {
    let layers = [
        ("a", Array::from_vec([2, 3], vec![0.5f32, -1.0, 2.0, 0.25, 1.5, -0.75])?, Array::from([0.125f32, -0.5, 3.0])),
        ("b", Array::from_vec([3, 1], vec![1.0f32, -2.0, 0.5])?, Array::from([0.0625f32])),
    ];
    let text = |text: &str| Array::from_strings([], [text]);
    let mut writer = Writer::new();
    match layout {
        "legacy" => {
            for (name, kernel, bias) in &layers {
                writer.dataset(&format!("{name}/{name}/kernel:0"), kernel)?;
                writer.dataset(&format!("{name}/{name}/bias:0"), bias)?;
                let names = [format!("{name}/kernel:0"), format!("{name}/bias:0")];
                writer.fixed_attribute(name, "weight_names", &Array::from_strings([2], names)?)?;
            }
            writer.fixed_attribute("/", "layer_names", &Array::from_strings([2], ["a", "b"])?)?;
            writer.attribute("/", "backend", &text("tensorflow")?)?;
            writer.attribute("/", "keras_version", &text("2.15.0")?)?;
        }
        "layers" => {
            // Keras names the groups by the classes of the layers.
            for ((name, kernel, bias), class) in layers.iter().zip(["dense", "dense_1"]) {
                writer.dataset(&format!("layers/{class}/vars/0"), kernel)?;
                writer.dataset(&format!("layers/{class}/vars/1"), bias)?;
                writer.attribute(&format!("layers/{class}/vars"), "name", &text(name)?)?;
            }
            writer.group("vars")?;
        }
        _ => return Err(Error::unknown("layout", layout, ["legacy", "layers"])),
    }
    Ok(writer)
}
