//! String ops and bucketize.

use std::fmt::Display;

use estimand_fixture::{Case, FromJson, cases_of};
use estimand_tensor::cpu::bucketize::{Boundaries, Bucketed, bucketize};
use estimand_tensor::cpu::text::{
    AsString, Case as LetterCase, Encoding, JoinInput, ParseNumber, Print, Unit, as_string, join, length, parts,
    reduce_join, split, strip, substr, to_case, to_number,
};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{StringSlice, Strings};

use crate::strings;

fn list(strings: &[&str]) -> Strings {
    strings.iter().collect()
}

/// What a kernel appends to an empty list.
fn made(kernel: impl FnOnce(&mut Strings)) -> Strings {
    let mut out = Strings::default();
    kernel(&mut out);
    out
}

#[test]
fn numbers_are_printed_as_tensorflow_does() {
    for case in &cases_of("text_ops", "as_string") {
        let settings = AsString {
            precision: case.option("precision").unwrap_or(-1),
            scientific: case.option("scientific").unwrap_or(false),
            shortest: case.option("shortest").unwrap_or(false),
            width: case.option("width").unwrap_or(-1),
            fill: case.option("fill").unwrap_or_default(),
        };
        let values = case.array("values");
        match values.dtype.as_str() {
            "f64" => check_print(case, &settings, &values.numbers::<f64>()),
            "f32" => check_print(case, &settings, &values.numbers::<f32>()),
            "i64" => check_print(case, &settings, &values.numbers::<i64>()),
            "i32" => check_print(case, &settings, &values.numbers::<i32>()),
            "u8" => check_print(case, &settings, &values.numbers::<u8>()),
            _ => check_print(case, &settings, &values.numbers::<bool>()),
        }
    }
}

fn check_print<T: Print>(case: &Case, settings: &AsString, values: &[T]) {
    let mut ours = Strings::default();
    match (as_string(values, settings, &mut ours), case.has("error")) {
        (Ok(()), false) => assert_eq!(ours, strings(case, "strings"), "{case}"),
        (Err(_), true) => {}
        (ours, _) => panic!("{case}: {ours:?}, TensorFlow {:?}", case.option::<String>("error")),
    }
}

#[test]
fn numbers_are_read_as_tensorflow_does() {
    fn check<T: ParseNumber + FromJson + PartialEq + Display>(case: &Case, name: &str) {
        let text: Strings = [case.bytes("text")].into_iter().collect();
        let mut ours = [T::parse(b"7").unwrap()];
        let result = to_number(text.as_slice(), 5, &mut ours);
        // Compared as text, which shows the sign of zero and makes NaNs equal.
        match &case.numbers::<T>(name)[..] {
            [] => {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("at position 5"), "{error}");
            }
            [theirs] => {
                assert!(result.is_ok(), "{case}: {name} {theirs}");
                assert_eq!(ours[0].to_string(), theirs.to_string(), "{case}: {name}");
            }
            more => panic!("{} numbers", more.len()),
        }
    }
    for case in cases_of("text_ops", "to_number") {
        check::<f32>(&case, "float32");
        check::<f64>(&case, "float64");
        check::<i32>(&case, "int32");
        check::<i64>(&case, "int64");
    }
}

#[test]
fn long_numbers_are_read_too() {
    let text = format!("0.{}", "3".repeat(500));
    let mut ours = [0.0_f64; 2];
    to_number(list(&[&text, &format!("0x1{}", "0".repeat(400))]).as_slice(), 0, &mut ours).unwrap();
    assert_eq!(ours, [1.0 / 3.0, f64::INFINITY]);
    // 1 + 2^-24 is half way between two f32; a digit behind 300 zeros makes it more than half.
    let mut single = [0.0_f32; 1];
    to_number(list(&[&format!("0x1000001{}1", "0".repeat(20))]).as_slice(), 0, &mut single).unwrap();
    assert_eq!(single[0], f32::from_bits(0x3f80_0001) * 2.0_f32.powi(24 + 84));
}

#[test]
fn pieces_are_tensorflows() {
    let cases = cases_of("text_ops", "split");
    let texts = strings(&cases[0], "strings");
    for case in &cases {
        let (pieces, splits) = split(texts.as_slice(), &case.bytes("separator"), case.setting("max_split"));
        assert_eq!((pieces, splits), (strings(case, "pieces"), case.numbers("splits")), "{case}");
    }
}

