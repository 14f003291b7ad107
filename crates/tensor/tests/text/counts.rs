//! Counting terms: against a map that counts one by one, and by the bounds that are promised.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use estimand_tensor::parallel::Pool;
use estimand_tensor::vocabulary::TermCounts;
use estimand_tensor::{StringSlice, Strings};

/// `n` words, the product of two random numbers below `root` each: few frequent, many rare.
fn words(n: usize, root: u64) -> Strings {
    let mut state = 11_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    (0..n).map(|_| format!("w{}", below(root) * below(root))).collect()
}

fn exact(strings: &Strings) -> BTreeMap<&[u8], u64> {
    let mut counts = BTreeMap::new();
    strings.iter().for_each(|s| *counts.entry(s).or_default() += 1);
    counts
}

/// The whole result: every term with its count, and by how much counts may be off.
fn result(counts: &TermCounts) -> (Strings, Vec<u64>, u64) {
    let (terms, n) = counts.top(usize::MAX, 0);
    (terms, n, counts.undercount())
}

/// Counts in pieces of the given sizes, in turn.
fn counted(strings: &Strings, max_terms: usize, n_threads: usize, sizes: &[usize]) -> TermCounts {
    let pool = Pool::new(n_threads);
    let mut counts = TermCounts::new(max_terms).unwrap();
    let mut start = 0;
    for size in sizes.iter().cycle() {
        if start == strings.len() {
            break;
        }
        let end = strings.len().min(start + size);
        counts.add(&pool, strings.as_slice().range(start..end)).unwrap();
        start = end;
    }
    counts
}

#[test]
fn below_the_bound_counts_are_exact() {
    let strings = words(150_000, 150);
    let truth = exact(&strings);
    for (n_threads, sizes) in [(1, &[150_000][..]), (3, &[150_000]), (2, &[1, 70_000, 512])] {
        let counts = counted(&strings, truth.len(), n_threads, sizes);
        assert_eq!((counts.undercount(), counts.n_seen(), counts.len()), (0, 150_000, truth.len()));
        assert!(truth.iter().all(|(term, &n)| counts.count(term) == n));
        assert_eq!(counts.count(b"stranger"), 0);
        // Most frequent first, equal ones by name.
        let mut ranked: Vec<_> = truth.iter().map(|(&term, &n)| (Reverse(n), term)).collect();
        ranked.sort();
        for (k, min_count) in [(usize::MAX, 0), (10, 0), (usize::MAX, 100), (7, 100), (0, 0)] {
            let wanted = ranked.iter().filter(|(n, _)| n.0 >= min_count).take(k);
            let (terms, n) = counts.top(k, min_count);
            assert_eq!(terms, wanted.clone().map(|(_, term)| term).collect(), "top {k}, at least {min_count}");
            assert_eq!(n, wanted.map(|(n, _)| n.0).collect::<Vec<_>>());
        }
        assert_eq!(counts.distinct(), truth.keys().collect());
    }
}

#[test]
fn beyond_it_they_are_off_by_no_more_than_promised() {
    let strings = words(600_000, 1000);
    let truth = exact(&strings);
    const MAX: usize = 2000;
    let counts = counted(&strings, MAX, 2, &[600_000]);
    let undercount = counts.undercount();
    assert!(undercount > 0 && undercount <= 2 * 600_000 / MAX as u64, "{undercount}");
    assert!(counts.len() <= MAX + 65_536);
    for (&term, &n) in &truth {
        let ours = counts.count(term);
        assert!(ours <= n && n <= ours + undercount, "{ours}, really {n}, off by at most {undercount}");
    }
}

#[test]
fn neither_threads_nor_the_size_of_batches_change_the_result() {
    let strings = words(400_000, 1000);
    let whole = result(&counted(&strings, 3000, 1, &[400_000]));
    assert!(whole.2 > 0, "the bound was hit");
    for (n_threads, sizes) in [(3, &[400_000][..]), (2, &[4096]), (2, &[100_000, 1, 65_536, 7]), (1, &[333])] {
        assert_eq!(
            result(&counted(&strings, 3000, n_threads, sizes)),
            whole,
            "{n_threads} threads, batches of {sizes:?}"
        );
    }
}

