//! The flags of the program: TensorFlow Serving's names, and some of our own.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use estimand_serve::{BatchingParameters, ModelConfig, Server, UnknownKeys};
use estimand_tensor::{Error, Result};

use crate::config;

/// A flag: its name, its value in the help, and what it does. A flag without a value is a switch.
struct Flag {
    name: &'static str,
    value: &'static str,
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

const FLAGS: &[Flag] = &[
    flag("model_name", "NAME", "the name of the model; by default `default`"),
    flag("model_base_path", "FOLDER", "the folder of the model's versions: FOLDER/1, FOLDER/2, .."),
    flag("model_config_file", "FILE", "several models: a ModelServerConfig in protobuf's text format"),
    flag(
        "model_config_file_poll_wait_seconds",
        "SECONDS",
        "how often that file is read again; by default 0: only once",
    ),
    flag("host", "ADDRESS", "the address to listen at; by default 127.0.0.1"),
    flag("port", "PORT", "the port for gRPC, which also answers REST; by default 8500; 0 switches it off"),
    flag("rest_api_port", "PORT", "the port for REST, which also answers gRPC; by default 8501; 0 switches it off"),
    flag("rest_api_timeout_in_ms", "N", "the time limit of a REST request; by default 30000"),
    flag("rest_api_num_threads", "N", "the number of threads; by default the number of processors"),
    flag("rest_api_enable_cors_support", "", "lets pages of other sites ask"),
    flag("enable_batching", "", "joins the rows of concurrent requests"),
    flag("batching_parameters_file", "FILE", "BatchingParameters in protobuf's text format"),
    flag("monitoring_config_file", "FILE", "a MonitoringConfig: switches the page for Prometheus, sets its path"),
    flag(
        "file_system_poll_wait_seconds",
        "SECONDS",
        "how often folders are looked at; by default 1, may be 0.05; 0 looks once",
    ),
    flag("max_num_load_retries", "N", "how often a version that cannot be loaded is tried again; by default 5"),
    flag("load_retry_interval_micros", "N", "the time between two tries; by default a minute"),
    flag("accept_changed_answers", "", "serves a version that does not give the answers that its export carries"),
    flag(
        "unknown_keys",
        "POLICY",
        "names that a model does not have: ignore, warn or error; by default as TensorFlow Serving",
    ),
    flag("head_timeout_in_ms", "N", "the time for the head of a request, and of an idle connection; by default 30000"),
    flag("max_body_bytes", "N", "the largest body of a request; by default 64 MiB"),
    flag("max_requests", "N", "the number of requests at the same time, beyond which 429 is answered; by default 4096"),
    flag("ssl_config_file", "FILE", "an SSLConfig in protobuf's text format: encrypts all connections"),
    flag("token_file", "FILE", "the tokens of which a request needs one, a line each: authorization: Bearer TOKEN"),
    flag("max_requests_per_model", "N", "the same for each model; by default no limit of its own"),
    flag("access_log", "", "logs a line for each REST request"),
    flag("version", "", "prints the version"),
    flag("help", "", "prints this list"),
];

/// The list of flags.
pub(crate) fn help() -> String {
    let line = |flag: &Flag| {
        let name = if flag.value.is_empty() { flag.name.to_string() } else { format!("{}={}", flag.name, flag.value) };
        format!("  --{name:<42} {}", flag.help)
    };
    let lines: Vec<String> = FLAGS.iter().map(line).collect();
    format!("usage: estimand-serve --model_name=NAME --model_base_path=FOLDER [..]\n\n{}", lines.join("\n"))
}

/// The flags of a command line.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    given: Vec<(&'static str, String)>,
    pub(crate) is_help: bool,
    pub(crate) is_version: bool,
}

