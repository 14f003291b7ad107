//! Functions of one feature or label: what they change, and what their mistakes say.

use estimand_data::{Csv, Dataset, InputContext, Position};
use estimand_tensor::{Array, Batch, DType, Error, Feature, FeatureSpec, Ragged, Result};

use crate::plans::{folder, rows};

fn houses() -> Dataset {
    Dataset::from_arrays([
        ("rooms", Array::from([2i64, 5, 3])),
        ("price", Array::from([900.0f32, 2500.0, 100.0])),
        ("area", Array::from([30.0f32, 100.0, 50.0])),
    ])
}

fn all(data: &Dataset) -> Batch {
    data.iter().next().unwrap().unwrap()
}

fn error(data: &Dataset) -> String {
    data.iter().next().unwrap().unwrap_err().to_string()
}

/// A name stands for a feature or a label, before and after `label` and `batch`.
#[test]
fn a_label_is_found_by_its_name() {
    let expected: Feature = Array::from([0.9f32, 2.5, 0.1]).into();
    let scale = |data: &Dataset| data.map_feature("price", |p| p / 1000.0);
    let before = scale(&houses()).label("price").batch(3);
    let between = scale(&houses().label("price")).batch(3);
    let after = scale(&houses().label("price").batch(3));
    for data in [before, between, after] {
        let batch = all(&data);
        assert_eq!(batch.labels()["price"], expected, "{}", data.explain());
        assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["rooms", "area"]);
        assert_eq!(batch.features()["rooms"], Array::from([2i64, 5, 3]).into());
    }
    // One of several labels, for heads of several tasks.
    let two = houses().label("price").label("area").map_feature("area", |a| (a - 50.0) * 2).batch(3);
    let batch = all(&two);
    assert_eq!(batch.labels()["area"], Array::from([-40.0f32, 100.0, 0.0]).into());
    assert_eq!(batch.labels()["price"], Array::from([900.0f32, 2500.0, 100.0]).into());
    assert_eq!(
        all(&houses().label("rooms").map_label(|n| n - 2).batch(3)).labels()["rooms"],
        Array::from([0i64, 3, 1]).into()
    );
}

#[test]
fn a_function_may_return_an_expression_an_array_or_a_result() {
    let (data, mean) = (houses().batch(3), Array::from(2i64));
    for mapped in [
        data.map_feature("rooms", move |rooms| rooms - &mean),
        data.map_feature("rooms", |_| Array::from([0i64, 3, 1])),
        data.map_feature("rooms", |rooms| rooms.cast(DType::F32)).map_feature("rooms", |r| (r - 2.0).cast(DType::I64)),
        data.map_feature("rooms", |rooms| {
            let less = rooms.as_slice::<i64>()?.iter().map(|n| n - 2).collect::<Vec<_>>();
            Ok(Array::from(less))
        }),
    ] {
        assert_eq!(all(&mapped).features()["rooms"], Array::from([0i64, 3, 1]).into());
    }
}

/// The function of a ragged feature gets the values of all rows.
#[test]
fn values_of_ragged_rows_are_changed() -> Result<()> {
    let tags = Ragged::new(Array::from([1.0f32, 2.0, 3.0]), [0, 2, 2, 3])?;
    let data = Dataset::from_arrays([("w", tags)]).map_feature("w", |w| w * 10);
    let expected = Ragged::new(Array::from([10.0f32, 20.0, 30.0]), [0, 2, 2, 3])?;
    assert_eq!(all(&data.batch(3)).features()["w"], expected.into());
    assert_eq!(all(&data).features()["w"], Ragged::new(Array::from([10.0f32, 20.0]), [0, 2])?.into());
    let error = error(&data.map_feature("w", |_| Array::from([1.0f32])));
    assert!(error.contains("returned the shape [1] for 2 values; expected as many values"), "{error}");
    Ok(())
}

