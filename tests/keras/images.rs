//! Folders of images with augmentation in the threads of the input.

use std::path::{Path, PathBuf};

use estimand::data::image::{ImageFolder, Method};
use estimand::keras::{Compile, Evaluate, Fit, Input, Sequential};
use estimand::nn::{Flip, GlobalAvgPool2d, RandomFlip, RandomTranslation, Rescaling};
use estimand::prelude::*;

/// Stripes of two pixels, along the rows or along the columns, that begin at `shift`.
fn write(path: &Path, along_rows: bool, shift: u32) {
    const SIDE: u32 = 20;
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, SIDE, SIDE);
    encoder.set_color(png::ColorType::Grayscale);
    let place = |i: u32| if along_rows { i / SIDE } else { i % SIDE };
    let pixels: Vec<u8> =
        (0..SIDE * SIDE).map(|i| if ((place(i) + shift) / 2).is_multiple_of(2) { 255 } else { 20 }).collect();
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
}

/// 24 images of each of two classes, in a folder that is removed when the test ends.
fn stripes(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("stripes-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    for (class, along_rows) in [("columns", false), ("rows", true)] {
        std::fs::create_dir_all(root.join(class)).unwrap();
        (0..24).for_each(|i| write(&root.join(format!("{class}/{i}.png")), along_rows, i));
    }
    root
}

/// The program of `cats_vs_dogs`: two folders, sizes, a part for validation, augmentation, a CNN.
#[test]
fn a_folder_of_images_trains_a_cnn_with_augmentation() -> Result<()> {
    let root = stripes("cnn");
    let images = ImageFolder::new(&root).size([16, 16], Method::Bilinear);
    assert_eq!(images.classes()?, ["columns", "rows"]);
    let [train, validation] = images.dataset().split([0.75, 0.25], 5);
    let augmented = train.shuffle(64, 7).map_graph(|row| {
        let image = LayerInputs::of(&row.dense("image")).training(true);
        let flipped = RandomFlip::new(Flip::Horizontal).apply(&image);
        let moved = RandomTranslation::new(0.1, 0.1).apply(&LayerInputs::of(&flipped).training(true));
        [("image", moved)]
    });
    let mut model = Sequential::new()
        .input(Input::new([16, 16, 3]).name("image"))
        .add(Rescaling::new(1.0 / 255.0))
        .add(Conv2d::new(8, 4).relu())
        .add(GlobalAvgPool2d::new())
        .add(Dense::new(2).softmax())
        .build()?;
    let adam = Optimizer::keras(Adam::default(), 0.02);
    model.compile(Compile::new(adam, "sparse_categorical_crossentropy").metric("accuracy"))?;
    let fit = Fit::new(augmented.batch(8)).epochs(15).validation_data(validation.batch(8)).verbose(0);
    let history = model.fit(fit)?;
    assert_eq!(history["val_accuracy"].len(), 15);
    assert_eq!(model.evaluate(Evaluate::new(images.dataset().batch(8)))?["accuracy"], 1.0);
    std::fs::remove_dir_all(root).unwrap();
    Ok(())
}