impl Flags {
    /// Reads `--name=value`, `--name value`, and switches: `--name`, `--name=false`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Flags> {
        let mut flags = Flags::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(text) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return Err(Error::config(format!("`{argument}` is not a flag")).help("see estimand-serve --help"));
            };
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let Some(known) = FLAGS.iter().find(|flag| flag.name == name) else {
                return Err(Error::unknown("flag", name, FLAGS.iter().map(|flag| flag.name)));
            };
            let value = match (value, known.value.is_empty()) {
                (Some(value), _) => value.to_string(),
                (None, true) => "true".to_string(),
                (None, false) => {
                    let missing = || Error::config(format!("--{name} has no value; expected --{name}={}", known.value));
                    rest.next().ok_or_else(missing)?.clone()
                }
            };
            flags.given.push((known.name, value));
        }
        (flags.is_help, flags.is_version) = (flags.is_on("help")?, flags.is_on("version")?);
        Ok(flags)
    }

    /// The last value of a flag.
    fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn is_on(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(other) => Err(Error::config(format!("--{name} is `{other}`; expected true or false"))),
        }
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        let read = |text: &str| {
            text.parse().map_err(|_| Error::config(format!("--{name} is `{text}`; expected a number in its range")))
        };
        self.get(name).map(read).transpose()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// The server that the flags describe, and its models.
    pub(crate) fn server(&self) -> Result<(Server, Vec<ModelConfig>)> {
        let models = self.models()?;
        let mut server = models.iter().cloned().fold(Server::new(), Server::model_config);
        if let Some(host) = self.get("host") {
            let host = if host == "localhost" { "127.0.0.1" } else { host };
            let wrong = |_| Error::config(format!("--host is `{host}`; expected an address such as 0.0.0.0"));
            server = server.host(host.parse::<IpAddr>().map_err(wrong)?);
        }
        // TF: port 0 switches a protocol off.
        let port = |name: &str, default: u16| -> Result<Option<u16>> {
            Ok(Some(self.number(name)?.unwrap_or(default)).filter(|&port| port != 0))
        };
        server = server.grpc_port(port("port", 8500)?).rest_port(port("rest_api_port", 8501)?);
        if let Some(limit) = self.number("rest_api_timeout_in_ms")? {
            server = server.timeout(Duration::from_millis(limit));
        }
        if let Some(limit) = self.number("head_timeout_in_ms")? {
            server = server.head_timeout(Duration::from_millis(limit));
        }
        if let Some(n) = self.number("rest_api_num_threads")? {
            server = server.threads(n);
        }
        if let Some(n) = self.number("max_body_bytes")? {
            server = server.max_body_bytes(n);
        }
        if let Some(n) = self.number("max_requests")? {
            server = server.max_requests(n);
        }
        if let Some(policy) = self.unknown_keys()? {
            server = server.unknown_keys(policy);
        }
        if self.is_on("rest_api_enable_cors_support")? {
            server = server.cors();
        }
        if self.is_on("access_log")? {
            server = server.access_log();
        }
        if let Some(path) = self.path("monitoring_config_file") {
            server = server.metrics_path(config::metrics_path(&path)?);
        }
        if let Some(path) = self.path("ssl_config_file") {
            server = server.tls(config::tls(&path)?);
        }
        if let Some(path) = self.path("token_file") {
            server = config::tokens(&path, server)?;
        }
        Ok((self.loading(self.batching(server)?)?, models))
    }

    fn unknown_keys(&self) -> Result<Option<UnknownKeys>> {
        Ok(Some(match self.get("unknown_keys") {
            None => return Ok(None),
            Some("ignore") => UnknownKeys::Ignore,
            Some("warn") => UnknownKeys::Warn,
            Some("error") => UnknownKeys::Error,
            Some(other) => {
                return Err(Error::config(format!("--unknown_keys is `{other}`; expected ignore, warn or error")));
            }
        }))
    }

    /// The file of models that is read again, and how often.
    pub(crate) fn watched(&self) -> Result<Option<(PathBuf, Duration)>> {
        const NAME: &str = "model_config_file_poll_wait_seconds";
        let Some(seconds) = self.number::<f64>(NAME)? else { return Ok(None) };
        let wait = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Error::config(format!("--{NAME} is {seconds}; expected 0 or more")))?;
        match self.path("model_config_file") {
            Some(file) => Ok(Some((file, wait)).filter(|_| !wait.is_zero())),
            None => Err(Error::config(format!("--{NAME} is given without --model_config_file"))),
        }
    }

    /// The models, each with the limit that all have.
    pub(crate) fn limited(&self, models: Vec<ModelConfig>) -> Result<Vec<ModelConfig>> {
        let Some(n) = self.number("max_requests_per_model")? else { return Ok(models) };
        Ok(models.into_iter().map(|model| model.max_requests(n)).collect())
    }

    fn models(&self) -> Result<Vec<ModelConfig>> {
        self.limited(self.configured()?)
    }

    fn configured(&self) -> Result<Vec<ModelConfig>> {
        if let Some(file) = self.path("model_config_file") {
            return config::models(&file);
        }
        let Some(base_path) = self.path("model_base_path") else {
            return Err(Error::config("neither --model_base_path nor --model_config_file is given")
                .help("estimand-serve --model_name=census --model_base_path=exports/census"));
        };
        Ok(vec![ModelConfig::new(self.get("model_name").unwrap_or("default"), base_path)])
    }

    fn batching(&self, server: Server) -> Result<Server> {
        match (self.is_on("enable_batching")?, self.path("batching_parameters_file")) {
            (true, Some(file)) => Ok(server.batching(config::batching(&file)?)),
            (true, None) => Ok(server.batching(BatchingParameters::new())),
            (false, Some(_)) => Err(Error::config("--batching_parameters_file is given without --enable_batching")),
            (false, None) => Ok(server),
        }
    }

    fn loading(&self, mut server: Server) -> Result<Server> {
        if let Some(seconds) = self.number::<f64>("file_system_poll_wait_seconds")? {
            let wrong = || Error::config(format!("--file_system_poll_wait_seconds is {seconds}; expected 0 or more"));
            let wait = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
            server = server.poll_wait(Some(wait).filter(|wait| !wait.is_zero()));
        }
        if self.is_on("accept_changed_answers")? {
            server = server.accept_changed_answers();
        }
        let n = self.number("max_num_load_retries")?.unwrap_or(5);
        let wait = self.number("load_retry_interval_micros")?.unwrap_or(60_000_000);
        Ok(server.load_retries(n, Duration::from_micros(wait)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags> {
        Flags::parse(&arguments.iter().map(|text| text.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn values_and_switches() {
        let flags =
            parse(&["--port=9", "--model_name", "m", "--enable_batching", "-port=10", "--access_log=false"]).unwrap();
        assert_eq!((flags.get("port"), flags.get("model_name")), (Some("10"), Some("m")));
        assert!(flags.is_on("enable_batching").unwrap() && !flags.is_on("access_log").unwrap());
        assert!(parse(&["--help"]).unwrap().is_help && help().contains("--rest_api_port=PORT"));
    }

    #[test]
    fn wrong_flags() {
        for (arguments, text) in [
            (&["--prt=1"][..], "did you mean `port`?"),
            (&["port"], "`port` is not a flag"),
            (&["--port"], "expected --port=PORT"),
        ] {
            let error = parse(arguments).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        for (argument, text) in [
            ("--port=99999", "--port is `99999`; expected a number"),
            ("--host=here", "expected an address"),
            ("--unknown_keys=drop", "expected ignore, warn or error"),
            ("--access_log=maybe", "expected true or false"),
            ("--file_system_poll_wait_seconds=-1", "expected 0 or more"),
            ("--batching_parameters_file=x", "without --enable_batching"),
            ("--max_num_load_retries=x", "expected a number"),
            ("--model_config_file=/no/such/file", "/no/such/file"),
        ] {
            let error = parse(&["--model_base_path=x", argument]).unwrap().server().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let error = parse(&[]).unwrap().server().unwrap_err().to_string();
        assert!(error.contains("neither --model_base_path"), "{error}");
    }
}
