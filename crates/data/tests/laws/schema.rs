//! Schemas: what is inferred, written, read and checked.

use std::fs;

use estimand_data::{Csv, Dataset, Schema};
use estimand_tensor::{Array, Batch, DType, FeatureSpec, Ragged};

use crate::plans::{Dice, folder, rows};

/// 60 rows: row i has the id i, the age 20 + i % 30, a job, a height that is missing now and then,
/// and i % 3 tags.
fn people() -> Batch {
    let n = 60i64;
    let jobs = (0..n).map(|i| ["clerk", "farmer", "clerk", "chef \"x\""][i as usize % 4]);
    let heights = (0..n).map(|i| if i % 10 == 7 { f32::NAN } else { 1.5 + 0.1 * (i % 5) as f32 });
    let mut splits = vec![0];
    (0..n).for_each(|i| splits.push(splits[i as usize] + i % 3));
    let tags = (0..splits[60]).map(|i| format!("t{}", i % 2));
    Batch::new()
        .with_feature("id", Array::from((0..n).collect::<Vec<_>>()))
        .and_then(|b| b.with_feature("age", Array::from((0..n).map(|i| 20 + i % 30).collect::<Vec<_>>())))
        .and_then(|b| b.with_feature("job title", Array::from_strings([60], jobs)?))
        .and_then(|b| b.with_feature("height", Array::from(heights.collect::<Vec<_>>())))
        .and_then(|b| b.with_feature("tags", Ragged::new(Array::from_strings([60], tags)?, splits)?))
        .and_then(|b| b.with_label("rich", Array::from((0..n).map(|i| i % 2).collect::<Vec<_>>())))
        .unwrap()
}

#[test]
fn the_text_of_an_inferred_schema() {
    let schema = Schema::of(&Dataset::from_batch(people())).unwrap();
    let (head, columns) = schema.to_toml().split_once("\n\n").unwrap();
    assert!(head.starts_with("# Inferred from 60 rows.\n") && head.lines().all(|line| line.starts_with('#')));
    // Heights: 54 values; 1.5 + 0.1 (i % 5) is 1.7 for i % 10 == 7. 12 of 1.5, 1.6, 1.8, 1.9 and 6
    // of 1.7: mean 1.7,
    // variance (24 * 0.04 + 24 * 0.01) / 54 = 1/45.
    // Ages: 20..=49 twice, mean 34.5, variance (30^2 - 1) / 12.
    let expected = r#"[columns.id]
type = "i64"
kind = "id"                      # 60 distinct among 60 values: nearly every row has its own
required = true                  # 0 of 60 values are missing
min = 0                          # mean 29.500000, deviation 17.318102
max = 59

[columns.age]
type = "i64"
kind = "numeric"                 # 30 distinct values
required = true                  # 0 of 60 values are missing
min = 20                         # mean 34.500000, deviation 8.655441
max = 49

[columns."job title"]
type = "string"
kind = "vocabulary"              # 3 distinct values
required = true                  # 0 of 60 values are missing
domain = [
    "clerk",                     # 30 times
    "chef \"x\"",                # 15 times
    "farmer",                    # 15 times
]

[columns.height]
type = "f32"
kind = "numeric"                 # 5 distinct values
required = false                 # 6 of 60 values are missing
default = nan
min = 1.5                        # mean 1.700000, deviation 0.149071
max = 1.9

[columns.tags]
type = "string"
shape = "ragged"                 # 0 to 2 values, none in 20 rows
kind = "vocabulary"              # 2 distinct values
required = false                 # 0 of 60 values are missing
domain = [
    "t0",                        # 30 times
    "t1",                        # 30 times
]

[columns.rich]
role = "label"
type = "i64"
kind = "vocabulary"              # 2 distinct values, so they may be codes
required = true                  # 0 of 60 values are missing
domain = [
    0,                           # 30 times
    1,                           # 30 times
]
"#;
    assert_eq!(columns.trim_start(), expected);
}

