//! The law: stop anywhere, keep the position as bytes, go on from it, and get exactly the rest;
//! whatever the number of threads and the sizes of pieces.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
use arrow_ipc::writer::StreamWriter;
use estimand_data::{Dataset, Files, Position, slice_rows};
use estimand_data_parquet::{arrow, parquet};
use estimand_tensor::{Array, Batch, Result};

use crate::rows::{Dice, array, folder, one_by_one, pull_all, random_rows, records};

fn rows_of(items: &[(Batch, Position)]) -> Vec<Batch> {
    items.iter().flat_map(|(batch, _)| one_by_one(batch)).collect()
}

/// Every row's position, and some pieces'.
fn going_on_gives_the_rest(data: &Dataset, expected: &[Batch], dice: &mut Dice) -> Result<usize> {
    let plan = data.explain();
    let single = pull_all(data, 1, &Position::default(), &[1])?;
    assert!(rows_of(&single) == expected, "{plan}");
    let wants: Vec<usize> = (0..5).map(|_| 1 + dice.below(9) as usize).collect();
    let pieces = pull_all(data, 3, &Position::default(), &wants)?;
    assert!(rows_of(&pieces) == expected, "{plan}");
    let mut n_stops = 0;
    for items in [&single, &pieces] {
        let mut n_before = 0;
        for (batch, after) in items {
            n_before += batch.n_rows();
            let from = Position::from_bytes(&after.to_bytes())?;
            let rest = pull_all(data, 1 + n_before % 3, &from, &wants)?;
            assert!(rows_of(&rest) == expected[n_before..], "after {n_before} rows: {plan}");
            n_stops += 1;
        }
    }
    Ok(n_stops)
}

#[test]
fn parquet_files_go_on_within_row_groups() -> Result<()> {
    let mut n_stops = 0;
    for number in 0..9 {
        let mut dice = Dice(1000 + number);
        let all = random_rows(&mut dice, 40);
        // Some files have no rows.
        let mut cuts = [0, 40, dice.below(41) as usize, dice.below(41) as usize];
        cuts.sort_unstable();
        let mut paths = Vec::new();
        for (file, range) in cuts.windows(2).enumerate() {
            let path = folder().join(format!("resume-{number}-{file}.parquet"));
            let writer = parquet::Writer::new(&path).row_group_size(1 + dice.below(30) as usize);
            writer.write(&Dataset::from_batch(slice_rows(&all, range[0]..range[1])?))?;
            paths.push(path);
        }
        let expected = one_by_one(&all);
        // Pieces of 16 rows, the fewest, so that row groups are of several.
        let files = Files::new(paths).buffer_size(1);
        n_stops += going_on_gives_the_rest(&parquet::read(files).dataset(), &expected, &mut dice)?;
    }
    assert!(n_stops > 500, "only {n_stops} stops");
    Ok(())
}

/// As under any source: random transformations above, stopped after every batch.
#[test]
fn parquet_files_go_on_under_transformations() -> Result<()> {
    let paths = [0, 1].map(|file| folder().join(format!("plans-{file}.parquet")));
    for (file, path) in paths.iter().enumerate() {
        let numbers: Vec<i64> = (0..20).map(|i| i + 20 * file as i64).collect();
        let rows = Dataset::from_arrays([("x", Array::from(numbers))]);
        parquet::Writer::new(path).row_group_size(6).write(&rows)?;
    }
    let mut n_stops = 0;
    for number in 0..30 {
        let mut dice = Dice(3000 + number);
        let mut data = parquet::read(Files::new(paths.to_vec()).shuffle(number)).dataset();
        for _ in 0..dice.below(5) {
            data = match dice.below(5) {
                0 => data.shuffle(1 + dice.below(9) as usize, 1),
                1 => data.repeat(2),
                2 => data.skip(dice.below(9)),
                3 => data.shard(2, 1),
                _ => data.prefetch(2),
            };
        }
        let data = data.batch(1 + dice.below(7) as usize);
        let all = data.iter().collect::<Result<Vec<_>>>()?;
        let mut batches = data.iter();
        for k in 1..=all.len() {
            batches.next().unwrap()?;
            let from = Position::from_bytes(&batches.position().to_bytes())?;
            let rest = data.iter_from(&Default::default(), &from).collect::<Result<Vec<_>>>()?;
            assert!(rest == all[k..], "plan {number} after {k}:\n{}", data.explain());
            n_stops += 1;
        }
    }
    assert!(n_stops > 150, "only {n_stops} stops");
    Ok(())
}

