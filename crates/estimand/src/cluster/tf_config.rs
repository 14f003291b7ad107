//! Parses `TF_CONFIG`'s JSON into a [`Cluster`], and checks it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use estimand_tensor::{Error, ErrorKind, Result, warn};
use serde_json::{Map, Value};
use tracing::info;

use super::{CHIEF, Cluster, EVALUATOR, MASTER, Tasks, WORKER};

impl Cluster {
    /// Parses a `TF_CONFIG` text. Unknown keys are ignored, as in TensorFlow.
    pub fn parse(text: &str) -> Result<Cluster> {
        if text.trim().is_empty() {
            warn!("TF_CONFIG is set but empty; it is treated as unset.");
            return Ok(Cluster::default());
        }
        let json: Value = serde_json::from_str(text)
            .map_err(|e| invalid(format!("it is not JSON: {e}")).help("unset it to train on this machine alone"))?;
        let Value::Object(root) = &json else { return Err(wrong_type("the text", "an object", &json)) };
        let cluster = Cluster {
            jobs: jobs(root)?,
            session_master: text_of(root, "session_master")?,
            eval_session_master: text_of(root, "eval_session_master")?,
            model_dir: text_of(root, "model_dir")?.map(PathBuf::from),
            service: match root.get("service") {
                None => None,
                Some(service @ Value::Object(_)) => Some(service.to_string()),
                Some(other) => return Err(wrong_type("`service`", "an object", other)),
            },
            ..Cluster::default()
        };
        let empty = Map::new();
        let task = match root.get("task") {
            None => &empty,
            Some(Value::Object(task)) => task,
            Some(other) => return Err(wrong_type("`task`", "an object", other)),
        };
        let kind = text_of(task, "type")?.filter(|kind| !kind.is_empty());
        let index = index_of(task)?;
        if cluster.jobs.is_empty() { cluster.alone(kind, index) } else { cluster.member(kind, index) }
    }

    /// Without a cluster the only task is worker 0.
    fn alone(self, kind: Option<String>, index: Option<usize>) -> Result<Cluster> {
        match (kind.as_deref(), index) {
            (None | Some(WORKER), None | Some(0)) => Ok(self),
            (None | Some(WORKER), Some(index)) => {
                Err(invalid(format!("`task.index` is {index}, but there is no `cluster`; expected 0")))
            }
            (Some(kind), _) => {
                Err(invalid(format!("`task.type` is `{kind}`, but there is no `cluster`; expected `worker`")))
            }
        }
        .map_err(|e| e.help("add the addresses of all tasks as `cluster`, or unset TF_CONFIG"))
    }

    /// The task of a process in a cluster.
    fn member(mut self, kind: Option<String>, index: Option<usize>) -> Result<Cluster> {
        self.check_chief()?;
        let example = "write \"task\": {\"type\": \"worker\", \"index\": 0}";
        self.task_type = kind.ok_or_else(|| invalid("there is a `cluster`, but no `task.type`").help(example))?;
        self.task_index = index.ok_or_else(|| invalid("there is a `cluster`, but no `task.index`").help(example))?;
        // An evaluator may be outside of the cluster, with any index.
        if self.task_type == EVALUATOR {
            return Ok(self);
        }
        let Some(tasks) = self.jobs.get(&self.task_type) else {
            let error = invalid(format!("`task.type` is `{}`, which is not a job of the cluster", self.task_type));
            let names = self.jobs.keys().map(String::as_str);
            return Err(error.suggest(&self.task_type, names));
        };
        if !tasks.contains_key(&self.task_index) {
            let known: Vec<_> = tasks.keys().map(usize::to_string).collect();
            return Err(invalid(format!(
                "`task.index` is {}, but the job `{}` has no such task",
                self.task_index, self.task_type
            ))
            .help(format!("use one of its tasks: {}", known.join(", "))));
        }
        if self.chief_job() == WORKER {
            info!("The cluster has no chief; worker {} acts as chief.", self.chief_index());
        }
        Ok(self)
    }

    /// Checks that exactly one task leads: the chief, the `master` of old clusters, or else the
    /// first worker.
    fn check_chief(&self) -> Result<()> {
        let n = |job: &str| self.jobs.get(job).map_or(0, BTreeMap::len);
        match (n(CHIEF), n(MASTER)) {
            (1, 0) | (0, 1) => Ok(()),
            (0, 0) if n(WORKER) > 0 => Ok(()),
            (0, 0) => Err(invalid("the cluster has neither a `chief` nor a `worker`")
                .help("add \"chief\": [\"host:port\"] to `cluster`")),
            (chiefs, 0) => Err(invalid(format!("the cluster has {chiefs} chiefs, expected 1"))),
            (0, masters) => Err(invalid(format!("the cluster has {masters} masters, expected 1"))),
            _ => Err(invalid("the cluster has both a `chief` and a `master`, which is the old name of the chief")),
        }
    }
}

