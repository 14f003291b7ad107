//! One trial of a sweep: its parameters, its folder, and its stored result.

use std::fmt;
use std::path::{Path, PathBuf};

use estimand_checkpoint::{latest_checkpoint, write_text};
use estimand_tensor::{Error, Result, Sha256};
use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use crate::hparams::Value;
use crate::model_folder::read_up_to;
use crate::{Evaluated, HParams, Metrics, Report, Trained};

/// The file in the folder of a trial that holds its result. It is written when the trial is
/// complete.
const RESULT: &str = "trial.json";
const VERSION: u64 = 1;
const MAX_RESULT: u64 = 16 << 20;
/// A longer name of a folder is cut.
const MAX_NAME: usize = 100;

/// One trial of a sweep, which the user's function trains and evaluates.
#[derive(Clone, Debug)]
pub struct Trial {
    name: String,
    params: HParams,
    model_dir: PathBuf,
}

impl Trial {
    /// Makes the trial of some values, with the parameters that all trials share.
    pub(super) fn new(folder: &Path, shared: &HParams, values: HParams) -> Result<Trial> {
        let name = name_of(&values)?;
        let mut params = shared.clone();
        for (key, value) in values.iter() {
            match params.get(key).is_some() {
                true => params.override_from(&HParams::new().set(key, value.clone()))?,
                false => params = params.set(key, value.clone()),
            }
        }
        Ok(Trial { model_dir: folder.join(&name), name, params })
    }

    /// The values of the sweep and those that all trials share. Pass them to the estimator with
    /// `params`, so that TensorBoard shows them.
    pub fn params(&self) -> &HParams {
        &self.params
    }

    /// The folder of the trial's model: a folder in that of the sweep, named by the values.
    pub fn model_dir(&self) -> &Path {
        &self.model_dir
    }

    /// The name of the folder, such as `learning_rate=0.1,hidden_units=16-8`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the result of an earlier run, if there is one. It is an error if it is of other
    /// parameters.
    pub(super) fn stored(&self) -> Result<Option<TrialResult>> {
        let path = self.model_dir.join(RESULT);
        let Some(text) = read_up_to(&path, MAX_RESULT)? else { return Ok(None) };
        let bad = |what: String| {
            Error::data(format!("{} {what}", path.display()))
                .help("remove the folder of the trial to run it again, or name another folder for the sweep")
        };
        let json: Json = serde_json::from_slice(&text).map_err(|e| bad(format!("is not JSON: {e}")))?;
        let version = json.get("version").and_then(Json::as_u64);
        if version != Some(VERSION) {
            return Err(bad(format!("has the version {version:?}; expected {VERSION}")));
        }
        let (stored, ours) = (json.get("params"), self.params_json()?);
        if stored != Some(&ours) {
            let stored = stored.map_or("none".to_string(), Json::to_string);
            return Err(bad(format!("is the result of other parameters: {stored}; this trial has {ours}")));
        }
        let result = || {
            let note = match json.get("note")? {
                Json::Null => None,
                note => Some(note.as_str()?.to_string()),
            };
            let metrics = match json.get("metrics")? {
                Json::Null => None,
                metrics => Some(metrics_from_json(metrics)?),
            };
            let secs = json.get("secs")?.as_f64()?;
            Some(TrialResult { trial: self.clone(), metrics, note, secs, is_earlier: true })
        };
        result().map(Some).ok_or_else(|| bad("is not the result of a trial".to_string()))
    }

    fn params_json(&self) -> Result<Json> {
        serde_json::from_str(&self.params.to_json()?)
            .map_err(|e| Error::internal(format!("hyper-parameters are not JSON: {e}")))
    }

    /// Chooses the metrics of this trial: those of the checkpoint that the folder now has.
    pub(super) fn metrics(&self, outcome: Outcome) -> Result<Metrics> {
        let trained = match outcome.0 {
            Found::Metrics(metrics) => return Ok(metrics),
            Found::Trained(trained) => trained,
        };
        let step = newest_step(&self.model_dir)?;
        let of_step = |set: &Evaluated| match step {
            Some(step) => set.history.iter().rev().find(|metrics| metrics.global_step() == step).cloned(),
            None => set.history.last().cloned(),
        };
        let set = trained.evaluations.first();
        if let Some(metrics) = set.and_then(of_step) {
            return Ok(metrics);
        }
        // An earlier run, which was killed before it stored the result, may have evaluated it.
        let earlier = Report::read(&self.model_dir).ok();
        let name = set.and_then(|set| set.name.as_deref());
        earlier
            .and_then(|report| of_step(report.evaluation(name).ok()?))
            .or_else(|| set.and_then(|set| set.history.last().cloned()))
            .ok_or_else(|| {
                Error::config("the trial has evaluated nothing, so that it cannot be compared")
                    .help("return the result of train_and_evaluate or of evaluate")
            })
    }
}

/// Returns the step of the newest checkpoint of a folder.
fn newest_step(model_dir: &Path) -> Result<Option<u64>> {
    let Some(prefix) = latest_checkpoint(model_dir)? else { return Ok(None) };
    let name = prefix.file_name().and_then(|name| name.to_str());
    Ok(name.and_then(|name| name.rsplit_once('-')?.1.parse().ok()))
}

