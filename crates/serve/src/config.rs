//! The configuration files of TensorFlow Serving, in protobuf's text format.

use std::fs;
use std::path::Path;
use std::time::Duration;

use estimand_serve::{BatchingParameters, ModelConfig, VersionPolicy};
use estimand_tensor::{Error, Result};

use crate::text_proto::{Field, parse};

fn read(path: &Path) -> Result<Vec<Field>> {
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read", &e))?;
    parse(&text)
}

fn in_file<T>(path: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|error| error.context(format!("in {}", path.display())))
}

/// The models of `--model_config_file`.
pub(crate) fn models(path: &Path) -> Result<Vec<ModelConfig>> {
    in_file(path, read(path).and_then(|fields| model_list(&fields)))
}

fn model_list(fields: &[Field]) -> Result<Vec<ModelConfig>> {
    let mut models = Vec::new();
    for field in fields {
        if field.name != "model_config_list" {
            return Err(field.unknown(&["model_config_list"]));
        }
        for config in field.block()? {
            if config.name != "config" {
                return Err(config.unknown(&["config"]));
            }
            models.push(model(config)?);
        }
    }
    Ok(models)
}

fn model(config: &Field) -> Result<ModelConfig> {
    let (mut name, mut base_path, mut policy, mut labels) = (None, None, VersionPolicy::default(), Vec::new());
    for field in config.block()? {
        match field.name.as_str() {
            "name" => name = Some(field.text()?),
            "base_path" => base_path = Some(field.text()?),
            "model_platform" if field.text()? == "tensorflow" => {}
            "model_platform" => {
                let found = field.text()?;
                return Err(Error::unsupported(format!("line {}: the platform {found:?} is not known", field.line))
                    .help("only \"tensorflow\" can be served: a SavedModel"));
            }
            "model_version_policy" => policy = version_policy(field)?,
            "version_labels" => labels.push(label(field)?),
            _ => {
                return Err(field.unknown(&[
                    "name",
                    "base_path",
                    "model_platform",
                    "model_version_policy",
                    "version_labels",
                ]));
            }
        }
    }
    let missing = |what: &str| Error::config(format!("line {}: a model has no {what}", config.line));
    let model = ModelConfig::new(name.ok_or_else(|| missing("name"))?, base_path.ok_or_else(|| missing("base_path"))?);
    Ok(labels.into_iter().fold(model.policy(policy), |model, (label, version)| model.label(label, version)))
}

fn version_policy(field: &Field) -> Result<VersionPolicy> {
    let [choice] = field.block()? else {
        return Err(Error::config(format!("line {}: a policy is one of latest, all, specific", field.line)));
    };
    let inner = choice.block()?;
    match choice.name.as_str() {
        "all" => Ok(VersionPolicy::All),
        "latest" => match inner {
            [] => Ok(VersionPolicy::Latest(1)),
            [n] if n.name == "num_versions" => Ok(VersionPolicy::Latest(n.number()?)),
            [other, ..] => Err(other.unknown(&["num_versions"])),
        },
        "specific" => {
            let version = |field: &Field| match field.name.as_str() {
                "versions" => field.number(),
                _ => Err(field.unknown(&["versions"])),
            };
            Ok(VersionPolicy::Specific(inner.iter().map(version).collect::<Result<_>>()?))
        }
        _ => Err(choice.unknown(&["latest", "all", "specific"])),
    }
}

fn label(field: &Field) -> Result<(String, i64)> {
    let (mut key, mut value) = (None, None);
    for part in field.block()? {
        match part.name.as_str() {
            "key" => key = Some(part.text()?.to_string()),
            "value" => value = Some(part.number()?),
            _ => return Err(part.unknown(&["key", "value"])),
        }
    }
    key.zip(value).ok_or_else(|| Error::config(format!("line {}: a label needs a key and a value", field.line)))
}

/// The parameters of `--batching_parameters_file`.
pub(crate) fn batching(path: &Path) -> Result<BatchingParameters> {
    in_file(path, read(path).and_then(|fields| batching_parameters(&fields)))
}

