//! Twenty typical mistakes. `docs/mistakes.md` shows the code and the message of each; this test
//! runs them and compares.

use std::path::Path;

use estimand::nn::column::{Columns, categorical_column_with_identity};
use estimand::prelude::*;

/// The rows of the mistakes: flats with their size, their age, their city and their price.
fn flats() -> Dataset {
    let cities = Array::from_strings([6], ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Bern"]).unwrap();
    Dataset::from_arrays([
        ("size", Array::from([40f32, 75.0, 60.0, 110.0, 55.0, 90.0])),
        ("age", Array::from([12i64, 3, 40, 8, 25, 1])),
        ("city", cities),
        ("class", Array::from([0i64, 1, 2, 2, 0, 1])),
        ("price", Array::from([200f32, 450.0, 300.0, 700.0, 280.0, 610.0])),
    ])
}

/// A column of numbers.
fn size() -> Columns {
    [numeric_column("size").into()].into()
}

/// A mistake: its heading in the book, and the program.
type Mistake = (&'static str, fn(&Path) -> Result<()>);

const MISTAKES: &[Mistake] = &[
    ("A column that does not exist in the data", |folder| {
        let columns = [numeric_column("sice").into()];
        let model = DnnRegressor::new([8], columns).model_dir(folder).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("Labels that are strings, without a vocabulary", |folder| {
        let model = LinearClassifier::new(size()).n_classes(3).model_dir(folder).build()?;
        model.train(flats().label("city").batch(3)).map(drop)
    }),
    ("A shape that does not fit", |folder| {
        let columns = [numeric_column("size").shape([2]).into()];
        let model = DnnRegressor::new([8], columns).model_dir(folder).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("A CSV field without a number", |folder| {
        let path = folder.join("flats.csv");
        std::fs::write(&path, format!("size,price\n{}large,450\n", "40,200\n".repeat(200)))
            .map_err(|e| Error::io(&path, "write", &e))?;
        let data = Dataset::from_csv(&path).label("price");
        DnnRegressor::new([8], size()).model_dir(folder).build()?.train(data.batch(2)).map(drop)
    }),
    ("A loss that becomes NaN", |folder| {
        let sizes = Array::from([40f32, f32::NAN, 60.0]);
        let data = Dataset::from_arrays([("size", sizes), ("price", Array::from([200f32, 450.0, 300.0]))]);
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.train(data.label("price").batch(3)).map(drop)
    }),
    ("A prediction before the training", |folder| {
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.predict(flats().batch(3)).collect::<Result<Vec<_>>>().map(drop)
    }),
    ("An architecture that was changed after the training", |folder| {
        let data = flats().label("price").batch(3);
        DnnRegressor::new([8], size()).model_dir(folder).build()?.train(&data)?;
        DnnRegressor::new([16], size()).model_dir(folder).build()?.evaluate(&data).map(drop)
    }),
    ("A feature of another dtype", |folder| {
        let columns = [numeric_column("city").into()];
        let model = DnnRegressor::new([8], columns).model_dir(folder).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("Too few classes", |folder| {
        let model = DnnClassifier::new([8], size()).model_dir(folder).build()?;
        model.train(flats().label("class").batch(3)).map(drop)
    }),
    ("Too few classes, of several", |folder| {
        let model = DnnClassifier::new([8], size()).n_classes(3).model_dir(folder).build()?;
        model.train(flats().label("age").batch(3)).map(drop)
    }),
    ("No rows at all", |folder| {
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.train(flats().label("price").batch(100).drop_remainder()).map(drop)
    }),
    ("A typo in the name of a feature", |folder| {
        let model = Estimator::new(|cx| {
            let price = Dense::new(1).apply(&cx.feature("sizes").reshape([-1, 1]));
            RegressionHead::new().spec(cx, &price, Optimizer::new(Sgd::default(), 0.01))
        });
        model.model_dir(folder).build()?.train(flats().label("price").batch(3)).map(drop)
    }),
    ("A hyper-parameter of another type", |folder| {
        let model = Estimator::new(|cx| {
            let price = Dense::new(cx.params().usize("units")?).apply(&cx.feature("size").reshape([-1, 1]));
            RegressionHead::new().spec(cx, &price, Optimizer::new(Sgd::default(), 0.01))
        });
        let model = model.params(HParams::new().set("units", 1.5)).model_dir(folder).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("An evaluation without an end", |folder| {
        let data = flats().label("price").repeat_forever().batch(3);
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.train(TrainSpec::new(&data).max_steps(10))?;
        model.evaluate(&data).map(drop)
    }),
    ("A file that does not exist", |folder| {
        let data = Dataset::from_csv("flats.csv").label("price").batch(3);
        DnnRegressor::new([8], size()).model_dir(folder).build()?.train(data).map(drop)
    }),
    ("A folder that cannot be written", |folder| {
        let file = folder.join("file");
        std::fs::write(&file, "").map_err(|e| Error::io(&file, "write", &e))?;
        let model = DnnRegressor::new([8], size()).model_dir(file.join("model")).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("A category in a deep network", |folder| {
        let city = categorical_column_with_vocabulary_list("city", ["Rome", "Oslo", "Bern"]);
        DnnRegressor::new([8], [city.into()]).model_dir(folder).build().map(drop)
    }),
    ("An identity column with too few ids", |folder| {
        let age = categorical_column_with_identity("age", 10);
        let model = LinearRegressor::new([age.into()]).model_dir(folder).build()?;
        model.train(flats().label("price").batch(3)).map(drop)
    }),
    ("A label that was not named", |folder| {
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.train(flats().batch(3)).map(drop)
    }),
    ("An unknown key of a prediction", |folder| {
        let data = flats().label("price").batch(3);
        let model = DnnRegressor::new([8], size()).model_dir(folder).build()?;
        model.train(&data)?;
        model.predict(&data).try_for_each(|row| row?.f32("prediction").map(drop))
    }),
];

/// The message without what differs from one machine to the next: the model folder and the lines of
/// files.
fn plain(message: &str, folder: &Path) -> String {
    let message = message.replace(&folder.display().to_string(), "models/flats");
    let message = message.replace("crates/estimand/../../tests/mistakes.rs", "src/main.rs");
    let mut parts = message.split(".rs:");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, rest| text + ".rs" + rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The blocks of a language in a chapter, between its fences.
fn blocks<'a>(section: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    section.split(&fence[..]).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_mistake_has_the_message_of_the_book() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let book = std::fs::read_to_string(format!("{root}/docs/mistakes.md")).unwrap();
    let source = std::fs::read_to_string(format!("{root}/tests/mistakes.rs")).unwrap();
    let own: Vec<String> = source.lines().map(|line| line.trim().replace(".map(drop)", "")).collect();
    let mut sections: Vec<&str> = book.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), MISTAKES.len());
    for (number, (title, mistake)) in MISTAKES.iter().enumerate() {
        let folder = std::env::temp_dir().join(format!("estimand-mistakes-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let message = plain(&mistake(&folder).expect_err(title).to_string(), &folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let section = sections.remove(0);
        assert_eq!(section.lines().next(), Some(*title));
        assert_eq!(blocks(section, "text"), [format!("{message}\n")], "{title}");
        for line in blocks(section, "rust,ignore").concat().lines().map(str::trim) {
            assert!(own.iter().any(|own| own == line), "{title}: {line}");
        }
    }
}
