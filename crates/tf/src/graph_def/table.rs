//! Writes tables as TensorFlow's resources. An initializer fills each from constants or from an
//! asset file.

use estimand_graph::LookupTable;
use estimand_graph::op::spelling::{Spelling, typed};
use estimand_tensor::{Array, DType, Result, Sha256, Strings};
use estimand_wire::NodeDef;

use super::{Asset, AssetText, Writer};

/// TF: the column indices for the whole line of a file and for its line number.
const WHOLE_LINE: i64 = -2;
const LINE_NUMBER: i64 = -1;

impl Writer<'_> {
    /// The handle of a table, written once for all lookups in it. With `reverse`, from ids to
    /// terms.
    pub(super) fn lookup_table(&mut self, table: &LookupTable, reverse: bool) -> Result<String> {
        let key = (std::ptr::from_ref(table.vocabulary()) as usize, reverse);
        if let Some(handle) = self.shared.tables.get(&key) {
            return Ok(handle.clone());
        }
        let handle = self.part("table", if reverse { "terms" } else { "ids" }, "HashTableV2");
        let shared_name = format!("{}_{}", handle.name, digest(table));
        let (from, to) = match reverse {
            false => (table.dtype(), DType::I64),
            true => (DType::I64, DType::Str),
        };
        let handle =
            typed(typed(handle, "key_dtype", from), "value_dtype", to).attr("shared_name", shared_name.as_str());
        let handle = self.add(handle);
        let initializer = match table.file() {
            Some((path, size)) if !(reverse && table.dtype() != DType::Str) => {
                let text = match self.shared.asset_text {
                    AssetText::Path => path.to_string_lossy(),
                    AssetText::Fed => "".into(),
                };
                let asset = self.constant(&handle, "file", &Array::from_strings([], [text.as_bytes()])?)?;
                self.shared.assets.push(Asset { tensor: format!("{asset}:0"), path: path.to_path_buf() });
                let (key_index, value_index) =
                    if reverse { (LINE_NUMBER, WHOLE_LINE) } else { (WHOLE_LINE, LINE_NUMBER) };
                let def = self.part(&handle, "initialize", "InitializeTableFromTextFileV2");
                def.input(handle.clone())
                    .input(asset)
                    .attr("key_index", key_index)
                    .attr("value_index", value_index)
                    .attr("vocab_size", size.map_or(-1, |n| n as i64))
                    .attr("delimiter", "\t")
            }
            _ => self.import(&handle, table, reverse)?,
        };
        let initializer = self.add(initializer);
        self.shared.initializers.push(initializer);
        self.shared.tables.insert(key, handle.clone());
        Ok(handle)
    }

    /// The node that fills a table from constants.
    fn import(&mut self, handle: &str, table: &LookupTable, reverse: bool) -> Result<NodeDef> {
        let n = table.vocabulary().len();
        let numbers = Array::from((0..n as i64).collect::<Vec<i64>>());
        let mut text = Strings::with_capacity(n);
        table.vocabulary().terms().find(numbers.as_slice()?, b"", &mut text);
        let terms = match table.dtype() {
            DType::Str => Array::from(text),
            _ if reverse => Array::from(text),
            _ => Array::from(table.vocabulary().terms().ints().to_vec()),
        };
        let (keys, values) = if reverse { (numbers, terms) } else { (terms, numbers) };
        let (from, to) = (keys.dtype(), values.dtype());
        let (keys, values) = (self.constant(handle, "keys", &keys)?, self.constant(handle, "values", &values)?);
        let def = self.part(handle, "initialize", "LookupTableImportV2");
        Ok(typed(typed(def.input(handle).input(keys).input(values), "Tin", from), "Tout", to))
    }
}

/// Identifies the terms of a table. Tables with the same `shared_name` are one table in a process
/// that loads several graphs, so the name must say what the table holds.
fn digest(table: &LookupTable) -> String {
    let n = table.vocabulary().len();
    let numbers: Vec<i64> = (0..n as i64).collect();
    let mut terms = Strings::with_capacity(n);
    table.vocabulary().terms().find(&numbers, b"", &mut terms);
    let mut digest = Sha256::new().update(table.dtype().to_string().as_bytes());
    for term in terms.iter() {
        digest = digest.update(&(term.len() as u64).to_le_bytes()).update(term);
    }
    digest.finish()[..16].to_string()
}
