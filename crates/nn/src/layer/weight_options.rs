//! The options of one weight of a layer: initializer, regularizer and constraint.

use std::sync::Arc;

use estimand_graph::Initializer;
use estimand_update::Constraint;

use super::Build;
use crate::config::Fields;
use crate::regularizer::Regularizer;

/// The keys of the options of a kernel and of a bias.
pub(super) const KERNEL: [&str; 3] = ["kernel_initializer", "kernel_regularizer", "kernel_constraint"];
pub(super) const BIAS: [&str; 3] = ["bias_initializer", "bias_regularizer", "bias_constraint"];

/// The keys of the two kernels of a separable convolution.
pub(super) const DEPTHWISE: [&str; 3] = ["depthwise_initializer", "depthwise_regularizer", "depthwise_constraint"];
pub(super) const POINTWISE: [&str; 3] = ["pointwise_initializer", "pointwise_regularizer", "pointwise_constraint"];

/// The keys of the factor and the offset of a normalization.
pub(super) const GAMMA: [&str; 3] = ["gamma_initializer", "gamma_regularizer", "gamma_constraint"];
pub(super) const BETA: [&str; 3] = ["beta_initializer", "beta_regularizer", "beta_constraint"];

/// The options of one weight. The layer decides about options that are not set.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightOptions {
    pub initializer: Option<Initializer>,
    pub regularizer: Option<Regularizer>,
    pub constraint: Option<Arc<dyn Constraint>>,
}

impl WeightOptions {
    /// Fills options that are not set from those of the enclosing scopes.
    pub fn or(&self, initializer: Option<Initializer>, regularizer: Option<Regularizer>) -> WeightOptions {
        WeightOptions {
            initializer: self.initializer.clone().or(initializer),
            regularizer: self.regularizer.or(regularizer),
            constraint: self.constraint.clone(),
        }
    }

    /// Writes or reads the options, under the keys of initializer, regularizer and constraint.
    /// `default` is the initializer that holds if there is none.
    pub fn fields(&self, fields: &mut Fields<'_>, keys: [&'static str; 3], default: Initializer) -> WeightOptions {
        WeightOptions {
            initializer: fields.or(keys[0], &self.initializer, default),
            regularizer: fields.value(keys[1], &self.regularizer),
            constraint: fields.value(keys[2], &self.constraint),
        }
    }

    /// Makes the variable. `initializer` applies unless the options set another one.
    #[track_caller]
    pub fn build(&self, build: &mut Build<'_>, name: &'static str, dims: &[usize], initializer: Initializer) {
        build.weight(name, dims, self.initializer.clone().unwrap_or(initializer), self.regularizer);
        if let Some(constraint) = &self.constraint {
            build.constrain(name, constraint.clone());
        }
    }
}

/// The setters of one weight's options, for a layer with a field `alpha: WeightOptions`:
/// `weight_setters!(PRelu, alpha, "list of slopes", "at 0": alpha_initializer, alpha_regularizer,
/// alpha_constraint)`.
macro_rules! weight_setters {
    ($layer:ty, $($field:ident).+, $what:literal, $default:literal: $initializer:ident, $regularizer:ident, $constraint:ident) => {
        impl $layer {
            #[doc = concat!("The initializer of the ", $what, ". By default it begins ", $default, ".")]
            pub fn $initializer(mut self, initializer: estimand_graph::Initializer) -> Self {
                self.$($field).+.initializer = Some(initializer);
                self
            }

            #[doc = concat!("The regularizer of the ", $what, ". By default none.")]
            pub fn $regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.$($field).+.regularizer = Some(regularizer);
                self
            }

            #[doc = concat!("The constraint on the ", $what, " after every update. By default none.")]
            pub fn $constraint(mut self, constraint: impl estimand_update::Constraint + 'static) -> Self {
                self.$($field).+.constraint = Some(std::sync::Arc::new(constraint));
                self
            }
        }
    };
}
pub(super) use weight_setters;
