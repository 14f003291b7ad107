//! Exports with graphs for training and evaluation: the names and files in them, and what is
//! refused. That TensorFlow trains and evaluates them is checked by `oracles/live/export_modes.py`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use estimand::ExportOutput;
use estimand::export::{ExportAllSpec, Receiver, ServingInputReceiver, SupervisedInputReceiver, SupervisedReceiver};
use estimand::graph::checkpoint::BundleReader;
use estimand::graph::saved_model::SavedModel;
use estimand::head::ALL_HEADS;
use estimand::prelude::*;
use estimand::tensor::BatchSpec;
use estimand::update::{Hyper, Slot, SparseRule, UpdateRule};
use estimand_wire::collection_def::Collection;
use estimand_wire::{Message, MetaGraphDef};
use indexmap::IndexMap;

use crate::models::{Folder, line, linear};

/// The graphs of an export.
fn graphs(export: &Path) -> Vec<MetaGraphDef> {
    let bytes = fs::read(export.join("saved_model.pb")).unwrap();
    estimand_wire::SavedModel::decode(&bytes[..]).unwrap().meta_graphs
}

fn tags(graph: &MetaGraphDef) -> &[String] {
    &graph.meta_info_def.as_ref().unwrap().tags
}

/// The name, the method, the inputs and the outputs of each signature.
fn signatures(graph: &MetaGraphDef) -> Vec<(&str, &str, Vec<&str>, Vec<&str>)> {
    graph
        .signature_def
        .iter()
        .map(|(name, signature)| {
            let inputs = signature.inputs.keys().map(String::as_str).collect();
            let outputs = signature.outputs.keys().map(String::as_str).collect();
            (name.as_str(), signature.method_name.as_str(), inputs, outputs)
        })
        .collect()
}

