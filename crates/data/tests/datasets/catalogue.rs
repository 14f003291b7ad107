//! The sets inside the library, splits of them, and mistakes.

use std::collections::BTreeSet;

use estimand_data::{Dataset, InputContext, Position, datasets};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Result};

fn all(data: &Dataset) -> Result<Batch> {
    let mut batches = data.batch(1 << 20).iter();
    let batch = batches.next().unwrap()?;
    assert!(batches.next().is_none());
    Ok(batch)
}

fn dense(feature: &Feature) -> &Array {
    let Feature::Dense(array) = feature else { panic!("dense") };
    array
}

/// As many rows as the catalogue says, of the types it says, with labels among its classes.
#[test]
fn the_librarys_sets_are_as_the_catalogue_says() -> Result<()> {
    for name in ["iris", "digits", "adult"] {
        let info = datasets::load(name, "train")?.info();
        for (split, n_rows) in &info.splits {
            let set = datasets::load(name, split)?;
            let data = set.dataset();
            assert_eq!(data.spec()?, info.features, "{name}");
            let batch = all(&data)?;
            assert_eq!(batch.n_rows() as u64, *n_rows);
            let labels = dense(&batch.labels()[info.label]).as_slice::<i64>()?;
            let found: BTreeSet<i64> = labels.iter().copied().collect();
            assert_eq!(found, (0..info.classes.len() as i64).collect(), "{name} {split}");
        }
    }
    Ok(())
}

/// Means as scikit-learn's description of the set has them: 5.84, 3.05 (of a table with two known
/// slips; 3.057 without), 3.76, 1.20; 50 of each species.
#[test]
fn iris_is_fishers() -> Result<()> {
    let batch = all(&datasets::load("iris", "train")?.dataset())?;
    for (name, mean) in [("SepalLength", 5.843), ("SepalWidth", 3.057), ("PetalLength", 3.758), ("PetalWidth", 1.199)] {
        let values = dense(&batch.features()[name]).to_f64_vec()?;
        assert!((values.iter().sum::<f64>() / 150.0 - mean).abs() < 5e-4, "{name}");
    }
    let species = dense(&batch.labels()["Species"]).as_slice::<i64>()?;
    assert!((0..3).all(|class| species.iter().filter(|&&s| s == class).count() == 50));
    Ok(())
}

/// UCI counts 7,841 of 32,561 and 3,846 of 16,281 persons with more than 50,000 dollars. The first
/// line of adult.data begins `39, State-gov, 77516, Bachelors, 13`.
#[test]
fn adult_is_ucis() -> Result<()> {
    for (split, n_rich) in [("train", 7_841), ("test", 3_846)] {
        let batch = all(&datasets::load("adult", split)?.dataset())?;
        assert_eq!(dense(&batch.labels()["income"]).as_slice::<i64>()?.iter().sum::<i64>(), n_rich);
        if split == "train" {
            let number = |name: &str| dense(&batch.features()[name]).as_slice::<i32>().unwrap()[0];
            let text = |name: &str| dense(&batch.features()[name]).strings().unwrap().next().unwrap().to_vec();
            assert_eq!([number("age"), number("fnlwgt"), number("educational-num")], [39, 77516, 13]);
            assert_eq!([text("workclass"), text("education")], [b"State-gov".to_vec(), b"Bachelors".to_vec()]);
        }
    }
    Ok(())
}

