//! Headers and types of CSV files: any input gives columns or an error, and the columns fit the
//! rows they were inferred from.

use std::path::PathBuf;

use estimand_data::{Csv, Limits};
use estimand_tensor::DType;

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("estimand-fuzz-csv-{}", std::process::id()))
}

/// Infers the columns of a file with a low limit of columns, and reads the rows.
pub fn check(input: &[u8]) {
    let path = path();
    std::fs::write(&path, input).expect("a file in the temporary folder");
    let limits = Limits { columns: 1000, field_bytes: 1000, line_bytes: 1 << 20, ..Limits::default() };
    for (delimiter, quoting) in [(b',', true), (b'\t', false)] {
        let csv = Csv::new(&path).limits(limits).delimiter(delimiter).quoting(quoting).utf8(false);
        let Ok(columns) = csv.inferred() else { continue };
        assert!(columns.len() <= limits.columns);
        let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        let data = csv.clone().select(names.iter().rev().copied()).dataset();
        assert!(
            data.spec().expect("the columns were found").keys().map(String::as_str).eq(names.iter().copied()),
            "the order of the file"
        );
        for batch in data.batch(7).iter().map_while(Result::ok) {
            for (column, (name, feature)) in columns.iter().zip(batch.features()) {
                assert_eq!((column.name(), column.dtype()), (&**name, feature.dtype()));
                assert!(feature.n_rows().is_some_and(|n| n <= 7));
            }
        }
        // With every field as text, a row fails only because of its number of fields, its quotes or
        // a long field.
        let text = columns.iter().map(|column| (column.name(), estimand_tensor::FeatureSpec::ragged(DType::Str)));
        assert!(csv.features(text).dataset().spec().is_err(), "a column of CSV is not ragged");
    }
}
