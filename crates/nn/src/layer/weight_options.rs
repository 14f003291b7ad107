//! What a layer may say about one of its weights: how it begins and what it costs.

use estimand_graph::Init;

use super::Build;
use crate::regularizer::Regularizer;

/// The options of one weight; what is not said is the layer's own choice.
#[derive(Clone, Debug, Default)]
pub(super) struct WeightOptions {
    pub init: Option<Init>,
    pub regularizer: Option<Regularizer>,
}

impl WeightOptions {
    /// These, and the options of the scopes around the layer where these say nothing.
    pub fn or(&self, init: Option<Init>, regularizer: Option<Regularizer>) -> WeightOptions {
        WeightOptions { init: self.init.clone().or(init), regularizer: self.regularizer.or(regularizer) }
    }

    /// Makes the variable, which begins like this unless the options say otherwise.
    #[track_caller]
    pub fn build(&self, build: &mut Build<'_>, name: &'static str, dims: &[usize], init: Init) {
        build.weight(name, dims, self.init.clone().unwrap_or(init), self.regularizer);
    }
}

/// The setters of one weight's options: `weight_setters!(PRelu, alpha, "slopes", "0": alpha_init, alpha_regularizer)` for a layer with
/// a field `alpha: WeightOptions`.
macro_rules! weight_setters {
    ($layer:ty, $($field:ident).+, $what:literal, $default:literal: $init:ident, $regularizer:ident) => {
        impl $layer {
            #[doc = concat!("How the ", $what, " begins. By default ", $default, ".")]
            pub fn $init(mut self, init: estimand_graph::Init) -> Self {
                self.$($field).+.init = Some(init);
                self
            }

            #[doc = concat!("What the ", $what, " costs. By default nothing.")]
            pub fn $regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.$($field).+.regularizer = Some(regularizer);
                self
            }
        }
    };
}
pub(super) use weight_setters;
