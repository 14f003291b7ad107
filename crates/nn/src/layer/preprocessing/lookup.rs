//! What `StringLookup`, `IntegerLookup` and `TextVectorization` share: a vocabulary, ids for
//! unknown terms, and the mask.
//!
//! Ids begin with the mask (only in the mode `Int`, if there is a mask), then come those of unknown
//! terms, then the vocabulary.

use std::sync::{Arc, OnceLock};

use estimand_graph::{LookupTable, Tensor};
use estimand_tensor::{Array, DType, Error, Result, Strings};

use super::output_mode::OutputMode;
use super::term::Term;
use crate::column::TermList;
use crate::config::{Fields, Json, Single};

#[derive(Clone, Debug)]
pub(super) struct Lookup {
    vocabulary: Option<Arc<TermList>>,
    /// The table of the terms, made at the first use. All clones share it, so that a graph has one.
    table: Arc<OnceLock<Result<LookupTable>>>,
    pub max_tokens: Option<usize>,
    pub num_oov_indices: usize,
    pub mask_token: Option<Term>,
    pub oov_token: Term,
    pub output_mode: OutputMode,
    pub pad_to_max_tokens: bool,
    pub idf_weights: Option<Vec<f32>>,
}

/// The largest number of ids whose weights are part of a model.
const MAX_WEIGHTS: usize = 1 << 24;

impl Lookup {
    pub fn new(oov_token: Term) -> Lookup {
        Lookup {
            vocabulary: None,
            table: Arc::default(),
            max_tokens: None,
            num_oov_indices: 1,
            mask_token: None,
            oov_token,
            output_mode: OutputMode::Int,
            pad_to_max_tokens: false,
            idf_weights: None,
        }
    }

    pub fn set_vocabulary(&mut self, terms: Option<TermList>) {
        self.vocabulary = terms.map(Arc::new);
        self.table = Arc::default();
    }

    /// Writes or reads the fields that all three layers have.
    pub fn fields(&self, fields: &mut Fields<'_>, modes: &[OutputMode]) -> Lookup {
        for key in ["vocabulary_size", "has_input_vocabulary"] {
            fields.ignored(key);
        }
        let own = self.idf_weights.as_ref().map(|all| all.iter().copied().map(Single).collect::<Vec<_>>());
        let mut lookup = Lookup {
            max_tokens: fields.value("max_tokens", &self.max_tokens),
            output_mode: self.output_mode.field(fields, modes),
            pad_to_max_tokens: fields.value("pad_to_max_tokens", &self.pad_to_max_tokens),
            idf_weights: fields.value("idf_weights", &own).map(|all| all.into_iter().map(|w| w.0).collect()),
            ..self.clone()
        };
        lookup.set_vocabulary(fields.value("vocabulary", &self.vocabulary.as_deref().cloned()));
        lookup
    }

    /// The fields of the tokens, which `TextVectorization` does not have.
    pub fn token_fields(self, fields: &mut Fields<'_>) -> Lookup {
        // Newer releases of Keras 3 have other ways to spread unknown terms over their ids.
        fields.only_read("oov_method", &["floormod".into()]);
        fields.only_read("salt", &[Json::Null]);
        let num_oov_indices = fields.value("num_oov_indices", &self.num_oov_indices);
        let mask_token = fields.value("mask_token", &self.mask_token);
        let oov_token = fields.value("oov_token", &self.oov_token);
        Lookup { num_oov_indices, mask_token, oov_token, table: Arc::default(), ..self }
    }

    /// The id of the first unknown term.
    fn oov_start(&self) -> usize {
        usize::from(self.mask_token.is_some() && self.output_mode.is_int())
    }

    /// The id of the first term of the vocabulary.
    pub fn token_start(&self) -> usize {
        self.oov_start() + self.num_oov_indices
    }

    /// The most terms that a vocabulary may have.
    pub fn max_terms(&self) -> Option<usize> {
        self.max_tokens.map(|max| max.saturating_sub(self.token_start()))
    }

