//! Folders of images by class.

use std::path::{Path, PathBuf};

use estimand_data::image::{ImageFolder, Method};
use estimand_data::{Dataset, InputContext, Position};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Result};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("images-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A PNG of one grey.
fn write(path: &Path, [height, width]: [u32; 2], grey: u8) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut encoder = png::Encoder::new(std::fs::File::create(path).unwrap(), width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![grey; (height * width) as usize]).unwrap();
}

/// 9 cats of greys 0 to 8, one of them deeper, and 4 dogs of 100 to 103; an empty class, and files
/// that are no images.
fn animals(name: &str) -> PathBuf {
    let root = folder(name);
    (0..8).for_each(|i| write(&root.join(format!("cat/{i}.png")), [3, 2], i));
    write(&root.join("cat/more/x.PNG"), [3, 2], 8);
    (0..4).for_each(|i| write(&root.join(format!("dog/{i}.png")), [3, 2], 100 + i));
    std::fs::create_dir(root.join("eel")).unwrap();
    std::fs::create_dir(root.join(".cache")).unwrap();
    std::fs::write(root.join("cat/notes.txt"), "not an image").unwrap();
    std::fs::write(root.join("readme.png"), "not in a class").unwrap();
    root
}

fn greys(batch: &Batch) -> Vec<u8> {
    let Feature::Dense(images) = &batch.features()["image"] else { panic!("dense") };
    images.as_slice::<u8>().unwrap().chunks(images.len() / batch.n_rows()).map(|image| image[0]).collect()
}

const ORDER: [u8; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 101, 102, 103];

#[test]
fn classes_are_sub_folders() -> Result<()> {
    let root = animals("classes");
    let images = ImageFolder::new(&root);
    assert_eq!(images.classes()?, ["cat", "dog", "eel"]);
    let data = Dataset::from_image_folder(&root);
    assert_eq!(data.spec()?["image"], FeatureSpec::dense(DType::U8, [3, 2, 3]));
    let batch = data.batch(20).iter().next().unwrap()?;
    assert_eq!(greys(&batch), ORDER);
    assert_eq!(batch.labels()["label"], Array::from([0i64, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]).into());

    // Shuffled as a whole, by number.
    let shuffled = data.shuffle(1, 7).batch(20);
    assert!(shuffled.explain().contains("a permutation of all rows"));
    let mut found = greys(&shuffled.iter().next().unwrap()?);
    assert_ne!(found, ORDER);
    found.sort_unstable();
    assert_eq!(found, ORDER);

    let grey = images.channels(1).size([6, 6], Method::Bilinear).dataset();
    assert_eq!(grey.spec()?["image"], FeatureSpec::dense(DType::F32, [6, 6, 1]));
    let batch = grey.skip(12).batch(1).drop_remainder().iter().next().unwrap()?;
    assert_eq!(batch.features()["image"], Array::from_vec([1, 6, 6, 1], vec![103.0f32; 36])?.into());
    std::fs::remove_dir_all(root).unwrap();
    Ok(())
}

/// The law of exact resume, after pieces of any size.
#[test]
fn reading_goes_on_from_any_image() -> Result<()> {
    let root = animals("resume");
    let cx = InputContext::default();
    for data in [Dataset::from_image_folder(&root), Dataset::from_image_folder(&root).shuffle(1, 3).repeat(2)] {
        let whole: Vec<Batch> = data.iter().collect::<Result<_>>()?;
        let mut stream = data.open(&cx, &Position::default())?;
        let (mut n_seen, mut wants) = (0, [3, 1, 4].into_iter().cycle());
        while let Some(item) = stream.pull(wants.next().unwrap())? {
            n_seen += item.batch.n_rows();
            let rest: Vec<Batch> =
                data.iter_from(&cx, &Position::from_bytes(&item.after.to_bytes())?).collect::<Result<_>>()?;
            assert_eq!(rest, whole[n_seen..]);
        }
        assert_eq!(n_seen, whole.len());
    }
    std::fs::remove_dir_all(root).unwrap();
    Ok(())
}

#[test]
fn mistakes_name_the_file() {
    let root = animals("mistakes");
    let fails = |data: Dataset| data.batch(20).iter().find_map(Result::err).unwrap().to_string();
    let images = || ImageFolder::new(&root);
    write(&root.join("dog/9.png"), [4, 5], 1);
    let odd = fails(images().dataset());
    assert!(
        odd.contains("the image has 4 x 5 pixels, but the first image has 3 x 2") && odd.contains("9.png"),
        "{odd}"
    );
    assert!(odd.contains("ImageFolder::size"), "{odd}");
    assert_eq!(images().size([3, 2], Method::Nearest).dataset().iter().filter(Result::is_ok).count(), 14);
    std::fs::write(root.join("cat/3.png"), "no image at all").unwrap();
    let damaged = fails(images().dataset());
    assert!(damaged.contains("3.png") && damaged.contains("neither PNG nor JPEG"), "{damaged}");
    for (data, text) in [
        (images().channels(2).dataset(), "2 channels"),
        (images().size([0, 5], Method::Nearest).dataset(), "the size 0 x 5; expected at least 1 x 1"),
        (ImageFolder::new(root.join("eel")).dataset(), "has no sub-folders; expected one for each class"),
        (ImageFolder::new(root.join("cat")).dataset(), "x.PNG"),
        (ImageFolder::new(root.join("nothing")).dataset(), "cannot list"),
    ] {
        if text == "x.PNG" {
            // A folder of one class is one.
            assert_eq!(data.iter().count(), 1);
            continue;
        }
        let error = fails(data);
        assert!(error.contains(text), "{text}: {error}");
    }
    std::fs::remove_dir_all(root.join("cat")).unwrap();
    std::fs::remove_dir_all(root.join("dog")).unwrap();
    let empty = fails(images().dataset());
    assert!(empty.contains("no PNG or JPEG file in the folders of"), "{empty}");
    let behind = Position::new([99], []);
    let error = Dataset::from_image_folder(animals("mistakes")).iter_from(&InputContext::default(), &behind).next();
    assert!(
        error
            .unwrap()
            .unwrap_err()
            .to_string()
            .contains("the position is after image 99, but the folder has 13 images")
    );
    std::fs::remove_dir_all(root).unwrap();
}
