//! Vocabularies: files, lookups, and what they refuse.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use estimand_fixture::cases_of;
use estimand_tensor::cpu::text::{Buckets, parts};
use estimand_tensor::parallel::Pool;
use estimand_tensor::vocabulary::{Terms, Unknown, Vocabulary, VocabularyFile};
use estimand_tensor::{DType, ErrorKind, Limits, Result, Strings};

use crate::strings;

/// A file that is gone at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(content: &[u8]) -> Temporary {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("estimand_vocabulary_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        Temporary(path)
    }

    fn file(&self, size: usize) -> VocabularyFile {
        let file = VocabularyFile::new(&self.0);
        if size == 0 { file } else { file.size(size) }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn all(terms: &Terms) -> Strings {
    let mut out = Strings::default();
    assert!((0..terms.len()).all(|number| terms.push_to(number, &mut out)));
    assert!(!terms.push_to(terms.len(), &mut out));
    out
}

fn unknown(n_buckets: i64) -> Unknown {
    if n_buckets == 0 { Unknown::Id(-1) } else { Unknown::Buckets(Buckets::new(n_buckets).unwrap()) }
}

#[test]
fn files_have_the_terms_tensorflow_reads() {
    for case in cases_of("text_vocabulary", "file") {
        let file = Temporary::new(&case.bytes("content"));
        let ours = file.file(case.setting("size")).read();
        match (ours, case.has("error")) {
            (Ok(ours), false) => assert_eq!(all(ours.terms()), strings(&case, "terms"), "{case}"),
            (Err(_), true) => {}
            (ours, _) => panic!("{case}: {ours:?}, TensorFlow {:?}", case.option::<String>("error")),
        }
    }
    for case in cases_of("text_vocabulary", "file_ints") {
        let file = Temporary::new(&case.bytes("content"));
        match (file.file(case.setting("size")).read_ints(), case.has("error")) {
            (Ok(ours), false) => {
                let terms: Strings = case.numbers::<i64>("terms").iter().map(i64::to_string).collect();
                assert_eq!(all(ours.terms()), terms, "{case}");
                assert_eq!(ours.terms().dtype(), DType::I64);
            }
            (Err(_), true) => {}
            (ours, _) => panic!("{case}: {ours:?}, TensorFlow {:?}", case.option::<String>("error")),
        }
    }
}

#[test]
fn ids_are_tensorflows() {
    let first = &cases_of("text_vocabulary", "lookup")[0];
    let vocabulary = Vocabulary::from_strings(strings(first, "terms")).unwrap();
    let queries = strings(first, "queries");
    for case in cases_of("text_vocabulary", "lookup") {
        let mut ids = vec![7; queries.len()];
        vocabulary.lookup(queries.as_slice(), unknown(case.setting("n_buckets")), &mut ids).unwrap();
        assert_eq!(ids, case.numbers::<i64>("ids"), "{case}");
    }
    let case = &cases_of("text_vocabulary", "lookup_ints")[0];
    let vocabulary = Vocabulary::from_ints(case.numbers("terms")).unwrap();
    let queries = case.numbers::<i64>("queries");
    let mut ids = vec![7; queries.len()];
    vocabulary.lookup_ints(&queries, unknown(case.setting("n_buckets")), &mut ids).unwrap();
    assert_eq!(ids, case.numbers::<i64>("ids"));
}

/// Cases 30-32 of the specification, which were read off TensorFlow 2.15.
#[test]
fn specified_cases() {
    let find = |vocabulary: &Vocabulary, words: &[&str], unknown| {
        let mut ids = vec![7; words.len()];
        vocabulary.lookup(words.iter().collect::<Strings>().as_slice(), unknown, &mut ids).unwrap();
        ids
    };
    let colours = Vocabulary::from_strings(["R", "G", "B", "Y"].into_iter().collect()).unwrap();
    assert_eq!(find(&colours, &["R", "Z", "B"], Unknown::Id(-1)), [0, -1, 2]);
    assert_eq!(find(&colours, &["R", "Z", "B"], Unknown::Id(0)), [0, 0, 2]);
    let file = Temporary::new(b"a\nb\nc\n");
    assert_eq!(find(&file.file(2).read().unwrap(), &["a", "c", "zz"], unknown(5)), [0, 4, 4]);
    let tens = Vocabulary::from_ints(vec![10, 20, 30]).unwrap();
    let mut ids = [7; 5];
    tens.lookup_ints(&[10, 11, 12, 13, 0], unknown(3), &mut ids).unwrap();
    assert_eq!(ids, [0, 4, 4, 5, 4]);
}

#[test]
fn ids_lead_back_to_terms() {
    let case = &cases_of("text_vocabulary", "reverse")[0];
    let terms = Terms::from_strings(["a", "b", "c"].into_iter().collect()).unwrap();
    let mut ours = Strings::default();
    terms.find(&case.numbers::<i64>("ids"), &case.bytes("unknown"), &mut ours);
    assert_eq!(ours, strings(case, "terms"));

    let case = &cases_of("text_vocabulary", "reverse_repeated")[0];
    let file = Temporary::new(&case.bytes("content"));
    let mut ours = Strings::default();
    file.file(0).terms().unwrap().find(&case.numbers::<i64>("ids"), b"", &mut ours);
    assert_eq!(ours, strings(case, "terms"));
}

#[test]
fn lines_that_cross_the_reads_are_whole() {
    // 200,000 lines of 3 to 40 bytes are several megabytes, read in parts of one.
    let words: Strings = (0..200_000).map(|i| format!("{i}{}", "x".repeat(i % 37))).collect();
    let lines = Terms::from_strings(words.clone()).unwrap().to_lines().unwrap();
    let file = Temporary::new(&lines);
    let vocabulary = file.file(0).read().unwrap();
    assert_eq!(all(vocabulary.terms()), words);
    let per_term = (vocabulary.memory() - words.byte_len()) as f64 / words.len() as f64;
    assert!(per_term < 16.5, "{per_term} bytes a term");
    for n_threads in [1, 3] {
        let mut ids = vec![0; words.len()];
        parts::try_fill(&Pool::new(n_threads), &mut ids, &|range, out| {
            vocabulary.lookup(words.as_slice().range(range), Unknown::Id(-1), out)
        })
        .unwrap();
        assert!(ids.iter().enumerate().all(|(i, &id)| id == i as i64));
    }
}

fn refusal(result: Result<Vocabulary>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn bad_files_are_named_with_path_and_line() {
    let name = |file: &Temporary| file.0.display().to_string();
    for (content, size, ints, text) in [
        (&b"a\nb\na\n"[..], 0, false, "lines 1 and 3 are the same term, \"a\""),
        (b"7\n8\n007\n", 0, true, "lines 1 and 3 are the same term, 7"),
        (b"a\nb\n", 3, false, "is 3 lines, but the file has 2"),
        (b"a\n\nb\n", 0, false, "in line 2 of"),
        (b"1\nx1\n", 0, true, "\"x1\" is not a 64-bit integer"),
        (b"1\0\n", 0, true, "is not a 64-bit integer"),
        (b"", 0, false, "the vocabulary is empty"),
        (b"", 1, false, "is 1 lines, but the file has 0"),
        (b"", 0, true, "the vocabulary is empty"),
    ] {
        let file = Temporary::new(content);
        let error = refusal(if ints { file.file(size).read_ints() } else { file.file(size).read() });
        assert!(error.contains(text) && error.contains(&name(&file)), "{error} should contain {text}");
    }
    let file = Temporary::new(&[&b"a\n"[..], &[b'x'; 2000]].concat());
    let limits = Limits { field_bytes: 1000, ..Limits::default() };
    let error = refusal(file.file(0).limits(limits).read());
    assert!(error.contains("1000") && error.contains("line 2") && error.contains("field_bytes"), "{error}");
    assert_eq!(file.file(1).read().unwrap().len(), 1, "what follows is not read");
    let file = Temporary::new(b"a\n");
    assert!(refusal(VocabularyFile::new(&file.0).size(0).read()).contains("the size of the vocabulary is 0 lines"));
    let error = VocabularyFile::new("/no/such/folder/words.txt").read().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io { .. }) && error.to_string().contains("/no/such/folder/words.txt"));
    let error = refusal(VocabularyFile::new(std::env::temp_dir()).read());
    assert!(error.contains("regular file"), "{error}");
    #[cfg(unix)]
    assert!(refusal(VocabularyFile::new("/dev/zero").read()).contains("regular file"));
    let file = Temporary::new(b"1\nx\n");
    let error = file.file(0).read_ints().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Data { path: Some(path), row: Some(2), .. } if *path == file.0));
}

