//! The files of Keras: those of Keras 2 and Keras 3 are read, ours are read back, and damaged ones
//! are refused. `oracles/live/keras_files.py` lets Keras open ours.

#[path = "keras_files/damage.rs"]
mod damage;
#[path = "keras_compiled/folder.rs"]
mod folder;
#[path = "keras_files/hostile.rs"]
mod hostile;
#[path = "keras_files/learned.rs"]
mod learned;
#[path = "keras_files/nested.rs"]
mod nested;

use std::path::{Path, PathBuf};

use estimand::keras::{
    ByName, Compile, Functional, Input, KerasVersion, Model, Sequential, load_model, model_from_json,
    model_to_estimator,
};
use estimand::nn::config::{self, CustomObjects, Described, Fields, Json};
use estimand::nn::layer::{Build, Config, LayerCall};
use estimand::nn::{BatchNorm, Bidirectional, Lambda};
use estimand::prelude::*;
use estimand_fixture::{Case, cases};
use folder::Folder;

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

#[test]
fn files_of_keras_are_read_and_ours_are_read_back() -> Result<()> {
    let folder = Folder::new("read");
    let mut n = 0;
    for case in ["keras_files_keras2", "keras_files_keras3", "keras_files_keras3_15"].into_iter().flat_map(cases) {
        let case = &case;
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
            let path = folder.0.join(format!("{n}.h5"));
            model.save_for(&path, version)?;
            check(&mut load_model(&path, &objects())?, case)?;
        }
        for name in [format!("{n}.weights.h5"), format!("{n}_weights.h5"), format!("{n}.hdf5")] {
            let path = folder.0.join(&name);
            model.save_weights(&path)?;
            let mut again = model_from_json(&case.setting::<String>("json"), &objects())?;
            again.load_weights(&path)?;
            assert_eq!(again.get_weights()?, model.get_weights()?);
            if !name.ends_with(".weights.h5") {
                let mut again = model_from_json(&case.setting::<String>("json"), &objects())?;
                again.load_weights_by_name(&path, ByName::new())?;
                assert_eq!(again.get_weights()?, model.get_weights()?, "by name");
            }
        }
        n += 1;
    }
    assert_eq!(n, 8);
    Ok(())
}

/// Mean, variance and count of an adapted `Normalization` are weights.
#[test]
fn adapted_layers_keep_their_numbers() -> Result<()> {
    let folder = Folder::new("adapted");
    let mut n = 0;
    for case in cases("keras_weights_keras2").iter().chain(&cases("keras_weights_keras3")) {
        if case.name() != "adapted" {
            continue;
        }
        let mut model = load_model(file(case), &objects())?;
        check(&mut model, case)?;
        // The number of rows of 7 images of 3 x 4 pixels; Keras 3 does not count.
        let count = model.get_layer("normalization")?.get_weights()?[2].item::<i64>()?;
        assert!([84, 0].contains(&count), "{count}");
        for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
            let path = folder.0.join(format!("{n}.keras"));
            model.save_for(&path, version)?;
            check(&mut load_model(&path, &objects())?, case)?;
        }
        n += 1;
    }
    assert_eq!(n, 3);
    Ok(())
}

