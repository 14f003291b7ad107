//! Suspicious columns, on rows with a known answer and on real rows.

use estimand::data::datasets;
use estimand::prelude::*;
use estimand::report::{ColumnCheck, Examined, Suspicion};

const N: usize = 200;

/// Labels 0 and 1 that depend on nothing in the columns below: 80 of 200 are 1.
fn label(row: usize) -> i64 {
    i64::from(row * 37 % 100 < 40)
}

fn numbers(of: impl Fn(usize) -> f32) -> Array {
    Array::from((0..N).map(of).collect::<Vec<f32>>())
}

fn ints(of: impl Fn(usize) -> i64) -> Array {
    Array::from((0..N).map(of).collect::<Vec<i64>>())
}

fn texts(of: impl Fn(usize) -> String) -> Array {
    Array::from_strings([N], (0..N).map(of).collect::<Vec<_>>()).unwrap()
}

fn rows(columns: Vec<(&str, Array)>) -> Dataset {
    Dataset::from_arrays(columns)
}

fn found(examined: &Examined) -> Vec<(&str, Suspicion)> {
    examined.findings.iter().map(|finding| (finding.column.as_str(), finding.suspicion)).collect()
}

fn evidence<'a>(examined: &'a Examined, column: &str) -> &'a str {
    &examined.findings.iter().find(|finding| finding.column == column).unwrap().evidence
}

/// Empty fields of whole numbers become 0, but they count as missing, not as a constant 0.
#[test]
fn numbers_that_a_reader_filled_in_are_missing() -> Result<()> {
    let folder = crate::models::Folder::new();
    let path = folder.path().join("rows.csv");
    let mut text = "age,size,y\n".to_string();
    for row in 0..200 {
        let age = if row % 5 < 3 { String::new() } else { (row % 60).to_string() };
        text += &format!("{age},{},{}\n", if row == 7 { String::new() } else { "4".to_string() }, label(row));
    }
    std::fs::write(&path, text).unwrap();
    let examined = ColumnCheck::new().run(&Dataset::from_csv(&path).label("y"))?;
    assert_eq!(evidence(&examined, "age"), "120 of 200 values are missing (60 %)");
    assert!(!found(&examined).iter().any(|(column, _)| *column == "size"), "it is 4 or missing");
    Ok(())
}

#[test]
fn columns_by_themselves() -> Result<()> {
    let data = rows(vec![
        ("plain", numbers(|row| (row % 7) as f32)),
        ("same", ints(|_| 5)),
        ("none", numbers(|_| f32::NAN)),
        // 120 of 200 are missing.
        ("gaps", texts(|row| if row % 5 < 3 { String::new() } else { format!("v{}", row % 3) })),
        ("user", texts(|row| format!("u{}", row * 7919 % 1000))),
        ("row", ints(|row| row as i64 + 1_000)),
        // Floats are measurements: that all differ is usual.
        ("weight", numbers(|row| row as f32 * 0.37 + 1.0)),
        // 100 of 200 values differ: no id.
        ("half", ints(|row| row as i64 / 2 * 13 % 777)),
        ("y", ints(label)),
    ])
    .label("y");
    let examined = ColumnCheck::new().run(&data)?;
    use Suspicion::{Constant, IdLike, MostlyMissing};
    let expected = [("same", Constant), ("none", Constant), ("user", IdLike), ("row", IdLike), ("gaps", MostlyMissing)];
    assert_eq!(found(&examined), expected);
    assert_eq!(evidence(&examined, "same"), "all 200 values are `5`");
    assert_eq!(evidence(&examined, "none"), "all 200 values are missing");
    assert_eq!(evidence(&examined, "user"), "200 different values in 200 different rows");
    assert!(evidence(&examined, "row").ends_with("each is larger than the one before"));
    assert_eq!(evidence(&examined, "gaps"), "120 of 200 values are missing (60 %)");
    assert_eq!((examined.n_rows, examined.n_columns, examined.is_all), (200, 9, true));

    // Repeated rows are no news: the same is found, whatever the batches.
    let again = ColumnCheck::new().max_rows(700).run(&data.repeat_forever().batch(32))?;
    assert_eq!(found(&again), expected);
    assert_eq!((again.n_rows, again.is_all), (700, false));
    Ok(())
}

/// A label of two classes. `number` has one pair of rows in the wrong order at most: of 80 x 120
/// pairs, so that its AUC is over 0.99; `weak` has the larger number in 3 of 4 rows.
#[test]
fn leaks_of_a_label_of_two_classes() -> Result<()> {
    let wrong = |row: usize, every: usize| if row.is_multiple_of(every) { 1 - label(row) } else { label(row) };
    let data = rows(vec![
        ("number", numbers(|row| -(label(row) as f32) * 10.0 - (row % 9) as f32)),
        ("weak", numbers(|row| wrong(row, 4) as f32)),
        ("word", texts(|row| format!("{}{}", ["no", "yes"][label(row) as usize], row % 4))),
        // Only what is there tells it, not what it is.
        ("date", texts(|row| if label(row) == 0 { String::new() } else { format!("day {}", row % 5) })),
        ("died", numbers(|row| if label(row) == 0 { f32::NAN } else { (row % 50) as f32 })),
        ("noise", texts(|row| format!("n{}", row % 6))),
        // Many values, each too rare to tell anything: 100 of two rows.
        ("rare", texts(|row| format!("r{}", row / 2))),
        ("y", ints(label)),
    ])
    .label("y");
    let examined = ColumnCheck::new().run(&data)?;
    let leaking: Vec<&str> =
        examined.findings.iter().filter(|f| f.suspicion == Suspicion::Leaking).map(|f| f.column.as_str()).collect();
    assert_eq!(leaking, ["number", "word", "date", "died"]);
    assert_eq!(evidence(&examined, "number"), "it alone has an AUC of 1.0000 for label `y`");
    assert_eq!(
        evidence(&examined, "word"),
        "guessing label `y` from it alone is right in 100 % of rows, and in 60 % without it"
    );
    Ok(())
}