fn variables(export: &Path) -> BTreeSet<String> {
    let reader = BundleReader::open(export.join("variables/variables")).unwrap();
    reader.names().map(str::to_string).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn labels(name: &str, dtype: DType) -> BatchSpec {
    BatchSpec::from([(name.to_string(), FeatureSpec::dense(dtype, []))])
}

/// The names are those of an export of TensorFlow 2.15: `experimental_export_all_saved_models` of a
/// `DNNClassifier` with Adam and receivers that parse Examples.
#[test]
fn three_graphs_as_tensorflow_writes_them() -> Result<()> {
    let folder = Folder::new();
    let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 1, 0, 1]))];
    let data = Dataset::from_arrays(rows).label("y").batch(4);
    let x = || columns![numeric_column("x")];
    let adam = Optimizer::new(Adam::default(), 0.001);
    let model = DnnClassifier::new([3], x()).optimizer(adam).model_dir(folder.path().join("model")).build()?;
    model.train(data.repeat(3))?;
    let modes = || -> Result<ExportAllSpec> {
        Ok(ExportAllSpec::new()
            .predict(Receiver::columns(x())?)
            .eval(SupervisedReceiver::columns(x(), labels("y", DType::I64))?)
            .train(SupervisedReceiver::columns(x(), labels("y", DType::I64))?))
    };
    let export = model.experimental_export_all_saved_models(folder.path().join("export"), modes()?)?;
    let found = graphs(&export);
    assert_eq!(found.iter().map(tags).collect::<Vec<_>>(), [["train"], ["eval"], ["serve"]]);

    let of_head = ["all_class_ids", "all_classes", "class_ids", "classes", "logistic", "logits", "probabilities"];
    let predictions = of_head.map(|key| format!("predictions/{key}"));
    let metrics = [
        "accuracy",
        "accuracy_baseline",
        "auc",
        "auc_precision_recall",
        "average_loss",
        "label/mean",
        "precision",
        "prediction/mean",
        "recall",
    ];
    let metrics = metrics.iter().flat_map(|key| [format!("metrics/{key}/update_op"), format!("metrics/{key}/value")]);
    let with = |more: Vec<String>| -> BTreeSet<String> {
        predictions.iter().cloned().chain(["loss".to_string()]).chain(more).collect()
    };
    for (graph, name, method, outputs) in [
        (&found[0], "train", "tensorflow/supervised/training", with(Vec::new())),
        (&found[1], "eval", "tensorflow/supervised/eval", with(metrics.collect())),
    ] {
        let [(own_name, own_method, inputs, own_outputs)] = &signatures(graph)[..] else { panic!("one signature") };
        assert_eq!((*own_name, *own_method, &inputs[..]), (name, method, &["examples"][..]));
        assert_eq!(own_outputs.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>(), outputs);
    }
    let serving: Vec<&str> = signatures(&found[2]).iter().map(|signature| signature.0).collect();
    assert_eq!(serving, ["classification", "predict", "regression", "serving_default"]);

    let collections = |graph: &MetaGraphDef| graph.collection_def.keys().cloned().collect::<Vec<_>>();
    let shared = ["global_step", "saved_model_main_op", "trainable_variables", "variables"];
    assert_eq!(
        collections(&found[0]),
        ["global_step", "saved_model_main_op", "saved_model_train_op", "trainable_variables", "variables"]
    );
    let local = ["global_step", "local_variables", "metric_variables"];
    assert_eq!(collections(&found[1])[..3], local);
    assert_eq!(collections(&found[2]), shared);
    // The loader runs the main op: it sets the sums of metrics to zero.
    let count = |graph: &MetaGraphDef, name: &str| match &graph.collection_def[name].kind {
        Some(Collection::BytesList(list)) => list.value.len(),
        _ => 0,
    };
    let eval_graph = found[1].graph_def.as_ref().unwrap();
    let main_op = eval_graph.node.iter().find(|node| node.name == "init_all_tables").unwrap();
    assert_eq!(main_op.input.len(), count(&found[1], "local_variables"));

    let expected = ["dnn/hiddenlayer_0/bias", "dnn/hiddenlayer_0/kernel", "dnn/logits/bias", "dnn/logits/kernel"];
    let slots = expected.iter().flat_map(|name| ["m", "v"].map(|slot| format!("training/Adam/{name}/{slot}")));
    let all: BTreeSet<String> =
        expected.iter().map(|name| name.to_string()).chain(slots).chain(["global_step".to_string()]).collect();
    assert_eq!(variables(&export), all);
    assert_eq!((count(&found[0], "variables"), count(&found[1], "variables")), (all.len(), 5));

    let again = model.experimental_export_all_saved_models(folder.path().join("again"), modes()?)?;
    for file in ["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"] {
        assert!(fs::read(export.join(file)).unwrap() == fs::read(again.join(file)).unwrap(), "{file}");
    }
    // Our own reader finds the graph for serving among the three.
    let saved = SavedModel::open(&export)?;
    assert_eq!(saved.signatures().count(), 4);

    // Without training, the variables of the optimizer are not needed.
    let eval = ExportAllSpec::new().eval(SupervisedReceiver::like(&data)?);
    let export = model.experimental_export_all_saved_models(folder.path().join("eval"), eval)?;
    assert_eq!(graphs(&export).len(), 1);
    assert_eq!(variables(&export).len(), 5);
    Ok(())
}

/// Training and evaluation of every head can be written.
#[test]
fn every_head_has_three_graphs() -> Result<()> {
    for (head, example) in ALL_HEADS {
        let folder = Folder::new();
        let name = format!("{:?}", head());
        let data = Dataset::from_batch(example()?).batch(5);
        let model = Estimator::new(move |cx: &ModelFnContext<'_>| {
            let head = head();
            let logits = Dense::new(head.logits_dimension()).apply(&cx.feature("x"));
            head.spec(cx, &logits, Optimizer::new(Adam::default(), 0.1))
        });
        let model = model.model_dir(folder.path().join("model")).build()?;
        model.train(data.repeat(2))?;
        let modes = ExportAllSpec::new()
            .train(SupervisedReceiver::like(&data)?)
            .eval(SupervisedReceiver::like(&data)?)
            .predict(Receiver::like(&data)?);
        let export = model.experimental_export_all_saved_models(folder.path().join("export"), modes)?;
        let found = graphs(&export);
        let metrics = model.evaluate(&data)?;
        let (_, _, _, outputs) = &signatures(&found[1])[0];
        let n_values = outputs.iter().filter(|name| name.ends_with("/value")).count();
        // The loss is an output, and the mean of it is not a metric of the graph.
        assert_eq!(n_values, metrics.iter().len() - 1, "{name}: {outputs:?}");
        assert!(outputs.contains(&"loss"), "{name}");
    }
    Ok(())
}