#[test]
fn weights_are_loaded_by_name_as_keras_does() -> Result<()> {
    let all = cases("keras_weights_keras2");
    let weights = |case: &Case, when: &str, n: usize| -> Vec<Array> {
        (0..n).map(|i| array(case, &format!("{when}:{i}"))).collect()
    };
    let mut reports = Vec::new();
    for case in all.iter().filter(|case| case.name() == "by_name") {
        let mut model = model_from_json(&case.setting::<String>("json"), &objects())?;
        let n = model.weight_names().count();
        let before = weights(case, "before", n);
        model.set_weights(&before)?;
        if case.setting("skip") {
            words(
                model.load_weights_by_name(file(case), ByName::new()).map(drop),
                &["by_name_keras2.h5", "skip_mismatch(true)"],
            );
            assert_eq!(model.get_weights()?, before, "nothing changes");
        }
        let report = model.load_weights_by_name(file(case), ByName::new().skip_mismatch(case.setting("skip")))?;
        assert_eq!(model.get_weights()?, weights(case, "after", n));
        check(&mut model, case)?;
        reports.push((report.loaded.join(" "), report.skipped.join(" "), report.missing.join(" ")));
    }
    let report = |loaded: &str, skipped: &str, missing: &str| (loaded.into(), skipped.into(), missing.into());
    assert_eq!(
        reports,
        [
            report("first norm", "", "between new"),
            report("first norm", "last", "between"),
            report("first norm", "last", "between"),
            report("first", "norm last", "between"),
        ]
    );
    let mut model = Sequential::new().input([3]).add(Dense::new(1)).build()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_files/net_keras3.weights.h5");
    words(model.load_weights_by_name(path, ByName::new()).map(drop), &["no names of layers", "call load_weights"]);
    Ok(())
}

