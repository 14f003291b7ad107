//! The options of one weight of a layer: initializer, regularizer and constraint.

use std::sync::Arc;

use estimand_graph::Initializer;
use estimand_update::Constraint;

use super::Build;
use crate::regularizer::Regularizer;

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
