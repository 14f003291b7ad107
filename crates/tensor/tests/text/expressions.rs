//! Regular expressions.

use estimand_tensor::Strings;
use estimand_tensor::cpu::text::{RegexFullMatch, RegexReplace};

use crate::fixture::Case;

const FIXTURE: &str = include_str!("../../../../oracles/fixtures/text_expressions.txt");

fn replace(strings: &Strings, pattern: &str, rewrite: &str, replace_global: bool) -> Strings {
    let mut out = Strings::default();
    let replace = RegexReplace::new(pattern, rewrite.as_bytes(), replace_global).unwrap();
    replace.apply(strings.as_slice(), &mut out).unwrap();
    out
}

#[test]
fn replacements_are_tensorflows() {
    let texts = &Case::of(FIXTURE, "expression_texts")[0];
    let (strings, odd) = (texts.strings("strings"), texts.strings("odd"));
    const SHOW: &str = r"<\0$1\\>";
    for case in Case::of(FIXTURE, "expression") {
        let pattern = case.word("pattern");
        assert_eq!(replace(&strings, &pattern, "-", true), case.strings("strings_global"), "{pattern}");
        assert_eq!(replace(&strings, &pattern, SHOW, false), case.strings("strings_first"), "{pattern}");
        assert_eq!(replace(&odd, &pattern, SHOW, true), case.strings("odd_global"), "{pattern}");
        assert_eq!(replace(&odd, &pattern, SHOW, false), case.strings("odd_first"), "{pattern}");
        let mut full = vec![false; strings.len()];
        RegexFullMatch::new(&pattern).unwrap().apply(strings.as_slice(), &mut full);
        assert_eq!(full.iter().map(|&b| u8::from(b)).collect::<Vec<_>>(), case.numbers::<u8>("full"), "{pattern}");
    }
    let case = &Case::of(FIXTURE, "groups")[0];
    let ours = replace(&strings, &case.word("pattern"), &case.word("rewrite"), true);
    assert_eq!(ours, case.strings("strings"));
}

#[test]
fn what_re2_refuses_is_refused() {
    for case in Case::of(FIXTURE, "bad_expression") {
        let pattern = case.word("pattern");
        for error in [RegexReplace::new(&pattern, b"", true).map(drop), RegexFullMatch::new(&pattern).map(drop)] {
            let error = error.expect_err(&pattern).to_string();
            assert!(error.contains("invalid regular expression") && error.contains("RE2"), "{error}");
        }
    }
}

/// TensorFlow logs these and returns something else than was asked for; here they are errors.
#[test]
fn bad_rewrites_are_refused() {
    for (rewrite, text) in [
        (&br"\2"[..], "group 2, but the pattern has 1"),
        (br"\x", r"unknown escape \x"),
        (b"a\\", "a backslash at the end"),
        (b"\\\xff", r"unknown escape \\xff"),
    ] {
        let error = RegexReplace::new("(a)", rewrite, true).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn hostile_patterns_neither_hang_nor_grow() {
    // Exponential for engines that backtrack.
    let text: Strings = ["a".repeat(5000)].into_iter().collect();
    assert_eq!(replace(&text, "(a*)*b", "", true), text);
    for pattern in
        ["(?:(?:(?:a{1000}){1000}){1000})", &"(".repeat(100_000), &"[".repeat(100_000), &r"\pL{1000}".repeat(100)]
    {
        let error = RegexReplace::new(pattern, b"", true).map(drop).unwrap_err().to_string();
        assert!(error.len() < 1000, "{error}");
    }
    // Every one of 5,000 matches grows to a megabyte.
    let long = "x".repeat(1 << 20);
    let replace = RegexReplace::new("a", long.as_bytes(), true).unwrap();
    let error = replace.apply(text.as_slice(), &mut Strings::default()).unwrap_err().to_string();
    assert!(error.contains("more than"), "{error}");
}
