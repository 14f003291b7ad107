//! `SequenceExampleParser`: parses serialized `tf.SequenceExample`s to features and sequences.

use std::sync::Arc;

use estimand_tensor::{DType, Error, Feature, FeatureSpec, Ragged, Result, element_count};

use super::careful::{self, Entry, row_error};
use super::index::Index;
use super::plan::{Plan, list_kind};
use super::rows::Rows;
use super::values::{ListKind, Values};

/// The spec of one list of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum ListSpec {
    /// Every step has the same number of values.
    Fixed {
        /// Element type.
        dtype: DType,
        /// Sizes of one step's axes; empty for one value per step.
        dims: Vec<usize>,
        /// Whether a row without the list is an error. Otherwise, the row has no steps.
        required: bool,
    },
    /// Steps have any number of values. A row without the list has no steps.
    Ragged {
        /// Element type.
        dtype: DType,
    },
}

impl ListSpec {
    /// Steps of the same size; a row without the list is an error.
    pub fn fixed(dtype: DType, dims: impl Into<Vec<usize>>) -> ListSpec {
        ListSpec::Fixed { dtype, dims: dims.into(), required: true }
    }

    /// Steps of the same size; a row without the list has no steps.
    pub fn optional(dtype: DType, dims: impl Into<Vec<usize>>) -> ListSpec {
        ListSpec::Fixed { dtype, dims: dims.into(), required: false }
    }

    /// Any number of values in a step.
    pub fn ragged(dtype: DType) -> ListSpec {
        ListSpec::Ragged { dtype }
    }
}

/// One list of steps, for all rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sequence {
    /// Steps of the same size: values of `[steps of all rows, dims...]`, and the row splits of the
    /// steps.
    Fixed(Ragged),
    /// Steps of different sizes.
    Ragged {
        /// The steps of all rows, each a range of values.
        steps: Ragged,
        /// Row `i` has the steps `row_splits[i]..row_splits[i + 1]`.
        row_splits: Arc<[i64]>,
    },
}

/// A parser of the context features and lists of steps in serialized `tf.SequenceExample`s.
///
/// ```
/// use estimand_tensor::{DType, FeatureSpec};
/// use estimand_wire::example::{ListSpec, Sequence, SequenceExampleBuilder, SequenceExampleParser};
///
/// let row = SequenceExampleBuilder::new().step_ints("clicks", &[3, 4]).step_ints("clicks", &[]).build();
/// let parser = SequenceExampleParser::new([("user", FeatureSpec::ragged(DType::Str))], [("clicks", ListSpec::ragged(DType::I64))])?;
/// let (_, lists) = parser.parse([row])?;
/// let Sequence::Ragged { steps, row_splits } = &lists[0] else { unreachable!() };
/// assert_eq!(steps.values().as_slice::<i64>()?, [3, 4]);
/// assert_eq!((steps.row_splits(), &row_splits[..]), (&[0, 2, 2][..], &[0, 2][..]));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct SequenceExampleParser {
    context: Plan,
    lists: Vec<ListPlan>,
    index: Index,
}

#[derive(Debug)]
struct ListPlan {
    name: String,
    kind: ListKind,
    /// The sizes and the number of values of a step, if they are fixed.
    step: Option<(Vec<usize>, usize)>,
    required: bool,
}

/// One list of the rows parsed so far.
struct Column {
    values: Values,
    /// The start of each step; only for steps of different sizes.
    step_splits: Vec<i64>,
    n_steps: i64,
    row_splits: Vec<i64>,
}

impl SequenceExampleParser {
    /// Checks the features and lists to parse. Results come in the same order.
    pub fn new<C: Into<String>, L: Into<String>>(
        context: impl IntoIterator<Item = (C, FeatureSpec)>,
        lists: impl IntoIterator<Item = (L, ListSpec)>,
    ) -> Result<SequenceExampleParser> {
        let context = Plan::new(context)?;
        let lists = lists.into_iter().map(|(name, spec)| {
            let name = name.into();
            ListPlan::new(&name, spec).map_err(|e| e.context(format!("in the spec of list `{name}`")))
        });
        let lists = lists.collect::<Result<Vec<_>>>()?;
        let index = Index::new(lists.iter().map(|list| list.name.as_str()))
            .map_err(|name| Error::config(format!("list `{name}` is listed twice")))?;
        Ok(SequenceExampleParser { context, lists, index })
    }

