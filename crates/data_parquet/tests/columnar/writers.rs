//! What is written is read back as it was.

use estimand_data::{Dataset, Position};
use estimand_data_parquet::{arrow, parquet};
use estimand_tensor::{Array, Batch, Feature, Ragged, Result};

use crate::rows::{Dice, folder, one_by_one, pull_all, random_rows};

const PARQUET: [parquet::Compression; 6] = [
    parquet::Compression::None,
    parquet::Compression::Snappy,
    parquet::Compression::Gzip,
    parquet::Compression::Brotli,
    parquet::Compression::Lz4,
    parquet::Compression::Zstd,
];
const ARROW: [arrow::Compression; 3] = [arrow::Compression::None, arrow::Compression::Lz4, arrow::Compression::Zstd];

fn all_rows(data: &Dataset) -> Result<Vec<Batch>> {
    Ok(pull_all(data, 2, &Position::default(), &[100])?.iter().flat_map(|(batch, _)| one_by_one(batch)).collect())
}

#[test]
fn random_rows_come_back() -> Result<()> {
    for number in 0..36 {
        let mut dice = Dice(number);
        let n = dice.below(80) as usize + 1;
        let rows = random_rows(&mut dice, n);
        let data = Dataset::from_batch(rows.clone());

        let path = folder().join(format!("rows-{number}.parquet"));
        let writer = parquet::Writer::new(&path).compression(PARQUET[number as usize % PARQUET.len()]);
        let written = writer.row_group_size(1 + dice.below(40) as usize).write(&data)?;
        assert_eq!((written.n_rows, &written.paths), (n as u64, &vec![path.clone()]));
        assert_eq!(written.n_bytes, std::fs::metadata(&path).unwrap().len());
        let found = parquet::read(&path).dataset();
        assert_eq!(found.spec()?, data.spec()?, "file {number}");
        assert!(all_rows(&found)? == one_by_one(&rows), "file {number}");

        let path = folder().join(format!("rows-{number}.arrow"));
        arrow::Writer::new(&path).compression(ARROW[number as usize % ARROW.len()]).write(&data)?;
        let found = arrow::read(&path).dataset();
        assert_eq!(found.spec()?, data.spec()?, "file {number}");
        assert!(all_rows(&found)? == one_by_one(&rows), "file {number}");
    }
    Ok(())
}

#[test]
fn labels_weights_bytes_and_odd_names() -> Result<()> {
    let batch = Batch::new()
        .with_feature("", Array::from([1i64, 2]))?
        .with_feature("bytes", Array::from_strings([2], [&b"\xff\x00"[..], b""])?)?
        .with_label("naïve", Array::from([0.5f32, f32::NEG_INFINITY]))?
        .with_weights(Array::from([1.0f32, 0.25]))?;
    let data = Dataset::from_batch(batch.clone());
    for (i, extension) in ["parquet", "arrow"].iter().enumerate() {
        let path = folder().join(format!("odd.{extension}"));
        let write = |binary: &[&str], weights: Option<&str>| match i {
            0 => {
                let writer = parquet::Writer::new(&path).binary(binary.iter().copied());
                weights.map_or(writer.clone(), |name| writer.weights(name)).write(&data)
            }
            _ => {
                let writer = arrow::Writer::new(&path).binary(binary.iter().copied());
                weights.map_or(writer.clone(), |name| writer.weights(name)).write(&data)
            }
        };
        for (binary, weights, text) in [
            (&[][..], Some("w"), "a string is not UTF-8"),
            (&["bytes"], None, "the rows have weights"),
            (&["bytes"], Some("naïve"), "two columns would have the name `naïve`"),
            (&["bytes", "byte"], Some("w"), "names `byte`, but there is no such column"),
        ] {
            let error = write(binary, weights).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
            assert!(!path.exists(), "a file that failed");
        }
        write(&["bytes"], Some("w"))?;
        let reader = if i == 0 { parquet::read(&path) } else { arrow::read(&path) };
        let found = reader.label("naïve").dataset().weights("w");
        assert_eq!(all_rows(&found)?, one_by_one(&batch));
    }
    let rest: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(rest.iter().all(|name| !name.to_string_lossy().contains("odd") || !name.to_string_lossy().contains("tmp")));
    Ok(())
}

#[test]
fn rows_must_stay_alike() {
    let one = Dataset::from_arrays([("x", Array::from([1i64, 2]))]);
    let other = |feature: Feature| one.concatenate(&Dataset::from_arrays([("x", feature)]));
    let ragged = Ragged::new(Array::from([1i64]), [0, 1]).unwrap();
    let path = folder().join("unlike.parquet");
    for feature in [Array::from([1.5f32]).into(), Array::from_vec([1, 2], vec![1i64, 2]).unwrap().into(), ragged.into()]
    {
        let error = parquet::write(&other(feature), &path).unwrap_err().to_string();
        assert!(error.contains("x") && !path.exists(), "{error}");
    }
    let error = parquet::Writer::new(&path).row_group_size(0).write(&one).unwrap_err().to_string();
    assert!(error.contains("the size of a row group is 0 rows"), "{error}");
}

#[test]
fn no_rows_are_columns_without_rows() -> Result<()> {
    let data = Dataset::from_arrays([("x", Array::from([1i64])), ("y", Array::from([1.0f32]))]).take(0);
    let path = folder().join("empty.parquet");
    assert_eq!(parquet::write(&data, &path)?.n_rows, 0);
    assert_eq!(parquet::read(&path).dataset().spec()?, data.spec()?);
    assert_eq!(parquet::read(&path).dataset().iter().count(), 0);
    let path = folder().join("empty.arrow");
    assert_eq!(arrow::write(&data, &path)?.n_rows, 0);
    assert_eq!(arrow::read(&path).dataset().spec()?, data.spec()?);
    assert_eq!(arrow::read(&path).dataset().iter().count(), 0);
    Ok(())
}

/// Rows that a function computes, as the predictions of a model are.
#[test]
fn computed_rows_are_written() -> Result<()> {
    let data = Dataset::from_arrays([("id", Array::from([7i64, 8, 9])), ("x", Array::from([1f32, 2.0, 4.0]))]);
    let computed = data.batch(2).map(|batch| {
        let x = batch.feature("x")?.dense()?.as_slice::<f32>()?.to_vec();
        let pairs: Vec<f32> = x.iter().flat_map(|x| [1.0 - x, *x]).collect();
        Batch::new()
            .with_feature("id", batch.feature("id")?.clone())?
            .with_feature("probabilities", Array::from_vec([x.len(), 2], pairs)?)
    });
    let path = folder().join("computed.parquet");
    assert_eq!(parquet::write(&computed, &path)?.n_rows, 3);
    let found = parquet::read(&path).dataset().batch(3).iter().next().unwrap()?;
    assert_eq!(found.feature("id")?, &Feature::from(Array::from([7i64, 8, 9])));
    let expected = Array::from_vec([3, 2], vec![0f32, 1.0, -1.0, 2.0, -3.0, 4.0])?;
    assert_eq!(found.feature("probabilities")?, &Feature::from(expected));
    Ok(())
}