#[test]
fn digits_are_images() -> Result<()> {
    let set = datasets::load("digits", "train")?.one_hot()?;
    let batch = set.dataset().batch(3).drop_remainder().iter().next().unwrap()?;
    assert_eq!(dense(&batch.features()["image"]).dims(), [3, 8, 8, 1]);
    // The first three are 0, 1 and 2.
    let identity =
        [[1.0f32, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|row| [&row[..], &[0.0; 7]].concat()).concat();
    assert_eq!(batch.labels()["label"], Array::from_vec([3, 10], identity)?.into());
    assert_eq!(set.info().features["image"], FeatureSpec::dense(DType::U8, [8, 8, 1]));
    Ok(())
}

/// Rows of `split`, by something that tells most of them apart.
fn rows_of(set: &datasets::Loaded) -> Result<Vec<Vec<u8>>> {
    let batch = all(&set.dataset())?;
    Ok(dense(&batch.features()["image"]).as_slice::<u8>()?.chunks(64).map(<[u8]>::to_vec).collect())
}

#[test]
fn pieces_of_a_split_tile_it() -> Result<()> {
    let load = |split: &str| rows_of(&datasets::load("digits", split).unwrap());
    let mut whole = load("train")?;
    whole.sort();
    // 1,797 * 29 % = 521.1 and 71.5 % = 1,284.9.
    for (pieces, sizes) in [
        (&["train[:80%]", "train[80%:]"][..], &[1438, 359][..]),
        (&["train[:29%]", "train[29%:71.5%]", "train[71.5%:]"], &[521, 764, 512]),
        (&["train[:100]", "train[100:1000]", "train[1000:]"], &[100, 900, 797]),
        (&["train[0:]", "train[5000:]"], &[1797, 0]),
    ] {
        let mut together = Vec::new();
        for (piece, size) in pieces.iter().zip(sizes) {
            if *size == 0 {
                assert!(datasets::load("digits", piece)?.dataset().iter().next().is_none());
                continue;
            }
            let rows = load(piece)?;
            assert_eq!(rows.len(), *size, "{piece}");
            together.extend(rows);
        }
        together.sort();
        assert!(together == whole, "{pieces:?}");
    }
    let (train, validation) = datasets::load("digits", "train")?.validation_split(0.2)?;
    assert!(rows_of(&train)? == load("train[:80%]")? && rows_of(&validation)? == load("train[80%:]")?);
    // A fixed order: the classes are mixed, though iris is sorted by them.
    let (_, validation) = datasets::load("iris", "train")?.validation_split(0.2)?;
    let batch = all(&validation.dataset())?;
    let species: BTreeSet<i64> = dense(&batch.labels()["Species"]).as_slice::<i64>()?.iter().copied().collect();
    assert_eq!(species.len(), 3);
    Ok(())
}

/// Pieces are rows that can be had by number, and shuffled as a whole.
#[test]
fn plans_say_what_they_are() -> Result<()> {
    let data = datasets::load("iris", "train[:80%]")?.one_hot()?.dataset().shuffle(10, 1);
    assert_eq!(
        data.explain(),
        "map(rows)\n  label(`Species`)\n    shuffle(seed 1): a permutation of all rows\n      \
         part [:80%] of a fixed random order\n        iris train: part of the library\n"
    );
    Ok(())
}

/// Reading that stops anywhere, in pieces of any size, goes on with the very next row.
#[test]
fn pieces_go_on_from_any_row() -> Result<()> {
    let cx = InputContext::default();
    for data in ["train[10:40]", "train[:50%]"].map(|split| datasets::load("iris", split).unwrap().dataset()) {
        let whole: Vec<Batch> = data.iter().collect::<Result<_>>()?;
        let mut stream = data.open(&cx, &Position::default())?;
        let (mut n_seen, mut wants) = (0, [3, 1, 7, 2].into_iter().cycle());
        while let Some(item) = stream.pull(wants.next().unwrap())? {
            n_seen += item.batch.n_rows();
            let rest: Vec<Batch> = data.iter_from(&cx, &item.after).collect::<Result<_>>()?;
            assert_eq!(rest, whole[n_seen..]);
        }
        assert_eq!(n_seen, whole.len());
        let after = data.iter_from(&cx, &Position::new([76], [])).next().unwrap().unwrap_err().to_string();
        assert!(after.contains("the position is after row 76"), "{after}");
    }
    Ok(())
}

#[test]
fn mistakes() {
    let load = |name: &str, split: &str| datasets::load(name, split).unwrap_err().to_string();
    for (error, text) in [
        (load("irisse", "train"), "did you mean `iris`?"),
        (load("imagenet", "train"), "fashion_mnist"),
        (load("iris", "test"), "choose one of [\"train\"]"),
        (load("iris", "train[80]"), "`train[80]` is not a piece"),
        (load("iris", "train[:101%]"), "percents lie between 0 and 100"),
        (load("iris", "train[a:b]"), "not a piece"),
        (load("iris", "train[:80%"), "not a piece"),
        (datasets::load("iris", "train").unwrap().validation_split(1.5).unwrap_err().to_string(), "split is 1.5"),
        (datasets::load("iris", "train").unwrap().validation_split(f64::NAN).unwrap_err().to_string(), "split is NaN"),
        (
            datasets::Folder::new("x").load("boston_housing", "train").unwrap().one_hot().unwrap_err().to_string(),
            "`medv` of boston_housing is a quantity",
        ),
        (
            datasets::one_hot(&Array::from([0i64, 3]), 3).unwrap_err().to_string(),
            "the class in row 2 of the batch is 3",
        ),
        (datasets::one_hot(&Array::from([0i64]), 0).unwrap_err().to_string(), "less than 0"),
        (datasets::one_hot(&Array::from([0i32]), 3).unwrap_err().to_string(), "i64"),
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
}