/// Names of features and labels without names are those of TensorFlow.
#[test]
fn raw_inputs_of_training() -> Result<()> {
    let folder = Folder::new();
    let unnamed = |cx: &ModelFnContext<'_>| {
        let y = cx.features().single() * &cx.graph().variable("w", [], Initializer::Zeros);
        let spec = EstimatorSpec::new(cx).single_prediction(&y);
        if cx.mode() == Mode::Predict {
            return Ok(spec);
        }
        let weights = cx.weights().cloned().unwrap_or_else(|| cx.label());
        let loss = ((&y - cx.label()).square() * &weights).mean();
        Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
    };
    let model = Estimator::new(unnamed).model_dir(folder.path().join("model")).build()?;
    let spec = || BatchSpec::from([(String::new(), FeatureSpec::dense(DType::F32, []))]);
    let x = Array::from([1f32, 2.0]);
    let data = Dataset::from_batch(estimand::tensor::Batch::new().with_feature("", x.clone())?.with_label("", x)?);
    model.train(data.batch(2).repeat(4))?;
    let modes = ExportAllSpec::new()
        .train(SupervisedReceiver::raw(spec(), spec()).weights("weights")?)
        .predict(Receiver::tensor(FeatureSpec::dense(DType::F32, [])));
    let export = model.experimental_export_all_saved_models(folder.path().join("export"), modes)?;
    let found = graphs(&export);
    let (_, _, inputs, outputs) = &signatures(&found[0])[0];
    assert_eq!((&inputs[..], &outputs[..]), (&["input", "label", "weights"][..], &["loss", "predictions"][..]));
    let answers = SavedModel::open(&export)?.signature("serving_default")?.run(&[("input", Array::from([2f32]))])?;
    let w = BundleReader::open(export.join("variables/variables"))?.read("w")?;
    assert_eq!(answers["output"].as_slice::<f32>()?, [2.0 * w.item::<f32>()?]);
    Ok(())
}

/// TensorFlow's names of alternatives, and answers of both ways to call the model.
#[test]
fn alternatives_have_signatures_of_their_own() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(4);
    let model = Estimator::new(linear).model_dir(folder.path().join("model")).build()?;
    model.train(data.repeat(3))?;
    let tenths = |graph: &Graph| {
        let tenths = graph.placeholder("tenths", DType::F32, [Dim::BATCH]);
        let x = &tenths / 10.0;
        let receiver = ServingInputReceiver::new([("x".to_string(), x.clone())], [("tenths".to_string(), tenths)]);
        Ok(receiver.alternative("raw", [("x".to_string(), x)]))
    };
    let export = model.export_saved_model(folder.path().join("export"), Receiver::of(tenths))?;
    let found = graphs(&export);
    let all: Vec<&str> = signatures(&found[0]).iter().map(|signature| signature.0).collect();
    assert_eq!(all, ["raw:serving_default", "serving_default"]);
    let saved = SavedModel::open(&export)?;
    let plain = saved.signature("serving_default")?.run(&[("tenths", Array::from([5f32, 20.0]))])?;
    assert_eq!(plain["y"].len(), 2);

    // An alternative that does not replace the inputs cannot be called.
    let useless = move |graph: &Graph| {
        let other = graph.placeholder("other", DType::F32, [Dim::BATCH]);
        let receiver = tenths(graph)?;
        Ok(receiver.alternative("other", [("other".to_string(), other)]))
    };
    let refused = model.export_saved_model(folder.path().join("refused"), Receiver::of(useless)).unwrap_err();
    assert!(refused.to_string().contains("`other:serving_default`"), "{refused}");
    assert!(refused.to_string().contains("placeholder `tenths`, which is not an input"), "{refused}");
    let empty = move |graph: &Graph| Ok(tenths(graph)?.alternative("none", []));
    let refused = model.export_saved_model(folder.path().join("refused"), Receiver::of(empty)).unwrap_err();
    assert!(refused.to_string().contains("alternative `none`"), "{refused}");
    Ok(())
}