#[test]
fn leaks_of_classes_and_of_numbers() -> Result<()> {
    let class = |row: usize| (row * 37 % 100 / 25) as i64;
    let target = |row: usize| (row * 61 % N) as f32;
    let columns = || {
        vec![
            ("coded", numbers(move |row| class(row) as f32 * 2.5 + (row % 3) as f32 * 0.1)),
            ("scaled", numbers(move |row| 3.0 - 2.0 * target(row))),
            ("curved", numbers(move |row| target(row).powi(3) / 1e4)),
            ("other", numbers(|row| (row % 17) as f32)),
        ]
    };
    let classes = rows([columns(), vec![("y", texts(|row| format!("c{}", class(row))))]].concat()).label("y");
    assert_eq!(found(&ColumnCheck::new().run(&classes)?), [("coded", Suspicion::Leaking)]);
    let numbers = rows([columns(), vec![("y", numbers(target))]].concat()).label("y");
    let examined = ColumnCheck::new().run(&numbers)?;
    assert_eq!(found(&examined), [("scaled", Suspicion::Leaking), ("curved", Suspicion::Leaking)]);
    assert_eq!(evidence(&examined, "scaled"), "it alone explains 100 % of the variance of label `y`");
    Ok(())
}

#[test]
fn copies_of_other_columns() -> Result<()> {
    let data = rows(vec![
        ("cm", numbers(|row| (row * 31 % 100) as f32)),
        ("code", texts(|row| format!("k{}", row % 8))),
        ("inch", numbers(|row| (row * 31 % 100) as f32 / 2.54)),
        ("name", ints(|row| (row as i64 % 8) * (row as i64 % 8))),
        ("near", ints(|row| if row == 3 { 1 } else { row as i64 % 8 })),
        // Two flags that are rarely set, at different rows: nearly all rows agree, and they are no
        // copies.
        ("flag a", ints(|row| i64::from(row == 5))),
        ("flag b", ints(|row| i64::from(row == 9))),
        ("y", ints(label)),
    ])
    .label("y");
    let examined = ColumnCheck::new().run(&data)?;
    assert_eq!(found(&examined), [("inch", Suspicion::Duplicate), ("name", Suspicion::Duplicate)]);
    assert_eq!(evidence(&examined, "inch"), "its correlation with `cm` is 1.00000");
    assert_eq!(evidence(&examined, "name"), "its 8 values go one to one with the 8 of `code`");
    Ok(())
}

/// Few rows prove nothing but that a column is constant.
#[test]
fn small_and_bad_datasets() -> Result<()> {
    let few =
        Dataset::from_arrays([("id", Array::from([1i64, 2, 3, 4])), ("y", Array::from([0i64, 0, 1, 1]))]).label("y");
    assert_eq!(found(&ColumnCheck::new().run(&few)?), []);
    let one_label = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("y", Array::from([1i64, 1]))]).label("y");
    let examined = ColumnCheck::new().run(&one_label)?;
    assert_eq!(found(&examined), [("y", Suspicion::Constant)]);
    assert!(examined.findings[0].to_string().contains("there is nothing to learn"), "{}", examined.findings[0]);
    let pixels = Dataset::from_array(Array::from_vec([3, 2], vec![0f32; 6])?);
    let examined = ColumnCheck::new().run(&pixels)?;
    assert_eq!((examined.n_columns, examined.not_examined.len()), (0, 1));

    for (error, text) in [
        (ColumnCheck::new().max_rows(0).run(&few).unwrap_err(), "max_rows is 0"),
        (ColumnCheck::new().run(&few.take(0)).unwrap_err(), "has no rows"),
    ] {
        assert!(error.to_string().contains(text), "{error}");
    }
    Ok(())
}

/// Real rows: `educational-num` is `education` in numbers, and nothing else is odd. Iris has a
/// column that nearly tells the class, rightly.
#[test]
fn no_false_alarms() -> Result<()> {
    let examined = ColumnCheck::new().run(&datasets::load("adult", "train")?.dataset())?;
    assert_eq!(found(&examined), [("educational-num", Suspicion::Duplicate)]);
    assert_eq!(evidence(&examined, "educational-num"), "its 16 values go one to one with the 16 of `education`");
    assert_eq!((examined.n_rows, examined.n_columns), (32_561, 15));
    let examined = ColumnCheck::new().run(&datasets::load("iris", "train")?.dataset())?;
    assert_eq!(found(&examined), []);
    Ok(())
}
