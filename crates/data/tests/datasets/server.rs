//! Files fetched once, from a server of this process.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use estimand_data::datasets::Folder;
use estimand_tensor::Result;

use crate::folder::{folder, idx_files};

/// Serves some paths for as long as the process lives; returns its address and the paths that were
/// asked for.
fn serve(files: BTreeMap<&'static str, Vec<u8>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let path = answer(connection.unwrap(), &files);
            log.lock().unwrap().push(path);
        }
    });
    (address, asked)
}

fn answer(mut connection: TcpStream, files: &BTreeMap<&'static str, Vec<u8>>) -> String {
    let lines: Vec<String> = BufReader::new(connection.try_clone().unwrap())
        .lines()
        .map(|line| line.unwrap())
        .take_while(|line| !line.is_empty())
        .collect();
    let path = lines[0].split(' ').nth(1).unwrap().to_string();
    let (status, body) = match files.get(path.as_str()) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b"no"[..]),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(&[head.as_bytes(), body].concat()).unwrap();
    path
}

#[test]
fn missing_files_are_fetched_once() -> Result<()> {
    let root = folder("fetch");
    let (images, labels) = idx_files(3);
    let pack = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let (address, asked) = serve(BTreeMap::from([
        ("/sets/fashion_mnist/train-images-idx3-ubyte.gz", pack(&images)),
        ("/sets/fashion_mnist/train-labels-idx1-ubyte.gz", pack(&labels)),
        ("/sets/mnist/train-images-idx3-ubyte.gz", pack(&images)),
    ]));
    let from = Folder::new(&root).fetch_from(format!("{address}/sets/"));
    let set = from.load("fashion_mnist", "train")?;
    assert!(set.dataset().explain().contains(", fetched from http://127.0.0.1"));
    assert!(asked.lock().unwrap().is_empty(), "nothing is fetched before it is needed");
    assert_eq!(set.dataset().iter().count(), 3);
    assert_eq!(asked.lock().unwrap().len(), 2);
    // From the folder now, also without the server.
    assert_eq!(from.load("fashion_mnist", "train")?.dataset().iter().count(), 3);
    assert_eq!(Folder::new(&root).load("fashion_mnist", "train")?.dataset().iter().count(), 3);
    assert_eq!(asked.lock().unwrap().len(), 2);

    // Not MNIST, whatever it is called.
    let error = from.load("mnist", "train")?.dataset().spec().unwrap_err().to_string();
    assert!(error.contains("expected 0b367032e93c5d0c") && error.contains("nothing was kept"), "{error}");
    assert!(!root.join("mnist").exists());
    let error = from.load("cifar10", "test")?.dataset().spec().unwrap_err().to_string();
    assert!(error.contains("cifar10/test_batch.bin") && error.contains("404 Not Found"), "{error}");
    let secure = Folder::new(&root).fetch_from("https://example.org").load("cifar10", "test")?;
    let error = secure.dataset().spec().unwrap_err().to_string();
    assert!(error.contains("https is not spoken here"), "{error}");
    std::fs::remove_dir_all(root).unwrap();
    Ok(())
}
