//! How initializers, regularizers, constraints and activations are spelled: as objects of Keras.

use std::sync::Arc;

use estimand_graph::{Fan, Initializer, Spread};
use estimand_tensor::{Error, Result};
use estimand_update::{Constraint, MaxNorm, MinMaxNorm, NonNeg, Setting, UnitNorm};
use serde_json::{Map, Value, json};

use super::field::Elements;
use super::{Dialect, Field, Fields, Node, Object, Read, object};
use crate::activation::Activation;
use crate::regularizer::Regularizer;

/// Reads the fields of an object; without any if the document has only the class's name.
pub(crate) fn configured<T>(config: Option<&Node<'_>>, read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
    let nothing = Value::Object(Map::new());
    let none = super::CustomObjects::new();
    let nothing = Node::root(&nothing, &none);
    let mut fields = Fields::reading(config.unwrap_or(&nothing))?;
    let value = read(&mut fields);
    fields.read()?;
    Ok(value)
}

/// `GlorotUniform` and `glorot_uniform` are the same class.
pub(crate) fn is_called(class: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    plain(class) == plain(name)
}

/// Reads an object of a class of the user, if there is one for `T`.
fn of_user<T: 'static>(node: &Node<'_>, found: &Object<'_>) -> Option<Result<T>> {
    let objects = node.custom_objects();
    // TF: a class or function that was registered is written as `package>Class`.
    let plain = || found.class.rsplit_once('>').and_then(|(_, class)| objects.find::<Read<T>>(class));
    let read = objects.find::<Read<T>>(found.class).or_else(plain)?;
    Some(read(found.config.as_ref().unwrap_or(&node.nothing())))
}

const INITIALIZERS: [&str; 15] = [
    "Zeros",
    "Ones",
    "Constant",
    "RandomUniform",
    "RandomNormal",
    "TruncatedNormal",
    "GlorotUniform",
    "GlorotNormal",
    "HeUniform",
    "HeNormal",
    "LecunUniform",
    "LecunNormal",
    "Orthogonal",
    "Identity",
    "VarianceScaling",
];

impl Field for Initializer {
    fn write(&self) -> Result<Value> {
        let (class, config) = match self {
            Initializer::Zeros => ("Zeros", json!({})),
            Initializer::Ones => ("Ones", json!({})),
            Initializer::Constant(value) => ("Constant", json!({"value": value.write()?})),
            Initializer::Value(array) => {
                let text = format!("an initial value of {} numbers cannot be written as JSON", array.len());
                return Err(Error::unsupported(text).help("take an initializer with a rule, or warm start"));
            }
            Initializer::Runs(runs) => {
                let text = format!("the initial values {runs:?} cannot be written as JSON");
                return Err(Error::unsupported(text).help("take an initializer with a rule, or warm start"));
            }
            Initializer::RandomUniform { low, high } => {
                ("RandomUniform", json!({"minval": low.write()?, "maxval": high.write()?, "seed": null}))
            }
            Initializer::RandomNormal { mean, stddev } => {
                ("RandomNormal", json!({"mean": mean.write()?, "stddev": stddev.write()?, "seed": null}))
            }
            Initializer::TruncatedNormal { mean, stddev } => {
                ("TruncatedNormal", json!({"mean": mean.write()?, "stddev": stddev.write()?, "seed": null}))
            }
            Initializer::GlorotUniform => ("GlorotUniform", json!({"seed": null})),
            Initializer::GlorotNormal => ("GlorotNormal", json!({"seed": null})),
            Initializer::HeUniform => ("HeUniform", json!({"seed": null})),
            Initializer::HeNormal => ("HeNormal", json!({"seed": null})),
            Initializer::LecunUniform => ("LecunUniform", json!({"seed": null})),
            Initializer::LecunNormal => ("LecunNormal", json!({"seed": null})),
            Initializer::VarianceScaling { scale, fan, spread } => {
                let mode = word_of(&FANS, *fan);
                let distribution = word_of(&SPREADS, *spread);
                let config = json!({
                    "scale": scale.write()?, "mode": mode, "distribution": distribution, "seed": null,
                });
                ("VarianceScaling", config)
            }
            Initializer::Orthogonal { gain } => ("Orthogonal", json!({"gain": gain.write()?, "seed": null})),
            Initializer::Identity { gain } => ("Identity", json!({"gain": gain.write()?})),
        };
        Ok(object("keras.initializers", class, config))
    }

