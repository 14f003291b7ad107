//! The configuration files of TensorFlow Serving, in protobuf's text format.

use std::fs;
use std::path::Path;
use std::time::Duration;

use estimand_serve::{BatchingParameters, ModelConfig, Server, Tls, VersionPolicy};
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

/// The certificate of `--ssl_config_file`.
pub(crate) fn tls(path: &Path) -> Result<Tls> {
    in_file(path, read(path).and_then(|fields| ssl_config(&fields)))
}

fn ssl_config(fields: &[Field]) -> Result<Tls> {
    let (mut key, mut certificate, mut authority, mut verifies) = (None, None, None, false);
    for field in fields {
        match field.name.as_str() {
            "server_key" => key = Some(field.text()?),
            "server_cert" => certificate = Some(field.text()?),
            "custom_ca" => authority = Some(field.text()?).filter(|text| !text.is_empty()),
            "client_verify" => verifies = field.is_true()?,
            _ => return Err(field.unknown(&["server_key", "server_cert", "custom_ca", "client_verify"])),
        }
    }
    let missing = |what: &str| Error::config(format!("there is no {what}")).help("expected the text of a PEM file");
    let certificate = certificate.ok_or_else(|| missing("server_cert"))?;
    let key = key.ok_or_else(|| missing("server_key"))?;
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes())?;
    match (verifies, authority) {
        (true, Some(authority)) => tls.client_authority(authority.as_bytes()),
        (true, None) => Err(Error::config("client_verify needs custom_ca: the authority of the clients' certificates")),
        // TF: an authority alone asks no client for a certificate.
        (false, _) => Ok(tls),
    }
}

/// Adds the tokens of `--token_file`. Empty lines, and lines that begin with #, do not count.
pub(crate) fn tokens(path: &Path, mut server: Server) -> Result<Server> {
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read", &e))?;
    let mut n = 0;
    for (i, line) in text.lines().enumerate() {
        let token = line.trim();
        if !token.is_empty() && !token.starts_with('#') {
            server = in_file(path, server.token(token).map_err(|e| e.context(format!("in line {}", i + 1))))?;
            n += 1;
        }
    }
    match n {
        0 => Err(Error::config(format!("{} has no token", path.display())).help("write one in each line")),
        _ => Ok(server),
    }
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
    fn certificates_and_tokens() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/download");
        let pem = |name: &str| fs::read_to_string(folder.join(name)).unwrap().replace('\n', "\\n");
        let (cert, key) = (pem("server.pem"), pem("server_key.pem"));
        let text = format!("server_cert: '{cert}' server_key: '{key}' client_verify: false");
        ssl_config(&parse(&text).unwrap()).unwrap();
        for (text, expected) in [
            (format!("server_cert: '{cert}'"), "there is no server_key"),
            (format!("server_cert: '{key}' server_key: '{key}'"), "the certificate of the server"),
            (format!("server_cert: '{cert}' server_key: 'x'"), "the key of the server"),
            (format!("server_cert: '{cert}' server_key: '{key}' client_verify: true"), "needs custom_ca"),
            ("server_crt: 'x'".to_string(), "did you mean `server_cert`?"),
        ] {
            let error = ssl_config(&parse(&text).unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let path = std::env::temp_dir().join(format!("estimand-serve-tokens-{}", std::process::id()));
        for (text, expected) in [("# none\n\n", "has no token"), ("good\na b\n", "in line 2")] {
            fs::write(&path, text).unwrap();
            let error = tokens(&path, Server::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        fs::remove_file(path).unwrap();
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
