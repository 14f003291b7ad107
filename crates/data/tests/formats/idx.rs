//! IDX and CIFAR-10's binary files. The bytes are written out by hand from the descriptions of the
//! formats.

use std::io::Write;
use std::path::PathBuf;

use estimand_data::{Dataset, cifar10, idx};
use estimand_tensor::{Array, Result};

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Magic 0 0 type rank, big-endian sizes, big-endian numbers.
#[test]
fn every_type_of_idx() -> Result<()> {
    let file = |code: u8, data: &[u8]| [&[0, 0, code, 1, 0, 0, 0, 2], data].concat();
    let quarter = 0.25f32.to_be_bytes();
    let third = (1.0f64 / 3.0).to_be_bytes();
    for (bytes, expected) in [
        (file(0x08, &[0, 255]), Array::from([0u8, 255])),
        (file(0x09, &[1, 255]), Array::from([1i32, -1])),
        (file(0x0b, &[1, 0, 0xff, 0xfe]), Array::from([256i32, -2])),
        (file(0x0c, &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]), Array::from([65536i32, -1])),
        (file(0x0d, &[quarter, quarter].concat()), Array::from([0.25f32, 0.25])),
        (file(0x0e, &[third, third].concat()), Array::from([1.0f64 / 3.0, 1.0 / 3.0])),
    ] {
        assert_eq!(idx::from_bytes(&bytes)?, expected);
    }
    let image = [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 9, 8, 7, 6, 5, 4];
    assert_eq!(idx::from_bytes(&image)?, Array::from_vec([1, 2, 3], vec![9u8, 8, 7, 6, 5, 4])?);
    Ok(())
}

#[test]
fn images_and_labels_of_packed_files() -> Result<()> {
    let folder = folder();
    let (images, labels) = (folder.join("images-idx3-ubyte.gz"), folder.join("labels-idx1-ubyte"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&[0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6]).unwrap();
    std::fs::write(&images, packed.finish().unwrap()).unwrap();
    std::fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]).unwrap();
    let data = Dataset::from_idx([("image", &images), ("label", &labels)]).label("label").batch(2);
    let batches: Vec<_> = data.iter().collect::<Result<_>>()?;
    assert_eq!(batches[1].features()["image"], Array::from_vec([1, 1, 2], vec![5u8, 6])?.into());
    assert_eq!(batches[0].labels()["label"], Array::from([7u8, 8]).into());

    std::fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 7, 8]).unwrap();
    let uneven = Dataset::from_idx([("image", &images), ("label", &labels)]).spec().unwrap_err().to_string();
    assert!(uneven.contains("`label` has 2 rows, but the batch has 3") && uneven.contains("labels-idx1"), "{uneven}");
    Ok(())
}

/// A row is the label, 1,024 reds, as many greens, as many blues; pixels come out as triples.
#[test]
fn cifar10s_colours_are_joined() -> Result<()> {
    let planes = [[10u8; 1024], [20; 1024], [30; 1024]].concat();
    let mut row = [&[3], planes.as_slice()].concat();
    row[1 + 1] = 11; // the red of the second pixel
    let batch = cifar10::from_bytes(&[row.clone(), [&[9], planes.as_slice()].concat()].concat())?;
    assert_eq!(batch.features()["label"], Array::from([3i64, 9]).into());
    let estimand_tensor::Feature::Dense(images) = &batch.features()["image"] else { panic!("images are dense") };
    assert_eq!(images.dims(), [2, 32, 32, 3]);
    assert_eq!(images.as_slice::<u8>()?[..9], [10, 20, 30, 11, 20, 30, 10, 20, 30]);

    let path = folder().join("data_batch_1.bin");
    std::fs::write(&path, row.repeat(3)).unwrap();
    assert_eq!(Dataset::from_cifar10([&path, &path]).label("label").batch(4).iter().count(), 2);
    Ok(())
}