pub(super) fn invalid(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Cluster, format!("TF_CONFIG: {what}"))
}

fn wrong_type(what: &str, expected: &str, found: &Value) -> Error {
    invalid(format!("{what} must be {expected}, found `{found}`"))
}

fn text_of(object: &Map<String, Value>, key: &str) -> Result<Option<String>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong_type(&format!("`{key}`"), "a string", other)),
    }
}

/// Reads a task's index: a number, or a string that contains one.
fn index_of(task: &Map<String, Value>) -> Result<Option<usize>> {
    let Some(json) = task.get("index") else { return Ok(None) };
    let index = match json {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match index.and_then(|index| usize::try_from(index).ok()) {
        Some(index) => Ok(Some(index)),
        None => Err(wrong_type("`task.index`", "an integer from 0", json)),
    }
}

/// Returns the cluster's jobs that have tasks.
fn jobs(root: &Map<String, Value>) -> Result<BTreeMap<String, Tasks>> {
    let cluster = match root.get("cluster") {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(cluster)) => cluster,
        Some(other) => return Err(wrong_type("`cluster`", "an object of jobs", other)),
    };
    let mut jobs = BTreeMap::new();
    for (job, json) in cluster {
        let tasks = tasks(job, json)?;
        if !tasks.is_empty() {
            jobs.insert(job.clone(), tasks);
        }
    }
    Ok(jobs)
}

/// The largest allowed task index in a map, more than any cluster has.
const LARGEST_INDEX: usize = 1_000_000;

/// Reads a job's addresses: a list, or a map from index to address for the known tasks.
fn tasks(job: &str, json: &Value) -> Result<Tasks> {
    let wrong = |found: &Value| wrong_type(&format!("`cluster.{job}`"), "a list of \"host:port\"", found);
    let address =
        |json: &Value| json.as_str().filter(|text| !text.is_empty()).map(str::to_string).ok_or_else(|| wrong(json));
    match json {
        Value::Array(list) => list.iter().enumerate().map(|(i, json)| Ok((i, address(json)?))).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(index, json)| {
                let known = index.parse().ok().filter(|index| *index <= LARGEST_INDEX);
                let index = known.ok_or_else(|| {
                    invalid(format!(
                        "`cluster.{job}` has a task `{index}`, expected an index from 0 to {LARGEST_INDEX}"
                    ))
                })?;
                Ok((index, address(json)?))
            })
            .collect(),
        other => Err(wrong(other)),
    }
}

#[cfg(test)]
mod tests {
    use estimand_fixture::cases;

    use super::*;
    use crate::mutate::{Dice, damaged};

    /// The texts of which decisions make something else than TensorFlow: there no error, here who
    /// is chief.
    fn differs(tf_config: &Value) -> bool {
        let has = |job: &str| !tf_config["cluster"][job].is_null();
        let worker_leads = has(WORKER) && !has(CHIEF) && !has(MASTER);
        worker_leads || (has(MASTER) && tf_config["task"]["type"] == EVALUATOR) || tf_config.as_str() == Some("")
    }

    fn described(cluster: &Cluster) -> Value {
        let jobs: Map<_, _> = cluster
            .jobs()
            .map(|job| {
                let tasks = cluster.addresses(job).map(|(i, address)| (i.to_string(), Value::from(address))).collect();
                (job.to_string(), Value::Object(tasks))
            })
            .collect();
        serde_json::json!({
            "task_type": cluster.task_type(),
            "task_id": cluster.task_index(),
            "is_chief": cluster.is_chief(),
            "master": cluster.master(),
            "evaluation_master": cluster.eval_master(),
            "num_ps_replicas": cluster.n_ps(),
            "num_worker_replicas": cluster.n_workers(),
            "global_id_in_cluster": cluster.global_id(),
            // TF: an evaluator has no cluster; ours keeps it, but counts as if it had none.
            "cluster_spec": if cluster.is_evaluator() { Value::Object(Map::new()) } else { Value::Object(jobs) },
            "model_dir": cluster.model_dir().and_then(|folder| folder.to_str()),
            "service": cluster.service().map(|text| serde_json::from_str::<Value>(text).unwrap()),
        })
    }

