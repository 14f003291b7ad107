//! `categorical_column_with_vocabulary_list`: maps categories to their position in a list.

use std::panic::Location;
use std::sync::Arc;

use estimand_graph::LookupTable;
use estimand_tensor::vocabulary::Terms;
use estimand_tensor::{BatchSpec, DType, Error, FeatureSpec, Result, Strings};

use super::feature::{self, CategoryKind};
use super::json::written;
use super::{CategoricalColumn, Categories, Column, place};
use crate::config::{Described, Fields, Json};
use crate::inputs::Inputs;

/// Categories by their position in a list. Made by [`categorical_column_with_vocabulary_list`].
#[derive(Clone, Debug)]
#[must_use]
pub struct VocabularyListColumn {
    key: String,
    /// The table. It is made once, so that graphs share the terms and equal lookups are merged.
    table: Arc<Result<LookupTable>>,
    unknown: Unknown,
    site: &'static Location<'static>,
}

/// Terms of a list: strings or integers.
#[derive(Clone, Debug)]
pub enum TermList {
    /// Strings.
    Text(Strings),
    /// Integers.
    Integers(Vec<i64>),
}

/// Takes categories from a list; the id is the position in the list. By default, other values have
/// the id -1, which is ignored everywhere.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_vocabulary_list};
/// let colour = categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"]).n_oov_buckets(2);
/// assert_eq!(colour.categorical().map(|c| c.n_buckets()), Some(5));
/// ```
#[track_caller]
pub fn categorical_column_with_vocabulary_list(
    key: impl Into<String>,
    vocabulary_list: impl Into<TermList>,
) -> VocabularyListColumn {
    let table = vocabulary_list.into().table();
    let unknown = Unknown::default();
    VocabularyListColumn { key: key.into(), table: Arc::new(table), unknown, site: Location::caller() }
}

impl VocabularyListColumn {
    /// The id of values that are not in the list. By default, -1.
    pub fn default_value(mut self, id: i64) -> VocabularyListColumn {
        self.unknown.default_value = Some(id);
        self
    }

    /// Maps values that are not in the list to `n` additional ids, by their hash. By default, there
    /// are none.
    pub fn n_oov_buckets(mut self, n: usize) -> VocabularyListColumn {
        self.unknown.n_oov_buckets = n;
        self
    }

    /// The terms, in the order of their ids.
    pub fn terms(&self) -> Result<TermList> {
        Ok(TermList::from(self.table()?.vocabulary().terms()))
    }

    fn table(&self) -> Result<LookupTable> {
        self.unknown.apply((*self.table).clone()?)
    }
}

/// The ids of values that are not in a vocabulary.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Unknown {
    pub default_value: Option<i64>,
    pub n_oov_buckets: usize,
}

impl TermList {
    /// The number of terms.
    pub fn len(&self) -> usize {
        match self {
            TermList::Text(terms) => terms.len(),
            TermList::Integers(terms) => terms.len(),
        }
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn table(self) -> Result<LookupTable> {
        match self {
            TermList::Text(terms) => LookupTable::from_list(terms.iter()),
            TermList::Integers(terms) => LookupTable::from_ints(terms),
        }
    }
}

impl Unknown {
    pub(super) fn fields(self, fields: &mut Fields<'_>) -> Unknown {
        Unknown {
            default_value: fields.value("default_value", &self.default_value),
            n_oov_buckets: fields.value("num_oov_buckets", &self.n_oov_buckets),
        }
    }

