//! Damaged and hostile files: an error or other values, but no panic, no hang, no large allocation.
//!
//! A binary of its own: it watches the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_hdf5::{File, Writer};
use estimand_tensor::{Array, Limits};

#[path = "../../../fuzz/src/hdf5.rs"]
mod hdf5;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;

struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LARGEST.fetch_max(new_size, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Tests take turns, so that each watches its own allocations.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a test; none of its allocations may be larger than `limit`.
fn watch(limit: usize, test: impl FnOnce()) {
    let turn = TURN.lock();
    LARGEST.store(0, Ordering::Relaxed);
    test();
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= limit, "an allocation of {largest} bytes, the limit is {limit}");
    drop(turn);
}

fn fixture(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../oracles/fixtures/hdf5", name].iter().collect();
    std::fs::read(path).unwrap()
}

/// The limits allow 1 MiB that is not in the file, and elements become wider by a factor of 4.
const LARGE: usize = 4 << 20;

#[test]
fn every_byte_changed_in_turn() {
    watch(LARGE, || {
        for name in ["oldest.h5", "latest.h5", "narrow.h5", "v108.h5", "user_block.h5"] {
            let mut bytes = fixture(name);
            for at in 0..bytes.len() {
                let old = bytes[at];
                for new in [0, 1, 0x7f, 0xff, old ^ 1, old ^ 0x80, old.wrapping_add(8)] {
                    bytes[at] = new;
                    hdf5::check(&bytes);
                }
                bytes[at] = old;
            }
        }
    });
}

#[test]
fn truncated_at_every_length() {
    watch(LARGE, || {
        for name in ["oldest.h5", "latest.h5", "narrow.h5", "v108.h5"] {
            let bytes = fixture(name);
            for n in 0..bytes.len() {
                hdf5::check(&bytes[..n]);
                // h5py refuses a file that is shorter than its superblock says.
                assert!(File::from_bytes(bytes[..n].to_vec(), &Limits::default()).is_err(), "{name} cut to {n} bytes");
            }
        }
    });
}

#[test]
fn mutations_of_all_files() {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../oracles/fixtures/hdf5"].iter().collect();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(seeds.len() > 10);
    watch(LARGE, || {
        let mut dice = mutate::Dice::new(22);
        for _ in 0..20_000 {
            hdf5::check(&mutate::damaged(&seeds, &mut dice));
        }
    });
}

/// Replaces the only place of some bytes.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let places: Vec<usize> = (0..=bytes.len() - old.len()).filter(|&at| bytes[at..].starts_with(old)).collect();
    assert_eq!((places.len(), old.len()), (1, new.len()), "{old:?}");
    bytes[places[0]..][..new.len()].copy_from_slice(new);
}

fn word(bytes: &[u8], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().unwrap()
}

/// Where the links of a group are: the header addresses in its only symbol node.
fn headers(bytes: &[u8], n: usize) -> Vec<usize> {
    let is_node = |at: usize| &bytes[at..at + 4] == b"SNOD" && usize::from(bytes[at + 6]) == n;
    let node = (0..bytes.len() - 8).rfind(|&at| is_node(at)).unwrap();
    (0..n).map(|i| node + 8 + 40 * i + 8).collect()
}

fn error(bytes: Vec<u8>, limits: &Limits) -> String {
    File::from_bytes(bytes, limits).unwrap_err().to_string()
}

