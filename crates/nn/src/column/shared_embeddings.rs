//! `shared_embeddings`: one table of vectors for several columns.

use std::cell::RefCell;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_graph::{Combiner, Initializer, Tensor, VarId};
use estimand_tensor::{BatchSpec, Error, Result};

use super::assembly::scope_name;
use super::embedding::{Table, table_setters};
use super::json::{MODULE, written};
use super::{Column, DenseColumn, Extent, FeatureColumn, SequenceColumn, numeric_column, place};
use crate::config::{self, Described, Field, Fields, Json, Node};
use crate::inputs::Inputs;

/// A table of vectors for several columns. Made by [`shared_embeddings`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SharedEmbeddings {
    columns: Vec<FeatureColumn>,
    name: Option<String>,
    table: Table,
    /// What a document says of the table. Columns of one document that say the same share it.
    document: Option<String>,
    site: &'static Location<'static>,
}

/// One of the columns that share a table. Made by [`SharedEmbeddings::columns`].
#[derive(Clone, Debug)]
pub struct SharedEmbeddingColumn {
    /// The shared table. A graph identifies its variable by this `Arc`.
    shared: Arc<SharedEmbeddings>,
    column: FeatureColumn,
}

/// Makes a table of vectors that several categorical columns share. The columns must be of the same
/// kind and have the same ids.
///
/// Variable: named after all columns, outside of all scopes, so that the parts of a model share it
/// too.
///
/// ```
/// use estimand_nn::column::{Column, categorical_column_with_hash_bucket, shared_embeddings};
/// let seen = categorical_column_with_hash_bucket("seen", 1_000);
/// let bought = categorical_column_with_hash_bucket("bought", 1_000);
/// let columns = shared_embeddings([&seen, &bought], 8).columns();
/// assert_eq!(columns[0].name(), "seen_shared_embedding");
/// ```
#[track_caller]
pub fn shared_embeddings(
    columns: impl IntoIterator<Item = impl Into<FeatureColumn>>,
    dimension: usize,
) -> SharedEmbeddings {
    let columns = columns.into_iter().map(Into::into).collect();
    let table = Table::new(Some(dimension));
    SharedEmbeddings { columns, name: None, table, document: None, site: Location::caller() }
}

table_setters!(SharedEmbeddings);

impl SharedEmbeddings {
    /// The name of the variable. By default, the columns' names in order, joined with `_`, and
    /// `_shared_embedding`.
    pub fn shared_embedding_collection_name(mut self, name: impl Into<String>) -> SharedEmbeddings {
        self.name = Some(name.into());
        self
    }

    /// The columns, one for each given column, in the same order.
    pub fn columns(self) -> Vec<SharedEmbeddingColumn> {
        let shared = Arc::new(self);
        let column = |column: &FeatureColumn| SharedEmbeddingColumn { shared: shared.clone(), column: column.clone() };
        shared.columns.iter().map(column).collect()
    }

    /// Whether the two are one table.
    fn is(self: &Arc<Self>, other: &Arc<SharedEmbeddings>) -> bool {
        Arc::ptr_eq(self, other) || (self.document.is_some() && self.document == other.document)
    }

    fn variable_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let mut names: Vec<String> = self.columns.iter().map(|column| column.name()).collect();
            names.sort();
            format!("{}_shared_embedding", names.join("_"))
        })
    }

    fn mistake(&self) -> Result<()> {
        self.table.check()?;
        let Some((first, rest)) = self.columns.split_first() else { return Ok(()) };
        let n = first.expect_ids()?;
        rest.iter().try_for_each(|column| {
            if column.kind() != first.kind() || column.expect_ids()? != n {
                let of = |c: &FeatureColumn| Ok(format!("{} ({} ids)", c.describe(), c.expect_ids()?));
                let text = format!("{} and {} cannot share a table", of(first)?, of(column)?);
                return Err(Error::config(text)
                    .help("share a table between columns of the same kind with the same number of ids"));
            }
            Ok(())
        })
    }
}

/// The variables of a graph's shared tables, by the address of the `SharedEmbeddings` that made
/// them.
#[derive(Default)]
struct Made(RefCell<Vec<(Arc<SharedEmbeddings>, VarId)>>);