    /// oracles/gen/clusters.py explains the cases.
    #[test]
    fn case_102_clusters_as_tensorflow_reads_them() {
        let (mut n_equal, mut n_refused) = (0, 0);
        for case in cases("clusters") {
            let tf_config = case.json("tf_config");
            if differs(tf_config) {
                continue;
            }
            let ours = Cluster::parse(&tf_config.as_str().map_or_else(|| tf_config.to_string(), str::to_string));
            if !case.has("error") {
                assert_eq!(described(&ours.unwrap()), *case.json("run_config"), "{tf_config}");
                n_equal += 1;
            } else {
                let error = ours.expect_err(&tf_config.to_string());
                assert!(matches!(error.kind(), ErrorKind::Cluster) && error.to_string().starts_with("TF_CONFIG: "));
                n_refused += 1;
            }
        }
        assert!(n_equal >= 30 && n_refused >= 25, "{n_equal} equal, {n_refused} refused");
    }

    #[test]
    fn case_103_empty_text_is_unset() {
        // A deliberate difference: TensorFlow fails with a JSON error.
        for text in ["", "  \n"] {
            assert_eq!(Cluster::parse(text).unwrap(), Cluster::default());
        }
    }

    #[test]
    fn case_104_global_ids_of_an_old_cluster() {
        let cluster = |task: &str, index: usize| {
            let jobs = r#"{"master": ["m:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"], "zebra": ["z:1"]}"#;
            let text = format!(r#"{{"cluster": {jobs}, "task": {{"type": "{task}", "index": {index}}}}}"#);
            Cluster::parse(&text).unwrap()
        };
        let ids = [("master", 0), ("worker", 0), ("worker", 1), ("zebra", 0), ("ps", 0)]
            .map(|(task, index)| cluster(task, index).global_id());
        assert_eq!(ids, [0, 1, 2, 3, 4].map(Some));
        // A deliberate difference: the master is the chief, so an evaluator beside it is valid.
        assert!(cluster("master", 0).is_chief() && !cluster("worker", 0).is_chief());
        assert!(cluster("evaluator", 7).is_evaluator());
    }

    #[test]
    fn without_a_chief_the_first_worker_leads() {
        let worker = |index: usize| {
            let text = format!(
                r#"{{"cluster": {{"worker": ["a:1", "b:1"]}}, "task": {{"type": "worker", "index": {index}}}}}"#
            );
            Cluster::parse(&text).unwrap()
        };
        assert!(worker(0).is_chief() && !worker(1).is_chief());
        assert_eq!((worker(1).global_id(), worker(1).n_workers()), (Some(1), 2));
        assert_eq!(worker(0).to_string(), "task = worker 0 (chief), n_workers = 2, n_ps = 0");
    }

    #[test]
    fn damaged_texts_are_clusters_or_errors() {
        let seeds: Vec<_> =
            cases("clusters").iter().map(|case| case.json("tf_config").to_string().into_bytes()).collect();
        let mut dice = Dice::new(5);
        let mut n_clusters = 0;
        for _ in 0..20_000 {
            let text = damaged(&seeds, &mut dice);
            if let Ok(cluster) = Cluster::parse(&String::from_utf8_lossy(&text)) {
                described(&cluster);
                n_clusters += 1;
            }
        }
        assert!(n_clusters > 100, "only {n_clusters} texts came through");
    }

    #[test]
    fn errors_say_how_to_fix_it() {
        let cluster = r#""cluster": {"chief": ["a:1"], "worker": {"0": "b:1", "4": "c:1"}}"#;
        for (text, expected) in [
            ("{".to_string(), "unset it"),
            (format!(r#"{{{cluster}, "task": {{"type": "wroker", "index": 0}}}}"#), "did you mean `worker`?"),
            (format!(r#"{{{cluster}, "task": {{"type": "worker", "index": 2}}}}"#), "use one of its tasks: 0, 4"),
            (format!(r#"{{{cluster}, "task": {{"type": "worker", "index": -1}}}}"#), "an integer from 0, found `-1`"),
            (format!("{{{cluster}}}"), r#"write "task": {"type": "worker", "index": 0}"#),
            (r#"{"cluster": {"ps": ["a:1"]}}"#.to_string(), "neither a `chief` nor a `worker`"),
            (r#"{"cluster": {"worker": {"99999999999": "a:1"}}}"#.to_string(), "expected an index from 0"),
            (r#"{"task": {"index": 1}}"#.to_string(), "or unset TF_CONFIG"),
        ] {
            let error = Cluster::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