    /// Keras' vocabularies may begin with the mask and the unknown terms, which are left out here.
    fn n_special(&self, terms: &TermList) -> usize {
        let mask = self.mask_token.iter().filter(|_| self.oov_start() == 1);
        let special: Vec<&Term> = mask.chain(std::iter::repeat_n(&self.oov_token, self.num_oov_indices)).collect();
        let found = special.iter().enumerate().all(|(i, term)| term.is_at(terms, i));
        if found { special.len() } else { 0 }
    }

    /// The terms of the vocabulary, without the mask and the unknown terms.
    pub fn terms(&self) -> Result<TermList> {
        let Some(given) = &self.vocabulary else {
            return Err(Error::config("the vocabulary is not set")
                .help("call adapt with the training data, or .vocabulary([..])"));
        };
        let terms = match (&**given, self.n_special(given)) {
            (TermList::Text(all), n) => TermList::Text(all.iter().skip(n).collect::<Strings>()),
            (TermList::Integers(all), n) => TermList::Integers(all[n..].to_vec()),
        };
        let n = terms.len();
        if n == 0 {
            return Err(Error::config("the vocabulary has no terms; expected at least one"));
        }
        if let Some(mask) = self.mask_token.as_ref().filter(|mask| (0..n).any(|i| mask.is_at(&terms, i))) {
            return Err(Error::config(format!("the mask token {mask:?} is a term of the vocabulary"))
                .help("leave it out of the vocabulary, or choose another mask token"));
        }
        match self.max_terms().filter(|max| n > *max) {
            Some(max) => Err(Error::config(format!("the vocabulary has {n} terms; max_tokens leaves room for {max}"))
                .help("max_tokens counts the mask and the ids of unknown terms too")),
            None => Ok(terms),
        }
    }

    fn table(&self) -> Result<LookupTable> {
        let make = || match self.terms()? {
            TermList::Text(terms) => LookupTable::from_list(terms.iter()),
            TermList::Integers(terms) => LookupTable::from_ints(terms),
        };
        self.table.get_or_init(make).clone()
    }

    /// Checks the settings.
    pub fn check(&self) -> Result<()> {
        let n = self.table()?.vocabulary().len();
        if self.pad_to_max_tokens && self.max_tokens.is_none() {
            return Err(Error::config("pad_to_max_tokens is set, and max_tokens is not").help("set max_tokens"));
        }
        if self.output_mode == OutputMode::TfIdf && self.depth() > MAX_WEIGHTS {
            let n = self.depth();
            return Err(Error::config(format!(
                "there are {n} ids, each with a weight; expected at most {MAX_WEIGHTS}"
            ))
            .help("lower max_tokens or num_oov_indices, or leave out pad_to_max_tokens"));
        }
        match (&self.idf_weights, self.output_mode) {
            (Some(weights), OutputMode::TfIdf) => {
                let given = self.vocabulary.as_ref().map_or(0, |terms| terms.len());
                match weights.len() == n || weights.len() == given {
                    true => Ok(()),
                    false => Err(Error::config(format!(
                        "there are {} idf_weights for {n} terms; expected one for each",
                        weights.len()
                    ))),
                }
            }
            (None, OutputMode::TfIdf) => Err(Error::config("the weights of the terms are not set")
                .help("call adapt with the training data, or .idf_weights([..])")),
            (Some(_), mode) => Err(Error::config(format!("idf_weights are set, and the output mode is {mode:?}"))
                .help("set output_mode(OutputMode::TfIdf)")),
            (None, _) => Ok(()),
        }
    }

    /// The number of ids, which is the size of vectors.
    pub fn depth(&self) -> usize {
        let n = self.table().map_or(0, |table| table.vocabulary().len()) + self.token_start();
        self.max_tokens.filter(|_| self.pad_to_max_tokens).unwrap_or(n)
    }

