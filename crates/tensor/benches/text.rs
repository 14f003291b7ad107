//! How fast the string kernels are on one core, beside a bound:
//! `cargo bench -p estimand-tensor --bench text`.
//!
//! A figure is `name = value`, then its bound: the bytes each result reads and writes at the speed
//! of a copy, or the multiplications it needs at the speed of independent ones, whichever takes
//! longer; both speeds are measured first. Every figure is the best of many short runs, since other
//! programs share the machine.
#![allow(clippy::print_stdout)] // it is what a bench is for

use std::hint::black_box;
use std::time::Instant;

use estimand_tensor::cpu::text::{
    Buckets, Cross, CrossKey, CrossRows, CrossValues, hash_bucket_fast, hash_bucket_fast_ints, hash_bucket_strong,
};
use estimand_tensor::parallel::Pool;
use estimand_tensor::vocabulary::{TermCounts, Unknown, Vocabulary, VocabularyFile};
use estimand_tensor::{StringSlice, Strings};

/// Strings of a run: some megabytes, as a batch and its neighbours.
const N: usize = 100_000;

/// Whether a row is asked for: with an argument, only rows whose name contains it are run.
fn is_asked_for(name: &str) -> bool {
    std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).all(|arg| name.contains(&arg))
}

/// Seconds of one call, the least of many.
fn seconds(mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64()
    };
    (0..60).map(round).fold(f64::INFINITY, f64::min)
}

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// `n` words of lengths in a range.
    fn words(&mut self, n: usize, lengths: std::ops::RangeInclusive<u64>) -> Strings {
        let mut word = Vec::new();
        (0..n)
            .map(|_| {
                let len = lengths.start() + self.below(lengths.end() - lengths.start() + 1);
                word.clear();
                word.extend((0..len).map(|_| b'a' + self.below(26) as u8));
                word.clone()
            })
            .collect()
    }
}

/// What one core does at most: bytes copied and numbers multiplied in a second.
struct Core {
    bytes: f64,
    multiplications: f64,
}

impl Core {
    fn measure() -> Core {
        let from = vec![1_u8; 4 << 20];
        let mut to = from.clone();
        let copy = seconds(|| black_box(&mut to).copy_from_slice(black_box(&from)));
        const STEPS: usize = 100_000;
        let product = seconds(|| {
            let mut chains = black_box([3_u64, 5, 7, 11, 13, 17, 19, 23]);
            let factor = black_box(0x9ae1_6a3b_2f90_404f_u64);
            for _ in 0..STEPS {
                chains = chains.map(|x| black_box_register(x.wrapping_mul(factor)));
            }
            black_box(chains);
        });
        Core { bytes: from.len() as f64 / copy, multiplications: (8 * STEPS) as f64 / product }
    }

    /// Prints one figure: `n` results in `seconds`, which read and write `bytes` and need so many
    /// multiplications each.
    fn figure(&self, name: &str, n: usize, seconds: f64, bytes: usize, multiplications: f64) {
        let per_item = bytes as f64 / n as f64;
        let bound = (self.bytes / per_item).min(self.multiplications / multiplications);
        println!(
            "{name} = {:.1} M/s, {:.0} MB/s   bound {:.0} M/s: {per_item:.0} bytes, {multiplications} products each",
            n as f64 / seconds / 1e6,
            bytes as f64 / seconds / 1e6,
            bound / 1e6,
        );
    }
}

/// Keeps the compiler from folding a chain of products into one, at no cost.
fn black_box_register(x: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut x = x;
        // SAFETY: no instruction at all.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
        x
    }
    #[cfg(not(target_arch = "x86_64"))]
    black_box(x)
}

/// Bytes that a kernel reads for these strings, offsets included, and writes for a number each.
fn traffic(strings: StringSlice<'_>) -> usize {
    strings.packed_bytes().len() + 16 * strings.len()
}

fn hashes(core: &Core, noise: &mut Noise) {
    let buckets = Buckets::new(1_000_003).expect("a number of buckets");
    let mut ids = vec![0; N];
    // Multiplications of a fingerprint, with two for the bucket; those of a long one are 11 for 64
    // bytes.
    for (name, lengths, products) in
        [("5-16 bytes", 5..=16, 7.0), ("17-64 bytes", 17..=64, 12.0), ("65-1000 bytes", 65..=1000, 110.0)]
    {
        let strings = noise.words(N / if lengths.end() > &64 { 10 } else { 1 }, lengths);
        let (strings, ids) = (strings.as_slice(), &mut ids[..strings.len()]);
        let fast = format!("hash_bucket_fast, {name}");
        if is_asked_for(&fast) {
            let s = seconds(|| hash_bucket_fast(black_box(strings), buckets, ids));
            core.figure(&fast, strings.len(), s, traffic(strings), products);
        }
        let strong = format!("hash_bucket_strong, {name}");
        if is_asked_for(&strong) {
            let s = seconds(|| hash_bucket_strong(black_box(strings), [1, 2], buckets, ids));
            core.figure(&strong, strings.len(), s, traffic(strings), 2.0);
        }
    }
    if is_asked_for("hash_bucket_fast_ints") {
        let ints: Vec<i64> = (0..N).map(|_| noise.below(1 << 31) as i64).collect();
        let s = seconds(|| hash_bucket_fast_ints(black_box(&ints), buckets, &mut ids));
        core.figure("hash_bucket_fast_ints, 10 digits", N, s, 16 * N, 17.0);
    }
}