/// Case 117 and others: what is refused, and that it leaves nothing.
#[test]
fn refused_exports_name_the_reason() -> Result<()> {
    let folder = Folder::new();
    let (base, data) = (folder.path().join("exports"), line(8).batch(4));
    let model = Estimator::new(linear).model_dir(folder.path().join("model")).build()?;
    let fails = |model: &Estimator, spec: ExportAllSpec, expected: &[&str]| {
        let error = model.experimental_export_all_saved_models(&base, spec).unwrap_err().to_string();
        assert!(expected.iter().all(|text| error.contains(text)), "{error}");
        assert!(!base.exists() || names(&base).is_empty(), "{:?}", names(&base));
    };
    let supervised = || SupervisedReceiver::like(&data);
    fails(&model, ExportAllSpec::new(), &["no mode to export"]);
    fails(&model, ExportAllSpec::new().train(supervised()?), &["there is no checkpoint in"]);
    model.train(data.repeat(2))?;

    let no_labels = SupervisedReceiver::raw(data.spec()?, BatchSpec::default());
    fails(&model, ExportAllSpec::new().eval(no_labels), &["exactly one label", "mode eval has no labels"]);
    let twice = SupervisedReceiver::raw(data.spec()?, labels("x", DType::F32));
    fails(&model, ExportAllSpec::new().train(twice), &["receiver of mode train", "are named `x`"]);
    let nothing = SupervisedReceiver::of(|_| Ok(SupervisedInputReceiver::default()));
    fails(&model, ExportAllSpec::new().train(nothing), &["no tensors to feed"]);
    let own = SupervisedReceiver::of(|_| Ok(SupervisedInputReceiver::default())).weights("w");
    assert!(own.unwrap_err().to_string().contains("SupervisedInputReceiver::weights"));
    let raw = supervised()?.for_model_analysis().unwrap_err();
    assert!(raw.to_string().contains("the receiver does not parse them"), "{raw}");
    // The label is a placeholder that no caller can feed.
    let unfed = SupervisedReceiver::of(|graph| {
        let x = graph.placeholder("x", DType::F32, [Dim::BATCH]);
        let y = graph.placeholder("hidden", DType::F32, [Dim::BATCH]);
        Ok(SupervisedInputReceiver {
            features: IndexMap::from([("x".to_string(), x.clone().into())]),
            labels: IndexMap::from([("y".to_string(), y.into())]),
            receiver_tensors: IndexMap::from([("x".to_string(), x)]),
            weights: None,
        })
    });
    fails(&model, ExportAllSpec::new().train(unfed), &["signature `train`", "placeholder `hidden`"]);
    fails(&model, ExportAllSpec::new().train(supervised()?).asset_extra("../x", "y"), &["below assets.extra"]);
    fails(&model, ExportAllSpec::new().eval(supervised()?).best(), &["best"]);

    let more = |cx: &ModelFnContext<'_>| {
        let mut spec = linear(cx)?;
        if cx.mode() == Mode::Predict {
            let more = cx.graph().variable("more/a", [], Initializer::Zeros)
                + cx.graph().variable("more/b", [], Initializer::Zeros);
            spec = spec.prediction("more", &(cx.feature("x") + &more));
        }
        Ok(spec)
    };
    let more = Estimator::new(more).model_dir(folder.path().join("model")).build()?;
    let both = ExportAllSpec::new().train(supervised()?).predict(Receiver::like(&data)?);
    fails(&more, both, &["mode infer", "mode train", "`more/a`, `more/b`"]);

    // In prediction, the two terms have each other's weight.
    let swapped = |cx: &ModelFnContext<'_>| {
        let terms = if cx.mode() == Mode::Predict { ["b", "a"] } else { ["a", "b"] };
        let term = categorical_column_with_vocabulary_list("term", terms);
        let logits = estimand::nn::column::linear_model(cx.features(), [term.into()]);
        RegressionHead::new().spec(cx, &logits, Optimizer::new(Sgd::default(), 0.1))
    };
    let swapped = Estimator::new(swapped).model_dir(folder.path().join("swapped")).build()?;
    let rows = [("term", Array::from_strings([2], ["a", "b"])?), ("y", Array::from([1f32, 2.0]))];
    let data = Dataset::from_arrays(rows).label("y").batch(2);
    swapped.train(data.repeat(2))?;
    let both = ExportAllSpec::new().train(SupervisedReceiver::like(&data)?).predict(Receiver::like(&data)?);
    fails(&swapped, both, &["mode infer has other vocabularies", "id 0 was `a`, is `b`"]);
    Ok(())
}