#[test]
fn merged_counts_are_those_of_both() {
    let strings = words(300_000, 500);
    let truth = exact(&strings);
    let half = |range| Strings::from(strings.as_slice().range(range));
    let pool = Pool::new(2);
    let merged = |max_terms: usize| {
        let mut first = counted(&half(0..100_000), max_terms, 2, &[100_000]);
        let second = counted(&half(100_000..300_000), max_terms, 1, &[50_000]);
        first.merge(&pool, &second).unwrap();
        first
    };
    let all = merged(truth.len());
    assert_eq!((all.n_seen(), all.undercount()), (300_000, 0));
    assert_eq!(all.distinct(), truth.keys().collect());
    assert!(truth.iter().all(|(term, &n)| all.count(term) == n));
    // Each of the two, and their sum, had to make room.
    let some = merged(1000);
    assert!(some.undercount() > 0 && some.undercount() <= 2 * 300_000 / 1000 && some.len() <= 1000);
    for (&term, &n) in &truth {
        let ours = some.count(term);
        assert!(ours <= n && n <= ours + some.undercount());
    }
    assert_eq!(result(&merged(1000)), result(&some), "hashes are random, results are not");
}

/// By hand: 65,536 strings, x 40,000 times, y 25,000 times, and 536 others once each. With at most
/// 3 terms, the third largest count (1) is taken off all, so x and y remain.
#[test]
fn room_is_made_by_hand() {
    let once = (0..536).map(|i| format!("other{i}"));
    let repeated = |term: &str, n: usize| std::iter::repeat_n(term.to_string(), n);
    let strings: Strings = repeated("x", 40_000).chain(once).chain(repeated("y", 25_000)).collect();
    let counts = counted(&strings, 3, 1, &[65_536]);
    assert_eq!(result(&counts), (["x", "y"].into_iter().collect(), vec![39_999, 24_999], 1));
}

/// By hand: a million bytes at most, so half of it is kept, which is 50 of the terms of 10,000
/// bytes; all of them are equally frequent, so they all go, and only the shorter and more frequent
/// one stays.
#[test]
fn long_terms_make_room_too() {
    let frequent = std::iter::repeat_n("short".to_string(), 65_536 - 2 * 200);
    let long = (0..200).map(|i| format!("{i:010000}"));
    let strings: Strings = frequent.chain(long.clone()).chain(long).collect();
    let mut counts = TermCounts::new(1000).unwrap().max_bytes(1_000_000);
    counts.add(&Pool::new(1), strings.as_slice()).unwrap();
    assert_eq!(result(&counts), (["short"].into_iter().collect(), vec![65_136 - 2], 2));
}

#[test]
fn odd_input() {
    let pool = Pool::new(2);
    assert!(TermCounts::new(0).unwrap_err().to_string().contains("at least 1"));
    let mut counts = TermCounts::new(1).unwrap();
    assert_eq!(
        (counts.is_empty(), counts.top(5, 0), counts.distinct()),
        (true, (Strings::default(), vec![]), Strings::default())
    );
    counts.add(&pool, Strings::default().as_slice()).unwrap();
    let odd: Strings = [&b""[..], b"\xff", b"", b"\0"].into_iter().collect();
    counts.add(&pool, odd.as_slice()).unwrap();
    assert_eq!(counts.top(9, 0), ([&b""[..], b"\0", b"\xff"].into_iter().collect(), vec![2, 1, 1]));
    // All distinct: everything is dropped again and again.
    let distinct: Strings = (0..200_000).map(|i| i.to_string()).collect();
    let slice: StringSlice<'_> = distinct.as_slice();
    let mut counts = TermCounts::new(1).unwrap();
    counts.add(&pool, slice).unwrap();
    assert!(counts.len() <= 65_537 && counts.undercount() == 3, "{} {}", counts.len(), counts.undercount());
}