#[test]
fn strip_length_and_case_are_tensorflows() {
    let case = &cases_of("text_ops", "simple")[0];
    let texts = strings(case, "strings");
    let texts = texts.as_slice();
    assert_eq!(made(|out| strip(texts, out)), strings(case, "strip"));
    for (name, unit) in [("bytes", Unit::Byte), ("chars", Unit::Utf8Char)] {
        let mut ours = vec![-1; texts.len()];
        length(texts, unit, &mut ours);
        assert_eq!(ours, case.numbers::<i32>(name), "{name}");
    }
    for (name, letters, encoding) in [
        ("lower", LetterCase::Lower, Encoding::Bytes),
        ("upper", LetterCase::Upper, Encoding::Bytes),
        ("lower_utf8", LetterCase::Lower, Encoding::Utf8),
        ("upper_utf8", LetterCase::Upper, Encoding::Utf8),
    ] {
        assert_eq!(made(|out| to_case(texts, letters, encoding, out)), strings(case, name), "{name}");
        // Behind other strings, and from a range.
        let after = made(|out| {
            out.push(b"Before");
            to_case(texts.range(3..9), letters, encoding, out);
        });
        assert_eq!(
            (after.get(0), after.as_slice().range(1..7)),
            (&b"Before"[..], strings(case, name).as_slice().range(3..9))
        );
    }
}

#[test]
fn parts_are_tensorflows() {
    for case in cases_of("text_ops", "substr") {
        let unit = if case.bytes("unit") == b"BYTE" { Unit::Byte } else { Unit::Utf8Char };
        let text: Strings = [case.bytes("text")].into_iter().collect();
        let mut ours = Strings::default();
        let (position, length) = (case.setting("position"), case.setting("length"));
        let result = substr(text.as_slice(), &[position], &[length], unit, 9, &mut ours);
        match (result, case.has("error")) {
            (Ok(()), false) => assert_eq!(ours, strings(&case, "part"), "{case}"),
            (Err(error), true) => assert!(error.to_string().contains("at position 9"), "{error}"),
            _ => panic!("{case}: {ours:?}, TensorFlow {:?}", case.option::<String>("error")),
        }
    }
}

#[test]
fn positions_and_lengths_are_one_for_all_or_one_for_each() {
    let words = list(&["abcd", "efgh"]);
    let parts = |strings: StringSlice<'_>, positions: &[i64], lengths: &[i64]| {
        let mut out = Strings::default();
        substr(strings, positions, lengths, Unit::Byte, 0, &mut out).map(|()| out)
    };
    assert_eq!(parts(words.as_slice(), &[1, 2], &[2]).unwrap(), list(&["bc", "gh"]));
    assert_eq!(parts(words.as_slice().range(0..1), &[0, 3], &[1]).unwrap(), list(&["a", "d"]));
    assert_eq!(parts(words.as_slice().range(0..0), &[9], &[1]).unwrap(), list(&[]));
    let error = parts(words.as_slice(), &[1, 2, 3], &[1]).unwrap_err().to_string();
    assert!(error.contains("2 strings, 3 positions and 1 lengths"), "{error}");
}

#[test]
fn joins_are_tensorflows() {
    for case in cases_of("text_ops", "join") {
        let (a, b) = (strings(&case, "a"), strings(&case, "b"));
        let inputs = [JoinInput::Each(a.as_slice()), JoinInput::One(b"x"), JoinInput::Each(b.as_slice())];
        let ours = made(|out| join(&inputs, &case.bytes("separator"), a.len(), out).unwrap());
        assert_eq!(ours, strings(&case, "strings"), "{case}");
    }
    for case in cases_of("text_ops", "reduce_join") {
        let (x, dims, axes) = (strings(&case, "x"), case.array("x").dims, case.setting::<Vec<i64>>("axes"));
        match (reduce_join(x.as_slice(), &dims, &axes, case.setting("keep_dims"), b"-"), case.has("error")) {
            (Ok((ours, left)), false) => {
                assert_eq!(ours, strings(&case, "strings"), "{case}: {dims:?} {axes:?}");
                assert_eq!(left[..], case.numbers::<usize>("left"), "{case}: {dims:?} {axes:?}");
            }
            (Err(_), true) => {}
            (ours, _) => panic!("{case}: {ours:?}, TensorFlow {:?}", case.option::<String>("error")),
        }
    }
}

