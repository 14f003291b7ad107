//! Data sets fetched from a server of this process: once, whole and checked, or not at all.
//!
//! `cargo test -p estimand-data --features _tls_server --test download`

mod server;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use estimand_data::datasets::Folder;
use estimand_data::fetch::{Checksum, Fetch};
use estimand_tensor::Result;
use server::{Server, answer, authority};

/// A fresh folder.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("download-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The packed IDX files of three images of 28 x 28 pixels, and of their labels.
fn idx_files() -> [Vec<u8>; 2] {
    let images = [&[0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 28, 0, 0, 0, 28][..], &[7; 3 * 784]].concat();
    let labels = vec![0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2];
    [images, labels].map(|bytes| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&bytes).unwrap();
        packed.finish().unwrap()
    })
}

/// How many files there are below a folder, whatever their names.
fn n_files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| {
        entries.map(|e| e.unwrap().path()).map(|path| if path.is_dir() { n_files(&path) } else { 1 }).sum()
    })
}

fn error_of(folder: &Folder, set: &str) -> String {
    folder.load(set, "test").unwrap().dataset().spec().unwrap_err().to_string()
}

#[test]
fn missing_files_are_fetched_once() -> Result<()> {
    for is_secure in [true, false] {
        let root = folder(if is_secure { "https" } else { "http" });
        let [images, labels] = idx_files().map(|bytes| answer("200 OK", &bytes));
        let server = Server::start(
            is_secure,
            [
                ("/sets/fashion_mnist/train-images-idx3-ubyte.gz", images),
                ("/sets/fashion_mnist/train-labels-idx1-ubyte.gz", labels),
            ],
        );
        let from = Folder::new(&root).fetch_from(format!("{}/sets/", server.address)).certificates(authority());
        let set = from.load("fashion_mnist", "train")?;
        assert!(set.dataset().explain().contains(&format!(", fetched from {}", server.address)));
        assert!(server.asked().is_empty(), "nothing is fetched before it is needed");
        assert_eq!(set.dataset().iter().count(), 3);
        assert_eq!(server.asked().len(), 2);
        // From the folder now, also without the server.
        assert_eq!(from.load("fashion_mnist", "train")?.dataset().iter().count(), 3);
        assert_eq!(Folder::new(&root).load("fashion_mnist", "train")?.dataset().iter().count(), 3);
        assert_eq!(server.asked().len(), 2);
        assert_eq!(n_files(&root), 2);
        std::fs::remove_dir_all(root).unwrap();
    }
    Ok(())
}

/// What comes back, and what is said of it.
#[test]
fn files_that_are_not_right_leave_nothing() {
    let elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://example.org/x\r\nContent-Length: 0\r\n\r\n".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (what, answered, parts) in [
        ("another file", answer("200 OK", b"not MNIST"), ["expected 1a1a05eab793c14b", "was not kept"]),
        ("cut", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec(), ["after 3 bytes", "images"]),
        ("cut chunks", [chunked, &b"9\r\nabc"[..]].concat(), ["cannot fetch", "images"]),
        ("broken chunks", [chunked, &b"xyz\r\n"[..]].concat(), ["cannot fetch", "images"]),
        ("too long", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec(), ["99999999999", "at most"]),
        ("a part", answer("206 Partial Content", b"abc"), ["the server answers 206", "images"]),
        ("missing", answer("404 Not Found", b"no"), ["404", "images"]),
        ("elsewhere", elsewhere, ["cannot fetch", "images"]),
        ("no answer", b"nonsense\r\n\r\n".to_vec(), ["cannot fetch", "images"]),
        ("nothing", Vec::new(), ["cannot fetch", "images"]),
    ] {
        let root = folder("wrong");
        for is_secure in [true, false] {
            let server = Server::start(is_secure, [("/mnist/t10k-images-idx3-ubyte.gz", answered.clone())]);
            let from = Folder::new(&root).fetch_from(&server.address).certificates(authority());
            let error = error_of(&from, "mnist");
            for part in parts {
                assert!(error.contains(part), "{what}: `{part}` is not in: {error}");
            }
            assert_eq!(n_files(&root), 0, "{what}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}

#[test]
fn strangers_are_not_trusted() {
    let root = folder("strangers");
    let server = Server::start(true, [("/cifar10/test_batch.bin", answer("200 OK", b"x"))]);
    // Mozilla's authorities do not know it.
    let error = error_of(&Folder::new(&root).fetch_from(&server.address), "cifar10");
    assert!(error.contains("UnknownIssuer") || error.contains("certificate"), "{error}");
    // Its certificate is not of this name.
    let other_name = server.address.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    error_of(&Folder::new(&root).fetch_from(other_name).certificates(authority()), "cifar10");
    assert!(server.asked().is_empty(), "{:?}", server.asked());
    let none = root.join("none.pem");
    std::fs::write(&none, "not a certificate").unwrap();
    let error = error_of(&Folder::new(&root).fetch_from(&server.address).certificates(&none), "cifar10");
    assert!(error.contains("none.pem") && error.contains("the file has no certificate"), "{error}");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn addresses_that_are_refused() {
    let root = folder("addresses");
    let of = |address: &str| error_of(&Folder::new(&root).fetch_from(address), "cifar10");
    assert!(of("http://example.org/sets").contains("is not an https:// address"));
    assert!(of("ftp://localhost").contains("cannot fetch ftp://localhost"));
    assert!(of("https://").contains("is not an https:// address"));
    // A port that nobody listens to.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = of(&format!("https://{closed}"));
    assert!(error.contains("refused"), "{error}");
    assert_eq!(n_files(&root), 0);
    std::fs::remove_dir_all(root).unwrap();
}

/// Single files with either checksum, and one that was damaged after it was fetched.
#[test]
fn single_files_are_checked() -> Result<()> {
    // Of the bytes `abc`, by RFC 1321 and FIPS 180.
    let md5 = "900150983cd24fb0d6963f7d28e17f72";
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for is_secure in [true, false] {
        let root = folder("single");
        let server = Server::start(is_secure, [("/models/a.h5", answer("200 OK", b"abc"))]);
        let file = || Fetch::new(format!("{}/models/a.h5", server.address)).certificates(authority());
        for (i, checksum) in [Checksum::Md5(md5.into()), Checksum::Sha256(sha256.into())].into_iter().enumerate() {
            let path = root.join(format!("{i}/a.h5"));
            let file = file().checksum(checksum);
            file.to(&path)?;
            file.to(&path)?;
            assert_eq!(std::fs::read(&path).unwrap(), b"abc");
            assert_eq!(server.asked().len(), i + 1, "fetched once");
            std::fs::write(&path, "abd").unwrap();
            let error = file.to(&path).unwrap_err().to_string();
            assert!(error.contains("a.h5") && error.contains("remove it"), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), b"abd", "the user's file stays");
        }
        for checksum in [Checksum::Md5(md5.replace('9', "8")), Checksum::Sha256(sha256.replace('b', "c"))] {
            let error = file().checksum(checksum).to(root.join("other.h5")).unwrap_err().to_string();
            assert!(error.contains("was not kept") && error.contains(&server.address), "{error}");
            assert!(!root.join("other.h5").exists());
        }
        file().to(root.join("unchecked.h5"))?;
        assert_eq!(n_files(&root), 3);
        std::fs::remove_dir_all(root).unwrap();
    }
    Ok(())
}
