//! CSV files: what is read from them, and what is said about what cannot be.

use std::path::PathBuf;

use estimand_data::{Compression, Csv, Dataset, Files, InputContext, OnError, Position};
use estimand_tensor::{Array, Batch, DType, ErrorKind, Feature, FeatureSpec, Result};

use crate::plans::{Dice, folder};

fn file(name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn all(data: impl Into<Dataset>) -> Result<Batch> {
    data.into().batch(1_000_000).iter().next().unwrap()
}

fn strings(batch: &Batch, name: &str) -> Vec<String> {
    let Feature::Dense(array) = &batch.features()[name] else { panic!("dense") };
    array.strings().unwrap().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
}

fn error(data: impl Into<Dataset>) -> String {
    data.into().iter().find_map(Result::err).expect("an error").to_string()
}

#[test]
fn types_are_the_narrowest_that_fit() -> Result<()> {
    let path = file(
        "types.csv",
        "small,large,real,huge,text,gone,mixed\n1,1,1,1,1,,1\n-2,3000000000,2.5e0,1e300,x,,\n,,,,,,0x\n",
    );
    let csv = Csv::new(&path);
    let types = [DType::I32, DType::I64, DType::F32, DType::F64, DType::Str, DType::Str, DType::Str];
    let found = csv.inferred()?;
    assert_eq!(found.iter().map(|c| c.dtype()).collect::<Vec<_>>(), types);
    let line = found[1].to_string();
    assert!(
        line.starts_with("large: i64 by \"3000000000\" in row 2 of ") && line.ends_with("2 values, 1 missing"),
        "{line}"
    );

    let data = csv.clone().dataset();
    assert!(!data.explain().contains("small"), "explaining reads nothing");
    assert_eq!(data.spec()?.values().map(FeatureSpec::dtype).collect::<Vec<_>>(), types);
    assert!(
        data.explain()
            .starts_with("csv: small i32, large i64, real f32, huge f64, text string, gone string, mixed string from ")
    );
    let batch = all(csv)?;
    assert_eq!(batch.features()["small"], Array::from([1i32, -2, 0]).into());
    assert_eq!(batch.features()["real"], Array::from([1.0f32, 2.5, 0.0]).into());
    assert_eq!(strings(&batch, "mixed"), ["1", "", "0x"]);
    Ok(())
}

/// What TensorFlow 2.15's `make_csv_dataset` does with these files stands in docs/tf-parity.md.
#[test]
fn fields_that_tensorflow_infers_otherwise() -> Result<()> {
    // TensorFlow: strings.
    for text in ["inf", "nan", "-INF"] {
        let csv = Csv::new(file("words.csv", format!("a\n1\n{text}\n")));
        assert_eq!(csv.inferred()?[0].dtype(), DType::F32, "{text}");
        assert!(all(csv)?.features()["a"].n_rows() == Some(2));
    }
    // TensorFlow: int32, and then an error.
    let plus = Csv::new(file("plus.csv", "a\n+5\n6\n"));
    assert_eq!(all(plus)?.features()["a"], Array::from([5.0f32, 6.0]).into());
    // TensorFlow: errors.
    for text in ["a,b\n1,2\n\n3,4\n", "a,b\n\n1,2\n3,4\n\n"] {
        let batch = all(Csv::new(file("blank.csv", text)))?;
        assert_eq!(batch.features()["b"], Array::from([2i32, 4]).into());
    }
    let one = all(Csv::new(file("one.csv", "a\n1\n\n3\n")))?;
    assert_eq!(one.features()["a"], Array::from([1i32, 0, 3]).into());
    Ok(())
}

/// Files of old Macs end their lines with `\r`; they read as no rows at all.
#[test]
fn a_carriage_return_ends_a_row() -> Result<()> {
    let text = "a,b\r1,x\r2,\"y\rz\"\r3,w";
    let path = file("mac.csv", text);
    let batch = all(Csv::new(&path))?;
    assert_eq!(batch.features()["a"], Array::from([1i32, 2, 3]).into());
    assert_eq!(strings(&batch, "b"), ["x", "y\rz", "w"]);
    // Wherever the file is cut, also within `\r\n`.
    for ends in ["\r", "\r\n", "\n"] {
        let path = file("ends.csv", text.replace("\rz", "_z").replace('\r', ends));
        for buffer_size in 1..20 {
            let batch = all(Csv::new(Files::new(&path).buffer_size(buffer_size)))?;
            assert_eq!(strings(&batch, "b"), ["x", "y_z", "w"], "{ends:?} in pieces of {buffer_size}");
        }
    }
    let bad = error(Csv::new(file("mac_bad.csv", "a\r1\r2\rx\r")).feature("a", FeatureSpec::dense(DType::I32, [])));
    assert!(bad.contains("row 3") && bad.contains("line 4"), "{bad}");
    Ok(())
}

#[test]
fn options() -> Result<()> {
    let path = file("options.tsv", "a\tb\tc\n1\tx,\"y\"\t?\n2\tNA\t7\n");
    let csv = || Csv::new(&path).delimiter(b'\t').quoting(false).na_values(["?", "NA"]);
    let batch = all(csv())?;
    assert_eq!(strings(&batch, "b"), ["x,\"y\"", ""]);
    assert_eq!(batch.features()["c"], Array::from([0i32, 7]).into());

    // Declared: another type, defaults, a shape of feature columns.
    let spec = FeatureSpec::Dense { dtype: DType::F32, dims: vec![1], default: Some(Array::from([-1.0f32])) };
    let declared =
        csv().feature("c", spec).features([("b", FeatureSpec::dense_or(Array::from_strings([0usize; 0], ["none"])?))]);
    let batch = all(declared)?;
    assert_eq!(batch.features()["c"], Array::from_vec([2, 1], vec![-1.0f32, 7.0])?.into());
    assert_eq!(strings(&batch, "b"), ["x,\"y\"", "none"]);

    // A selection stays in the order of the file; the label leaves the features.
    let batch = all(csv().select(["c", "a"]).label("c"))?;
    assert_eq!(batch.features().keys().map(|k| &**k).collect::<Vec<_>>(), ["a"]);
    assert_eq!(batch.labels()["c"], Array::from([0i32, 7]).into());

    // Names of one's own, over a header or without one.
    let batch = all(csv().column_names(["x", "y", "z"]).select(["x"]))?;
    assert_eq!(batch.features()["x"], Array::from([1i32, 2]).into());
    let batch = all(csv().column_names(["x", "y", "z"]).header(false).select(["x"]))?;
    assert_eq!(strings(&batch, "x"), ["a", "1", "2"]);
    Ok(())
}

#[test]
fn marks_blank_lines_and_packed_files() -> Result<()> {
    use std::io::Write;
    let text = "\u{feff}\"a\",b\r\n\r\n1,\"two\nlines\"\r\n\n3,\"q\"\"q\"";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let packed = file("marks.csv.gz", gzip.finish().unwrap());
    let misnamed = file("marks.packed", std::fs::read(&packed).unwrap());
    for csv in [Csv::new(file("marks.csv", text)), Csv::new(packed), Csv::new(misnamed).compression(Compression::Gzip)]
    {
        let batch = all(csv)?;
        assert_eq!(batch.features()["a"], Array::from([1i32, 3]).into());
        assert_eq!(strings(&batch, "b"), ["two\nlines", "q\"q"]);
    }
    // One column: an empty line is a missing value.
    assert_eq!(all(Csv::new(file("one.csv", "a\n1\n\n2\n")))?.features()["a"], Array::from([1i32, 0, 2]).into());
    Ok(())
}

/// A quoted header with a line end in it, after a byte order mark. A reader that looks for the end
/// of the first record must skip the mark before it looks for the quote.
#[test]
fn a_mark_before_a_quote_does_not_hide_it() -> Result<()> {
    let path = file("marked.csv", "\u{feff}\"long\nname\",b\n1,2\n3,4\n");
    for buffer_size in [1, 3, 13, 1 << 20] {
        let batch = all(Csv::new(Files::new(&path).buffer_size(buffer_size)))?;
        assert_eq!(batch.features()["long\nname"], Array::from([1i32, 3]).into());
    }
    Ok(())
}

#[test]
fn mistakes_are_named_with_file_row_column_and_text() {
    let good = file("good.csv", "age,job\n39,clerk\n50,chef\n");
    let csv = || Csv::new(&good);
    for (data, texts) in [
        (csv().select(["agee"]).dataset(), vec!["no column `agee`", "good.csv", "did you mean `age`?"]),
        (csv().label("jobs").dataset(), vec!["no column `jobs`", "did you mean `job`?"]),
        (csv().feature("x", FeatureSpec::dense(DType::I32, [])).dataset(), vec!["no column `x`", "there are age, job"]),
        (csv().select(["age"]).label("job").dataset(), vec!["label `job` is not among the selected"]),
        (csv().select([""; 0]).dataset(), vec!["no column is selected"]),
        (csv().header(false).dataset(), vec!["no header, and no column names were given"]),
        (csv().column_names(["a", "a"]).dataset(), vec!["two columns are named `a`"]),
        (csv().delimiter(b'\n').dataset(), vec!["cannot separate fields"]),
        (csv().feature("age", FeatureSpec::ragged(DType::I64)).dataset(), vec!["one value per row"]),
        (csv().feature("age", FeatureSpec::dense(DType::F32, [2])).dataset(), vec!["shape [2]"]),
        (csv().feature("age", FeatureSpec::dense(DType::Bool, [])).dataset(), vec!["as bool"]),
        (
            csv().feature("job", FeatureSpec::dense(DType::F32, [])).dataset(),
            vec![
                "column `job` has \"clerk\", which is not a valid f32",
                "in row 1 of",
                "good.csv, line 2",
                "the type was declared",
            ],
        ),
        (Csv::new(file("empty.csv", "")).dataset(), vec!["no header in", "empty.csv"]),
        (Csv::new(folder().join("nothing-*.csv")).dataset(), vec!["no file matches", "nothing-*.csv"]),
        (Csv::new(folder().join("absent.csv")).dataset(), vec!["cannot open", "absent.csv"]),
        (
            Csv::new(file("few.csv", "a,b\n1,2\n3\n4,5,6\n")).dataset(),
            vec!["the row has 1 fields; expected 2", "in row 2 of", "line 3"],
        ),
        (
            Csv::new(file("stray.csv", "a,b\n1,5\" pipe\n")).dataset(),
            vec!["a field contains a quote", "quoting(false)"],
        ),
        (Csv::new(file("open.csv", "a,b\n1,\"x\n2,y\n")).dataset(), vec!["never closed", "in row 1 of"]),
        (Csv::new(file("after.csv", "a,b\n1,\"x\" y\n")).dataset(), vec!["a field has text after its closing quote"]),
        (
            Csv::new(file("latin.csv", b"a,b\n1,caf\xe9\n")).dataset(),
            vec!["column `b` has \"caf\\xe9\", which is not UTF-8", "utf8(false)"],
        ),
        (
            Csv::new(file("gap.csv", "a,b\n1,2\n3,\n")).feature("b", FeatureSpec::dense(DType::I64, [])).dataset(),
            vec!["column `b` has no value", "FeatureSpec::dense_or"],
        ),
    ] {
        let error = error(data);
        for text in texts {
            assert!(error.contains(text), "{text:?} in {error}");
        }
    }
    let bytes = all(Csv::new(folder().join("latin.csv")).utf8(false)).unwrap();
    let Feature::Dense(array) = &bytes.features()["b"] else { panic!("dense") };
    assert_eq!(array.strings().unwrap().next(), Some(&b"caf\xe9"[..]));
}

#[test]
fn the_kind_of_an_error_holds_the_place() {
    let path = file("kind.csv", "a,b\n1,2\n1,2\n1,x2\n");
    let data = Csv::new(&path).n_rows_for_inference(2).dataset();
    let error = data.iter().find_map(Result::err).unwrap();
    assert_eq!(*error.kind(), ErrorKind::Data { path: Some(path), row: Some(3), column: Some("b".into()) });
    assert!(error.to_string().contains("the type was found by \"2\" in row 1 of"), "{error}");
    assert_eq!(data.iter().filter_map(Result::ok).count(), 2, "the rows before it are given");
}

#[test]
fn types_that_drift_between_files() -> Result<()> {
    let (a, b) = (file("drift-a.csv", "x,y\n1,2\n"), file("drift-b.csv", "x,y\n2.5,3\n"));
    // Numbers become wider, and the report says where.
    let found = Csv::new([a.clone(), b.clone()]).inferred()?;
    assert_eq!(found[0].dtype(), DType::F32);
    assert!(found[0].to_string().contains("by \"2.5\" in row 1 of") && found[0].to_string().contains("drift-b.csv"));
    // Numbers that turn into text are an error.
    let c = file("drift-c.csv", "x,y\n4,n/a\n");
    let text = error(Csv::new([a.clone(), c.clone()]));
    for part in
        ["column `y` is i32 in the earlier files, but has \"n/a\" here", "in row 1 of", "drift-c.csv", "na_values"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(all(Csv::new([a.clone(), c]).na_values(["n/a"]))?.features()["y"], Array::from([2i32, 0]).into());
    // So is another header.
    let text = error(Csv::new([a, file("drift-d.csv", "y,x\n1,2\n")]));
    assert!(
        text.contains("column 1 of the header is `y`, but in the first file it is `x`") && text.contains("drift-d.csv"),
        "{text}"
    );
    Ok(())
}

#[test]
fn bad_rows_are_set_aside_up_to_a_budget() -> Result<()> {
    let mut text = "id,v\n".to_string();
    let is_bad = |i: u32| i % 7 == 3;
    for i in 0..60 {
        text += &if is_bad(i) { format!("{i},\"bad, \"\"{i}\"\"\"\n") } else { format!("{i},{i}\n") };
    }
    let path = file("quarantine.csv", text);
    let aside = folder().join("aside.csv");
    let specs = [("id", FeatureSpec::dense(DType::I32, [])), ("v", FeatureSpec::dense(DType::F32, []))];
    let n_bad = (0..60).filter(|i| is_bad(*i)).count() as u64;
    let csv = |budget, buffer| {
        let files = Files::new(&path).buffer_size(buffer);
        Csv::new(files).features(specs.clone()).on_error(OnError::Quarantine { file: aside.clone(), budget })
    };
    let good: Vec<i32> = (0..60).filter(|i| !is_bad(*i)).map(|i| i as i32).collect();
    for buffer in [1, 30, 100_000] {
        let data = csv(n_bad, buffer).dataset().repeat(2).batch(4);
        let mut batches = data.iter();
        let mut found = Vec::new();
        let mut places = Vec::new();
        while let Some(batch) = batches.next() {
            let batch = batch?;
            let Feature::Dense(ids) = &batch.features()["id"] else { panic!("dense") };
            found.extend_from_slice(ids.as_slice::<i32>()?);
            places.push(Position::from_bytes(&batches.position().to_bytes())?);
        }
        assert_eq!(found, good.repeat(2));
        let written = std::fs::read_to_string(&aside).unwrap();
        assert_eq!(written.lines().count() as u64, 1 + n_bad, "once, not in every epoch:\n{written}");
        let line = format!("\"{}\",\"4\",\"v\",", path.display());
        assert!(written.lines().nth(1).unwrap().starts_with(&line), "{written}");
        let rows: Vec<_> = Csv::new(&aside).dataset().iter().collect::<Result<_>>()?;
        assert_eq!(rows.len() as u64, n_bad, "it is a CSV file itself");

        // Stopped anywhere, the file ends up the same.
        for place in places.iter().take(12) {
            assert!(data.iter_from(&InputContext::default(), place).all(|batch| batch.is_ok()));
            assert_eq!(std::fs::read_to_string(&aside).unwrap(), written);
        }
        let text = error(csv(n_bad - 1, buffer));
        assert!(
            text.contains(&format!("there are {n_bad} bad rows, but only {} were allowed", n_bad - 1))
                && text.contains("aside.csv"),
            "{text}"
        );
    }
    Ok(())
}

/// Random text of fields, quotes and line ends: the rows, bad ones set aside, do not depend on
/// buffers, threads or where reading began.
#[test]
fn random_text_is_read_alike_from_anywhere() -> Result<()> {
    let aside = folder().join("random-aside.csv");
    for number in 0..150 {
        let mut dice = Dice(number);
        let mut text = "a,b\n".to_string();
        for _ in 0..dice.below(60) {
            text += ["1", "22", ",", ",", "\n", "\n", "\r\n", "\"", "\"\"", "x", "\"a\",\"b\n\"\n", "1,2\n"]
                [dice.below(12) as usize];
        }
        let path = file("random.csv", &text);
        let read = |buffer: usize, n_threads: usize, from: &Position| {
            let files = Files::new(&path).buffer_size(buffer);
            let csv = Csv::new(files).features(
                ["a", "b"].map(|n| (n, FeatureSpec::dense_or(Array::from_strings([0usize; 0], ["-"]).unwrap()))),
            );
            let data = csv.on_error(OnError::Quarantine { file: aside.clone(), budget: 1_000 }).dataset();
            let cx = InputContext { n_threads, ..InputContext::default() };
            let mut rows = data.iter_from(&cx, from);
            let mut found = Vec::new();
            while let Some(row) = rows.next() {
                let row = row.unwrap();
                found.push((strings(&row, "a"), strings(&row, "b"), rows.position().clone()));
            }
            (found, std::fs::read_to_string(&aside).unwrap())
        };
        let whole = read(1 << 20, 1, &Position::default());
        for buffer in [1, 2, 7, 50] {
            assert_eq!(read(buffer, 1 + dice.below(3) as usize, &Position::default()), whole, "{text:?} by {buffer}");
        }
        for (i, (_, _, place)) in whole.0.iter().enumerate() {
            assert_eq!(read(5, 2, place), (whole.0[i + 1..].to_vec(), whole.1.clone()), "{text:?} from {i}");
        }
    }
    Ok(())
}