#[test]
fn what_was_inferred_fits_and_reads_back() {
    let data = Dataset::from_batch(people());
    let schema = Schema::of(&data).unwrap();
    let again = Schema::from_toml(schema.to_toml()).unwrap();
    // NaN differs from itself.
    assert_eq!(format!("{:?}", again.columns()), format!("{:?}", schema.columns()));
    assert_eq!(again.to_toml(), schema.to_toml());
    let misfits = data.batch(7).check_schema(&again).unwrap();
    assert!(misfits.is_empty() && misfits.n_rows == 60 && misfits.clone().into_result().is_ok(), "{misfits}");

    let path = folder().join("people.toml");
    let edited = format!("# mine\n{}", schema.to_toml());
    Schema::from_toml(&edited).unwrap().write(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    assert_eq!(Schema::read(&path).unwrap().to_toml(), edited);
}

#[test]
fn any_name_and_any_value_reads_back() {
    let dice = &mut Dice(8);
    let odd = ["", "a.b", "\"", "\\", "\u{7f}", "\n\r\t\u{1}", "žluť", "'", "#", "[x]", "columns", "a = 1", "\u{2028}"];
    for _ in 0..100 {
        let mut batch = Batch::new();
        for _ in 0..1 + dice.below(4) {
            let name = format!("{}{}", odd[dice.below(13) as usize], odd[dice.below(13) as usize]);
            let array = match dice.below(4) {
                0 => Array::from_strings([3], (0..3).map(|_| odd[dice.below(13) as usize])).unwrap(),
                1 => Array::from((0..3).map(|_| f32::from_bits(dice.below(1 << 32) as u32)).collect::<Vec<_>>()),
                2 => Array::from((0..3).map(|_| f64::from_bits(dice.below(u64::MAX))).collect::<Vec<_>>()),
                _ => Array::from((0..3).map(|_| dice.below(u64::MAX) as i64).collect::<Vec<_>>()),
            };
            batch = batch.with_feature(&name, array).unwrap();
        }
        let data = Dataset::from_batch(batch);
        let schema = Schema::of(&data).unwrap();
        let again = Schema::from_toml(schema.to_toml()).unwrap();
        // NaN differs from itself.
        assert_eq!(format!("{:?}", again.columns()), format!("{:?}", schema.columns()));
        let misfits = data.check_schema(&again).unwrap();
        assert!(misfits.is_empty(), "{misfits}\n{}", again.to_toml());
    }
}

#[test]
fn files_are_read_by_a_schema() {
    let folder = folder();
    let data = Dataset::from_batch(people());
    let schema = Schema::of(&data).unwrap();
    let specs = schema.feature_specs().unwrap();
    assert_eq!(specs["tags"], FeatureSpec::ragged(DType::Str));
    assert_eq!(specs["age"], FeatureSpec::dense(DType::I64, []));
    let path = folder.join("people.tfrecord");
    data.write_tfrecord(&path).unwrap();
    let read = schema.with_roles(&Dataset::from_tfrecord(path.as_path(), specs));
    assert!(read.check_schema(&schema).unwrap().is_empty());
    let all = read.batch(100).iter().next().unwrap().unwrap();
    assert_eq!((&all.features()["tags"], all.labels()), (&people().features()["tags"], people().labels()));

    let text = "[columns.age]\ntype = \"i32\"\ndefault = -1\n[columns.job]\ntype = \"string\"\ndefault = \"?\"\n[columns.rich]\nrole = \"label\"\ntype = \"f32\"\n";
    let schema = Schema::from_toml(text).unwrap();
    let path = folder.join("people.csv");
    fs::write(&path, "age,job,rich\n1,,0\n,x,1\n").unwrap();
    let read = schema.with_roles(&Csv::new(path.as_path()).features(schema.feature_specs().unwrap()).dataset());
    let all = read.batch(2).iter().next().unwrap().unwrap();
    assert_eq!(all.features()["age"], Array::from([1i32, -1]).into());
    assert_eq!(all.features()["job"], Array::from_strings([2], ["?", "x"]).unwrap().into());
    assert_eq!(all.labels()["rich"], Array::from([0.0f32, 1.0]).into());
}

#[test]
fn mistakes_are_named_by_line_and_key() {
    let column = |line: &str| format!("# a comment\n[columns.age]\ntype = \"i64\"\n{line}\n");
    let all = [
        ("a = 1".to_string(), "unknown key `a`", 1),
        ("\n\ncolumns = 3".to_string(), "`columns` is a integer; expected tables", 3),
        ("[columns]\n\nage = 3".to_string(), "column `age` is a integer", 3),
        (String::new(), "the schema has no columns", 1),
        ("[columns.age]\nmin = 1".to_string(), "column `age`: `type` is missing", 1),
        ("[columns.age]\ntype = \"int64\"".to_string(), "did you mean \"i64\"?", 2),
        ("[columns.age]\ntype = 64".to_string(), "`type` is 64, expected one of f32, f64", 2),
        (column("minn = 3"), "did you mean `min`?", 4),
        (column("min = 0.5"), "`min` is 0.5, expected a value of i64", 4),
        (column("min = 3\nmax = 2"), "`max`: 2 is below the min of 3", 5),
        (column("min ="), "not valid TOML", 4),
        (column("min = 1\nmin = 2"), "duplicate key", 5),
        (column("kind = \"number\""), "did you mean \"numeric\"?", 4),
        (column("role = \"lable\""), "did you mean \"label\"?", 4),
        (column("shape = [-1]"), "a list of sizes, or \"ragged\"", 4),
        (column("shape = [4_000_000_000, 4_000_000_000, 4_000_000_000]"), "does not fit into the address space", 4),
        (column("shape = [5_000, 5_000]\ndefault = 0"), "a row has 25000000 values; at most 16777216", 4),
        (column("required = 1"), "`required` is 1, expected true or false", 4),
        (column("default = \"x\""), "`default` is \"x\", expected a value of i64", 4),
        (column("shape = \"ragged\"\ndefault = 1"), "a ragged column cannot have a default", 5),
        (column("domain = []"), "a list of at least one value", 4),
        (column("domain = [1,\n 2,\n 1]"), "`domain` has 1 twice", 6),
        (column("domain = [1,\n \"x\"]"), "`domain` is \"x\"", 5),
        ("[columns.x]\ntype = \"string\"\nmin = 1".to_string(), "values of string have no order", 3),
        ("[columns.x]\ntype = \"string\"\nkind = \"numeric\"".to_string(), "a column of strings cannot be numeric", 3),
        ("[columns.x]\ntype = \"f32\"\nmin = nan".to_string(), "NaN cannot be a bound", 3),
        ("[columns.x]\ntype = \"f32\"\ndomain = [1.0]".to_string(), "only strings and integers", 3),
        ("[columns.x]\ntype = \"u8\"\nmax = 256".to_string(), "a value of u8", 3),
        ("[columns.x]\ntype = \"i64\"\nmax = 99999999999999999999".to_string(), "", 3),
        (format!("x = {}", "[".repeat(100_000)), "not valid TOML", 1),
    ];
    for (text, message, line) in all {
        let error = Schema::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{error} should contain {message}");
        assert!(error.contains(&format!("in line {line} of the schema")), "{error} should name line {line}");
    }
    let path = folder().join("bad.toml");
    fs::write(&path, column("minn = 3")).unwrap();
    let error = Schema::read(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("in line 4 of {}", path.display())), "{error}");
    let error = Schema::read(folder().join("none.toml")).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
}