#[test]
fn circles_and_groups_with_two_names_are_refused() {
    let mut writer = Writer::new();
    for name in ["a/x", "b", "c"] {
        writer.group(name).unwrap();
    }
    let bytes = writer.to_bytes().unwrap();
    let links = headers(&bytes, 3);
    // The root's header is in the superblock, at 64.
    let mut circle = bytes.clone();
    circle[links[1]..][..8].copy_from_slice(&word(&bytes, 64));
    let found = error(circle, &Limits::default());
    assert!(found.starts_with("the group `/` contains itself\n  in its child `b`\n  in the group `/`"), "{found}");
    // The inner group leads back to the outer one.
    let mut circle = bytes.clone();
    circle[headers(&bytes, 1)[0]..][..8].copy_from_slice(&word(&bytes, links[0]));
    let found = error(circle, &Limits::default());
    assert!(found.starts_with("the group `/a` contains itself\n  in its child `x`\n  in the group `/a`"), "{found}");
    let mut twice = bytes.clone();
    twice[links[2]..][..8].copy_from_slice(&word(&bytes, links[1]));
    let found = error(twice, &Limits::default());
    assert!(found.starts_with("two links name the group"), "{found}");
}

#[test]
fn links_and_attributes_have_a_limit() {
    let mut writer = Writer::new();
    (0..40).for_each(|i| writer.group(&format!("{i}")).unwrap());
    (0..10).for_each(|i| writer.attribute("7", &format!("{i}"), &Array::from(i)).unwrap());
    let bytes = writer.to_bytes().unwrap();
    assert!(File::from_bytes(bytes.clone(), &Limits { entries: 50, ..Limits::default() }).is_ok());
    let found = error(bytes, &Limits { entries: 49, ..Limits::default() });
    assert!(found.contains("the limit is 49 (`entries`)"), "{found}");
}

/// The time of a look at each of many attributes grows with their number, not with its square.
#[test]
fn many_attributes() {
    watch(32 << 20, || {
        let mut writer = Writer::new();
        (0..60_000).for_each(|i| writer.attribute("/", &format!("names{i}"), &Array::from(i)).unwrap());
        let file = File::from_bytes(writer.to_bytes().unwrap(), &Limits::default()).unwrap();
        let root = file.root();
        for i in 0..60_000 {
            assert_eq!(root.attribute(&format!("names{i}")).unwrap().item::<i32>().unwrap(), i);
        }
        assert!(root.find_attribute("names60000").unwrap().is_none());
    });
}

/// A dataset of 512 GiB of zeros that no byte of the file stores.
#[test]
fn values_that_are_not_stored_have_a_limit() {
    let mut writer = Writer::new();
    writer.dataset("x", &Array::from_vec([0x1357], vec![1f32; 0x1357]).unwrap()).unwrap();
    let bytes = writer.to_bytes().unwrap();
    let stored = word(&bytes, bytes.windows(2).position(|pair| pair == [3, 1]).unwrap() + 2);
    for (n, field) in [(1u64 << 37, "unpacked_bytes"), (1 << 30, "ratio")] {
        let mut bytes = bytes.clone();
        replace(&mut bytes, &0x1357u64.to_le_bytes(), &n.to_le_bytes());
        let file = File::from_bytes(bytes.clone(), &Limits::default()).unwrap();
        let found = file.root().dataset("x").unwrap().read().unwrap_err().to_string();
        assert!(found.contains("bytes are stored for an array that needs"), "{found}");
        replace(&mut bytes, &[&[3, 1][..], &stored].concat(), &[&[3, 1][..], &[0xff; 8]].concat());
        watch(1 << 20, || {
            let file = File::from_bytes(bytes, &Limits::default()).unwrap();
            let found = file.root().dataset("x").unwrap().read().unwrap_err().to_string();
            assert!(found.contains(&format!("(`{field}`)")) && found.contains("in `/x` of"), "{found}");
        });
    }
}

/// The same for chunks: only some of them are stored.
#[test]
fn chunks_that_are_not_stored_have_a_limit() {
    let mut bytes = fixture("types.h5");
    let dims = |n: u64| [n.to_le_bytes(), 10u64.to_le_bytes()].concat();
    // The sizes of `some_chunks`, and the largest sizes after them.
    replace(&mut bytes, &[dims(10), dims(10)].concat(), &[dims(1 << 28), dims(1 << 28)].concat());
    watch(1 << 20, || {
        let file = File::from_bytes(bytes, &Limits::default()).unwrap();
        let dataset = file.root().dataset("storage/some_chunks").unwrap();
        assert_eq!(dataset.shape(), [1 << 28, 10]);
        let found = dataset.read().unwrap_err().to_string();
        assert!(found.contains("(`ratio`)") && found.contains("in `/storage/some_chunks` of"), "{found}");
    });
}

