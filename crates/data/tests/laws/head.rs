//! `head`: the first rows as a table.

use estimand_data::{Csv, Dataset, Pad};
use estimand_tensor::{Array, Batch, DType, Error, Ragged, Result};

use crate::plans::{all_ids, folder, rows};

fn people() -> Result<Dataset> {
    let tags = Array::from_strings([5], ["a", "b", "c", "d", "e"])?;
    let jobs = ["clerk", "a very long name of a profession", "two\nlines \"quoted\"", ""];
    let batch = Batch::new()
        .with_feature("age", Array::from([39i64, 50, -7, 1000]))?
        .with_feature("job", Array::from_strings([4], jobs)?)?
        .with_feature("hours", Array::from([40.0f32, 0.1, f32::NAN, 1e30]))?
        .with_feature("pair", Array::from_vec([4, 2], vec![0.5f32, 1.0, -2.0, 0.0, 3.25, 1.0, 0.0, 0.0])?)?
        .with_feature("image", Array::zeros(DType::U8, [4, 28, 28])?)?
        .with_feature("tags", Ragged::new(tags, [0, 0, 1, 1, 5])?)?
        .with_label("rich", Array::from([false, true, false, true]))?
        .with_weights(Array::from([1.0f64, 0.5, 0.25, 2.0]))?;
    Ok(Dataset::from_batch(batch))
}

/// Numbers stand on the right, texts on the left; long texts and rows are cut.
#[test]
fn a_table_by_hand() -> Result<()> {
    let expected = r#"
    age  job                           hours  pair       image             tags                  rich (label)  (weights)
    i64  string                          f32  f32[2]     u8[28, 28]        string ragged                 bool        f64
0    39  "clerk"                          40  [0.5, 1]   [0, 0, 0, 0, ..]  []                           false          1
1    50  "a very long name of a pr"..    0.1  [-2, 0]    [0, 0, 0, 0, ..]  ["a"]                         true        0.5
2    -7  "two\nlines \"quoted\""         NaN  [3.25, 1]  [0, 0, 0, 0, ..]  []                           false       0.25
3  1000  ""                             1e30  [0, 0]     [0, 0, 0, 0, ..]  ["b", "c", "d", "e"]          true          2
"#;
    let data = people()?;
    assert_eq!(format!("\n{}", data.head(9)?), expected);
    assert_eq!(format!("\n{:?}", data.batch(3).head(4)?), expected, "batches have the same rows");
    assert_eq!(data.head(2)?.n_rows(), 2);
    assert_eq!(data.batch(3).head(2)?.to_string(), data.head(2)?.to_string());
    assert_eq!(data.head(0)?.to_string(), "no rows\n");
    assert_eq!(data.take(0).head(5)?.to_string(), "no rows\n");
    Ok(())
}

#[test]
fn odd_columns() -> Result<()> {
    let wide = (0..784).map(|i| (format!("pixel{i}"), Array::from([i as u8, 1])));
    let table = Dataset::from_arrays(wide).label("pixel783").head(1)?.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("pixel9  ...  pixel774") && lines[0].ends_with("pixel783 (label)"), "{table}");
    assert_eq!((lines.len(), lines[3]), (4, "784 columns"));
    let odd = Dataset::from_arrays([("", Array::from([1i64])), ("a\nb", Array::from([2i64]))]).head(1)?.to_string();
    assert_eq!(odd, "   (unnamed)  a\\nb\n         i64   i64\n0          1     2\n");
    // Each batch is padded to its own longest row.
    let padded = Dataset::from_batch(rows(4)).padded_batch(2, Pad::new()).head(3)?.to_string();
    assert!(padded.contains("string padded"), "{padded}");
    // The default of a missing field is marked.
    let path = folder().join("head.csv");
    std::fs::write(&path, "price\n100\n\"\"\n").unwrap();
    assert_eq!(
        Csv::new(&path).dataset().head(2)?.to_string(),
        "         price\n           i32\n0          100\n1  0 (missing)\n"
    );
    Ok(())
}

#[test]
fn reading_the_head_changes_nothing() -> Result<()> {
    let path = folder().join("head.cache");
    for data in [
        Dataset::from_batch(rows(30)).cache(),
        Dataset::from_batch(rows(30)).cache_to(&path),
        Dataset::from_batch(rows(30)).repeat_forever().take(30),
        Dataset::from_batch(rows(30)).prefetch(2),
    ] {
        let first = data.head(3)?;
        assert_eq!(first.n_rows(), 3);
        assert_eq!(all_ids(&data), (0..30).collect::<Vec<_>>(), "{}", data.explain());
        assert_eq!(data.head(3)?, first);
    }
    // The rows that a training sees first.
    let shuffled = Dataset::from_batch(rows(30)).shuffle(30, 7).batch(4);
    let first = all_ids(&shuffled)[..2].iter().map(|id| format!(" {id} ")).collect::<Vec<_>>();
    let table = shuffled.head(2)?.to_string();
    assert!(table.lines().skip(2).zip(&first).all(|(line, id)| line.contains(id)), "{table}");
    Ok(())
}

#[test]
fn errors_are_returned() {
    let data = Dataset::from_batch(rows(5)).map(|_| Err(Error::config("no luck")));
    assert!(data.head(2).unwrap_err().to_string().contains("no luck"));
    assert!(Dataset::from_csv("/no/such/file.csv").head(2).unwrap_err().to_string().contains("/no/such/file.csv"));
}
