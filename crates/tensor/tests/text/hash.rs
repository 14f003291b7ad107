//! Hashes and hash buckets.

use estimand_fixture::cases_of;
use estimand_tensor::cpu::text::{
    Buckets, fingerprint_cat64, fingerprint64, fingerprint128, fingerprints, hash_bucket_fast, hash_bucket_fast_ints,
    hash_bucket_legacy, hash_bucket_strong, parts,
};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{StringSlice, Strings};

fn buckets(n: i64, strings: StringSlice<'_>, kernel: impl Fn(StringSlice<'_>, Buckets, &mut [i64])) -> Vec<i64> {
    let mut out = vec![-1; strings.len()];
    kernel(strings, Buckets::new(n).unwrap(), &mut out);
    out
}

#[test]
fn every_length_has_tensorflows_fingerprint() {
    let case = &cases_of("text_hash", "fingerprint")[0];
    let strings = crate::strings(case, "strings");
    let mut ours = vec![0; strings.len()];
    fingerprints(strings.as_slice(), &mut ours);
    assert_eq!(ours, case.numbers::<u64>("hashes"));
}

/// TensorFlow's op for example ids replaces the lower words 0 and 1, which no string here has.
#[test]
fn every_length_has_tensorflows_long_fingerprint() {
    let case = &cases_of("text_hash", "fingerprint128")[0];
    let strings = crate::strings(case, "strings");
    let ours: Vec<i64> = (strings.as_slice().iter())
        .flat_map(|string| <[u64; 2]>::from(fingerprint128(string)).map(|word| word as i64))
        .collect();
    assert_eq!(ours, case.numbers::<i64>("hashes"));
}

#[test]
fn buckets_are_tensorflows() {
    let strings = crate::strings(&cases_of("text_hash", "fingerprint")[0], "strings");
    let strings = strings.as_slice();
    for case in cases_of("text_hash", "hash_bucket") {
        let n = case.setting("n");
        assert_eq!(buckets(n, strings, hash_bucket_fast), case.numbers::<i64>("fast"), "{case}");
        assert_eq!(buckets(n, strings, hash_bucket_legacy), case.numbers::<i64>("legacy"), "{case}");
    }
    for case in cases_of("text_hash", "hash_bucket_strong") {
        let key = [case.setting::<i64>("key0") as u64, case.setting::<i64>("key1") as u64];
        let ours = buckets(case.setting("n"), strings, |s, buckets, out| hash_bucket_strong(s, key, buckets, out));
        assert_eq!(ours, case.numbers::<i64>("buckets"), "{case}");
    }
}

#[test]
fn integers_are_hashed_as_decimal_text() {
    let case = &cases_of("text_hash", "hash_bucket_ints")[0];
    let ints = case.numbers::<i64>("ints");
    let mut ours = vec![-1; ints.len()];
    hash_bucket_fast_ints(&ints, Buckets::new(case.setting("n")).unwrap(), &mut ours);
    assert_eq!(ours, case.numbers::<i64>("buckets"));
    // Cases 8 and 9 of the specification.
    let mut ours = [0; 6];
    hash_bucket_fast_ints(&[0, 1, 123, 1000, -2, -1], Buckets::new(1000).unwrap(), &mut ours);
    assert_eq!(ours, [735, 849, 931, 593, 205, 430]);
}

/// Cases 1-7, 10 and 11 of the specification, which were read off TensorFlow 2.15.
#[test]
fn specified_cases() {
    assert_eq!(fingerprint64(b"hello"), 13_009_744_463_427_800_296);
    assert_eq!(fingerprint64(b""), 11_160_318_154_034_397_263);
    assert_eq!(fingerprint64(b"a"), 12_917_804_110_809_363_939);
    assert_eq!(fingerprint64(b"ab"), 12_289_600_257_749_001_502);
    assert_eq!(fingerprint64(b"abc"), 2_640_714_258_260_161_385);
    assert_eq!(fingerprint64(b"the quick brown fox jumps over the lazy dog"), 12_423_751_071_000_433_619);
    let bucket = |n, strings: &[&str]| {
        let strings: Strings = strings.iter().collect();
        buckets(n, strings.as_slice(), hash_bucket_fast)
    };
    assert_eq!(bucket(1000, &["world", "foo", "bar", "wire"]), [598, 171, 639, 864]);
    assert_eq!(bucket(1000, &["Hello", "hello", "café"]), [151, 296, 587]);
    assert_eq!(bucket(10, &["hello", "world", ""]), [6, 8, 3]);
    let lengths = [16, 17, 32, 33, 64, 65, 128, 200].map(|n| "x".repeat(n));
    let xs: Vec<&str> = lengths.iter().map(String::as_str).collect();
    assert_eq!(bucket(1000, &xs), [644, 581, 517, 935, 160, 929, 855, 527]);
    let census = ["male", "female", "Private", "HS-grad", "Bachelors"];
    assert_eq!(bucket(100, &census), [99, 32, 71, 21, 56]);
    assert_eq!(bucket(7, &census), [2, 2, 3, 5, 0]);
    assert_eq!(bucket(1, &census), [0; 5]);
}

/// "a" x "b" and 7 x "b" in 1000 buckets, read off TensorFlow 2.15.
#[test]
fn pairs_of_fingerprints() {
    let cross = |first| fingerprint_cat64(fingerprint_cat64(0xdecaf_caffe, first), fingerprint64(b"b")) % 1000;
    assert_eq!((cross(fingerprint64(b"a")), cross(7)), (986, 913));
}

#[test]
fn ranges_and_threads_change_nothing() {
    let strings: Strings = (0..20_000).map(|i| "ab€".repeat(i % 23)).collect();
    let n = Buckets::new(1 << 40).unwrap();
    let mut whole = vec![0; strings.len()];
    hash_bucket_fast(strings.as_slice(), n, &mut whole);
    for n_threads in [1, 2, 3] {
        let mut ids = vec![0; strings.len()];
        parts::fill(&Pool::new(n_threads), &mut ids, &|range, out| {
            hash_bucket_fast(strings.as_slice().range(range), n, out);
        });
        assert_eq!(ids, whole);
    }
}
