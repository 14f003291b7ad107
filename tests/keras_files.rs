//! The files of Keras: those of Keras 2 and Keras 3 are read, ours are read back, and damaged ones
//! are refused. `oracles/live/keras_files.py` lets Keras open ours.

use std::path::{Path, PathBuf};

use estimand::keras::{Input, KerasVersion, Model, Sequential, load_model, model_from_json};
use estimand::nn::config::CustomObjects;
use estimand::nn::{BatchNorm, Bidirectional, Lambda};
use estimand::prelude::*;
use estimand_fixture::{Case, cases};

fn objects() -> CustomObjects {
    CustomObjects::new()
}

fn file(case: &Case) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_files");
    folder.join(case.setting::<String>("file"))
}

fn array(case: &Case, key: &str) -> Array {
    let found = case.array(key);
    Array::from_bytes(DType::F32, &found.dims[..], &found.to_ne_bytes()).unwrap()
}

fn check(model: &mut Model, case: &Case) -> Result<()> {
    let (found, expected) = (model.predict(array(case, "in:0"))?, array(case, "out:0"));
    assert_eq!(found.dims(), expected.dims());
    for (a, b) in found.as_slice::<f32>()?.iter().zip(expected.as_slice::<f32>()?) {
        assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{}: {a} and {b}", file(case).display());
    }
    Ok(())
}

/// A folder of its own, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("keras-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_of_keras_are_read_and_ours_are_read_back() -> Result<()> {
    let folder = Folder::new("read");
    let mut n = 0;
    for case in cases("keras_files_keras2").iter().chain(&cases("keras_files_keras3")) {
        let mut model = match case.setting::<String>("holds").as_str() {
            "model" => load_model(file(case), &objects())?,
            _ => {
                let mut model = model_from_json(&case.setting::<String>("json"), &objects())?;
                model.load_weights(file(case))?;
                model
            }
        };
        check(&mut model, case)?;
        for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
            let path = folder.0.join(format!("{n}.keras"));
            model.save_for(&path, version)?;
            let bytes = std::fs::read(&path).unwrap();
            check(&mut load_model(&path, &objects())?, case)?;
            model.save_for(&path, version)?;
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "the same model, the same bytes");
        }
        let path = folder.0.join(format!("{n}.weights.h5"));
        model.save_weights(&path)?;
        let mut again = model_from_json(&case.setting::<String>("json"), &objects())?;
        again.load_weights(&path)?;
        assert_eq!(again.get_weights()?, model.get_weights()?);
        n += 1;
    }
    assert_eq!(n, 6);
    Ok(())
}

fn words(result: Result<()>, expected: &[&str]) {
    let error = result.unwrap_err().to_string();
    assert!(expected.iter().all(|word| error.contains(word)), "expected {expected:?}: {error}");
}

#[test]
fn mistakes_are_said() -> Result<()> {
    let folder = Folder::new("mistakes");
    let build = |units: usize| Sequential::new().input([3]).add(Dense::new(units)).add(BatchNorm::new()).build();
    let (small, mut large) = (build(2)?, build(4)?);
    let before = large.get_weights()?;
    let (weights, whole) = (folder.0.join("small.weights.h5"), folder.0.join("small.keras"));
    small.save_weights(&weights)?;
    small.save(&whole)?;
    words(large.load_weights(&weights), &["got the shape [3, 2]; expected [3, 4]", "small.weights.h5"]);
    words(large.load_weights(&whole), &["got the shape [3, 2]; expected [3, 4]", "small.keras"]);
    let mut other = Sequential::new().input([3, 2]).add(Bidirectional::new(Lstm::new(2))).build()?;
    words(other.load_weights(&weights), &["layers/bidirectional/forward_layer/cell/vars", "for the weights of layer"]);
    assert_eq!(large.get_weights()?, before, "nothing changes");
    words(small.save_weights(folder.0.join("small.h5")), &["expected a name that ends with .weights.h5", "model.save"]);
    words(small.save(folder.0.join("small.h5")), &["expected a name that ends with .keras"]);
    words(load_model(&weights, &objects()).map(drop), &["has no `model_config`", "load_weights"]);
    words(load_model(folder.0.join("none.keras"), &objects()).map(drop), &["none.keras"]);
    std::fs::write(folder.0.join("text.keras"), "no archive").unwrap();
    words(load_model(folder.0.join("text.keras"), &objects()).map(drop), &["no end of a zip archive", "text.keras"]);
    let mine = Sequential::new().input([2]).add(Lambda::new(|x| x[0].square()).name("mine")).build()?;
    words(mine.save(folder.0.join("mine.keras")), &["the layer `mine` is a function"]);
    assert!(!folder.0.join("mine.keras").exists());
    Ok(())
}

/// Bytes of a small file changed in turn, and other lengths: an error or a model, never a panic.
#[test]
fn damaged_files_are_refused() -> Result<()> {
    let folder = Folder::new("damage");
    let path = folder.0.join("model.keras");
    let input = Input::new([2]).name("x");
    Sequential::new().input(input).add(Dense::new(1)).build()?.save(&path)?;
    let good = std::fs::read(&path).unwrap();
    let (mut n_errors, mut n) = (0, 0);
    for (i, step) in (0..good.len()).step_by(7).zip([1u8, 0x80, 0xff].into_iter().cycle()) {
        let mut damaged = good.clone();
        damaged[i] = damaged[i].wrapping_add(step);
        std::fs::write(&path, &damaged).unwrap();
        n_errors += usize::from(load_model(&path, &objects()).is_err());
        if i % 77 == 0 {
            std::fs::write(&path, &good[..i]).unwrap();
            assert!(load_model(&path, &objects()).is_err());
        }
        n += 1;
    }
    // Checksums find damage inside of members.
    assert!(n_errors * 10 > n * 9, "{n_errors} of {n}");
    Ok(())
}