    fn read(node: &Node<'_>) -> Result<Initializer> {
        let found = node.object()?;
        if let Some(read) = of_user(node, &found) {
            return read;
        }
        // Keras 3 once called two of them so.
        let class = found.class.strip_suffix("Initializer").unwrap_or(found.class);
        let Some(class) = INITIALIZERS.into_iter().find(|name| is_called(class, name)) else {
            let known = INITIALIZERS.into_iter().chain(node.custom_objects().names::<Read<Initializer>>());
            return Err(Error::unknown("initializer", class, known).context(format!("at {}", node.path())));
        };
        let read = configured(found.config.as_ref(), |fields| {
            let initializer = match class {
                "Zeros" => Initializer::Zeros,
                "Ones" => Initializer::Ones,
                "Constant" => Initializer::Constant(fields.value("value", &0.0)),
                "RandomUniform" => Initializer::RandomUniform {
                    low: fields.value("minval", &-0.05),
                    high: fields.value("maxval", &0.05),
                },
                "RandomNormal" => Initializer::RandomNormal {
                    mean: fields.value("mean", &0.0),
                    stddev: fields.value("stddev", &0.05),
                },
                "TruncatedNormal" => Initializer::TruncatedNormal {
                    mean: fields.value("mean", &0.0),
                    stddev: fields.value("stddev", &0.05),
                },
                "GlorotUniform" => Initializer::GlorotUniform,
                "GlorotNormal" => Initializer::GlorotNormal,
                "HeUniform" => Initializer::HeUniform,
                "HeNormal" => Initializer::HeNormal,
                "LecunUniform" => Initializer::LecunUniform,
                "LecunNormal" => Initializer::LecunNormal,
                "Orthogonal" => Initializer::Orthogonal { gain: fields.value("gain", &1.0) },
                "Identity" => Initializer::Identity { gain: fields.value("gain", &1.0) },
                _ => variance_scaling(fields),
            };
            // Here random numbers follow from the seed of the run and the variable's name.
            fields.ignored("seed");
            fields.only_read("dtype", &["float32".into(), Value::Null]);
            // Newer releases of Keras 3 can say which axes count as inputs.
            fields.only_read("input_axes", &[Value::Null]);
            fields.only_read("output_axes", &[Value::Null]);
            initializer
        });
        read.map_err(|error| if found.config.is_some() { error } else { error.context(format!("at {}", node.path())) })
    }
}

/// The words of Keras for what [`Initializer::VarianceScaling`] counts.
const FANS: [(&str, Fan); 3] = [("fan_in", Fan::In), ("fan_out", Fan::Out), ("fan_avg", Fan::Average)];

/// The words of Keras for how its numbers spread; the last is an older word for the first.
const SPREADS: [(&str, Spread); 4] = [
    ("truncated_normal", Spread::TruncatedNormal),
    ("untruncated_normal", Spread::Normal),
    ("uniform", Spread::Uniform),
    ("normal", Spread::TruncatedNormal),
];

/// The first word of a value.
fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| *word)
}

/// The rules of Glorot, He and Lecun are cases of this one.
fn variance_scaling(fields: &mut Fields<'_>) -> Initializer {
    let scale = fields.value("scale", &1.0);
    let fan = fields.choice("mode", &Fan::In, &FANS);
    let spread = fields.choice("distribution", &Spread::TruncatedNormal, &SPREADS);
    match (scale, fan, spread) {
        (1.0, Fan::Average, Spread::Uniform) => Initializer::GlorotUniform,
        (1.0, Fan::Average, Spread::TruncatedNormal) => Initializer::GlorotNormal,
        (2.0, Fan::In, Spread::Uniform) => Initializer::HeUniform,
        (2.0, Fan::In, Spread::TruncatedNormal) => Initializer::HeNormal,
        (1.0, Fan::In, Spread::Uniform) => Initializer::LecunUniform,
        (1.0, Fan::In, Spread::TruncatedNormal) => Initializer::LecunNormal,
        _ => Initializer::VarianceScaling { scale, fan, spread },
    }
}

impl Field for Regularizer {
    fn write(&self) -> Result<Value> {
        let (class, config) = match self.strengths() {
            (l1, 0.0) => ("L1", json!({"l1": l1.write()?})),
            (0.0, l2) => ("L2", json!({"l2": l2.write()?})),
            (l1, l2) => ("L1L2", json!({"l1": l1.write()?, "l2": l2.write()?})),
        };
        Ok(object("keras.regularizers", class, config))
    }

