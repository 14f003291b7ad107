//! String ops and bucketize.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use estimand_tensor::cpu::bucketize::{Boundaries, Bucketed, bucketize};
use estimand_tensor::cpu::text::{
    AsString, Case as LetterCase, Encoding, JoinInput, ParseNumber, Print, Unit, as_string, join, length, parts,
    reduce_join, split, strip, substr, to_case, to_number,
};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{StringSlice, Strings};

use crate::fixture::Case;

const FIXTURE: &str = include_str!("../../../../oracles/fixtures/text_ops.txt");

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
    for case in &Case::of(FIXTURE, "as_string") {
        let setting = |key, default| if case.has_setting(key) { case.one(key) } else { default };
        let settings = AsString {
            precision: setting("precision", -1),
            scientific: case.has_setting("scientific"),
            shortest: case.has_setting("shortest"),
            width: setting("width", -1),
            fill: if case.has_setting("fill") { case.word("fill") } else { String::new() },
        };
        let dtype = case.word("dtype");
        match dtype.as_str() {
            "float64" => check_print(case, &settings, &case.numbers::<f64>("values")),
            "float32" => check_print(case, &settings, &case.numbers::<f32>("values")),
            "int64" => check_print(case, &settings, &case.numbers::<i64>("values")),
            "int32" => check_print(case, &settings, &case.numbers::<i32>("values")),
            "uint8" => check_print(case, &settings, &case.numbers::<u8>("values")),
            _ => {
                check_print(case, &settings, &case.numbers::<u8>("values").iter().map(|&v| v == 1).collect::<Vec<_>>())
            }
        }
    }
}

fn check_print<T: Print>(case: &Case<'_>, settings: &AsString, values: &[T]) {
    let mut ours = Strings::default();
    match (as_string(values, settings, &mut ours), case.error()) {
        (Ok(()), None) => assert_eq!(ours, case.strings("strings"), "{}", case.title),
        (Err(_), Some(_)) => {}
        (ours, theirs) => panic!("{}: {ours:?}, TensorFlow {theirs:?}", case.title),
    }
}

#[test]
fn numbers_are_read_as_tensorflow_does() {
    fn check<T: ParseNumber + FromStr<Err: Debug> + PartialEq + Display>(case: &Case<'_>, name: &str) {
        let text: Strings = [case.text("text")].into_iter().collect();
        let mut ours = [T::parse(b"7").unwrap()];
        let result = to_number(text.as_slice(), 5, &mut ours);
        // Compared as text, which shows the sign of zero and makes NaNs equal.
        match &case.numbers::<T>(name)[..] {
            [] => {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("at position 5"), "{error}");
            }
            [theirs] => {
                assert!(result.is_ok(), "{}: {name} {theirs}", case.title);
                assert_eq!(ours[0].to_string(), theirs.to_string(), "{} {name}", case.title);
            }
            more => panic!("{} numbers", more.len()),
        }
    }
    for case in Case::of(FIXTURE, "to_number") {
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
    let cases = Case::of(FIXTURE, "split");
    let strings = cases[0].strings("strings");
    for case in &cases {
        let (pieces, splits) = split(strings.as_slice(), &case.text("separator"), case.one("max_split"));
        assert_eq!((pieces, splits), (case.strings("pieces"), case.numbers("splits")), "{}", case.title);
    }
}

