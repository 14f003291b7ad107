//! Tables of Parquet and Arrow as input functions.

use arrow_array::{Float32Array, Int64Array, RecordBatchIterator};
use estimand_data::{Dataset, input_fn};
use estimand_data_parquet::{arrow, parquet};
use estimand_tensor::{Array, Batch, Result};

use crate::rows::{array, folder, records};

/// Five rows, twice, in batches of four: the third batch has the last two, and batches cross the
/// ends of epochs.
#[test]
fn tables_are_batched_over_epochs() -> Result<()> {
    let (x, y) = (vec![1f32, 2.0, 3.0, 4.0, 5.0], vec![10i64, 20, 30, 40, 50]);
    let rows = Dataset::from_arrays([("x", Array::from(x.clone())), ("y", Array::from(y.clone()))]);
    let path = folder().join("input_fn.parquet");
    parquet::write(&rows, &path)?;
    let of_arrow = move || {
        let columns = [("x", array(Float32Array::from(x.clone()))), ("y", array(Int64Array::from(y.clone())))];
        let batch = records(columns);
        let schema = batch.schema();
        Ok(RecordBatchIterator::new([Ok(batch)], schema))
    };
    for table in [parquet::read(&path).dataset(), arrow::from_batches(of_arrow).dataset()] {
        let batches = input_fn::table(table).target_column("y").batch_size(4).n_epochs(Some(2)).shuffle(false);
        let batches: Vec<Batch> = batches.iter().collect::<Result<_>>()?;
        let labels: Vec<Vec<i64>> = batches
            .iter()
            .map(|batch| Ok(batch.labels()["y"].dense()?.as_slice::<i64>()?.to_vec()))
            .collect::<Result<_>>()?;
        assert_eq!(labels, [vec![10, 20, 30, 40], vec![50, 10, 20, 30], vec![40, 50]]);
        assert_eq!(batches[2].feature("x")?.dense()?.as_slice::<f32>()?, [4.0, 5.0]);
        assert!(batches[0].feature("y").is_err());
    }
    std::fs::remove_file(path).unwrap();
    Ok(())
}