    /// Parses a batch, one serialized `tf.SequenceExample` per row. Returns the context features
    /// and the lists.
    pub fn parse<S: AsRef<[u8]>>(
        &self,
        serialized: impl IntoIterator<Item = S>,
    ) -> Result<(Vec<Feature>, Vec<Sequence>)> {
        let serialized = serialized.into_iter();
        let mut context = Rows::new(&self.context, serialized.size_hint().0);
        let mut columns: Vec<Column> = self.lists.iter().map(Column::new).collect();
        for (row, bytes) in serialized.enumerate() {
            self.row(bytes.as_ref(), row, &mut context, &mut columns)?;
        }
        let lists = columns.into_iter().zip(&self.lists).map(|(column, list)| column.finish(list));
        Ok((context.finish(&self.context)?, lists.collect::<Result<_>>()?))
    }

    fn row(&self, bytes: &[u8], row: usize, context: &mut Rows, columns: &mut [Column]) -> Result<()> {
        let mut features: Vec<Entry<'_>> = Vec::new();
        let mut lists: Vec<Entry<'_>> = Vec::new();
        let read = careful::fields(bytes, |number, contents| match (number, contents) {
            (1, Some(map)) => careful::entries(map, &mut features),
            (2, Some(map)) => careful::entries(map, &mut lists),
            _ => Ok(()),
        });
        read.map_err(|damage| {
            row_error(row, None, format!("{} bytes are not a tf.SequenceExample: {damage}", bytes.len()))
        })?;
        careful::append_row(&self.context, context, &features, row)?;

        let mut found: Vec<Option<&[u8]>> = vec![None; self.lists.len()];
        for (key, list) in lists {
            if let Some(i) = self.index.find(key) {
                found[i] = Some(list);
            }
        }
        for ((list, column), found) in self.lists.iter().zip(columns).zip(found) {
            let error = |message| row_error(row, Some(&list.name), message);
            match found {
                Some(steps) => column.read(list, steps).map_err(error)?,
                None if list.required => {
                    return Err(error(format!("list `{}` is missing", list.name)).help("make it optional"));
                }
                None => {}
            }
            column.row_splits.push(column.n_steps);
        }
        Ok(())
    }
}

impl ListPlan {
    fn new(name: &str, spec: ListSpec) -> Result<ListPlan> {
        let (dtype, step, required) = match spec {
            ListSpec::Ragged { dtype } => (dtype, None, false),
            ListSpec::Fixed { dtype, dims, required } => {
                let width = element_count(&dims)?;
                (dtype, Some((dims, width)), required)
            }
        };
        Ok(ListPlan { name: name.to_string(), kind: list_kind(dtype)?, step, required })
    }
}

impl Column {
    fn new(list: &ListPlan) -> Column {
        Column { values: Values::new(list.kind, 0), step_splits: vec![0], n_steps: 0, row_splits: vec![0] }
    }

    /// Appends the steps of a `FeatureList`.
    fn read(&mut self, list: &ListPlan, steps: &[u8]) -> Result<(), String> {
        let ListPlan { name, kind, step, .. } = list;
        let mut problem = None;
        let first = self.n_steps;
        let read = careful::fields(steps, |number, contents| {
            if number == 1 {
                self.read_step(*kind, step.as_ref(), contents).map_err(|what| {
                    problem = Some(what);
                    "a step is wrong"
                })?;
            }
            Ok(())
        });
        let Err(damage) = read else { return Ok(()) };
        Err(match problem {
            Some(what) => format!("list `{name}`: step {} {what}", self.n_steps - first + 1),
            None => format!("list `{name}`: {damage}"),
        })
    }

    /// Appends one step; the error describes the problem of the step.
    fn read_step(
        &mut self,
        kind: ListKind,
        step: Option<&(Vec<usize>, usize)>,
        feature: Option<&[u8]>,
    ) -> Result<(), String> {
        let feature = feature.ok_or("has a wrong wire type")?;
        let before = self.values.len();
        match careful::list(feature).map_err(|damage| format!("is unreadable: {damage}"))? {
            None => {}
            Some((other, _)) if other != kind => {
                return Err(format!("is {}, expected {}", other.name(), kind.name()));
            }
            Some((_, list)) => self.values.read(list).ok_or_else(|| format!("has a damaged {}", kind.name()))?,
        }
        let given = self.values.len() - before;
        match step {
            Some((dims, width)) if given != *width => {
                return Err(format!("has {given} values, expected {width} for {dims:?}"));
            }
            Some(_) => {}
            None => self.step_splits.push(self.values.len() as i64),
        }
        self.n_steps += 1;
        Ok(())
    }

    fn finish(self, list: &ListPlan) -> Result<Sequence> {
        match &list.step {
            Some((dims, _)) => {
                let dims = [&[self.n_steps as usize], dims.as_slice()].concat();
                Ok(Sequence::Fixed(Ragged::new(self.values.into_array(&dims)?, self.row_splits)?))
            }
            None => {
                let n_values = self.values.len();
                let steps = Ragged::new(self.values.into_array(&[n_values])?, self.step_splits)?;
                Ok(Sequence::Ragged { steps, row_splits: self.row_splits.into() })
            }
        }
    }
}
