//! Differences between the versions of Keras in the JSON of a layer.

use estimand_nn::Activation;
use estimand_nn::config::Json;
use estimand_tensor::{Error, Result};

use super::KerasVersion;

/// Fields that Keras 2 writes and Keras 3 refuses, by class.
const ONLY_KERAS_2: [(&str, &[&str]); 12] = [
    ("Conv1DTranspose", &["groups"]),
    ("Conv2DTranspose", &["groups"]),
    ("Conv3DTranspose", &["groups"]),
    ("DepthwiseConv1D", &["groups"]),
    ("DepthwiseConv2D", &["groups"]),
    ("Discretization", &["trainable"]),
    ("MultiHeadAttention", &["query_shape", "key_shape", "value_shape"]),
    ("SeparableConv1D", &["groups"]),
    ("SeparableConv2D", &["groups"]),
    ("SpatialDropout1D", &["trainable"]),
    ("SpatialDropout2D", &["trainable"]),
    ("SpatialDropout3D", &["trainable"]),
];

/// Fields that Keras 3 alone has. They are written only if they are not as in Keras 2.
const ONLY_KERAS_3: [(&str, &[&str]); 1] = [("RandomContrast", &["value_range"])];

/// A layer that Keras 3 does not have.
const LAYER_OF_KERAS_2: &str = "ThresholdedReLU";

/// Activations that Keras 2 does not have.
const ACTIVATIONS_OF_KERAS_3: [Activation; 10] = [
    Activation::HardSilu,
    Activation::Celu,
    Activation::HardTanh,
    Activation::HardShrink,
    Activation::SoftShrink,
    Activation::TanhShrink,
    Activation::LogSigmoid,
    Activation::Squareplus,
    Activation::SparsePlus,
    Activation::SparseSigmoid,
];

/// The fields of layers that name an activation.
const ACTIVATIONS: [&str; 2] = ["activation", "recurrent_activation"];

/// Changes the JSON of a layer, and of those inside, to that of a version. `layer` is its name.
pub(super) fn adapt(json: &mut Json, version: KerasVersion, layer: &str) -> Result<()> {
    let class = json.get("class_name").and_then(Json::as_str).unwrap_or_default();
    if version == KerasVersion::Keras3 && class == LAYER_OF_KERAS_2 {
        let error = Error::unsupported(format!("the layer `{layer}` is a {class}, which Keras 3 does not have"));
        return Err(error.help("write the model for KerasVersion::Keras2"));
    }
    let of_class = |table: &[(&str, &'static [&'static str])]| -> &'static [&'static str] {
        table.iter().find(|(known, _)| *known == class).map_or(&[], |(_, fields)| fields)
    };
    let (old, new) = (of_class(&ONLY_KERAS_2), of_class(&ONLY_KERAS_3));
    let (is_discretization, is_bidirectional) = (class == "Discretization", class == "Bidirectional");
    let is_separable = class == "SeparableConv1D";
    let Some(config) = json.get_mut("config").and_then(Json::as_object_mut) else { return Ok(()) };
    if version == KerasVersion::Keras3 && is_separable && config["padding"] == "causal" {
        let text = format!("the layer `{layer}` is a SeparableConv1D with causal padding, which Keras 3 does not have");
        return Err(Error::unsupported(text).help(
            "put a `ZeroPadding1d` before a layer without padding, or write the model for KerasVersion::Keras2",
        ));
    }
    if version == KerasVersion::Keras3 {
        old.iter().for_each(|field| drop(config.remove(*field)));
        if is_discretization {
            // Keras 3 converts the numbers to this dtype before it looks for their ranges.
            config.insert("dtype".to_string(), "float32".into());
        }
        if is_bidirectional && config["layer"]["config"]["go_backwards"] == true {
            // Without this layer, Keras 3 makes one that goes backwards, too.
            let mut second = config["layer"].clone();
            second["config"]["go_backwards"] = false.into();
            config.insert("backward_layer".to_string(), second);
        }
    } else if let Some(field) = new.iter().find(|field| config.contains_key(**field)) {
        let error =
            Error::unsupported(format!("the layer `{layer}` has the option `{field}`, which Keras 2 does not have"));
        return Err(error.help("leave it at its default, or write the model for KerasVersion::Keras3"));
    }
    for (key, value) in config {
        if ACTIVATIONS.contains(&key.as_str()) {
            activation(value, version, layer)?;
        }
        match value {
            Json::Array(values) => values.iter_mut().try_for_each(|value| adapt(value, version, layer))?,
            value => adapt(value, version, layer)?,
        }
    }
    Ok(())
}

/// The name of an activation in a version: `hard_sigmoid` is another function in each.
fn activation(value: &mut Json, version: KerasVersion, layer: &str) -> Result<()> {
    if version == KerasVersion::Keras2 && ACTIVATIONS_OF_KERAS_3.iter().any(|later| *value == later.name()) {
        let name = value.as_str().unwrap_or_default();
        let text = format!("the layer `{layer}` has the activation `{name}`, which Keras 2 does not have");
        return Err(Error::unsupported(text).help("write the model for KerasVersion::Keras3"));
    }
    let of_keras_2 = Activation::HardSigmoid;
    let of_keras_3 = Activation::HardSigmoidKeras3;
    let other = match version {
        KerasVersion::Keras2 if *value == of_keras_3.name() => of_keras_2,
        KerasVersion::Keras3 if *value == of_keras_2.name() => of_keras_3,
        KerasVersion::Keras3 if *value == of_keras_3.name() => {
            *value = of_keras_2.name().into();
            return Ok(());
        }
        KerasVersion::Keras2 | KerasVersion::Keras3 => return Ok(()),
    };
    let text = format!(
        "the layer `{layer}` has the activation `{}`; in {version:?}, `{}` is another function",
        value.as_str().unwrap_or_default(),
        of_keras_2.name(),
    );
    Err(Error::unsupported(text).help(format!("take Activation::{other:?}, or write the model for the other version")))
}
