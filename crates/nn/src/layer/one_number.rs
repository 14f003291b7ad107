//! A macro for layers without weights whose only option is one number.

/// Defines such a layer. The arguments are its kind, its class in Keras, the keys of the number and
/// of what a document may have besides it, the name and description of the number, its valid range
/// (as code and in words), and the function `fn(&LayerCall<'_>, f64) -> Tensor` that computes the
/// result.
macro_rules! one_number_layer {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, [$($key:literal),+], [$($ignored:literal),*], $option:ident: $what:literal, $range:expr, $expected:literal, $make:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            $option: f64,
            config: super::Config,
        }

        impl $layer {
            #[doc = $what]
            pub fn new($option: f64) -> $layer {
                $layer { $option, config: super::Config::default() }
            }
        }

        super::config_setters!($layer);

        impl crate::config::Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(0.0)
            }

            fn fields(&self, fields: &mut crate::config::Fields<'_>) -> $layer {
                $(fields.ignored($ignored);)*
                // Keras 3 writes it for dropouts.
                fields.only_read("noise_shape", &[crate::config::Json::Null]);
                $layer { $option: fields.renamed(&[$($key),+], &self.$option), config: self.config.fields(fields) }
            }
        }

        impl super::Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &super::Config {
                &self.config
            }

            fn supports_masking(&self) -> bool {
                true
            }

            fn to_json(&self) -> estimand_tensor::Result<crate::config::Json> {
                crate::config::write(super::MODULE, self)
            }

            fn call(&self, call: &super::LayerCall<'_>) -> estimand_graph::Tensor {
                if !$range.contains(&self.$option) {
                    let option = concat!("the ", stringify!($option), " of ", $kind);
                    let text = format!(concat!("{} is {}; expected ", $expected), option, self.$option);
                    return call.input().graph().error(estimand_tensor::Error::config(text));
                }
                $make(call, self.$option)
            }
        }
    };
}
pub(super) use one_number_layer;
