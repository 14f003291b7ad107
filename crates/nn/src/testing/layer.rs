//! The contract of layers.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Optimizer, Role, Tensor};
use estimand_tensor::{Array, DType, Error, Mode, Result};
use estimand_update::Sgd;

use super::differences::check_gradients;
use super::{ensure, ensure_same, rows};
use crate::layer::{Build, Config, Layer, LayerCall};

/// One rule of the contract.
type Check = fn(&dyn Layer, &[Array]) -> Result<()>;

/// Checks a layer with a batch of at least two rows: names, shapes, gradients, training, freezing,
/// same bits, saving.
pub fn check_layer(layer: &dyn Layer, input: &Array) -> Result<()> {
    check_layer_of(layer, std::slice::from_ref(input))
}

/// Like [`check_layer`], for a layer of several inputs.
pub fn check_layer_of(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let checks: [(&str, Check); 8] = [
        ("names of variables", names),
        ("rows of the result", result_rows),
        ("gradients", gradients_are_differences),
        ("a training step", a_step_lowers_the_loss),
        ("freezing", frozen_weights_stay),
        ("same bits", bits_do_not_depend_on_threads),
        ("outside of training", evaluation_is_pure),
        ("saving", saving_keeps_the_weights),
    ];
    let place = |what: &str| format!("in the layer contract, {what}, for {layer:?}");
    checks.iter().try_for_each(|(what, check)| check(layer, inputs).map_err(|e| e.context(place(what))))
}

/// A layer applied to placeholders, and a loss of its result.
struct Applied {
    graph: Graph,
    x: Vec<Tensor>,
    y: Tensor,
    loss: Tensor,
}

impl Applied {
    fn new(layer: &dyn Layer, inputs: &[Array], mode: Mode) -> Applied {
        let graph = Graph::with_mode(mode);
        let place = |(i, input): (usize, &Array)| rows(&graph, &format!("x{i}"), input);
        let x: Vec<Tensor> = inputs.iter().enumerate().map(place).collect();
        let y = layer.apply(&x);
        let y = if y.dtype() == DType::F32 { y } else { y.cast(DType::F32) };
        // Every element has a different weight, so that no two gradients agree by chance.
        let slope = (graph.range(y.channels(), DType::F32) * 1.3 + 0.4).cos();
        let loss = (&y - slope).square().sum() + graph.regularization_loss();
        Applied { graph, x, y, loss }
    }

    /// The placeholders with their values.
    fn feeds(&self, inputs: &[Array]) -> Vec<(&Tensor, Array)> {
        self.x.iter().zip(inputs.to_vec()).collect()
    }

    fn session(&self, threads: usize) -> Result<Session> {
        Session::with(&self.graph, Cpu::with_threads(threads), 3)
    }

    fn trained(&self) -> Vec<String> {
        let body = self.graph.body();
        let trained = body.variables().iter().filter(|(_, spec)| spec.role == Role::Model { trainable: true });
        trained.map(|(_, spec)| spec.name.clone()).collect()
    }
}

fn variable_names(graph: &Graph) -> Vec<String> {
    graph.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect()
}

/// The first layer of a kind has the name of its kind, the second gets `_1`. A rebuilt graph has
/// the same names.
fn names(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let first = Applied::new(layer, inputs, Mode::Train);
    let again = Applied::new(layer, inputs, Mode::Eval);
    first.graph.check()?;
    let names = variable_names(&first.graph);
    ensure(names == variable_names(&again.graph), || {
        format!("the variables are {names:?} in one build, and others in the next")
    })?;
    let Config { name: given, .. } = layer.config();
    let scope = given.as_deref().unwrap_or(layer.kind());
    ensure(names.iter().all(|n| n.starts_with(&format!("{scope}/"))), || {
        format!("the variables {names:?} are not all in `{scope}/`")
    })?;
    if given.is_none() {
        let _ = layer.apply(&first.x);
        first.graph.check()?;
        let second: Vec<String> = variable_names(&first.graph).split_off(names.len());
        let expected: Vec<String> = names.iter().map(|n| n.replacen(scope, &format!("{scope}_1"), 1)).collect();
        ensure(second == expected, || format!("a second layer has {second:?}, expected {expected:?}"))?;
    }
    Ok(())
}

/// The result has one row for each row of the input, and a row alone gives the same result as in a
/// batch.
fn result_rows(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let eval = Applied::new(layer, inputs, Mode::Eval);
    let mut session = eval.session(1)?;
    let whole = session.run(&[&eval.y], &eval.feeds(inputs))?.remove(0);
    let n = inputs.first().and_then(|input| input.dims().first().copied()).unwrap_or(0);
    ensure(whole.dims().first() == Some(&n), || format!("{n} rows gave a result of the shape {:?}", whole.dims()))?;
    for row in 0..n {
        let alone = inputs.iter().map(|input| input.rows(row..row + 1)).collect::<Result<Vec<Array>>>()?;
        let alone = session.run(&[&eval.y], &eval.feeds(&alone))?.remove(0);
        ensure_same(&format!("row {row} alone and in its batch"), &alone, &whole.rows(row..row + 1)?)?;
    }
    Ok(())
}

