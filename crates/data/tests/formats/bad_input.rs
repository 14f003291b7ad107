//! Damaged and hostile files: what the error says.

use estimand_data::{Dataset, cifar10, idx, npy, npz};

use crate::numpy::cases;

/// An NPY file of version 1 with this header and data.
fn npy_file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

fn described(descr: &str, shape: &str) -> Vec<u8> {
    npy_file(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), &[0; 8])
}

#[test]
fn npy() {
    let whole = cases().swap_remove(0).bytes;
    for (bytes, text) in [
        (b"PK\x03\x04".to_vec(), "the file begins with \"PK\\u{3}\\u{4}\""),
        (b"\x93NUMPY\x07\x01".to_vec(), "version 7.1"),
        (b"\x93NUMPY\x01".to_vec(), "ends in the middle of its header"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "the header has 4294967295 bytes"),
        (whole[..40].to_vec(), "ends in the middle of its header"),
        (whole[..whole.len() - 1].to_vec(), "5 bytes of data"),
        (npy_file("{'descr': '<f4'}", &[]), "lacks one of descr, fortran_order and shape"),
        (npy_file("{'descr': [('a', '<f4')], }", &[]), "the array is structured"),
        (npy_file("{'descr': '<f4', 'colour': 1}", &[]), "the unknown key `colour`"),
        (npy_file("{'descr': '<f4', } x", &[]), "text after the dictionary, at byte 18"),
        (npy_file("\u{fffd}", &[]), "expected `{`, at byte 0"),
        (described("|O", "(1,)"), "pickled"),
        (described("<u8", "(1,)"), "astype(numpy.int64)"),
        (described("<c8", "(1,)"), "numpy's type `<c8`"),
        (described("|S0", "(9999999999999,)"), "numpy's type `|S0`"),
        (described("<U4611686018427387905", "(1,)"), "larger than memory"),
        (described("<f4", "(3,)"), "8 bytes of data; expected 12 for the shape [3] of 4 bytes each"),
        (described("<f4", "(4611686018427387904, 8)"), "does not fit into the address space"),
        (described("|S99999999999", "(1099511627776,)"), "more than memory can hold"),
        (described("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), "9 axes"),
        (described("<f4", "(-2,)"), "a size is not a number"),
        (
            npy_file("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", &[0xff; 4]),
            "0xffffffff is not a Unicode code point",
        ),
        (npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", &[2]), "neither 0 nor 1"),
    ] {
        let error = npy::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn npz() {
    let whole = cases().into_iter().find(|case| case.name == "stored").unwrap().bytes;
    let find = |text: &[u8]| whole.windows(text.len()).rposition(|window| window == text).unwrap();
    let (entry, end) = (find(b"PK\x01\x02"), find(b"PK\x05\x06"));
    for (at, value, text) in [
        (whole.len() - 22, 0, "no end of a zip archive"),
        (end + 16, whole[end + 16] ^ 1, "the archive's directory has no entry here"),
        (end + 18, 0xff, "the archive's directory lies outside the file"),
        (end + 10, 4, "in member 4 of 4"),
        (end + 10, 0, "the archive has no arrays"),
        (entry + 8, 1, "`word.npy` is encrypted"),
        (entry + 10, 12, "compressed by method 12"),
        (entry + 16, whole[entry + 16] ^ 1, "the checksum of the member is"),
        (entry + 24, whole[entry + 24] ^ 1, "the member unpacks to"),
        (entry + 23, 0x7f, "the entry lies outside the file"),
        (entry + 42, whole[entry + 42] ^ 1, "`word.npy` is not where the archive's directory says"),
        (entry + 46 + 7, b'x', "the names in an NPZ file end in .npy"),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let error = npz::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
    // The first data byte behind a header of 30 bytes, name and extra field: a kind of block that
    // deflate does not have.
    let mut bytes = cases().into_iter().find(|case| case.name == "deflated").unwrap().bytes;
    let data = 30 + usize::from(bytes[26]) + usize::from(bytes[28]);
    bytes[data] = 0xff;
    let error = npz::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("the compressed data are damaged"), "{error}");
}

#[test]
fn idx_and_cifar10() {
    for (bytes, text) in [
        (&b"\x00\x00"[..], "2 bytes, which is shorter than its IDX header"),
        (b"\x1f\x8b\x08\x00", "add .gz to its name"),
        (b"\x00\x01\x08\x01", "the bytes [00, 01, 08, 01]"),
        (b"\x00\x00\x0a\x01", "the element type is 0x0a"),
        (b"\x00\x00\x08\x09", "9 axes"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x01", "shorter than its IDX header"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02\x07", "1 bytes of data; expected 2 for the shape [2] of 1 bytes each"),
        (b"\x00\x00\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff", "does not fit into the address space"),
        (b"\x00\x00\x08\x00\x07\x07", "2 bytes of data; expected 1 for the shape []"),
    ] {
        let error = idx::from_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
    let (short, label) = (cifar10::from_bytes(&[0; 3072]).unwrap_err(), cifar10::from_bytes(&[10; 3073]).unwrap_err());
    assert!(short.to_string().contains("3072 bytes; expected a multiple of 3073"), "{short}");
    assert!(label.to_string().contains("the label of image 1 is 10"), "{label}");
}

#[test]
fn files_are_named() {
    let none: [(&str, &str); 0] = [];
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (data, text) in [
        (Dataset::from_npy("/no/such/file.npy"), "cannot open /no/such/file.npy"),
        (Dataset::from_npy_files(none), "no npy files"),
        (Dataset::from_npy_files([("x", manifest)]), "Cargo.toml"),
        (Dataset::from_npz(manifest), "Cargo.toml"),
        (Dataset::from_idx([("x", manifest)]), "Cargo.toml"),
        (Dataset::from_idx(none), "no idx files"),
        (Dataset::from_cifar10([manifest]), "Cargo.toml"),
        (Dataset::from_cifar10(Vec::<String>::new()), "the list of files is empty"),
    ] {
        let error = data.shuffle(9, 1).batch(2).iter().next().unwrap().unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
        assert_eq!(data.spec().unwrap_err().to_string(), error);
    }
}