/// Many datasets over the same bytes would cost a program that reads them all more than the file
/// has.
#[test]
fn datasets_that_share_bytes_are_refused() {
    let mut writer = Writer::new();
    writer.dataset("a", &Array::from(vec![7i32; 3000])).unwrap();
    writer.dataset("b", &Array::from([0x55i32; 23])).unwrap();
    let mut bytes = writer.to_bytes().unwrap();
    // A contiguous layout is the address and the number of bytes. `b` is made to be where `a` is.
    let layout = |bytes: &[u8], n: u64| {
        let is_layout = |&at: &usize| bytes[at..].starts_with(&[3, 1]) && word(bytes, at + 10) == n.to_le_bytes();
        (0..bytes.len() - 18).find(is_layout).unwrap()
    };
    let (a, b) = (layout(&bytes, 12_000), layout(&bytes, 92));
    bytes.copy_within(a..a + 18, b);
    replace(&mut bytes, &23u64.to_le_bytes(), &3000u64.to_le_bytes());
    let file = File::from_bytes(bytes, &Limits::default()).unwrap();
    let read = |name| file.root().dataset(name).unwrap().read();
    assert!(read("a").is_ok() && read("a").is_ok());
    let found = read("b").unwrap_err().to_string();
    assert!(
        found.starts_with("the datasets have 24000 bytes, and the file has 1") && found.contains("in `/b` of"),
        "{found}"
    );
}

/// A thousand elements that refer to one string of 60 kB.
#[test]
fn strings_that_share_bytes_have_a_limit() {
    let strings: Vec<String> = (0..1000).map(|i| if i == 0 { "x".repeat(60_000) } else { format!("{i:04}") }).collect();
    let mut writer = Writer::new();
    writer.dataset("x", &Array::from_strings([1000], &strings).unwrap()).unwrap();
    let mut bytes = writer.to_bytes().unwrap();
    let first = [&60_000u32.to_le_bytes()[..], &96u64.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let at = (0..bytes.len()).find(|&at| bytes[at..].starts_with(&first)).unwrap();
    for i in 1..1000 {
        bytes[at + 16 * i..][..16].copy_from_slice(&first);
    }
    let limits = Limits { ratio: 1000, free_bytes: 1 << 20, ..Limits::default() };
    watch(128 << 20, || {
        assert!(File::from_bytes(bytes.clone(), &limits).unwrap().root().dataset("x").unwrap().read().is_ok());
    });
    let limits = Limits { ratio: 10, ..limits };
    watch(4 << 20, || {
        let found =
            File::from_bytes(bytes, &limits).unwrap().root().dataset("x").unwrap().read().unwrap_err().to_string();
        assert!(found.contains("the limit is 10 (`ratio`)"), "{found}");
    });
}

/// Reading reserves about as many bytes as the array has, from disk too.
#[test]
fn reading_reserves_the_array_once() {
    let path = std::env::temp_dir().join(format!("estimand-hdf5-{}.h5", std::process::id()));
    watch(32 << 20, || {
        let mut writer = Writer::new();
        writer.dataset("x", &Array::from(vec![0.5f32; 8 << 20])).unwrap();
        writer.write_to(&mut std::fs::File::create(&path).unwrap()).unwrap();
        let file = File::open(&path, &Limits::default()).unwrap();
        let array = file.root().dataset("x").unwrap().read().unwrap();
        assert!(array.as_slice::<f32>().unwrap().iter().all(|&v| v == 0.5));
    });
    std::fs::remove_file(path).unwrap();
}