#[test]
fn buckets_are_tensorflows() {
    fn check<T: Bucketed + FromJson>(case: &Case) {
        let values = case.numbers::<T>("values");
        let mut ours = vec![-1; values.len()];
        bucketize(&values, Boundaries::new(&case.numbers::<f32>("boundaries")).unwrap(), &mut ours);
        assert_eq!(ours, case.numbers::<i32>("buckets"), "{case}");
    }
    for case in cases_of("text_ops", "bucketize") {
        match case.array("values").dtype.as_str() {
            "i32" => check::<i32>(&case),
            "i64" => check::<i64>(&case),
            "f32" => check::<f32>(&case),
            _ => check::<f64>(&case),
        }
    }
}

#[test]
fn threads_change_nothing() {
    let strings: Strings = (0..20_000).map(|i| format!("{} Ä{}", i % 7, "ß".repeat(i % 5))).collect();
    let mut whole = Strings::default();
    to_case(strings.as_slice(), LetterCase::Upper, Encoding::Utf8, &mut whole);
    let bad: Strings = (0..20_000).map(|i| if i % 5000 == 4999 { "x" } else { "1" }).collect();
    for n_threads in [1, 2, 3] {
        let pool = Pool::new(n_threads);
        let ours = parts::collect(&pool, strings.len(), &|range, out| {
            to_case(strings.as_slice().range(range), LetterCase::Upper, Encoding::Utf8, out);
            Ok(())
        });
        assert_eq!(ours.unwrap(), whole);
        let (pieces, splits) =
            parts::collect_ragged(&pool, strings.len(), &|range| split(strings.as_slice().range(range), b" ", -1));
        assert_eq!((pieces, splits), split(strings.as_slice(), b" ", -1));
        // The first of several errors, whoever finds it.
        let mut numbers = vec![0_i64; bad.len()];
        let error = parts::try_fill(&pool, &mut numbers, &|range, out| {
            to_number(bad.as_slice().range(range.clone()), range.start, out)
        });
        assert!(error.unwrap_err().to_string().contains("\"x\" at position 4999 "));
    }
}

#[test]
fn hostile_settings_are_refused() {
    let print = |settings: AsString| as_string(&[1.0_f64], &settings, &mut Strings::default()).unwrap_err().to_string();
    for size in [2001, i64::MAX] {
        assert!(print(AsString { width: size, ..AsString::default() }).contains("width"));
        assert!(print(AsString { precision: size, ..AsString::default() }).contains("precision"));
    }
    assert!(print(AsString { fill: "é".into(), ..AsString::default() }).contains("fill"));
    let long = "x".repeat(1 << 20);
    let join_all = |inputs: &[JoinInput<'_>], n| join(inputs, long.as_bytes(), n, &mut Strings::default()).unwrap_err();
    for (inputs, n) in [
        (&[JoinInput::One(long.as_bytes())][..], 1 << 20),
        (&[JoinInput::One(b""), JoinInput::One(b"")][..], 1 << 20),
        (&[JoinInput::One(b"")][..], usize::MAX),
        (&[][..], usize::MAX),
    ] {
        assert!(join_all(inputs, n).to_string().contains("more than"));
    }
    let two = list(&["a", "b"]);
    assert!(join_all(&[JoinInput::Each(two.as_slice())], 3).to_string().contains("input 0 of a join has 2 strings"));
    let none = list(&[]);
    for dims in [&[0, 1 << 40][..], &[1 << 40, 0], &[0, usize::MAX]] {
        for axes in [&[0][..], &[1], &[0, 1]] {
            // Nothing to join, however many times.
            let result = reduce_join(none.as_slice(), dims, axes, false, b"-");
            assert!(result.is_ok_and(|(out, _)| out.len() <= 1) || axes.len() == 1, "{dims:?} {axes:?}");
        }
    }
    assert!(reduce_join(two.as_slice(), &[3], &[0], false, b"").unwrap_err().to_string().contains("2 strings"));
    for axis in [i64::MIN, i64::MAX] {
        assert!(reduce_join(two.as_slice(), &[2], &[axis], false, b"").is_err());
    }
}

#[test]
fn bad_boundaries_are_refused() {
    for (boundaries, text) in [(vec![0.0, f32::NAN], "boundary 1"), (vec![0.0, 2.0, 1.0], "fall from 2 to 1 at 1")] {
        let error = Boundaries::new(&boundaries).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(Boundaries::new(&[1.0, 1.0]).unwrap().n_buckets(), 3);
}

#[test]
fn odd_bytes_are_shown_in_messages() {
    let text = [b"\xff".repeat(1000)];
    let error = to_number::<f32>(text.iter().collect::<Strings>().as_slice(), 3, &mut [0.0]).unwrap_err().to_string();
    assert!(error.contains(r"\xff") && error.contains("...") && error.len() < 500, "{error}");
}
