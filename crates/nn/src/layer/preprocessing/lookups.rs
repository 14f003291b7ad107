//! `StringLookup` and `IntegerLookup`: the ids of terms in a vocabulary.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::lookup::Lookup;
use super::output_mode::OutputMode;
use super::term::Term;
use crate::column::TermList;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

const MODES: [OutputMode; 5] =
    [OutputMode::Int, OutputMode::OneHot, OutputMode::MultiHot, OutputMode::Count, OutputMode::TfIdf];

macro_rules! lookup_layer {
    ($(#[$doc:meta])* $layer:ident, $kind:literal, $class:literal, $token:ty, $oov:expr, $oov_text:literal, $own_fields:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $layer {
            lookup: Lookup,
            invert: bool,
            config: Config,
        }

        impl $layer {
            /// A layer without a vocabulary: `vocabulary` or `estimand::Adapt` sets it.
            pub fn new() -> $layer {
                $layer { lookup: Lookup::new(Term::from($oov)), invert: false, config: Config::default() }
            }

            /// The terms, in the order of their ids. The mask and the unknown terms may come first,
            /// as in Keras' `get_vocabulary`.
            pub fn vocabulary(mut self, terms: impl Into<TermList>) -> $layer {
                self.lookup.set_vocabulary(Some(terms.into()));
                self
            }

            /// The most ids, those of the mask and of unknown terms included. By default as many as
            /// there are terms.
            pub fn max_tokens(mut self, max_tokens: usize) -> $layer {
                self.lookup.max_tokens = Some(max_tokens);
                self
            }

            /// The number of ids for unknown terms. With several, the hash of a string or the
            /// remainder of an integer decides. With 0, an unknown term fails the run. By default
            /// 1.
            pub fn num_oov_indices(mut self, n: usize) -> $layer {
                self.lookup.num_oov_indices = n;
                self
            }

            /// The term that stands for no value: it has the id 0, and no place in vectors. By
            /// default there is none.
            pub fn mask_token(mut self, token: $token) -> $layer {
                self.lookup.mask_token = Some(Term::from(token));
                self
            }

            #[doc = concat!("The term that `invert` returns for unknown ids. By default ", $oov_text, ".")]
            pub fn oov_token(mut self, token: $token) -> $layer {
                self.lookup.oov_token = Term::from(token);
                self
            }

            /// Returns terms for ids. By default ids for terms.
            pub fn invert(mut self, invert: bool) -> $layer {
                self.invert = invert;
                self
            }

            /// The form of the result. By default ids.
            pub fn output_mode(mut self, mode: OutputMode) -> $layer {
                self.lookup.output_mode = mode;
                self
            }

            /// Whether vectors have `max_tokens` numbers, also with fewer terms. By default not.
            pub fn pad_to_max_tokens(mut self, pad: bool) -> $layer {
                self.lookup.pad_to_max_tokens = pad;
                self
            }

            /// The weight of each term, for [`OutputMode::TfIdf`].
            pub fn idf_weights(mut self, weights: impl Into<Vec<f32>>) -> $layer {
                self.lookup.idf_weights = Some(weights.into());
                self
            }

            /// The terms, without the mask and unknown terms.
            pub fn terms(&self) -> Result<TermList> {
                self.lookup.terms()
            }

            /// The number of ids.
            pub fn vocabulary_size(&self) -> Result<usize> {
                self.lookup.terms().map(|terms| terms.len() + self.lookup.token_start())
            }

            /// The most terms that `adapt` may find.
            pub fn max_terms(&self) -> Option<usize> {
                self.lookup.max_terms()
            }

            /// The mode, which decides whether `adapt` computes weights.
            pub fn mode(&self) -> OutputMode {
                self.lookup.output_mode
            }

            /// Whether a list of terms has the mask or the unknown term at a place.
            pub fn is_special(&self, terms: &TermList, place: usize) -> bool {
                let Lookup { mask_token, oov_token, .. } = &self.lookup;
                mask_token.iter().chain([oov_token]).any(|token| token.is_at(terms, place))
            }
        }

        impl Default for $layer {
            fn default() -> $layer {
                $layer::new()
            }
        }

        config_setters!($layer);

        impl Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new()
            }

            fn fields(&self, fields: &mut Fields<'_>) -> $layer {
                $own_fields(fields);
                let lookup = self.lookup.fields(fields, &MODES).token_fields(fields);
                $layer {
                    lookup,
                    invert: fields.value("invert", &self.invert),
                    config: self.config.fields_of(fields, self.lookup.output_mode.dtype(), &["int64", "float32"]),
                }
            }
        }

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn to_json(&self) -> Result<Json> {
                config::write(MODULE, self)
            }

            fn build(&self, build: &mut Build<'_>) {
                if let Err(error) = self.lookup.check() {
                    return build.refuse(error);
                }
                let dtype = build.input().dtype();
                let is_of_ids = self.invert || matches!(self.lookup.oov_token, Term::Integer(_));
                let fits = match is_of_ids {
                    true => matches!(dtype, DType::I32 | DType::I64),
                    false => dtype == DType::Str,
                };
                if !fits {
                    let wanted = if is_of_ids { DType::I64 } else { DType::Str };
                    let text = format!("the input is {}; expected {wanted}", build.input().describe());
                    build.refuse(Error::dtype(Some(wanted), dtype, text));
                }
                if self.invert && !self.lookup.output_mode.is_int() {
                    let mode = self.lookup.output_mode;
                    build.refuse(Error::config(format!("invert is set with the output mode {mode:?}; expected Int")));
                }
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                if self.invert {
                    return self.lookup.terms_of(call.input());
                }
                let ids = self.lookup.ids(call.input(), $kind);
                self.lookup.output_mode.encode(&ids, self.lookup.depth(), self.lookup.weights().as_deref())
            }
        }
    };
}

fn text_fields(fields: &mut Fields<'_>) {
    fields.only("encoding", "utf-8");
}

fn integer_fields(fields: &mut Fields<'_>) {
    fields.only("vocabulary_dtype", "int64");
}

lookup_layer!(
    /// Maps strings to ids: those of unknown strings first, then those of the vocabulary.
    ///
    /// ```
    /// use estimand_engine::Eval;
    /// use estimand_graph::Graph;
    /// use estimand_nn::{Layer, StringLookup};
    /// use estimand_tensor::Array;
    /// let g = Graph::new();
    /// let words = g.constant(Array::from_strings([3], ["c", "z", "a"])?);
    /// let lookup = StringLookup::new().vocabulary(["a", "b", "c"]);
    /// assert_eq!(lookup.apply(&words).eval()?.as_slice::<i64>()?, [3, 0, 1]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    StringLookup,
    "string_lookup",
    "StringLookup",
    &str,
    "[UNK]",
    "`[UNK]`",
    text_fields
);
lookup_layer!(
    /// Maps integers to ids: those of unknown integers first, then those of the vocabulary.
    IntegerLookup,
    "integer_lookup",
    "IntegerLookup",
    i64,
    -1,
    "-1",
    integer_fields
);