#[test]
fn strip_length_and_case_are_tensorflows() {
    let case = &Case::of(FIXTURE, "simple")[0];
    let strings = case.strings("strings");
    let strings = strings.as_slice();
    assert_eq!(made(|out| strip(strings, out)), case.strings("strip"));
    for (name, unit) in [("bytes", Unit::Byte), ("chars", Unit::Utf8Char)] {
        let mut ours = vec![-1; strings.len()];
        length(strings, unit, &mut ours);
        assert_eq!(ours, case.numbers::<i32>(name), "{name}");
    }
    for (name, letters, encoding) in [
        ("lower", LetterCase::Lower, Encoding::Bytes),
        ("upper", LetterCase::Upper, Encoding::Bytes),
        ("lower_utf8", LetterCase::Lower, Encoding::Utf8),
        ("upper_utf8", LetterCase::Upper, Encoding::Utf8),
    ] {
        assert_eq!(made(|out| to_case(strings, letters, encoding, out)), case.strings(name), "{name}");
        // Behind other strings, and from a range.
        let after = made(|out| {
            out.push(b"Before");
            to_case(strings.range(3..9), letters, encoding, out);
        });
        assert_eq!(
            (after.get(0), after.as_slice().range(1..7)),
            (&b"Before"[..], case.strings(name).as_slice().range(3..9))
        );
    }
}

#[test]
fn parts_are_tensorflows() {
    for case in Case::of(FIXTURE, "substr") {
        let unit = if case.word("unit") == "BYTE" { Unit::Byte } else { Unit::Utf8Char };
        let strings: Strings = [case.text("text")].into_iter().collect();
        let mut ours = Strings::default();
        let result = substr(strings.as_slice(), &[case.one("position")], &[case.one("length")], unit, 9, &mut ours);
        match (result, case.error()) {
            (Ok(()), None) => assert_eq!(ours, case.strings("part"), "{}", case.title),
            (Err(error), Some(_)) => assert!(error.to_string().contains("at position 9"), "{error}"),
            (_, theirs) => panic!("{}: {ours:?}, TensorFlow {theirs:?}", case.title),
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
    for case in Case::of(FIXTURE, "join") {
        let (a, b) = (case.strings("a"), case.strings("b"));
        let inputs = [JoinInput::Each(a.as_slice()), JoinInput::One(b"x"), JoinInput::Each(b.as_slice())];
        let ours = made(|out| join(&inputs, &case.text("separator"), a.len(), out).unwrap());
        assert_eq!(ours, case.strings("strings"), "{}", case.title);
    }
    for case in Case::of(FIXTURE, "reduce_join") {
        let (x, dims, axes) = (case.strings("x"), case.numbers::<usize>("dims"), case.numbers::<i64>("axes"));
        match (reduce_join(x.as_slice(), &dims, &axes, case.one("keep_dims"), b"-"), case.error()) {
            (Ok((ours, left)), None) => {
                assert_eq!(ours, case.strings("strings"), "{} {dims:?} {axes:?}", case.title);
                assert_eq!(left[..], case.numbers::<usize>("left"), "{} {dims:?} {axes:?}", case.title);
            }
            (Err(_), Some(_)) => {}
            (ours, theirs) => panic!("{} {dims:?} {axes:?}: {ours:?}, TensorFlow {theirs:?}", case.title),
        }
    }
}

#[test]
fn buckets_are_tensorflows() {
    fn check<T: Bucketed + FromStr<Err: Debug>>(case: &Case<'_>) {
        let values = case.numbers::<T>("values");
        let mut ours = vec![-1; values.len()];
        bucketize(&values, &Boundaries::new(case.numbers("boundaries")).unwrap(), &mut ours);
        assert_eq!(ours, case.numbers::<i32>("buckets"), "{}", case.title);
    }
    for case in Case::of(FIXTURE, "bucketize") {
        match case.word("dtype").as_str() {
            "int32" => check::<i32>(&case),
            "int64" => check::<i64>(&case),
            "float32" => check::<f32>(&case),
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
        let error = Boundaries::new(boundaries).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(Boundaries::new(vec![1.0, 1.0]).unwrap().n_buckets(), 3);
}

#[test]
fn odd_bytes_are_shown_in_messages() {
    let text = [b"\xff".repeat(1000)];
    let error = to_number::<f32>(text.iter().collect::<Strings>().as_slice(), 3, &mut [0.0]).unwrap_err().to_string();
    assert!(error.contains(r"\xff") && error.contains("...") && error.len() < 500, "{error}");
}