#[test]
fn bad_lists_are_named() {
    let strings = |terms: &[&str]| Vocabulary::from_strings(terms.iter().collect());
    assert!(refusal(strings(&["x", "a", "", "a"])).contains("terms 1 and 3 are the same term, \"a\""));
    assert!(refusal(strings(&["", ""])).contains("terms 0 and 1"));
    assert!(refusal(strings(&[])).contains("the vocabulary is empty"));
    assert!(refusal(Vocabulary::from_ints(vec![3, 4, 3])).contains("terms 0 and 2 are the same term, 3"));
    assert!(refusal(Vocabulary::from_ints(vec![])).contains("the vocabulary is empty"));
}

#[test]
fn bad_lookups_are_refused() {
    let words: Strings = ["a"].into_iter().collect();
    let (strings, ints) = (Vocabulary::from_strings(words.clone()).unwrap(), Vocabulary::from_ints(vec![1]).unwrap());
    let mut ids = [0];
    let error = ints.lookup(words.as_slice(), Unknown::Id(-1), &mut ids).unwrap_err();
    assert!(error.to_string().contains("vocabulary of integers"), "{error}");
    let error = strings.lookup_ints(&[1], Unknown::Id(-1), &mut ids).unwrap_err();
    assert!(error.to_string().contains("vocabulary of strings"), "{error}");
    for result in [
        strings.lookup(words.as_slice(), unknown(i64::MAX), &mut ids),
        ints.lookup_ints(&[1], unknown(i64::MAX), &mut ids),
    ] {
        assert!(result.unwrap_err().to_string().contains("more than there are ids"));
    }
}

#[test]
fn terms_that_are_no_lines_are_refused() {
    for terms in [["a", ""], ["a", "b\nc"], ["a", "b\r"]] {
        let terms = Terms::from_strings(terms.into_iter().collect()).unwrap();
        assert!(terms.to_lines().unwrap_err().to_string().contains("term 1"));
    }
    assert_eq!(Terms::from_ints(vec![-1, 20]).to_lines().unwrap(), b"-1\n20\n");
}

#[test]
fn an_empty_string_may_be_a_term_of_a_list() {
    let words: Strings = ["", "a"].into_iter().collect();
    let vocabulary = Vocabulary::from_strings(words.clone()).unwrap();
    let mut ids = [7; 2];
    vocabulary.lookup(words.as_slice(), Unknown::Id(-1), &mut ids).unwrap();
    assert_eq!(ids, [0, 1]);
}