impl SharedEmbeddingColumn {
    /// The table's variable in the graph. It is made only once.
    fn variable(&self, features: &Inputs, n_buckets: usize) -> Result<Tensor> {
        let graph = features.graph();
        let made = graph.attachment::<Made>();
        let known = made.0.borrow().iter().any(|(shared, _)| shared.is(&self.shared));
        let name = scope_name(&self.shared.variable_name());
        if known {
            return Ok(graph.get_variable(&name));
        }
        let _scope = graph.outside();
        // Several calls may use the table. It belongs to none of them.
        let _line = graph.line(self.shared.site, file!());
        let variable = self.shared.table.variable(graph, &name, n_buckets)?;
        if let Some(id) = variable.variable() {
            made.0.borrow_mut().push((self.shared.clone(), id));
        }
        Ok(variable)
    }
}

impl Described for SharedEmbeddings {
    const CLASS: &'static str = "SharedEmbeddings";

    fn template() -> SharedEmbeddings {
        SharedEmbeddings { table: Table::new(None), ..shared_embeddings(Vec::<FeatureColumn>::new(), 0) }
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SharedEmbeddings {
        SharedEmbeddings {
            columns: fields.required("columns", &self.columns),
            name: fields.value("shared_embedding_collection_name", &self.name),
            table: self.table.fields(fields),
            document: None,
            site: fields.site(self.site),
        }
    }
}

impl Field for Arc<SharedEmbeddings> {
    fn write(&self) -> Result<Json> {
        config::write(MODULE, &**self)
    }

    fn read(node: &Node<'_>) -> Result<Arc<SharedEmbeddings>> {
        let shared: SharedEmbeddings = config::read(&node.field("config")?)?;
        Ok(Arc::new(SharedEmbeddings { document: Some(node.value().to_string()), ..shared }))
    }
}

impl Described for SharedEmbeddingColumn {
    const CLASS: &'static str = "SharedEmbeddingColumn";

    fn template() -> SharedEmbeddingColumn {
        SharedEmbeddingColumn {
            shared: Arc::new(shared_embeddings(Vec::<FeatureColumn>::new(), 0)),
            column: numeric_column("").into(),
        }
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SharedEmbeddingColumn {
        let place = self.shared.columns.iter().position(|column| column.name() == self.column.name());
        let place = fields.required("column", &place.unwrap_or(0));
        let shared = fields.required("shared", &self.shared);
        let Some(column) = shared.columns.get(place).cloned() else {
            fields.refuse_here(&format!("there is no column {place} among the {} that share", shared.columns.len()));
            return self.clone();
        };
        SharedEmbeddingColumn { shared, column }
    }
}

impl Column for SharedEmbeddingColumn {
    fn kind(&self) -> &'static str {
        "shared_embedding"
    }

    fn name(&self) -> String {
        format!("{}_shared_embedding", self.column.name())
    }

    fn site(&self) -> &'static Location<'static> {
        self.shared.site
    }

    fn check(&self) -> Result<()> {
        self.shared.columns.iter().try_for_each(|column| column.check())?;
        self.shared.mistake().map_err(|error| place(self, error))
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn parse_spec(&self) -> BatchSpec {
        self.column.parse_spec()
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        self.column.categorical().is_some().then_some(self)
    }

    fn sequence(&self) -> Option<&dyn SequenceColumn> {
        self.column.categorical_sequence().is_some().then_some(self)
    }
}

impl DenseColumn for SharedEmbeddingColumn {
    fn dims(&self) -> Vec<usize> {
        vec![self.shared.table.dimension(self.column.expect_ids().unwrap_or(1))]
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        let column = self.column.expect_categorical()?;
        let found = column.categories(features)?;
        let table = self.variable(features, column.n_buckets())?;
        let _line = features.graph().line_of_column(self.column.site(), file!());
        Ok(self.shared.table.lookup(&table, &found, column.id_source()))
    }
}

impl SequenceColumn for SharedEmbeddingColumn {
    fn dims(&self) -> Vec<usize> {
        DenseColumn::dims(self)
    }

    fn extent(&self, features: &Inputs) -> Result<Extent> {
        self.column.expect_steps()?.extent(features)
    }

    fn tensor(&self, features: &Inputs, n_steps: &Tensor) -> Result<Tensor> {
        let column = self.column.expect_steps()?;
        let table = self.variable(features, column.n_buckets())?;
        let _line = features.graph().line_of_column(self.column.site(), file!());
        Ok(self.shared.table.steps(&table, &column.ids(features)?, n_steps, column.id_source()))
    }
}
