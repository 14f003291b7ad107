//! `TextVectorization`: texts as the ids of their tokens.

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{Array, DType, Error, Result};

use super::lookup::Lookup;
use super::output_mode::OutputMode;
use super::tokens::{Split, Standardize, Tokens, places};
use crate::column::TermList;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Splits texts, `[batch]` or `[batch, 1]`, into tokens and looks up their ids. The id 0 fills
/// short rows, 1 stands for unknown tokens.
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, TextVectorization};
/// use estimand_tensor::Array;
/// let g = Graph::new();
/// let text = g.constant(Array::from_strings([2], ["The cat.", "A dog and the cat"])?);
/// let layer = TextVectorization::new().vocabulary(["the", "cat", "dog"]).output_sequence_length(4);
/// assert_eq!(layer.apply(&text).eval()?.as_slice::<i64>()?, [2, 3, 0, 0, 1, 4, 1, 2]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TextVectorization {
    tokens: Tokens,
    lookup: Lookup,
    output_sequence_length: Option<usize>,
    config: Config,
}

impl TextVectorization {
    /// A layer without a vocabulary: `vocabulary` or `estimand::Adapt` sets it.
    pub fn new() -> TextVectorization {
        let mut lookup = Lookup::new("[UNK]".into());
        lookup.mask_token = Some("".into());
        let tokens = Tokens::default();
        TextVectorization { tokens, lookup, output_sequence_length: None, config: Config::default() }
    }

    /// The terms, in the order of their ids.
    pub fn vocabulary(mut self, terms: impl Into<TermList>) -> TextVectorization {
        self.lookup.set_vocabulary(Some(terms.into()));
        self
    }

    /// The most ids, those of padding and unknown tokens included. By default as many as there are
    /// terms.
    pub fn max_tokens(mut self, max_tokens: usize) -> TextVectorization {
        self.lookup.max_tokens = Some(max_tokens);
        self
    }

    /// What is done before a text is split. By default letters become small and punctuation is
    /// removed.
    pub fn standardize(mut self, standardize: Standardize) -> TextVectorization {
        self.tokens.standardize = standardize;
        self
    }

    /// Where texts are split. By default at white space.
    pub fn split(mut self, split: Split) -> TextVectorization {
        self.tokens.split = split;
        self
    }

    /// Adds sequences of up to `n` tokens, joined by blanks, to the tokens. By default there are
    /// none.
    pub fn ngrams(mut self, n: usize) -> TextVectorization {
        self.tokens.ngrams = Some(n);
        self
    }

    /// The form of the result: ids, or vectors. By default ids.
    pub fn output_mode(mut self, mode: OutputMode) -> TextVectorization {
        self.lookup.output_mode = mode;
        self
    }

    /// The length that rows are cut and filled to. By default the longest row of a batch decides.
    pub fn output_sequence_length(mut self, length: usize) -> TextVectorization {
        self.output_sequence_length = Some(length);
        self
    }

    /// Whether vectors have `max_tokens` numbers, also with fewer terms. By default not.
    pub fn pad_to_max_tokens(mut self, pad: bool) -> TextVectorization {
        self.lookup.pad_to_max_tokens = pad;
        self
    }

    /// The weight of each term, for [`OutputMode::TfIdf`].
    pub fn idf_weights(mut self, weights: impl Into<Vec<f32>>) -> TextVectorization {
        self.lookup.idf_weights = Some(weights.into());
        self
    }

    /// The terms, without padding and unknown tokens.
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

    /// The tokens of texts, which `adapt` counts.
    #[track_caller]
    pub fn tokens_of(&self, text: &Tensor) -> RaggedTensor {
        self.tokens.of(text)
    }

    /// Ids in rows of one length.
    #[track_caller]
    fn padded(&self, ids: &RaggedTensor) -> Tensor {
        let Some(length) = self.output_sequence_length else {
            return ids.to_steps(&ids.row_lengths().max(), &[], 0i64);
        };
        let kept = ids.filter(&places(ids).less(length as i64));
        kept.to_steps(&ids.values.graph().constant(Array::scalar(length as i64)), &[], 0i64)
    }
}

impl Default for TextVectorization {
    fn default() -> TextVectorization {
        TextVectorization::new()
    }
}

config_setters!(TextVectorization);

const MODES: [OutputMode; 4] = [OutputMode::Int, OutputMode::MultiHot, OutputMode::Count, OutputMode::TfIdf];

impl Described for TextVectorization {
    const CLASS: &'static str = "TextVectorization";

    fn template() -> TextVectorization {
        TextVectorization::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> TextVectorization {
        fields.only("ragged", false);
        fields.only("encoding", "utf-8");
        TextVectorization {
            tokens: self.tokens.fields(fields),
            lookup: self.lookup.fields(fields, &MODES),
            output_sequence_length: fields.value("output_sequence_length", &self.output_sequence_length),
            // Keras 3 writes the dtype of its other layers here.
            config: self.config.fields_of(fields, "string", &["string", "float32"]),
        }
    }
}

impl Layer for TextVectorization {
    fn kind(&self) -> &'static str {
        "text_vectorization"
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
        let mode = self.lookup.output_mode;
        let text = match (build.input().dtype(), self.tokens.ngrams) {
            (DType::Str, Some(0)) => "the longest n-gram has 0 tokens; expected at least 1".to_string(),
            (DType::Str, _) if !MODES.contains(&mode) => format!("the output mode is {mode:?}; expected another"),
            (DType::Str, _) => return,
            (other, _) => format!("the input holds {other}; expected strings"),
        };
        build.refuse(Error::config(text));
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let tokens = self.tokens.of(call.input());
        if tokens.values.is_poisoned() {
            return tokens.values;
        }
        let ids = tokens.with_values(self.lookup.ids(&tokens.values, self.kind()));
        match self.lookup.output_mode {
            OutputMode::Int => self.padded(&ids),
            mode => mode.vectors(&ids, None, self.lookup.depth(), self.lookup.weights().as_deref()),
        }
    }
}
