//! ImageNet's weights by name: found in a folder, or fetched from a server, which is one of this
//! process.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::keras::applications::{self, Cache, ClassNames, Weights};
use estimand::prelude::*;

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("keras-download-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Answers every request with these bytes; returns the address and the number of requests.
fn serve(body: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/files/", listener.local_addr().unwrap());
    let n = Arc::new(AtomicUsize::new(0));
    let count = n.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(|line| line.ok()).find(String::is_empty);
            count.fetch_add(1, Ordering::SeqCst);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (address, n)
}

/// Keras knows no checksum of MobileNetV2's files, so one of our own does.
#[test]
fn weights_are_fetched_once() -> Result<()> {
    let root = folder("fetched");
    let network = applications::mobile_net_v2().alpha(0.35).input_shape([96, 96, 3]).include_top(false);
    let trained = network.build()?.seed(5)?;
    let file = root.join("own.weights.h5");
    trained.save_weights(&file)?;
    let (address, n) = serve(std::fs::read(&file).unwrap());
    let cache = Cache::new(root.join("cache")).fetch_from(&address);
    for _ in 0..2 {
        let model = network.clone().weights(Weights::ImageNet).cache(cache.clone()).build()?;
        assert_eq!(model.get_weights()?, trained.get_weights()?);
        assert_eq!(n.load(Ordering::SeqCst), 1);
    }
    let name = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_0.35_96_no_top.h5";
    assert!(root.join("cache").join(name).is_file());
    let model = network.weights(Weights::File(file)).build()?;
    assert_eq!(model.get_weights()?, trained.get_weights()?);
    std::fs::remove_dir_all(root).unwrap();
    Ok(())
}

/// Where Keras knows a checksum, another file is not kept.
#[test]
fn other_files_are_refused() {
    let root = folder("refused");
    let (address, _) = serve(b"abc".to_vec());
    let cache = Cache::new(&root).fetch_from(&address);
    for network in [applications::dense_net121(), applications::efficient_net_b0(), applications::resnet50()] {
        let error = network.weights(Weights::ImageNet).cache(cache.clone()).build().unwrap_err().to_string();
        assert!(error.contains("has the MD5 900150983cd24fb0d6963f7d28e17f72; expected"), "{error}");
        assert!(error.contains(&address) && error.contains("was not kept"), "{error}");
    }
    let error = ClassNames::imagenet(&cache).unwrap_err().to_string();
    assert!(
        error.contains("imagenet_class_index.json") && error.contains("c2c37ea517e94d9795004a39431a14cb"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    std::fs::remove_dir_all(root).unwrap();
}