/// An Estimator whose model has random weights predicts what the model of the file does.
#[test]
fn estimators_start_with_the_weights_of_keras_files() -> Result<()> {
    let mut n = 0;
    for case in cases("keras_files_keras2").iter().chain(&cases("keras_files_keras3")) {
        let mut model = model_from_json(&case.setting::<String>("json"), &objects())?;
        model.compile(Compile::new("sgd", "mse"))?;
        let places = |names: &[&str]| -> Vec<(String, String)> {
            let places = ["conv2d/vars/0", "conv2d/vars/1", "batch_normalization/vars/0", "batch_normalization/vars/1"];
            let others = ["batch_normalization/vars/2", "batch_normalization/vars/3", "dense/vars/0", "dense/vars/1"];
            let last = ["dense_1/vars/0", "dense_1/vars/1"];
            let all = places.iter().chain(&others).chain(&last).map(|place| format!("layers/{place}"));
            names.iter().map(|name| name.to_string()).zip(all).collect()
        };
        let names: Vec<String> = model.weight_names().map(str::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut settings = WarmStartSettings::new(file(case)).named_vars(names.clone());
        if case.setting::<String>("file").ends_with(".weights.h5") {
            words(
                start(clone(&mut model, case)?, &settings, case).map(drop),
                &["in the warm start of `conv2d", "has no names of variables", "prev_var_name"],
            );
            settings = settings.prev_var_names(places(&names));
        }
        let found = start(model, &settings, case)?;
        let expected = array(case, "out:0");
        for (a, b) in found.iter().zip(expected.as_slice::<f32>()?) {
            assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{}: {a} and {b}", file(case).display());
        }
        n += 1;
    }
    assert_eq!(n, 6);
    Ok(())
}

/// Another model of the same architecture.
fn clone(model: &mut Model, case: &Case) -> Result<Model> {
    let mut other = model_from_json(&case.setting::<String>("json"), &objects())?;
    assert_eq!(other.name(), model.name());
    other.compile(Compile::new("sgd", "mse"))?;
    Ok(other)
}

/// Predictions of an Estimator that was never trained.
fn start(model: Model, settings: &WarmStartSettings, case: &Case) -> Result<Vec<f32>> {
    let output = &model.output_names()[0];
    let estimator = model_to_estimator(model)?.warm_start_from(settings).build()?;
    let data = Dataset::from_arrays([("x", array(case, "in:0"))]).batch(2);
    let mut numbers = Vec::new();
    for row in estimator.predict(&data) {
        numbers.extend_from_slice(row?.array(output)?.as_slice::<f32>()?);
    }
    Ok(numbers)
}

/// A model inside of another one, whose scope the file does not have; and mistakes.
#[test]
fn scopes_are_mapped() -> Result<()> {
    let folder = Folder::new("scopes");
    let base =
        || Sequential::new().input([3]).add(Dense::new(4).name("hidden")).add(BatchNorm::new().name("norm")).build();
    let old = base()?.seed(7)?;
    let (whole, weights) = (folder.0.join("old.keras"), folder.0.join("old.weights.h5"));
    old.save(&whole)?;
    old.save_weights(&weights)?;
    let estimator = |settings: WarmStartSettings| -> Result<Estimator> {
        let inside = base()?;
        let input = Input::new([3]).name("x").tensor();
        let mut model = Model::new(&input, &Dense::new(1).name("head").on(&inside.on(&input)))?;
        model.compile(Compile::new("sgd", "mse"))?;
        model_to_estimator(model)?.warm_start_from(settings).build()
    };
    let data = Dataset::from_arrays([("x", Array::from_vec([2, 3], vec![1f32; 6])?)]).batch(2);
    let run = |settings: WarmStartSettings| -> Result<()> {
        estimator(settings)?.predict(&data).try_for_each(|row| row.map(drop))
    };
    let hidden = "sequential/hidden/kernel";
    let settings = || WarmStartSettings::new(&whole).vars("sequential/.*");
    run(settings().prev_scope("sequential", ""))?;
    words(run(settings()), &["`sequential/hidden/kernel`", "old.keras"]);
    words(run(settings().prev_scope("other", "")), &["prev_scope is given for `other`"]);
    words(run(WarmStartSettings::new(&whole).prev_scope("sequential", "")), &["in the warm start of `head/"]);
    words(
        run(WarmStartSettings::new(&weights).named_vars([hidden]).prev_var_name(hidden, "layers/dense/vars/9")),
        &["layers/dense/vars/9", "layers/dense/vars/0"],
    );
    words(
        run(WarmStartSettings::new(&weights).named_vars([hidden]).prev_var_name(hidden, "layers/dense/vars/1")),
        &["f32[4] in the checkpoint and f32[3, 4] in the model"],
    );
    words(run(WarmStartSettings::new(folder.0.join("none.h5"))), &["none.h5"]);
    std::fs::write(folder.0.join("text.h5"), "no file").unwrap();
    words(run(WarmStartSettings::new(folder.0.join("text.h5"))), &["text.h5"]);
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
    words(small.save_weights(folder.0.join("no.keras")), &["expected a name that ends with .h5", "model.save"]);
    words(small.save(folder.0.join("small.weights.h5")), &["expected a name that ends with .keras or .h5"]);
    words(small.save(folder.0.join("small")), &["expected a name that ends with .keras or .h5"]);
    words(load_model(&weights, &objects()).map(drop), &["has no `model_config`", "load_weights"]);
    words(load_model(folder.0.join("none.keras"), &objects()).map(drop), &["none.keras"]);
    std::fs::write(folder.0.join("text.keras"), "no archive").unwrap();
    words(load_model(folder.0.join("text.keras"), &objects()).map(drop), &["no end of a zip archive", "text.keras"]);
    let mine = Sequential::new().input([2]).add(Lambda::new(|x| x[0].square()).name("mine")).build()?;
    words(mine.save(folder.0.join("mine.keras")), &["the layer `mine` is a function"]);
    assert!(!folder.0.join("mine.keras").exists());
    Ok(())
}

/// The tree of a legacy file, as `save_weights_to_hdf5_group` of tf.keras 2.15 writes it:
/// a layer without weights has an empty list; the weights of a model inside are listed without its
/// name, those that are trained first.
#[test]
fn legacy_files_have_the_tree_of_keras() -> Result<()> {
    let folder = Folder::new("tree");
    let norm = || BatchNorm::new().name("norm");
    let base = Sequential::new().name("base").input([2]).add(norm()).add(Dense::new(1).name("last")).build()?;
    let input = Input::new([2]).name("x").tensor();
    let model = Model::named("m", &input, &Dense::new(1).name("top").on(&base.on(&input)))?;
    let path = folder.0.join("m.h5");
    model.save(&path)?;
    let file = estimand_hdf5::File::open(&path, &estimand::tensor::Limits::default())?;
    let names = |path: &str, attribute: &str| -> Vec<String> {
        let found = file.root().group(path).unwrap().find_attribute(attribute).unwrap().unwrap();
        let texts = if found.is_empty() { Vec::new() } else { found.strings().unwrap().map(<[u8]>::to_vec).collect() };
        texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
    };
    assert_eq!(names("model_weights", "layer_names"), ["x", "base", "top"]);
    assert_eq!(names("model_weights/x", "weight_names"), [""; 0]);
    assert_eq!(names("model_weights/top", "weight_names"), ["top/kernel:0", "top/bias:0"]);
    assert_eq!(
        names("model_weights/base", "weight_names"),
        ["norm/gamma:0", "norm/beta:0", "last/kernel:0", "last/bias:0", "norm/moving_mean:0", "norm/moving_variance:0"]
    );
    assert_eq!(file.root().dataset("model_weights/base/last/kernel:0")?.shape(), [2, 1]);
    // Layers that are called as groups are.
    for name in ["model_weights", "optimizer_weights", "a/b"] {
        let mut model = Sequential::new().input([1]).add(Dense::new(1).name(name)).add(Dense::new(1)).build()?;
        let (path, weights) = (folder.0.join("named.h5"), folder.0.join("named_weights.h5"));
        model.save(&path)?;
        model.save_weights(&weights)?;
        let before = model.get_weights()?;
        assert_eq!(load_model(&path, &objects())?.get_weights()?, before, "{name}");
        model = model.seed(9)?;
        model.load_weights(&weights)?;
        assert_eq!(model.get_weights()?, before, "{name}");
    }
    let model = Sequential::new().input([1]).add(Dense::new(1).name("top_level_model_weights")).build()?;
    words(model.save(folder.0.join("top.h5")), &["`top_level_model_weights`", "rename the layer"]);
    // The names of ten layers are more than one attribute holds.
    let mut long = Sequential::new().input([1]);
    for i in 0..10 {
        long = long.add(Dense::new(1).name(&format!("{i}{}", "a".repeat(7_000))));
    }
    let mut model = long.build()?;
    let path = folder.0.join("long.h5");
    model.save_weights(&path)?;
    let before = model.get_weights()?;
    let others: Vec<Array> = before.iter().map(|x| Array::from_vec(x.dims(), vec![9f32; x.len()]).unwrap()).collect();
    model.set_weights(&others)?;
    model.load_weights_by_name(&path, ByName::new())?;
    assert_eq!(model.get_weights()?, before);
    Ok(())
}

/// Bytes of a small file changed in turn, and other lengths: an error, never a panic. `damage` has
/// files whose checksums are right.
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

/// `x * scale * factor`, as in oracles/gen/keras_custom.py.
#[derive(Clone, Debug)]
struct ScaleBy(f64, Config);

impl Layer for ScaleBy {
    fn kind(&self) -> &'static str {
        "scale_by"
    }

    fn config(&self) -> &Config {
        &self.1
    }

    fn build(&self, build: &mut Build<'_>) {
        build.weight("scale", &[build.channels()], Initializer::Ones, None);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        call.input() * call.weight("scale") * self.0
    }

    fn to_json(&self) -> Result<Json> {
        config::write("mine", self)
    }
}

impl Described for ScaleBy {
    const CLASS: &'static str = "ScaleBy";

    fn template() -> ScaleBy {
        ScaleBy(1.0, Config::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> ScaleBy {
        ScaleBy(fields.required("factor", &self.0), self.1.fields(fields))
    }
}

#[test]
fn layers_of_users_are_read() -> Result<()> {
    let folder = Folder::new("custom");
    let own = CustomObjects::new().layer::<ScaleBy>();
    let all: Vec<Case> = cases("keras_custom_keras2").into_iter().chain(cases("keras_custom_keras3")).collect();
    assert_eq!(all.len(), 3);
    for case in &all {
        let mut model = load_model(file(case), &own)?;
        check(&mut model, case)?;
        let path = folder.0.join("again.keras");
        model.save(&path)?;
        check(&mut load_model(&path, &own)?, case)?;
        let error = load_model(file(case), &objects()).map(drop).unwrap_err().to_string();
        assert!(error.contains("there is no layer `") && error.contains("ScaleBy`"), "{error}");
    }
    Ok(())
}