/// A signature without outputs, and names that TensorFlow keeps for itself.
#[test]
fn refused_signatures() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(4);
    let refused = |key: &'static str, output: fn(&Tensor) -> ExportOutput, expected: &str| -> Result<()> {
        let model = Estimator::new(move |cx: &ModelFnContext<'_>| {
            let spec = linear(cx)?;
            let y = cx.feature("x") * 2.0;
            Ok(if cx.mode() == Mode::Predict { spec.export_output(key, output(&y)) } else { spec })
        });
        let model = model.model_dir(folder.path().join("model")).build()?;
        model.train(TrainSpec::new(data.repeat_forever()).max_steps(2))?;
        let error = model.export_saved_model(folder.path().join("export"), Receiver::like(&data)?).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        Ok(())
    };
    refused("nothing", |_| ExportOutput::Predict(IndexMap::new()), "the signature has no outputs")?;
    let one = |y: &Tensor| ExportOutput::Predict(IndexMap::from([("y".to_string(), y.clone())]));
    refused("__saved_model_init_op", one, "`__saved_model_init_op`, which TensorFlow refuses")?;
    refused("", one, "which TensorFlow refuses")?;
    refused("unnamed", |y| ExportOutput::Predict(IndexMap::from([(String::new(), y.clone())])), "an output has no name")
}

/// A rule that is written for slices alone.
#[derive(Clone, Copy, Debug)]
struct Halving;

impl UpdateRule for Halving {
    fn name(&self) -> &'static str {
        "Halving"
    }
    fn slots(&self) -> Vec<Slot> {
        Vec::new()
    }
    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }
    fn hyper(&self, _step: u64, _learning_rate: f64) -> Hyper {
        Hyper([0.0; estimand::update::N_SCALARS])
    }
    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }
    fn update(&self, _: &Hyper, w: &mut [f32], _: &[f32], _: &mut [&mut [f32]]) {
        w.iter_mut().for_each(|w| *w /= 2.0);
    }
}

#[test]
fn a_rule_of_slices_is_refused_by_name() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(4);
    let model = Estimator::new(|cx: &ModelFnContext<'_>| {
        let y = cx.feature("x") * &cx.graph().variable("w", [], Initializer::Ones);
        let loss = (&y - cx.labels().dense("y")).square().mean();
        Ok(EstimatorSpec::new(cx).prediction("y", &y).loss(&loss).optimizer(Optimizer::new(Halving, 0.1)))
    });
    let model = model.model_dir(folder.path().join("model")).build()?;
    model.train(data.repeat(2))?;
    let spec = ExportAllSpec::new().train(SupervisedReceiver::like(&data)?);
    let error = model.experimental_export_all_saved_models(folder.path().join("export"), spec).unwrap_err().to_string();
    assert!(error.contains("optimizer `Halving`") && error.contains("variable `w`"), "{error}");
    let spec = ExportAllSpec::new().eval(SupervisedReceiver::like(&data)?);
    model.experimental_export_all_saved_models(folder.path().join("export"), spec)?;
    Ok(())
}