    fn read(node: &Node<'_>) -> Result<Regularizer> {
        const CLASSES: [&str; 3] = ["L1", "L2", "L1L2"];
        // Strengths of a regularizer that only its name describes.
        const USUAL: f64 = 0.01;
        let found = node.object()?;
        if let Some(read) = of_user(node, &found) {
            return read;
        }
        let usual = if found.config.is_none() { USUAL } else { 0.0 };
        let Some(class) = CLASSES.into_iter().find(|name| is_called(found.class, name)) else {
            let known = CLASSES.into_iter().chain(node.custom_objects().names::<Read<Regularizer>>());
            return Err(Error::unknown("regularizer", found.class, known).context(format!("at {}", node.path())));
        };
        configured(found.config.as_ref(), |fields| match class {
            "L1" => Regularizer::l1(fields.value("l1", &USUAL)),
            "L2" => Regularizer::l2(fields.value("l2", &USUAL)),
            _ => Regularizer::l1_l2(fields.value("l1", &usual), fields.value("l2", &usual)),
        })
    }
}

/// The settings of a constraint or a rule as fields.
pub(super) fn written_settings(settings: Vec<(&'static str, Setting)>) -> Result<Map<String, Value>> {
    let mut config = Map::new();
    for (key, setting) in settings {
        let value = match setting {
            Setting::Flag(flag) => flag.write()?,
            Setting::Number(number) => number.write()?,
            Setting::Integers(list) => Elements(list).write()?,
        };
        config.insert(key.to_string(), value);
    }
    Ok(config)
}

impl Field for Arc<dyn Constraint> {
    fn write(&self) -> Result<Value> {
        let Some(settings) = self.settings() else {
            let text = format!("the constraint {} cannot be written as JSON: it has no `settings`", self.name());
            return Err(Error::unsupported(text).help("implement Constraint::settings for it"));
        };
        Ok(object("keras.constraints", self.name(), Value::Object(written_settings(settings)?)))
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn Constraint>> {
        const CLASSES: [&str; 4] = ["MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"];
        let found = node.object()?;
        if let Some(read) = of_user(node, &found) {
            return read;
        }
        let Some(class) = CLASSES.into_iter().find(|name| is_called(found.class, name)) else {
            let known = CLASSES.into_iter().chain(node.custom_objects().names::<Read<Arc<dyn Constraint>>>());
            return Err(Error::unknown("constraint", found.class, known).context(format!("at {}", node.path())));
        };
        configured(found.config.as_ref(), |fields| {
            let mut axes = || fields.value("axis", &Elements(vec![0])).0;
            match class {
                "MaxNorm" => {
                    let axes = axes();
                    Arc::new(MaxNorm::new(fields.value("max_value", &2.0)).axes(axes)) as Arc<dyn Constraint>
                }
                "MinMaxNorm" => {
                    let axes = axes();
                    let (min, max) = (fields.value("min_value", &0.0), fields.value("max_value", &1.0));
                    Arc::new(MinMaxNorm::new(min, max).rate(fields.value("rate", &1.0)).axes(axes))
                }
                "NonNeg" => Arc::new(NonNeg),
                _ => Arc::new(UnitNorm::new().axes(axes())),
            }
        })
    }
}

impl Field for Activation {
    fn write(&self) -> Result<Value> {
        match *self {
            // The name alone has the usual slope.
            Activation::LeakyRelu(slope) if slope != USUAL_SLOPE => {
                Ok(object("keras.layers", "LeakyReLU", json!({"alpha": slope.write()?})))
            }
            activation => Ok(activation.name().into()),
        }
    }

    fn read(node: &Node<'_>) -> Result<Activation> {
        let found = node.object()?;
        if let Some(read) = of_user(node, &found) {
            return read;
        }
        match (found.class, &found.config) {
            ("LeakyReLU", Some(config)) => configured(Some(config), |fields| {
                for key in ["name", "trainable", "dtype"] {
                    fields.ignored(key);
                }
                Activation::LeakyRelu(fields.renamed(&["alpha", "negative_slope"], &0.3))
            }),
            ("silu", None) => Ok(Activation::Swish),
            ("hard_swish", None) => Ok(Activation::HardSilu),
            ("hard_sigmoid", None) if node.dialect() == Dialect::Keras3 => Ok(Activation::HardSigmoidKeras3),
            (name, None) => name.parse().map_err(|error: Error| error.context(format!("at {}", node.path()))),
            (name, Some(_)) => Err(node
                .refuse(format!("the layer {name} as an activation is not supported"))
                .help("name a function, or make the layer a layer of its own")),
        }
    }
}

/// The slope of Keras's `leaky_relu` below 0.
const USUAL_SLOPE: f64 = 0.2;