#[test]
fn large_row_groups_are_read_in_pieces() -> Result<()> {
    let n = 50_000;
    let batch = Batch::new().with_feature("x", Array::from((0..n).collect::<Vec<i64>>()))?;
    let path = folder().join("large.parquet");
    parquet::Writer::new(&path).row_group_size(20_000).write(&Dataset::from_batch(batch.clone()))?;
    let data = parquet::read(Files::new(&path).buffer_size(4_000)).dataset();
    let all = pull_all(&data, 2, &Position::default(), &[7_777])?;
    for (_, after) in &all {
        let rest = pull_all(&data, 2, after, &[4_096])?;
        let at = n as usize - rest.iter().map(|(batch, _)| batch.n_rows()).sum::<usize>();
        assert!(rows_of(&rest) == one_by_one(&batch)[at..]);
    }
    Ok(())
}

#[test]
fn arrow_files_and_streams_go_on_within_batches() -> Result<()> {
    let mut n_stops = 0;
    for number in 0..15 {
        let mut dice = Dice(2000 + number);
        let (mut paths, mut expected) = (Vec::new(), Vec::new());
        for file in 0..1 + dice.below(3) {
            let n = dice.below(20) as i64;
            let path = folder().join(format!("resume-{number}-{file}.arrow"));
            let numbers: Vec<i64> = (0..n).map(|i| i * 100 + file as i64).collect();
            let batch = Batch::new().with_feature("x", Array::from(numbers.clone()))?;
            expected.extend(one_by_one(&batch));
            let whole = records([("x", array(Int64Array::from(numbers)))]);
            // Batches of random sizes, some empty, as a stream; every other file in the file
            // format.
            let mut pieces = Vec::new();
            let mut start = 0;
            while start < n as usize {
                let n_rows = (dice.below(6) as usize).min(n as usize - start);
                pieces.push(whole.slice(start, n_rows));
                start += n_rows;
            }
            write_ipc(&path, &whole, &pieces, file % 2 == 0);
            paths.push(path);
        }
        n_stops += going_on_gives_the_rest(&arrow::read(paths).dataset(), &expected, &mut dice)?;
    }
    assert!(n_stops > 250, "only {n_stops} stops");
    Ok(())
}

fn write_ipc(path: &std::path::Path, whole: &RecordBatch, pieces: &[RecordBatch], as_stream: bool) {
    let file = File::create(path).unwrap();
    if as_stream {
        let mut writer = StreamWriter::try_new(file, &whole.schema()).unwrap();
        pieces.iter().for_each(|piece| writer.write(piece).unwrap());
        // Without its end mark, as a process that just closes its pipe leaves it.
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &whole.schema()).unwrap();
        pieces.iter().for_each(|piece| writer.write(piece).unwrap());
        writer.finish().unwrap();
    }
}

#[test]
fn batches_of_other_code_are_made_again() -> Result<()> {
    let make = || {
        let batch = |i: i64| records([("x", array(Int64Array::from((i..2 * i).collect::<Vec<i64>>())))]);
        Ok(RecordBatchIterator::new((0..6).map(move |i| Ok(batch(i))), batch(0).schema()))
    };
    let numbers: Vec<i64> = (0..6).flat_map(|i| i..2 * i).collect();
    let expected = one_by_one(&Batch::new().with_feature("x", Array::from(numbers))?);
    let data = arrow::from_batches(make).dataset();
    assert!(going_on_gives_the_rest(&data, &expected, &mut Dice(1))? > expected.len());

    // Behind transformations, as any source.
    let plan = data.shuffle(4, 1).repeat(2).batch(4).prefetch(1);
    let mut batches = plan.iter();
    batches.next().unwrap()?;
    let rest = plan.iter_from(&Default::default(), batches.position()).collect::<Result<Vec<_>>>()?;
    assert_eq!(batches.collect::<Result<Vec<_>>>()?, rest);
    Ok(())
}

/// What can be opened only once is read once, even if the spec is asked for before.
#[test]
fn a_pipe_is_opened_once() -> Result<()> {
    let batch = records([("x", array(Int64Array::from(vec![4, 5, 6])))]);
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let pipe = Arc::new(std::sync::Mutex::new(Some(std::io::Cursor::new(bytes))));
    let open =
        move || pipe.lock().unwrap().take().ok_or_else(|| estimand_tensor::Error::config("the pipe was read already"));
    let data = arrow::from_stream(open).dataset().batch(2);
    assert_eq!(data.spec()?.len(), 1);
    let rows: Vec<usize> = data.iter().map(|batch| Ok(batch?.n_rows())).collect::<Result<_>>()?;
    assert_eq!(rows, [2, 1]);
    let again = data.iter().next().unwrap().unwrap_err().to_string();
    assert!(again.contains("the pipe was read already"), "{again}");
    Ok(())
}