fn gradients_are_differences(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    for mode in [Mode::Train, Mode::Eval] {
        let applied = Applied::new(layer, inputs, mode);
        let mut feeds = applied.feeds(inputs);
        for _ in 0..feeds.len() {
            // Finite differences are taken of the first fed tensor.
            check_gradients(&applied.graph, &applied.loss, &feeds)?;
            feeds.rotate_left(1);
        }
    }
    Ok(())
}

/// Steps along the gradient change every weight and lower the loss.
fn a_step_lowers_the_loss(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let applied = Applied::new(layer, inputs, Mode::Train);
    let trained = applied.trained();
    if trained.is_empty() {
        return Ok(());
    }
    let train = Optimizer::new(Sgd::default(), 1e-3).minimize(&applied.loss);
    let mut session = applied.session(1)?;
    let values = |session: &Session| trained.iter().map(|name| session.value(name)).collect::<Result<Vec<Array>>>();
    let feeds = applied.feeds(inputs);
    let (before, weights) = (session.run(&[&applied.loss], &feeds)?.remove(0), values(&session)?);
    for _ in 0..3 {
        session.run(&[&train], &feeds)?;
    }
    let after = session.run(&[&applied.loss], &feeds)?.remove(0);
    let (before, after) = (before.item::<f32>()?, after.item::<f32>()?);
    ensure(after < before, || format!("the loss was {before} and is {after} after three small steps"))?;
    for (name, (old, new)) in trained.iter().zip(weights.iter().zip(values(&session)?)) {
        ensure(old.bytes() != new.bytes(), || format!("training did not change `{name}`"))?;
    }
    Ok(())
}

/// The layer with `trainable(false)`.
#[derive(Debug)]
struct Frozen<'a> {
    layer: &'a dyn Layer,
    config: Config,
}

impl Layer for Frozen<'_> {
    fn kind(&self) -> &'static str {
        self.layer.kind()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        self.layer.n_inputs()
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        self.layer.named_inputs()
    }

    fn supports_masking(&self) -> bool {
        self.layer.supports_masking()
    }

    fn build(&self, build: &mut Build<'_>) {
        self.layer.build(build);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.layer.call(call)
    }
}

/// A frozen layer has no trained variable and updates nothing.
fn frozen_weights_stay(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let frozen = Frozen { layer, config: Config { trainable: false, ..layer.config().clone() } };
    let applied = Applied::new(&frozen, inputs, Mode::Train);
    applied.graph.check()?;
    ensure(applied.trained().is_empty(), || format!("frozen, it still trains {:?}", applied.trained()))?;
    ensure(applied.graph.updates().is_empty(), || "frozen, it still has updates".to_string())
}

/// Two sessions with the same seed, on one thread and on three, give the same bits.
fn bits_do_not_depend_on_threads(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let applied = Applied::new(layer, inputs, Mode::Train);
    let updates = applied.graph.updates();
    let fetches: Vec<&Tensor> = [&applied.y].into_iter().chain(&updates).collect();
    let (mut one, mut three) = (applied.session(1)?, applied.session(3)?);
    for step in 0..2 {
        let feeds = applied.feeds(inputs);
        let (a, b) = (one.run(&fetches, &feeds)?.remove(0), three.run(&fetches, &feeds)?.remove(0));
        ensure_same(&format!("the result of step {step} on 1 and 3 threads"), &a, &b)?;
    }
    for name in variable_names(&applied.graph) {
        ensure_same(&format!("`{name}` on 1 and 3 threads"), &one.value(&name)?, &three.value(&name)?)?;
    }
    Ok(())
}

/// Outside of training nothing is updated, and the same input gives the same result at every step
/// and under every seed.
fn evaluation_is_pure(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    let eval = Applied::new(layer, inputs, Mode::Eval);
    ensure(eval.graph.updates().is_empty(), || "it has updates in evaluation".to_string())?;
    let tick = eval.graph.variable_with("tick", DType::I64, [], estimand_graph::Initializer::Zeros, Role::Step);
    let next = tick.assign_add(1i64);
    let mut session = eval.session(1)?;
    let feeds = eval.feeds(inputs);
    let first = session.run(&[&eval.y, &next], &feeds)?.remove(0);
    let second = session.run(&[&eval.y, &next], &feeds)?.remove(0);
    ensure(session.step() == 2, || "the steps did not count".to_string())?;
    ensure_same("two evaluations", &first, &second)
}

/// A folder that is removed after the check.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system's cleanup.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A session restored from a checkpoint computes the same bits, whatever its initial weights were.
fn saving_keeps_the_weights(layer: &dyn Layer, inputs: &[Array]) -> Result<()> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("estimand-layer-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "make", &e))?;
    let folder = Scratch(folder);
    let applied = Applied::new(layer, inputs, Mode::Eval);
    let (mut saved, mut other) = (applied.session(1)?, Session::with(&applied.graph, Cpu::with_threads(1), 4)?);
    let prefix = folder.0.join("model.ckpt-0");
    saved.save(&prefix)?;
    other.restore(&prefix)?;
    let feeds = applied.feeds(inputs);
    let (a, b) = (saved.run(&[&applied.y], &feeds)?.remove(0), other.run(&[&applied.y], &feeds)?.remove(0));
    ensure_same("the result of a restored layer", &a, &b)
}