    /// The weights of all ids, unless `check` refuses their number. TF: unknown terms have the mean
    /// weight.
    pub fn weights(&self) -> Option<Vec<f32>> {
        let own = self.idf_weights.as_ref().filter(|_| self.depth() <= MAX_WEIGHTS)?;
        let n = self.table().ok()?.vocabulary().len();
        if own.len() > n {
            return Some(own.clone());
        }
        let mean = own.iter().map(|&w| f64::from(w)).sum::<f64>() / own.len().max(1) as f64;
        Some(std::iter::repeat_n(mean as f32, self.token_start()).chain(own.iter().copied()).collect())
    }

    /// The id of each value. Outside of the mode `Int`, masked values have -1.
    #[track_caller]
    pub fn ids(&self, x: &Tensor, layer: &str) -> Tensor {
        let table = match self.table() {
            Ok(table) => table,
            Err(error) => return x.graph().error(error),
        };
        let what = format!("a value of {layer}");
        let (start, oov) = (self.token_start() as i64, self.oov_start() as i64);
        let Some(mask) = &self.mask_token else {
            return match self.num_oov_indices {
                0 => table.lookup_known(x, &what),
                _ => self.found(&table.lookup(x), x, start, oov),
            };
        };
        let masked = if self.output_mode.is_int() { 0i64 } else { -1 };
        let found = self.found(&table.lookup(x), x, start, oov);
        let ids = mask.is(x).select(&(found.zeros_like() + masked), found);
        match self.num_oov_indices {
            0 => ids.ensure_between_or_help(-1.0, f64::MAX, &format!("the id of {what}"), "set num_oov_indices(1)"),
            _ => ids,
        }
    }

    /// Ids of terms after those of unknown ones.
    #[track_caller]
    fn found(&self, places: &Tensor, x: &Tensor, start: i64, oov: i64) -> Tensor {
        let unknown = match self.num_oov_indices {
            // No id: the check of `ids` refuses it.
            0 => places.zeros_like() + -2i64,
            1 => places.zeros_like() + oov,
            n if x.dtype() == DType::Str => x.hash_bucket(n as i64) + oov,
            n => x.cast(DType::I64).floor_mod(n as i64) + oov,
        };
        places.greater_equal(0i64).select(&(places + start), unknown)
    }

    /// The term of each id.
    #[track_caller]
    pub fn terms_of(&self, ids: &Tensor) -> Tensor {
        let terms = match self.terms() {
            Ok(terms) => terms,
            Err(error) => return ids.graph().error(error),
        };
        let n = terms.len() as i64;
        let place = ids.cast(DType::I64) - self.token_start() as i64;
        let known = place.greater_equal(0i64).logical_and(place.less(n));
        let is_mask = (self.oov_start() == 1).then(|| ids.equal(ids.zeros_like()));
        match (terms, &self.mask_token, &self.oov_token) {
            (TermList::Text(terms), mask, Term::Text(unknown)) => {
                // The mask comes after the terms.
                let mask = mask.iter().filter_map(|mask| match mask {
                    Term::Text(text) => Some(text.as_bytes()),
                    Term::Integer(_) => None,
                });
                let table = match LookupTable::from_list(terms.iter().chain(mask)) {
                    Ok(table) => table,
                    Err(error) => return ids.graph().error(error),
                };
                let place = known.select(&place, place.zeros_like() + -1i64);
                let place = is_mask.map_or_else(|| place.clone(), |is| is.select(&(place.zeros_like() + n), &place));
                table.reverse(&place, unknown)
            }
            (TermList::Integers(terms), mask, Term::Integer(unknown)) => {
                let safe = place.maximum(0i64).minimum(n - 1);
                let found = ids.graph().constant(Array::from(terms)).gather(&safe);
                let found = known.select(&found, found.zeros_like() + *unknown);
                match (is_mask, mask) {
                    (Some(is), Some(Term::Integer(mask))) => is.select(&(found.zeros_like() + *mask), found),
                    _ => found,
                }
            }
            _ => ids.graph().error(Error::config("the vocabulary and its tokens have different types")),
        }
    }
}