#[test]
fn mistakes_name_the_feature_and_the_line() {
    let words = Dataset::from_arrays([("word", Array::from_strings([2], ["a", "b"]).unwrap())]);
    for (data, texts) in [
        (houses().map_feature("prize", |p| p / 2.0), ["no feature or label `prize`", "did you mean `price`?"]),
        (
            houses().map_feature("temperature", |p| p / 2.0),
            ["there are rooms, price, area", "in the function of `map_feature`"],
        ),
        (words.map_feature("word", |w| w / 2.0), ["a string has no arithmetic", "in the feature `word`"]),
        (houses().map_feature("rooms", |n| n * i64::MAX), ["does not fit i64", "in the feature `rooms`"]),
        (
            houses().map_feature("area", |a| a - &Array::from([1.0f64])),
            ["f32[1] - f64[1]: the dtypes differ", "in the feature `area`"],
        ),
        (
            houses().map_feature("area", |_| Array::from(1.0f32)),
            ["returned the shape [] for 1 rows", "in the feature `area`"],
        ),
        (
            houses().map_feature("area", |_| Err::<Array, _>(Error::config("no luck"))),
            ["no luck", "in the feature `area`"],
        ),
        (houses().map_label(|y| y / 2.0), ["the rows have no label", "label(..)"]),
        (
            houses().label("area").label("price").map_label(|y| y / 2.0),
            ["several labels: `area`, `price`", "map_feature(name, ..)"],
        ),
        (words.label("word").map_label(|y| y / 2.0), ["in the label `word`", "in the function of `map_label`"]),
    ] {
        let error = error(&data);
        let place = format!("at {}:", file!());
        assert!(texts.iter().all(|text| error.contains(text)) && error.contains(&place), "{error}");
    }
}

/// An operator has its own line, and the call has another.
#[test]
fn lines_are_those_of_the_operator_and_of_the_call() {
    let line = line!() + 1;
    let data = houses().map_feature("price", |p| {
        let scaled = p / 2.0;
        scaled + &Array::from([1i64])
    });
    let places = [2, 0].map(|i| format!("at {}:{}", file!(), line + i)).join("\n  in the feature `price`\n  ");
    let error = error(&data);
    assert!(error.contains(&places), "{error} should contain {places}");
}

/// The plan names the feature; a position of another plan is refused, and reading goes on with the
/// same rows on any number of threads.
#[test]
fn the_plan_names_the_feature() -> Result<()> {
    let data = Dataset::from_batch(rows(40)).map_feature("id", |id| id * 3).shuffle(9, 1).batch(4);
    assert!(data.explain().contains("map_feature(`id`, rows)\n    shuffle"), "{}", data.explain());
    assert!(houses().label("area").batch(2).map_label(|y| y / 2.0).explain().starts_with("map_label(batches)\n"));
    let mut batches = data.iter();
    let _ = batches.next();
    let place = Position::from_bytes(&batches.position().to_bytes())?;
    let rest: Vec<Batch> = batches.collect::<Result<_>>()?;
    for n_threads in [1, 4] {
        let cx = InputContext { n_threads, ..InputContext::default() };
        assert_eq!(data.iter_from(&cx, &place).collect::<Result<Vec<_>>>()?, rest);
    }
    let other = Dataset::from_batch(rows(40)).map_feature("pair", |pair| pair * 3).shuffle(9, 1).batch(4);
    let error = other.iter_from(&InputContext::default(), &place).next().unwrap().unwrap_err().to_string();
    assert!(error.contains("differs at `map_feature(`pair`, rows)`"), "{error}");
    assert_ne!(other.fingerprint(), data.fingerprint());
    Ok(())
}

/// A mapped label has another type, which the plan knows too.
#[test]
fn specs_are_those_of_the_results() -> Result<()> {
    let data = houses().label("rooms");
    let mapped = data.map_feature("rooms", |n| n / 2).map_feature("area", |a| a.cast(DType::I32));
    assert_eq!(mapped.label_spec()?["rooms"], FeatureSpec::dense(DType::F64, []));
    assert_eq!(mapped.spec()?["area"], FeatureSpec::dense(DType::I32, []));
    assert_eq!(
        data.parallel_map(|batch| batch.with_label("rooms", Array::from([0.5f32]))).label_spec()?["rooms"].dtype(),
        DType::F32
    );
    // Without rows, the labels of the input.
    assert_eq!(data.take(0).map_label(|n| n / 2).label_spec()?["rooms"].dtype(), DType::I64);
    Ok(())
}

/// A default that was filled in and then scaled still stands for a missing value.
#[test]
fn missing_rows_stay_marked() -> Result<()> {
    let path = folder().join("map_feature.csv");
    std::fs::write(&path, "price,area\n100,3\n,4\n").unwrap();
    let data = Csv::new(&path).dataset().map_feature("price", |p| p / 1000.0).batch(2);
    let batch = all(&data);
    assert_eq!(batch.features()["price"], Array::from([0.1f64, 0.0]).into());
    assert_eq!(batch.missing("price"), Some(&Array::from([false, true])));
    Ok(())
}
