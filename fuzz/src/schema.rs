//! Schemas: any text gives columns or an error, and the written result can be read again.

use estimand_data::Schema;

/// Reads a schema, and the specs of its columns.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(schema) = Schema::from_toml(text) else { return };
    let again = Schema::from_toml(schema.to_toml()).expect("what was read can be read again");
    assert_eq!(again.columns().len(), schema.columns().len());
    for column in schema.columns() {
        assert_eq!(schema.column(&column.name).expect("it has this column").dtype, column.dtype);
    }
    let _ = schema.feature_specs();
}