fn batching_parameters(fields: &[Field]) -> Result<BatchingParameters> {
    let mut parameters = BatchingParameters::new();
    for field in fields {
        parameters = match field.name.as_str() {
            "max_batch_size" => parameters.max_batch_size(field.number()?),
            "batch_timeout_micros" => parameters.batch_timeout(Duration::from_micros(field.number()?)),
            "max_enqueued_batches" => parameters.max_enqueued_batches(field.number()?),
            "num_batch_threads" => parameters.num_batch_threads(field.number()?),
            "allowed_batch_sizes" => {
                tracing::warn!("allowed_batch_sizes is not needed: batches of any size run without padding");
                parameters
            }
            "pad_variable_length_inputs" if !field.is_true()? => parameters,
            "pad_variable_length_inputs" => {
                let message = format!("line {}: rows of different lengths are not padded to be joined", field.line);
                return Err(Error::unsupported(message).help("leave it out: such rows run in separate batches"));
            }
            _ => {
                return Err(field.unknown(&[
                    "max_batch_size",
                    "batch_timeout_micros",
                    "max_enqueued_batches",
                    "num_batch_threads",
                    "allowed_batch_sizes",
                ]));
            }
        };
    }
    Ok(parameters)
}

/// The path of the page for Prometheus, of `--monitoring_config_file`; `None` if it is switched
/// off.
pub(crate) fn metrics_path(path: &Path) -> Result<Option<String>> {
    in_file(path, read(path).and_then(|fields| prometheus(&fields)))
}

fn prometheus(fields: &[Field]) -> Result<Option<String>> {
    let (mut is_on, mut path) = (false, "/monitoring/prometheus/metrics".to_string());
    for field in fields {
        if field.name != "prometheus_config" {
            return Err(field.unknown(&["prometheus_config"]));
        }
        for part in field.block()? {
            match part.name.as_str() {
                "enable" => is_on = part.is_true()?,
                "path" => path = part.text()?.to_string(),
                _ => return Err(part.unknown(&["enable", "path"])),
            }
        }
    }
    Ok(is_on.then_some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_a_file() {
        let text = "model_config_list { config { name: 'a' base_path: '/m/a' model_platform: 'tensorflow' \
                    model_version_policy { specific { versions: 1 versions: 2 } } version_labels { key: 'x' value: 2 } } \
                    config { name: 'b' base_path: '/m/b' model_version_policy { latest { num_versions: 3 } } } }";
        let models = model_list(&parse(text).unwrap()).unwrap();
        let a = ModelConfig::new("a", "/m/a").policy(VersionPolicy::Specific(vec![1, 2])).label("x", 2);
        assert_eq!(models, [a, ModelConfig::new("b", "/m/b").policy(VersionPolicy::Latest(3))]);
        for (text, expected) in [
            ("model_config_list { config { base_path: 'x' } }", "a model has no name"),
            ("model_config_list { config { name: 'a' base_pth: 'x' } }", "did you mean `base_path`?"),
            ("models { }", "no field `models`"),
            ("model_config_list { config { model_platform: 'caffe' } }", "only \"tensorflow\""),
            ("model_config_list { config { model_version_policy { } } }", "one of latest, all, specific"),
        ] {
            let error = model_list(&parse(text).unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn other_files() {
        let text = "max_batch_size { value: 8 } batch_timeout_micros { value: 500 } num_batch_threads { value: 2 }";
        let expected =
            BatchingParameters::new().max_batch_size(8).batch_timeout(Duration::from_micros(500)).num_batch_threads(2);
        assert_eq!(batching_parameters(&parse(text).unwrap()).unwrap(), expected);
        let padded = batching_parameters(&parse("pad_variable_length_inputs: true").unwrap()).unwrap_err();
        assert!(padded.to_string().contains("not padded"));
        let on = prometheus(&parse("prometheus_config { enable: true, path: '/m' }").unwrap()).unwrap();
        assert_eq!(on.as_deref(), Some("/m"));
        assert_eq!(prometheus(&parse("prometheus_config { enable: false }").unwrap()).unwrap(), None);
    }
}
