//! The tests of layers, merges, losses and metrics, one file for each topic, in one binary.

mod all_options;
mod column_cases;
mod column_errors;
mod column_oracle;
mod column_programs;
mod constraints;
mod contract;
mod errors;
mod fixture;
mod json;
mod keras_configs;
mod keras_layers;
mod keras_objects;
mod layers;
mod loss_json;
mod losses;
mod merges;
mod metric_json;
mod metrics;
mod object_options;
mod optimizer_json;
mod programs;
mod random_layers;
mod recurrent;
mod scopes;
mod tensorflow;
