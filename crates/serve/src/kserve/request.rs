//! Reads the body of `infer`.

use estimand_tensor::{Array, DType};

use super::binary;
use crate::json::Column;
use crate::json::reader::{Kind, Read, Reader};
use crate::status::{Answer, Status};

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct Infer {
    pub(super) id: Option<String>,
    /// Empty for the default.
    pub(super) signature_name: String,
    pub(super) inputs: Vec<(String, Array)>,
    pub(super) outputs: Asked,
}

/// The outputs that are asked for, and whether each shall be binary.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) outputs: Vec<(String, Option<bool>)>,
    /// Whether outputs are binary that do not say otherwise.
    pub(crate) is_binary: bool,
}

/// Reads a request; `rest` are the binary data of its inputs.
pub(super) fn read(json: &[u8], rest: &[u8]) -> Answer<Infer> {
    let mut infer = Infer::default();
    let mut reader = Reader::new(json);
    let mut rest = rest;
    if reader.kind().map_err(Status::from)? != Kind::Object {
        return Err(Status::invalid("the request is not an object; expected {\"inputs\": [..]}"));
    }
    members(&mut reader, |reader, name| {
        match name {
            b"id" => infer.id = Some(text(reader, "id")?),
            b"parameters" => members(reader, |reader, name| {
                match name {
                    b"signature_name" => infer.signature_name = text(reader, "signature_name")?,
                    b"binary_data_output" => infer.outputs.is_binary = flag(reader)?,
                    _ => reader.skip()?,
                }
                Ok(())
            })?,
            b"inputs" => list(reader, "inputs", |reader| {
                let input = input(reader, &mut rest)?;
                infer.inputs.push(input);
                Ok(())
            })?,
            b"outputs" => list(reader, "outputs", |reader| {
                infer.outputs.outputs.push(output(reader)?);
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if !rest.is_empty() {
        return Err(Status::invalid(format!("{} bytes follow the binary data of the inputs", rest.len())));
    }
    if infer.inputs.is_empty() {
        return Err(Status::invalid("the request has no inputs"));
    }
    Ok(infer)
}

fn wrong<T>(message: impl Into<String>) -> Read<T> {
    Err(Status::invalid(message).into())
}

/// Reads an object, member by member.
fn members(reader: &mut Reader<'_>, mut read: impl FnMut(&mut Reader<'_>, &[u8]) -> Read<()>) -> Read<()> {
    let kind = reader.kind()?;
    if kind != Kind::Object {
        return wrong(format!("found {kind} where an object is expected"));
    }
    reader.open();
    let mut is_first = true;
    while let Some(name) = reader.name(is_first)? {
        is_first = false;
        read(reader, &name)?;
    }
    Ok(())
}

fn list(reader: &mut Reader<'_>, name: &str, mut read: impl FnMut(&mut Reader<'_>) -> Read<()>) -> Read<()> {
    let kind = reader.kind()?;
    if kind != Kind::Array {
        return wrong(format!("`{name}` is {kind}; expected a list"));
    }
    reader.open();
    let mut is_first = true;
    while reader.element(is_first)? {
        is_first = false;
        read(reader)?;
    }
    Ok(())
}

fn text(reader: &mut Reader<'_>, name: &str) -> Read<String> {
    let kind = reader.kind()?;
    if kind != Kind::String {
        return wrong(format!("`{name}` is {kind}; expected a string"));
    }
    Ok(String::from_utf8_lossy(&reader.string()?).into_owned())
}

fn flag(reader: &mut Reader<'_>) -> Read<bool> {
    match reader.kind()? {
        Kind::True | Kind::False => Ok(reader.literal()? == Kind::True),
        kind => wrong(format!("found {kind}; expected true or false")),
    }
}

fn size(reader: &mut Reader<'_>) -> Read<usize> {
    let size = match reader.kind()? {
        Kind::Number => reader.number()?.integer(),
        _ => None,
    };
    size.map_or_else(|| wrong("a size is not a number of 0 or more"), Ok)
}

/// Reads an input. Its data may come before its type.
fn input(reader: &mut Reader<'_>, rest: &mut &[u8]) -> Read<(String, Array)> {
    let (mut name, mut dtype, mut shape) = (String::new(), None, None);
    let (mut column, mut data_at, mut n_bytes) = (None, None, None);
    members(reader, |reader, key| {
        match key {
            b"name" => name = text(reader, "name")?,
            b"datatype" => dtype = Some(read_datatype(reader)?),
            b"shape" => {
                let mut sizes = Vec::new();
                list(reader, "shape", |reader| {
                    sizes.push(size(reader)?);
                    Ok(())
                })?;
                shape = Some(sizes);
            }
            b"parameters" => members(reader, |reader, key| {
                match key {
                    b"binary_data_size" => n_bytes = Some(size(reader)?),
                    _ => reader.skip()?,
                }
                Ok(())
            })?,
            b"data" => match dtype {
                Some(dtype) => column = Some(values(reader, &name, dtype)?),
                None => {
                    data_at = Some(reader.position());
                    reader.skip()?;
                }
            },
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if name.is_empty() {
        return wrong("an input has no name");
    }
    let Some(dtype) = dtype else { return wrong(format!("input `{name}` has no datatype")) };
    let Some(shape) = shape else { return wrong(format!("input `{name}` has no shape")) };
    if let Some(n) = n_bytes {
        let Some((bytes, after)) = rest.split_at_checked(n) else {
            return wrong(format!("input `{name}` claims {n} bytes of binary data, {} follow", rest.len()));
        };
        *rest = after;
        let array = binary::read(&name, dtype, &shape, bytes)?;
        return Ok((name, array));
    }
    if let Some(position) = data_at {
        let end = reader.position();
        reader.go_to(position);
        column = Some(values(reader, &name, dtype)?);
        reader.go_to(end);
    }
    let Some(column) = column else { return wrong(format!("input `{name}` has no data")) };
    let array =
        column.into_shape(&shape).map_err(|status| Status::invalid(format!("input `{name}`: {}", status.message)))?;
    Ok((name, array))
}

fn values(reader: &mut Reader<'_>, name: &str, dtype: DType) -> Read<Column> {
    let mut column = Column::new(dtype);
    column.flat(reader).map_err(|fault| match fault {
        crate::json::reader::Fault::Meaning(status) => {
            Status::invalid(format!("input `{name}`: {}", status.message)).into()
        }
        syntax => syntax,
    })?;
    Ok(column)
}

fn read_datatype(reader: &mut Reader<'_>) -> Read<DType> {
    let name = text(reader, "datatype")?;
    super::dtype(&name).or_else(wrong)
}

fn output(reader: &mut Reader<'_>) -> Read<(String, Option<bool>)> {
    let (mut output, mut is_binary) = (String::new(), None);
    members(reader, |reader, key| {
        match key {
            b"name" => output = text(reader, "name")?,
            b"parameters" => members(reader, |reader, key| {
                match key {
                    b"binary_data" => is_binary = Some(flag(reader)?),
                    _ => reader.skip()?,
                }
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok((output, is_binary))
}