fn crosses(core: &Core, noise: &mut Noise) {
    let pool = Pool::new(1);
    let cross = Cross::new(1_000_003).expect("a number of buckets");
    let words = [noise.words(N, 5..=16), noise.words(N, 5..=16)];
    let ids: Vec<i64> = (0..N).map(|_| noise.below(1000) as i64).collect();
    let key = |values, width| CrossKey { values, rows: CrossRows::Dense { width } };
    let strings = |i: usize| CrossValues::Strings(words[i].as_slice());
    // Four multiplications for each key that joins, two for the bucket, five for each string
    // hashed.
    for (name, width, products) in [("1 x 1 x 1", 1, 24.0), ("4 x 4 x 4", 4, 8.0)] {
        let name = format!("cross of two strings and an id, {name} values");
        if is_asked_for(&name) {
            let keys = [key(strings(0), width), key(strings(1), width), key(CrossValues::Ints(&ids), width)];
            let (n_rows, n) = (N / width, N * width * width);
            let s = seconds(|| {
                black_box(cross.apply(&pool, n_rows, black_box(&keys))).expect("good keys");
            });
            let bytes = words.iter().map(|words| words.byte_len() + 8 * N).sum::<usize>() + 8 * N + 8 * n + 8 * n_rows;
            core.figure(&name, n, s, bytes, products);
        }
    }
}

/// `n` distinct words of 5 to 16 letters.
fn vocabulary(noise: &mut Noise, n: usize) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = noise.words(n + n / 8 + 100, 5..=16).iter().map(<[u8]>::to_vec).collect();
    words.sort();
    words.dedup();
    for i in (1..words.len()).rev() {
        words.swap(i, noise.below(i as u64 + 1) as usize);
    }
    words.truncate(n);
    words
}

fn lookups(core: &Core, noise: &mut Noise) {
    let mut ids = vec![0; N];
    for n_terms in [1_000, 10_000, 100_000, 1_000_000] {
        let name = |what: &str| format!("lookup of {what} among {n_terms}");
        if !is_asked_for(&name("terms")) && !is_asked_for(&name("strangers")) {
            continue;
        }
        let words = vocabulary(noise, n_terms);
        let vocabulary = Vocabulary::from_strings(words.iter().collect()).expect("distinct words");
        let known: Strings = (0..N).map(|_| &words[noise.below(n_terms as u64) as usize]).collect();
        let strangers = noise.words(N, 5..=16);
        let buckets = Unknown::Buckets(Buckets::new(1000).expect("a number of buckets"));
        for (what, strings, unknown) in [("terms", known, Unknown::Id(-1)), ("strangers", strangers, buckets)] {
            let strings = strings.as_slice();
            let s = seconds(|| vocabulary.lookup(black_box(strings), unknown, &mut ids).expect("strings"));
            // A line of the table; for a term also its offsets and its bytes.
            let lines = if what == "terms" { 3 * 64 } else { 64 };
            let products = if what == "terms" { 4.0 } else { 11.0 };
            core.figure(&name(what), N, s, traffic(strings) + lines * N, products);
        }
    }
}

/// Counting words of which few are frequent, as in any text: a word's rank is the product of two
/// random numbers.
fn counting(core: &Core, noise: &mut Noise) {
    for (what, n_terms, max_terms) in [("exactly", 100_000, 1_000_000), ("in bounds", 1_000_000, 50_000)] {
        let name = format!("counting words {what}, {n_terms} distinct");
        if !is_asked_for(&name) {
            continue;
        }
        let words = vocabulary(noise, n_terms);
        let root = (n_terms as f64).sqrt() as u64;
        let mut draw = || &words[(noise.below(root) * noise.below(root)) as usize];
        let text: Strings = (0..10 * N).map(|_| draw()).collect();
        let pool = Pool::new(1);
        let s = (0..3).map(|_| {
            let mut counts = TermCounts::new(max_terms).expect("a limit");
            let start = Instant::now();
            counts.add(&pool, text.as_slice()).expect("few terms");
            start.elapsed().as_secs_f64()
        });
        let s = s.fold(f64::INFINITY, f64::min);
        // Four lines of memory: slot, offsets, text and count.
        core.figure(&name, text.len(), s, traffic(text.as_slice()) + 4 * 64 * text.len(), 4.0);
    }
}

/// A file of ten million terms.
fn large_file(noise: &mut Noise) {
    const TERMS: usize = 10_000_000;
    let name = "vocabulary file of 10 million terms";
    if !is_asked_for(name) {
        return;
    }
    let path = std::env::temp_dir().join(format!("vocabulary_{}.txt", std::process::id()));
    let mut lines = Vec::new();
    for i in 0..TERMS {
        lines.extend_from_slice(format!("{}_{i}\n", noise.below(1000)).as_bytes());
    }
    std::fs::write(&path, &lines).expect("a temporary file");
    let start = Instant::now();
    let vocabulary = VocabularyFile::new(&path).read();
    let s = start.elapsed().as_secs_f64();
    std::fs::remove_file(&path).expect("the temporary file");
    let memory = vocabulary.expect("distinct lines").memory();
    println!(
        "{name} = {s:.2} s, {:.1} M/s   {:.0} MB of file, {:.0} MB of memory: {:.1} bytes a term more than the file",
        TERMS as f64 / s / 1e6,
        lines.len() as f64 / 1e6,
        memory as f64 / 1e6,
        (memory as f64 - lines.len() as f64) / TERMS as f64
    );
}

fn main() {
    let (core, mut noise) = (Core::measure(), Noise(7));
    println!("one core = {:.1} GB/s copied, {:.1} G multiplications/s", core.bytes / 1e9, core.multiplications / 1e9);
    hashes(&core, &mut noise);
    crosses(&core, &mut noise);
    lookups(&core, &mut noise);
    counting(&core, &mut noise);
    large_file(&mut noise);
}
