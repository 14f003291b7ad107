//! `model_from_json`: any text gives a model or an error, and no size in it takes memory.

use estimand::keras::model_from_json;
use estimand::nn::config::CustomObjects;

/// A model with this many weights or fewer gets its initial values.
const FEW: usize = 1 << 12;

/// Reads the text as the configuration of a model, and writes it again.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(model) = model_from_json(text, &CustomObjects::new()) else { return };
    let _ = model.summary();
    if let Ok(written) = model.to_json() {
        let _ = model_from_json(&written.to_string(), &CustomObjects::new());
    }
    if model.count_params() <= FEW {
        let _ = model.get_weights();
    }
}