    pub(super) fn apply(self, table: LookupTable) -> Result<LookupTable> {
        match (self.default_value, self.n_oov_buckets) {
            (Some(id), 0) => Ok(table.default_id(id)),
            (None, 0) => Ok(table),
            (None | Some(-1), n) => table.n_oov_buckets(i64::try_from(n).unwrap_or(i64::MAX)),
            (Some(id), n) => Err(Error::config(format!(
                "default_value is {id} and n_oov_buckets is {n}; only one of them can be set"
            ))
            .help("remove one of the two settings")),
        }
    }
}

/// Looks up the ids of a feature's categories in a table.
pub(super) fn find(features: &Inputs, key: &str, table: &LookupTable) -> Result<Categories> {
    let rows = feature::categories(features, key, CategoryKind::of(table.dtype())?)?;
    let terms = if rows.values.dtype() == DType::I32 { rows.values.cast(DType::I64) } else { rows.values.clone() };
    Ok(Categories { ids: rows.with_values(table.lookup(&terms)), weights: None })
}

impl Described for VocabularyListColumn {
    const CLASS: &'static str = "VocabularyListCategoricalColumn";

    fn template() -> VocabularyListColumn {
        categorical_column_with_vocabulary_list("", [""; 0])
    }

    fn fields(&self, fields: &mut Fields<'_>) -> VocabularyListColumn {
        let terms = match &*self.table {
            Ok(table) => TermList::from(table.vocabulary().terms()),
            Err(_) => TermList::Text(Strings::default()),
        };
        let terms = fields.required("vocabulary_list", &terms);
        VocabularyListColumn {
            key: fields.required("key", &self.key),
            table: Arc::new(terms.table()),
            unknown: self.unknown.fields(fields),
            site: fields.site(self.site),
        }
    }
}

impl Column for VocabularyListColumn {
    fn kind(&self) -> &'static str {
        "vocabulary_list"
    }

    fn name(&self) -> String {
        self.key.clone()
    }

    fn site(&self) -> &'static Location<'static> {
        self.site
    }

    fn check(&self) -> Result<()> {
        self.table().map(drop).map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        self.table()?;
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        let dtype = self.table().map_or(DType::Str, |table| table.dtype());
        BatchSpec::from([(self.key.clone(), FeatureSpec::ragged(dtype))])
    }

    fn categorical(&self) -> Option<&dyn CategoricalColumn> {
        Some(self)
    }
}

impl CategoricalColumn for VocabularyListColumn {
    fn n_buckets(&self) -> usize {
        self.table().map_or(0, |table| table.n_ids())
    }

    fn categories(&self, features: &Inputs) -> Result<Categories> {
        find(features, &self.key, &self.table()?)
    }
}

macro_rules! term_lists {
    (text: $($text:ty),*; integers: $($integers:ty),*) => {
        $(impl<const N: usize> From<[$text; N]> for TermList {
            fn from(terms: [$text; N]) -> TermList {
                TermList::Text(terms.iter().collect())
            }
        }
        impl From<Vec<$text>> for TermList {
            fn from(terms: Vec<$text>) -> TermList {
                TermList::Text(terms.iter().collect())
            }
        }
        impl From<&[$text]> for TermList {
            fn from(terms: &[$text]) -> TermList {
                TermList::Text(terms.iter().collect())
            }
        })*
        $(impl<const N: usize> From<[$integers; N]> for TermList {
            fn from(terms: [$integers; N]) -> TermList {
                TermList::Integers(terms.into_iter().map(i64::from).collect())
            }
        }
        impl From<Vec<$integers>> for TermList {
            fn from(terms: Vec<$integers>) -> TermList {
                TermList::Integers(terms.into_iter().map(i64::from).collect())
            }
        }
        impl From<&[$integers]> for TermList {
            fn from(terms: &[$integers]) -> TermList {
                TermList::Integers(terms.iter().copied().map(i64::from).collect())
            }
        })*
    };
}
term_lists!(text: &str, String, Vec<u8>; integers: i32, i64);

impl From<Strings> for TermList {
    fn from(terms: Strings) -> TermList {
        TermList::Text(terms)
    }
}

impl From<&Terms> for TermList {
    fn from(terms: &Terms) -> TermList {
        if terms.dtype() != DType::Str {
            return TermList::Integers(terms.ints().to_vec());
        }
        let mut text = Strings::with_capacity(terms.len());
        for number in 0..terms.len() {
            terms.push_to(number, &mut text);
        }
        TermList::Text(text)
    }
}
