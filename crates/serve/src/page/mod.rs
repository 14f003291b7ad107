//! The page at `/`: models, versions, signatures, latencies, drift, and a form to try a prediction.
//!
//! `page.html` is the whole page: it loads nothing from elsewhere. It asks for [`data`] each
//! second.

use std::sync::atomic::Ordering;

use estimand_tensor::TensorSpec;
use serde_json::{Value as Json, json};

use crate::core::Core;
use crate::drift::ColumnCounts;
use crate::kserve;
use crate::model::{Loaded, Model, sizes};

/// The page.
pub(crate) const HTML: &str = include_str!("page.html");
/// The path of the data that the page shows.
pub(crate) const DATA: &str = "/page/data";

/// What the page shows, as JSON.
pub(crate) fn data(core: &Core) -> Vec<u8> {
    let models: Vec<Json> = core.models.all().iter().map(|(name, model)| of_model(name, model)).collect();
    let data = json!({
        "server": kserve::SERVER,
        "version": env!("CARGO_PKG_VERSION"),
        "is_ready": core.is_ready(),
        "models": models,
    });
    data.to_string().into_bytes()
}

fn of_model(name: &str, model: &Model) -> Json {
    let versions: Vec<Json> = model
        .statuses()
        .into_iter()
        .map(|one| {
            let error = one.error.map(|error| error.message);
            json!({ "version": one.version.to_string(), "state": one.state.name(), "error": error })
        })
        .collect();
    let served = model.served();
    let newest = served.values().next_back();
    json!({
        "name": name,
        "versions": versions,
        "served": newest.map(|loaded| loaded.version.to_string()),
        "signatures": newest.map_or_else(Vec::new, |loaded| signatures(loaded)),
        "latencies": model.metrics.latencies(),
        "columns": newest.map_or_else(Vec::new, |loaded| columns(loaded)),
    })
}

fn signatures(loaded: &Loaded) -> Vec<Json> {
    let spec = |spec: &TensorSpec| format!("{}{}", spec.dtype, sizes(spec.shape.dims()));
    let one = |signature: &crate::model::Signature| {
        let inputs = signature.inputs.iter().zip(&signature.specs);
        let inputs = inputs.map(|(input, of)| {
            json!({
                "name": input.name,
                "type": spec(of),
                "is_text": of.dtype == estimand_tensor::DType::Str,
                "example": input.example,
                "has_default": input.default.is_some(),
            })
        });
        let outputs = signature.outputs.iter().map(|(name, of)| json!({ "name": name, "type": spec(of) }));
        json!({
            "name": signature.name,
            "inputs": inputs.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
            "is_explained": !signature.columns.is_empty(),
        })
    };
    loaded.runnable().map(one).collect()
}

fn columns(loaded: &Loaded) -> Vec<Json> {
    let one = |(name, counts): (&String, &std::sync::Arc<ColumnCounts>)| {
        let training = counts.training.as_ref();
        let numbers = training.and_then(|training| training.numbers.as_ref());
        json!({
            "name": name,
            "values": counts.n_values.load(Ordering::Relaxed),
            "missing": counts.n_missing.load(Ordering::Relaxed),
            "unknown": counts.unknown(),
            "out_of_range": counts.out_of_range(),
            "mean": counts.mean(),
            "drift": counts.drift(),
            "training_missing": training.map(|training| training.missing_ratio),
            "training_range": numbers.map(|numbers| [numbers.min, numbers.max]),
            "training_mean": numbers.map(|numbers| numbers.mean),
        })
    };
    loaded.drift.columns.iter().map(one).collect()
}
