//! Regular expressions.

use estimand_fixture::cases_of;
use estimand_tensor::Strings;
use estimand_tensor::cpu::text::{RegexFullMatch, RegexReplace};

use crate::strings;

fn replace(strings: &Strings, pattern: &str, rewrite: &str, replace_global: bool) -> Strings {
    let mut out = Strings::default();
    let replace = RegexReplace::new(pattern, rewrite.as_bytes(), replace_global).unwrap();
    replace.apply(strings.as_slice(), &mut out).unwrap();
    out
}

#[test]
fn replacements_are_tensorflows() {
    let texts = &cases_of("text_expressions", "expression_texts")[0];
    let (texts, odd) = (strings(texts, "strings"), strings(texts, "odd"));
    const SHOW: &str = r"<\0$1\\>";
    for case in &cases_of("text_expressions", "expression") {
        let pattern: String = case.setting("pattern");
        assert_eq!(replace(&texts, &pattern, "-", true), strings(case, "strings_global"), "{pattern}");
        assert_eq!(replace(&texts, &pattern, SHOW, false), strings(case, "strings_first"), "{pattern}");
        assert_eq!(replace(&odd, &pattern, SHOW, true), strings(case, "odd_global"), "{pattern}");
        assert_eq!(replace(&odd, &pattern, SHOW, false), strings(case, "odd_first"), "{pattern}");
        let mut full = vec![false; texts.len()];
        RegexFullMatch::new(&pattern).unwrap().apply(texts.as_slice(), &mut full);
        assert_eq!(full, case.numbers::<bool>("full"), "{pattern}");
    }
    let case = &cases_of("text_expressions", "groups")[0];
    let [pattern, rewrite] = ["pattern", "rewrite"].map(|key| case.setting::<String>(key));
    assert_eq!(replace(&texts, &pattern, &rewrite, true), strings(case, "strings"));
}

#[test]
fn what_re2_refuses_is_refused() {
    for case in cases_of("text_expressions", "bad_expression") {
        let pattern: String = case.setting("pattern");
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
        (&br"\2"[..], "it uses group 2, but the pattern has 1 groups"),
        (br"\x", r"unknown escape \x"),
        (b"a\\", "it ends in a backslash"),
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
