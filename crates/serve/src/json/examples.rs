//! Reads the body of `:classify` and `:regress`: a list of examples, which become serialized
//! `tf.Example`s.

use estimand_tensor::Strings;
use estimand_wire::ExampleBuilder;

use super::column::{base64_value, is_base64};
use super::excerpt::excerpt;
use super::reader::{Fault, Kind, Read, Reader};
use crate::status::{Answer, Status};

/// Examples and the signature to run on them.
#[derive(Debug)]
pub(crate) struct Examples {
    /// Empty for the default.
    pub(crate) signature_name: String,
    pub(crate) serialized: Strings,
}

/// Reads a request.
pub(crate) fn read_examples(body: &[u8]) -> Answer<Examples> {
    let mut reader = Reader::new(body);
    let mut parts = Parts::default();
    parts.read(&mut reader)?;
    let document = |text: &str| Status::invalid(format!("JSON Value: {}{text}", excerpt(body)));
    let signature_name = match parts.signature_name {
        None => String::new(),
        Some(Some(name)) => name,
        Some(None) => return Err(document(" not formatted correctly. 'signature_name' key must be a string value.")),
    };
    let context = parts.context.transpose()?.unwrap_or_default();
    let examples = match parts.examples {
        None => return Err(document(" When method is classify, key 'examples' is expected and was not found")),
        Some(None) => return Err(document(" Expecting 'examples' value to be an list/array")),
        Some(Some(examples)) => examples?,
    };
    if examples.is_empty() {
        return Err(document(" 'examples' value is an empty array"));
    }
    let mut serialized = Strings::with_capacity(examples.len());
    for example in &examples {
        // TF: joined messages are one message; a feature of the example replaces that of the
        // context.
        serialized.write(&context);
        serialized.write(example);
        serialized.finish();
    }
    Ok(Examples { signature_name, serialized })
}

/// The members of a request that matter, each as it was found first.
#[derive(Default)]
struct Parts {
    signature_name: Option<Option<String>>,
    context: Option<Answer<Vec<u8>>>,
    examples: Option<Option<Answer<Vec<Vec<u8>>>>>,
}

impl Parts {
    fn read(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        if reader.kind()? != Kind::Object {
            let start = reader.position();
            reader.skip()?;
            let text = excerpt(reader.text_at(start));
            return Err(Status::invalid(format!("JSON Value: {text} Is not object")).into());
        }
        reader.open();
        let mut is_first = true;
        while let Some(name) = reader.name(is_first)? {
            is_first = false;
            let kind = reader.kind()?;
            match &*name {
                b"signature_name" if self.signature_name.is_none() => {
                    self.signature_name = Some(if kind == Kind::String {
                        Some(String::from_utf8_lossy(&reader.string()?).into_owned())
                    } else {
                        reader.skip()?;
                        None
                    });
                }
                b"context" if self.context.is_none() => self.context = Some(kept(reader, example)?),
                b"examples" if self.examples.is_none() => {
                    self.examples = Some(if kind == Kind::Array {
                        Some(kept(reader, list)?)
                    } else {
                        reader.skip()?;
                        None
                    });
                }
                _ => reader.skip()?,
            }
        }
        Ok(())
    }
}

/// Keeps a wrong value for later, and reads on after it.
fn kept<T>(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Read<T>) -> Read<Answer<T>> {
    let start = reader.position();
    match read(reader) {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Meaning(status)) => {
            reader.go_to(start);
            reader.skip()?;
            Ok(Err(status))
        }
        Err(syntax) => Err(syntax),
    }
}

fn list(reader: &mut Reader<'_>) -> Read<Vec<Vec<u8>>> {
    reader.open();
    let mut all = Vec::new();
    while reader.element(all.is_empty())? {
        all.push(example(reader)?);
    }
    Ok(all)
}

fn example(reader: &mut Reader<'_>) -> Read<Vec<u8>> {
    let kind = reader.kind()?;
    if kind != Kind::Object {
        return Err(Status::invalid(format!("Example must be JSON object but got JSON {kind}")).into());
    }
    reader.open();
    let mut builder = ExampleBuilder::new();
    let mut is_first = true;
    while let Some(name) = reader.name(is_first)? {
        is_first = false;
        let name = String::from_utf8(name.into_owned())
            .map_err(|_| Status::invalid("the name of a feature is not valid UTF-8"))?;
        let mut feature = Feature::Empty;
        // A feature without a value is not in the example: the model's parser has the default.
        if reader.kind()? == Kind::Null {
            reader.literal()?;
            continue;
        }
        if reader.kind()? == Kind::Array {
            reader.open();
            let mut n = 0;
            while reader.element(n == 0)? {
                feature.add(reader, &name)?;
                n += 1;
            }
        } else {
            feature.add(reader, &name)?;
        }
        builder = match feature {
            Feature::Empty => builder.nothing(name),
            Feature::Floats(values) => builder.floats(name, &values),
            Feature::Ints(values) => builder.ints(name, &values),
            Feature::Strings(values) => builder.strings(name, &values),
        };
    }
    Ok(builder.build())
}

/// The values of a feature. The first one decides their type.
enum Feature {
    Empty,
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<Vec<u8>>),
}

impl Feature {
    fn add(&mut self, reader: &mut Reader<'_>, name: &str) -> Read<()> {
        let kind = reader.kind()?;
        match kind {
            Kind::Number => {
                let number = reader.number()?;
                if !number.is_integer() {
                    return self.float(number.double() as f32, name);
                }
                match number.integer::<i64>() {
                    Some(value) => self.int(value, name),
                    None if number.integer::<u64>().is_none() => self.float(number.double() as f32, name),
                    None => Err(Status::invalid(format!(
                        "Feature: {name} has uint64_t element. Only int64_t is supported."
                    ))
                    .into()),
                }
            }
            Kind::True | Kind::False => {
                let value = reader.literal()? == Kind::True;
                self.int(i64::from(value), name)
            }
            Kind::String => {
                let value = reader.string()?.into_owned();
                self.string(value, name)
            }
            Kind::Object if is_base64(reader)? => {
                let value = base64_value(reader)?;
                self.string(value, name)
            }
            Kind::Null | Kind::Object | Kind::Array => {
                Err(Status::invalid(format!("Feature: {name} has element with unexpected JSON type: {kind}")).into())
            }
        }
    }

    fn float(&mut self, value: f32, name: &str) -> Read<()> {
        match self {
            Feature::Empty => *self = Feature::Floats(vec![value]),
            Feature::Floats(values) => values.push(value),
            Feature::Ints(_) | Feature::Strings(_) => return self.mixed(name),
        }
        Ok(())
    }

    fn int(&mut self, value: i64, name: &str) -> Read<()> {
        match self {
            Feature::Empty => *self = Feature::Ints(vec![value]),
            Feature::Ints(values) => values.push(value),
            Feature::Floats(_) | Feature::Strings(_) => return self.mixed(name),
        }
        Ok(())
    }

    fn string(&mut self, value: Vec<u8>, name: &str) -> Read<()> {
        match self {
            Feature::Empty => *self = Feature::Strings(vec![value]),
            Feature::Strings(values) => values.push(value),
            Feature::Floats(_) | Feature::Ints(_) => return self.mixed(name),
        }
        Ok(())
    }

    fn mixed(&self, name: &str) -> Read<()> {
        let kind = match self {
            Feature::Empty => "UNKNOWN",
            Feature::Floats(_) => "float",
            Feature::Ints(_) => "int64",
            Feature::Strings(_) => "bytes",
        };
        Err(Status::invalid(format!("Unexpected element type in feature: {name} expecting type: {kind}")).into())
    }
}