/// Names a folder by values. Characters that a file system may refuse are replaced; a hash then
/// keeps different values apart.
fn name_of(values: &HParams) -> Result<String> {
    let text = |value: &Value| value.to_string().trim_matches(['[', ']']).replace(',', "-");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let whole: Vec<String> = values.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    let whole = whole.join(",");
    let name: String = whole.chars().map(|c| if is_plain(c) || "=,".contains(c) { c } else { '_' }).collect();
    if name == whole && name.len() <= MAX_NAME {
        return Ok(name);
    }
    let digest = Sha256::new().update(values.to_json()?.as_bytes()).finish();
    let (start, hash) = (name.get(..MAX_NAME.min(name.len())).unwrap_or_default(), &digest[..12]);
    Ok(format!("{start}-{hash}"))
}

/// The result of a trial: that of [`train_and_evaluate`](crate::Estimator::train_and_evaluate) or
/// of [`evaluate`](crate::Estimator::evaluate).
pub struct Outcome(Found);

enum Found {
    Trained(Trained),
    Metrics(Metrics),
}

impl From<Trained> for Outcome {
    fn from(trained: Trained) -> Outcome {
        Outcome(Found::Trained(trained))
    }
}

impl From<Metrics> for Outcome {
    fn from(metrics: Metrics) -> Outcome {
        Outcome(Found::Metrics(metrics))
    }
}

/// What a trial has found.
#[derive(Clone, Debug)]
pub struct TrialResult {
    pub(super) trial: Trial,
    pub(super) metrics: Option<Metrics>,
    pub(super) note: Option<String>,
    pub(super) secs: f64,
    pub(super) is_earlier: bool,
}

impl TrialResult {
    /// The name of the trial's folder.
    pub fn name(&self) -> &str {
        self.trial.name()
    }

    /// The parameters of the trial.
    pub fn params(&self) -> &HParams {
        self.trial.params()
    }

    /// The folder of the trial's model.
    pub fn model_dir(&self) -> &Path {
        self.trial.model_dir()
    }

    /// The metrics of the checkpoint that the folder has; `None` if the training diverged.
    pub fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    /// Why there are no metrics.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The time that the trial took.
    pub fn secs(&self) -> f64 {
        self.secs
    }

    /// Whether the result was read from a file that an earlier run of the sweep wrote.
    pub fn is_earlier(&self) -> bool {
        self.is_earlier
    }

    /// Writes the result to the folder of the trial.
    pub(super) fn store(&self) -> Result<()> {
        let json = json!({
            "version": VERSION,
            "params": self.trial.params_json()?,
            "metrics": self.metrics.as_ref().map(metrics_to_json),
            "note": self.note,
            "secs": self.secs,
        });
        write_text(self.model_dir().join(RESULT), &format!("{json:#}\n"))
    }
}

impl fmt::Display for TrialResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// JSON has neither NaN nor infinity: they are strings.
fn metrics_to_json(metrics: &Metrics) -> Json {
    let number = |value: f64| if value.is_finite() { Json::from(value) } else { Json::from(value.to_string()) };
    let values: serde_json::Map<String, Json> =
        metrics.iter().map(|(name, value)| (name.to_string(), number(value))).collect();
    json!({"global_step": metrics.global_step(), "values": values})
}

fn metrics_from_json(json: &Json) -> Option<Metrics> {
    let number = |json: &Json| match json {
        Json::String(text) => text.parse().ok().filter(|value: &f64| !value.is_finite()),
        json => json.as_f64(),
    };
    let values = json.get("values")?.as_object()?;
    let values = values.iter().map(|(name, value)| Some((name.clone(), number(value)?)));
    Some(Metrics::new(values.collect::<Option<IndexMap<_, _>>>()?, json.get("global_step")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_are_plain_and_different() {
        let name = |params: HParams| name_of(&params).unwrap();
        assert_eq!(name(HParams::new().set("rate", 0.1).set("units", [16, 8])), "rate=0.1,units=16-8");
        assert_eq!(name(HParams::new().set("rate", 1e-7).set("deep", true)), "rate=1e-7,deep=true");
        let (slash, space) = (name(HParams::new().set("a", "x/y")), name(HParams::new().set("a", "x y")));
        assert!(slash.starts_with("a=x_y-") && space.starts_with("a=x_y-") && slash != space, "{slash} {space}");
        let long = name(HParams::new().set("a", "x".repeat(300)));
        assert_eq!(long.len(), MAX_NAME + 13, "{long}");
        assert!(name(HParams::new().set("..", "../..")).find('/').is_none());
    }

    #[test]
    fn metrics_survive_json() {
        let values = [("auc", 0.1), ("loss", f64::NAN), ("mean", f64::INFINITY), ("low", f64::NEG_INFINITY)];
        let values = values.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let metrics = Metrics::new(values, 7);
        let read = metrics_from_json(&metrics_to_json(&metrics)).unwrap();
        let bits =
            |metrics: &Metrics| -> Vec<_> { metrics.iter().map(|(n, v)| (n.to_string(), v.to_bits())).collect() };
        assert_eq!((bits(&read), read.global_step()), (bits(&metrics), 7));
        assert!(metrics_from_json(&json!({"global_step": 1, "values": {"a": "1.0"}})).is_none());
    }
}
