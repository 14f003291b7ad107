//! A macro for layers that add or remove borders of sequences and images.

/// Defines a layer with a [`Border`](crate::Border) on its inner axes. The function
/// `fn(&Tensor, Border<N>) -> Tensor` computes its result.
macro_rules! bordered_layer {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $axes:literal, $form:literal, $new:literal, $make:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            border: crate::Border<$axes>,
            config: super::Config,
        }

        impl $layer {
            #[doc = $new]
            pub fn new(border: impl Into<crate::Border<$axes>>) -> $layer {
                $layer { border: border.into(), config: super::Config::default() }
            }
        }

        super::config_setters!($layer);

        impl super::Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &super::Config {
                &self.config
            }

            fn call(&self, call: &super::LayerCall<'_>) -> estimand_graph::Tensor {
                match call.expect_rank($axes + 2..=$axes + 2, $form) {
                    Some(error) => error,
                    None => $make(call.input(), self.border),
                }
            }
        }
    };
}
pub(super) use bordered_layer;
