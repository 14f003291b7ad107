//! `TF_CONFIG` and hyper-parameters: any text gives a cluster, parameters, or an error.

use estimand::{Cluster, HParams};

/// Parses the text as a cluster, as JSON of parameters, and as overrides of parameters.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(cluster) = Cluster::parse(text) {
        assert!(cluster.is_evaluator() || cluster.task_index() < usize::MAX);
        assert!(cluster.jobs().count() <= text.len());
    }
    if let Ok(params) = HParams::from_json(text)
        && let Ok(written) = params.to_json()
    {
        let again = HParams::from_json(&written).expect("what was written can be read");
        assert_eq!(again.iter().count(), params.iter().count());
    }
    let mut params = HParams::new().set("a", 1i64).set("b", 0.5).set("c", "x").set("d", true);
    let _ = params.parse(text);
    let _ = params.parse_json(text);
    assert_eq!(params.iter().count(), 4, "parsing adds none");
}