#[test]
fn damaged_text_is_an_error_or_a_schema() {
    let text = Schema::of(&Dataset::from_batch(people())).unwrap().to_toml().as_bytes().to_vec();
    let dice = &mut Dice(3);
    let (mut n_read, mut n_refused) = (0, 0);
    for _ in 0..2000 {
        let mut damaged = text.clone();
        for _ in 0..1 + dice.below(3) {
            let at = dice.below(damaged.len() as u64) as usize;
            match dice.below(3) {
                0 => damaged[at] = b" \"[]=.#\n0x-"[dice.below(11) as usize],
                1 => drop(damaged.remove(at)),
                _ => damaged.truncate(at.max(1)),
            }
        }
        match Schema::from_toml(&String::from_utf8_lossy(&damaged)) {
            Ok(schema) => n_read += usize::from(schema.feature_specs().is_ok()),
            Err(error) => n_refused += usize::from(error.to_string().contains("in line ")),
        }
    }
    assert_eq!(n_read + n_refused, 2000);
    assert!(n_read > 100 && n_refused > 100, "{n_read} read, {n_refused} refused");
}

#[test]
fn misfits_name_column_row_and_value() {
    let schema = Schema::from_toml(
        "[columns.age]\ntype = \"i64\"\nmin = 17\nmax = 90\n\
         [columns.job]\ntype = \"string\"\nrequired = true\ndomain = [\"clerk\", \"farmer\"]\n\
         [columns.pair]\ntype = \"f32\"\nshape = [2]\nmax = 0.1\nrequired = true\n\
         [columns.tags]\ntype = \"string\"\nshape = \"ragged\"\nrequired = true\ndomain = [\"a\"]\n\
         [columns.rich]\nrole = \"label\"\ntype = \"i64\"\ndomain = [0, 1]\n\
         [columns.w]\nrole = \"weights\"\ntype = \"f32\"\nmin = 0\n",
    )
    .unwrap();
    let tags = Ragged::new(Array::from_strings([3], ["a", "b", "a"]).unwrap(), [0, 2, 2, 3]).unwrap();
    let good = Batch::new()
        .with_feature("age", Array::from([16i64, 91, 50]))
        .and_then(|b| b.with_feature("job", Array::from_strings([3], ["clerc", "", "\u{ff}"])?))
        .and_then(|b| b.with_feature("pair", Array::from_vec([3, 2], vec![0.1f32, 0.2, f32::NAN, 0.0, 0.0, 0.0])?))
        .and_then(|b| b.with_feature("tags", tags))
        .and_then(|b| b.with_label("rich", Array::from([0i64, 2, -1])))
        .and_then(|b| b.with_weights(Array::from([1.0f32, -0.5, 0.0])))
        .unwrap();
    let expected = "\
column `age`, row 1: 16 is below the min of 17
column `age`, row 2: 91 is above the max of 90
column `job`, row 1: \"clerc\" is not in the domain; did you mean \"clerk\"?
column `job`, row 2: missing (an empty string), but required
column `job`, row 3: \"\\xc3\\xbf\" is not in the domain
column `pair`, row 1: 0.2 is above the max of 0.1
column `pair`, row 2: missing (NaN), but required
column `tags`, row 2: the row has no values, but they are required
column `tags`, row 1: \"b\" is not in the domain
column `rich`, row 2: 2 is not in the domain
column `rich`, row 3: -1 is not in the domain
column `w`, row 2: -0.5 is below the min of 0
";
    let misfits = schema.check(&good);
    assert_eq!((misfits.to_string().as_str(), misfits.n_misfits), (expected, 12));
    let error = misfits.into_result().unwrap_err().to_string();
    assert!(error.starts_with("12 values do not fit the schema:\ncolumn `age`, row 1"), "{error}");

    let wrong = Batch::new()
        .with_feature("ages", Array::from([1i64]))
        .and_then(|b| b.with_feature("job", Array::from([1i64])))
        .and_then(|b| b.with_feature("pair", Array::from([1.0f32])))
        .and_then(|b| b.with_feature("tags", Array::from_strings([1], ["a"])?))
        .unwrap();
    let expected = "\
column `age`: the data have no such feature; the nearest is `ages`
column `job`: holds i64, expected string
column `pair`: has rows of [], expected rows of [2]
column `tags`: has rows of [], expected ragged rows
column `rich`: the data have no such label
column `w`: the data have no such weights
column `ages`: this feature is not in the schema
";
    assert_eq!(schema.check(&wrong).to_string(), expected);
    // Told once, however many pieces there are.
    let data = Dataset::from_batch(wrong).repeat(5000);
    assert_eq!(data.check_schema(&schema).unwrap().to_string(), expected);
}

#[test]
fn many_misfits_are_counted() {
    let schema = Schema::from_toml("[columns.x]\ntype = \"i64\"\nmax = 3").unwrap();
    let data = Dataset::from_arrays([("x", Array::from((0..5000i64).collect::<Vec<_>>()))]);
    let misfits = data.check_schema(&schema).unwrap();
    // 4 to 4999.
    assert_eq!((misfits.n_misfits, misfits.listed.len(), misfits.listed[9].row), (4996, 10, Some(14)));
    assert!(misfits.to_string().ends_with("and 4986 more\n"));
    assert_eq!(data.batch(999).check_schema(&schema).unwrap(), misfits);
    let twice =
        Batch::new().with_feature("x", Array::from([1i64])).and_then(|b| b.with_label("x", Array::from([1i64])));
    let twice = Schema::of(&Dataset::from_batch(twice.unwrap())).unwrap_err().to_string();
    assert!(twice.contains("two columns of the schema would have the name `x`"), "{twice}");
    let nothing = Schema::of(&Dataset::from_batch(rows(0))).unwrap_err().to_string();
    assert!(nothing.contains("the data have no rows"), "{nothing}");
}
