//! Input functions of ported programs, compared with TensorFlow
//! (`oracles/gen/batched_features.py`).

use estimand_data::{Csv, Dataset, input_fn};
use estimand_fixture::{Case, cases_of};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged, Result};

/// More batches than a case has.
const N_FIRST: usize = 7;

/// The rows of a case: x = i / 2, y = i % 3, and i % 3 ids.
fn rows(n: usize) -> Dataset {
    let x: Vec<f32> = (0..n).map(|i| i as f32 / 2.0).collect();
    let y: Vec<i64> = (0..n).map(|i| (i % 3) as i64).collect();
    let ids: Vec<i64> = (0..n).flat_map(|i| 0..(i % 3) as i64).collect();
    let ends = (0..n).scan(0, |end, i| {
        *end += (i % 3) as i64;
        Some(*end)
    });
    let ids = Ragged::new(Array::from(ids), std::iter::once(0).chain(ends).collect::<Vec<i64>>()).unwrap();
    let columns: [(&str, Feature); 3] =
        [("x", Array::from(x).into()), ("y", Array::from(y).into()), ("ids", ids.into())];
    Dataset::from_arrays(columns)
}

fn numbers<T: Copy>(feature: &Feature, read: impl Fn(&Array) -> Vec<T>) -> Vec<T> {
    match feature {
        Feature::Dense(array) => read(array),
        Feature::Ragged(_) => panic!("a dense feature became ragged"),
    }
}

/// Checks the first batches, and whether there are more.
fn check(case: &Case, data: &Dataset) -> Result<()> {
    let batches: Vec<Batch> = data.iter().take(N_FIRST).collect::<Result<_>>()?;
    let f32s = |array: &Array| array.as_slice::<f32>().unwrap().to_vec();
    let i64s = |array: &Array| array.as_slice::<i64>().unwrap().to_vec();
    let x: Vec<Vec<f32>> = batches.iter().map(|batch| numbers(&batch.features()["x"], f32s)).collect();
    let y: Vec<Vec<i64>> = batches.iter().map(|batch| numbers(&batch.labels()["y"], i64s)).collect();
    let expected = |key: &str| case.json(key).as_array().unwrap().iter().map(|array| array[2].to_string()).collect();
    let (expected_x, expected_y): (Vec<String>, Vec<String>) = (expected("x"), expected("y"));
    let text = |values: &[f32]| format!("[{}]", values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(","));
    assert_eq!(x.iter().map(|values| text(values)).collect::<Vec<_>>(), expected_x, "{case}");
    assert_eq!(y.iter().map(|values| format!("{values:?}").replace(' ', "")).collect::<Vec<_>>(), expected_y, "{case}");
    assert_eq!(batches.len() < N_FIRST, case.setting::<bool>("ended"), "{case}");
    Ok(())
}

fn file(ending: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("estimand-input-fn-{}.{ending}", std::process::id()))
}

#[test]
fn batched_features_are_those_of_tensorflow() -> Result<()> {
    let path = file("tfrecord");
    let spec = || {
        [
            ("x", FeatureSpec::dense(DType::F32, [])),
            ("y", FeatureSpec::dense(DType::I64, [])),
            ("ids", FeatureSpec::ragged(DType::I64)),
        ]
    };
    for case in cases_of("batched_features", "features") {
        rows(case.setting("n")).write_tfrecord(&path)?;
        let input = input_fn::batched_features(&path, spec()).batch_size(case.setting("batch_size")).label_key("y");
        let input = input.n_epochs(case.option("n_epochs")).no_shuffle();
        let input = if case.setting("drop_final_batch") { input.drop_final_batch() } else { input };
        check(&case, &input.dataset())?;
    }
    // Shuffled by default: every epoch has all rows, in another order.
    rows(10).write_tfrecord(&path)?;
    let shuffled = input_fn::batched_features(&path, spec()).batch_size(10).label_key("y").shuffle(100, 3).dataset();
    let f32s = |array: &Array| array.as_slice::<f32>().unwrap().to_vec();
    let epochs: Vec<Vec<f32>> =
        shuffled.iter().take(2).map(|batch| Ok(numbers(&batch?.features()["x"], f32s))).collect::<Result<_>>()?;
    assert_ne!(epochs[0], epochs[1]);
    let mut sorted = epochs[0].clone();
    sorted.sort_by(f32::total_cmp);
    assert_eq!(sorted, (0..10).map(|i| i as f32 / 2.0).collect::<Vec<_>>());
    // A label that the spec does not have is an error with its name.
    let wrong = input_fn::batched_features(&path, spec()).label_key("z").n_epochs(Some(1)).dataset();
    let error = wrong.iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("`z`"), "{error}");
    std::fs::remove_file(path).unwrap();
    Ok(())
}

#[test]
fn tables_give_the_batches_of_pandas_input_fn() -> Result<()> {
    let path = file("csv");
    for case in cases_of("batched_features", "table") {
        let n: usize = case.setting("n");
        let lines: Vec<String> = (0..n).map(|i| format!("{:?},{}\n", i as f32 / 2.0, i % 3)).collect();
        std::fs::write(&path, format!("x,y\n{}", lines.concat())).unwrap();
        let specs = [("x", FeatureSpec::dense(DType::F32, [])), ("y", FeatureSpec::dense(DType::I64, []))];
        let arrays = rows(n);
        for table in [Csv::new(&path).features(specs).dataset(), arrays] {
            let input = input_fn::table(table).target_column("y").batch_size(case.setting("batch_size"));
            check(&case, &input.n_epochs(case.option("n_epochs")).shuffle(false))?;
        }
    }
    let wrong = input_fn::table(Csv::new(&path)).target_column("z").shuffle(false);
    let error = wrong.iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("`z`"), "{error}");
    let error = input_fn::table(Csv::new(&path)).batch_size(0).shuffle(true).iter().next().unwrap().unwrap_err();
    assert!(error.to_string().contains("the batch size is 0"), "{error}");
    std::fs::remove_file(path).unwrap();
    Ok(())
}
