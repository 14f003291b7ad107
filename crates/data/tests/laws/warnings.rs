//! Warnings about plans and data that are silently wrong, and silence about those that are not.

use std::path::PathBuf;

use estimand_data::{Csv, Dataset, Files, OnError, Schema};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Result};

use crate::log_lines::logged;
use crate::plans::{csv, folder, rows};

fn warnings<T>(code: impl FnOnce() -> T) -> Vec<String> {
    logged(code).1
}

fn read(data: &Dataset) -> usize {
    data.iter().map(|batch| batch.unwrap().n_rows()).sum()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn counting_after_a_shuffle_is_told_once() {
    let data = Dataset::from_batch(rows(20));
    let shuffled_files = Dataset::from_text_lines(Files::new(file("lines.txt", "a\nb\nc\n")).shuffle(1));
    for (plan, word) in [
        (data.shuffle(9, 1).take(5), "take(5)"),
        (data.shuffle(9, 1).skip(5), "skip(5)"),
        (data.shuffle(9, 1).label("name").batch(2).take(5).repeat(3), "take(5)"),
        (csv(50).shuffle(9, 1).skip(5).repeat(2), "skip(5)"),
        (shuffled_files.take(2), "take(2)"),
        (Dataset::sample_from_datasets([(data.clone(), 0.5), (data.clone(), 0.5)], 1, false).take(3), "take(3)"),
    ] {
        let lines = warnings(|| (read(&plan), read(&plan), read(&plan.prefetch(2))));
        assert_eq!(lines.len(), 1, "{lines:?} of {}", plan.explain());
        assert!(lines[0].starts_with(&format!("WARN: {word} comes after a shuffle")), "{}", lines[0]);
        assert!(lines[0].contains("split(..)") && lines[0].contains("reshuffle_each_iteration(false)"), "{}", lines[0]);
    }
    for plan in [
        data.take(5),
        data.take(5).shuffle(9, 1).repeat(2),
        data.shuffle(9, 1).reshuffle_each_iteration(false).take(5).repeat(2),
        // Batches are counted over epochs.
        data.shuffle(9, 1).repeat_forever().batch(4).take(50),
        data.repeat_forever().shuffle(9, 1).batch(4).take(50),
        // The order of a cache stays.
        data.shuffle(9, 1).cache().skip(5).repeat(2),
    ] {
        let lines = warnings(|| read(&plan));
        assert!(lines.is_empty(), "{lines:?} of {}", plan.explain());
    }
}

#[test]
fn a_cache_that_is_never_complete_is_told_once() {
    let data = Dataset::from_batch(rows(20));
    let path = || folder().join("taken.cache");
    for plan in [data.cache().take(5), data.cache().batch(2).take(10).repeat(2), data.cache_to(path()).take(20)] {
        let lines = warnings(|| (read(&plan), read(&plan)));
        assert_eq!(lines.len(), 1, "{lines:?} of {}", plan.explain());
        assert!(lines[0].contains("the cache before it is never complete"), "{}", lines[0]);
        assert!(lines[0].contains("call cache() after take("), "{}", lines[0]);
    }
    assert!(!path().exists());
    let cached = data.cache();
    for plan in [data.take(5).cache(), data.cache().take(21), data.cache().repeat(3).take(50)] {
        let lines = warnings(|| (read(&plan), read(&plan)));
        assert!(lines.is_empty(), "{lines:?} of {}", plan.explain());
    }
    // Another reader has completed it.
    assert_eq!(read(&cached), 20);
    assert!(warnings(|| read(&cached.take(5))).is_empty());
}

/// `column_names` of a file without a header: TensorFlow skips the first line too, and says
/// nothing.
#[test]
fn a_row_that_is_lost_as_a_header_is_told() {
    let names = ["age", "job", "pay"];
    let lost = file("lost.csv", "39,clerk,0.5\n50,chef,\n38,clerk,1.5\n");
    let plan = Csv::new(&lost).column_names(names).dataset();
    let lines = warnings(|| {
        assert_eq!(read(&plan.select_age()), 2);
        read(&plan)
    });
    let text = lines.iter().find(|line| line.contains("is skipped as a header")).expect("a warning");
    assert_eq!(lines.iter().filter(|line| line.contains("header")).count(), 1, "{lines:?}");
    assert!(text.contains("it looks like data: 39,clerk,0.5") && text.contains("call header(false)"), "{text}");

    // Text that occurs again in its column is data too.
    let texts = file("texts.csv", "red,x\nblue,y\nred,z\n");
    let lines = warnings(|| read(&Csv::new(&texts).column_names(["color", "name"]).dataset()));
    assert!(lines.iter().any(|line| line.contains("it looks like data: red,x")), "{lines:?}");

    for (text, csv) in [
        ("age,job,pay\n39,clerk,0.5\n", Csv::new(file("h1.csv", "age,job,pay\n39,clerk,0.5\n")).column_names(names)),
        ("other names", Csv::new(file("h2.csv", "a,b,c\n39,clerk,0.5\n")).column_names(names)),
        ("no header", Csv::new(&lost).column_names(names).header(false).feature("pay", default(1.0))),
        ("only text", Csv::new(file("h3.csv", "c,n\nblue,y\nred,z\n")).column_names(["color", "name"])),
        ("a number among names", Csv::new(file("h4.csv", "x,2019\n1,2\n3,4\n")).column_names(["a", "b"])),
    ] {
        let lines = warnings(|| read(&csv.dataset()));
        assert!(lines.is_empty(), "{text}: {lines:?}");
    }
}

trait SelectAge {
    fn select_age(&self) -> Dataset;
}

impl SelectAge for Dataset {
    fn select_age(&self) -> Dataset {
        self.map(|batch| Batch::new().with_feature("age", batch.feature("age")?.clone()))
    }
}

fn default(value: f32) -> FeatureSpec {
    FeatureSpec::dense_or(Array::from(value))
}

const GAPS: &str = "id,age,fare,deck\n1,22,7.25,\n2,,71.5,C\n3,,8.05,\n4,35, ? ,C\n5,,8.5, ?\n";

fn gaps(name: &str) -> Csv {
    Csv::new(file(name, GAPS)).na_values(["?"])
}

fn number(array: &Feature) -> Vec<f64> {
    let Feature::Dense(array) = array else { panic!("dense") };
    array.to_f64_vec().unwrap()
}

#[test]
fn numbers_that_were_missing_are_counted_and_told() -> Result<()> {
    let data = gaps("gaps.csv").dataset();
    let lines = warnings(|| {
        // A sample is no pass.
        drop(data.batch(2).iter().next());
        assert_eq!(read(&data.batch(2).repeat(2)), 10);
        read(&data)
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("WARN: 3 of 5 `age`, 1 of 5 `fare` were missing in ") && lines[0].contains("became 0"),
        "{}",
        lines[0]
    );
    let batch = data.batch(5).iter().next().unwrap()?;
    assert_eq!(batch.missing("age"), Some(&Array::from([false, true, true, false, true])));
    assert_eq!(batch.missing("fare"), Some(&Array::from([false, false, false, true, false])), "white space is trimmed");
    assert_eq!(batch.missing("id"), None);
    assert_eq!(number(&batch.features()["age"]), [22.0, 0.0, 0.0, 35.0, 0.0]);
    assert_eq!(batch.features()["deck"], Array::from_strings([5], ["", "C", "", "C", ""])?.into());

    // A declared default is the user's choice.
    let declared = gaps("chosen.csv").feature("age", default(30.0)).feature("fare", default(0.0)).dataset();
    assert!(warnings(|| read(&declared)).is_empty());
    assert!(declared.batch(5).iter().next().unwrap()?.missing("age").is_some());
    // TF: white space alone is 0 in a column of floats. No number was there.
    let blank = Csv::new(file("blank.csv", "x\n1.5\n  \n")).feature("x", FeatureSpec::dense(DType::F32, [])).dataset();
    let batch = blank.batch(2).iter().next().unwrap()?;
    assert_eq!(batch.features()["x"], Array::from([1.5f32, 0.0]).into());
    assert_eq!(batch.missing("x"), Some(&Array::from([false, true])));
    Ok(())
}

#[test]
fn a_long_reading_that_stops_is_told_too() {
    let text: String = (0..3_000).map(|i| if i % 10 == 0 { ",1\n".to_string() } else { format!("{i},1\n") }).collect();
    let data = Csv::new(file("long.csv", &format!("x,y\n{text}"))).dataset();
    let lines = warnings(|| drop(data.batch(500).iter().take(4).collect::<Vec<_>>()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("200 of 2000 `x` were missing"), "{}", lines[0]);
}

/// Of `age` 22, 35: mean 28.5. With its zeros, the mean of five would be 11.4.
#[test]
fn statistics_and_schemas_count_them_as_missing() -> Result<()> {
    let data = gaps("counted.csv").dataset();
    let missing_cache = folder().join("gaps.cache");
    for plan in [
        data.clone(),
        data.batch(2),
        data.shuffle(3, 1),
        data.label("age").cache().repeat(1),
        data.cache_to(&missing_cache),
        data.cache_to(&missing_cache),
        data.concatenate(&data).take(5),
        data.padded_batch(2, estimand_data::Pad::new()),
        Dataset::zip([data.clone(), Dataset::from_arrays([("n", Array::from([0i64, 1, 2, 3, 4]))])]),
    ] {
        let statistics = plan.statistics()?;
        let age = statistics.numbers("age")?;
        assert_eq!((age.n_values, age.n_missing, age.n_zeros, age.mean), (2, 3, 0, 28.5), "{}", plan.explain());
        assert_eq!((age.min, age.max, age.int_range()), (22.0, 35.0, Some((22, 35))));
        assert_eq!(statistics.column("age")?.n_missing(), 3);
        assert_eq!(statistics.terms("age")?.n_distinct(), Some(2));
        assert_eq!(statistics.numbers("fare")?.n_missing, 1);
        assert_eq!(statistics.column("deck")?.n_missing(), 3);
    }
    // A function that gives the rows a value also ends their being missing.
    let filled = data.map(|batch| {
        let n_rows = batch.n_rows();
        batch.with_feature("age", Array::from(vec![28i32; n_rows]))
    });
    assert_eq!(filled.statistics()?.numbers("age")?.n_missing, 0);

    let schema = Schema::of(&data)?;
    assert!(!schema.column("age")?.required && schema.column("id")?.required);
    assert_eq!(schema.column("age")?.default, Some(estimand_data::schema::Value::Int(0)));
    assert_eq!(schema.column("fare")?.default, Some(estimand_data::schema::Value::Float(0.0)));
    assert!(data.check_schema(&schema)?.is_empty(), "zeros below the min are only defaults");
    let strict = Schema::from_toml(&schema.to_toml().replace("required = false", "required = true"))?;
    let misfits = data.check_schema(&strict)?.to_string();
    assert!(misfits.contains("missing, but required"), "{misfits}");
    let again = Csv::new(folder().join("counted.csv")).na_values(["?"]).features(schema.feature_specs()?).dataset();
    assert_eq!(number(&again.batch(5).iter().next().unwrap()?.features()["age"]), [22.0, 0.0, 0.0, 35.0, 0.0]);
    Ok(())
}

#[test]
fn bad_rows_are_left_out_counted_and_told() -> Result<()> {
    let path = file("skip.csv", "x,y\n1,2\nbad,3\n4,5,6\n7,8\n\"9\"x,1\n10,11\n");
    let spec = || FeatureSpec::dense(DType::I64, []);
    for buffer_size in [1, 10, 1_000] {
        let files = Files::new(&path).buffer_size(buffer_size);
        let data = Csv::new(files).feature("x", spec()).feature("y", spec()).on_error(OnError::Skip).dataset();
        assert!(data.explain().contains("bad rows are left out"));
        let mut xs = Vec::new();
        let lines = warnings(|| {
            for batch in data.repeat(2).iter() {
                xs.extend(number(&batch.unwrap().features()["x"]));
            }
        });
        assert_eq!(xs, [1.0, 7.0, 10.0, 1.0, 7.0, 10.0]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("WARN: 3 bad rows were left out of "), "{}", lines[0]);
        assert!(lines[0].contains("column `x` has \"bad\"") && lines[0].contains("in row 2 of "), "{}", lines[0]);

        // Going on after any row.
        let mut batches = data.iter();
        let mut n = 0;
        while batches.next().transpose()?.is_some() {
            n += 1;
            let rest = data.iter_from(&Default::default(), batches.position());
            let rest: Vec<f64> = rest.flat_map(|batch| number(&batch.unwrap().features()["x"])).collect();
            assert_eq!(rest, xs[n..3]);
        }
    }
    // A reader that stops early has left rows out too.
    let data = Csv::new(&path).feature("x", spec()).feature("y", spec()).on_error(OnError::Skip).dataset();
    let lines = warnings(|| drop(data.iter().take(2).collect::<Vec<_>>()));
    assert!(lines.len() == 1 && lines[0].contains("2 bad rows were left out of"), "{lines:?}");
    Ok(())
}
