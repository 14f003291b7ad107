//! A macro for layers that add or remove borders of sequences and images.

/// Defines a layer with a [`Border`](crate::Border) on its inner axes. The function
/// `fn(&Tensor, Border<N>) -> Tensor` computes its result.
macro_rules! bordered_layer {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $key:literal, $axes:literal, $form:literal, $new:literal, $make:ident) => {
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

        impl crate::config::Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(1)
            }

            fn fields(&self, fields: &mut crate::config::Fields<'_>) -> $layer {
                if $axes > 1 {
                    fields.only("data_format", "channels_last");
                } else {
                    fields.only_read("data_format", &["channels_last".into()]);
                }
                $layer { border: fields.value($key, &self.border), config: self.config.fields(fields) }
            }
        }

        impl super::Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &super::Config {
                &self.config
            }

            fn to_json(&self) -> estimand_tensor::Result<crate::config::Json> {
                crate::config::write(super::MODULE, self)
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
