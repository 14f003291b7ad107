//! A running model: its program, the current values of its variables, and the state of the
//! training.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use estimand_checkpoint::BundleReader;
use estimand_data::Position;
use estimand_engine::{Compiled, replace_values, saved_variables};
use estimand_graph::{Body, Executor, Program, Rates, Role, RunArgs, State, Value, VarId, VarSpec, Variables};
use estimand_tensor::{Array, Collective, Error, OneProcess, Result, warn};

use crate::feeding::HookFeeds;
use crate::manifest::{Manifest, Meant};
use crate::own_entries::{MARK, OWN, UNJUDGED, global_step, is_marked, is_own, own_number};
use crate::run_config::RunConfig;
use crate::saver::{Each, NotFinite, Unjudged};
use crate::stored::Scopes;
use crate::timeline::{Recording, Timeline};

/// The position of a training in its input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InputPlace {
    /// The number of times the input was read to its end.
    pub(crate) epoch: u64,
    /// The position after the last batch that was trained on.
    pub(crate) position: Position,
}

impl InputPlace {
    /// Reads the place from a checkpoint. A checkpoint of TensorFlow has none; the place is then
    /// the beginning.
    pub(crate) fn read(reader: &BundleReader) -> Result<InputPlace> {
        let name = format!("{OWN}input/position");
        let position = match reader.contains(&name) {
            true => Position::from_bytes(reader.read(&name)?.as_slice::<u8>()?)?,
            false => Position::default(),
        };
        Ok(InputPlace { epoch: own_number(reader, "input/epoch")?.unwrap_or(0), position })
    }
}

/// A model in training, as hooks see it.
pub struct TrainSession {
    body: Arc<Body>,
    executor: Arc<dyn Executor>,
    collective: Arc<dyn Collective>,
    state: Box<dyn State>,
    seed: u64,
    /// Whether the variables are borrowed from a training, for an evaluation between two steps.
    is_borrowed: bool,
    meant: Meant,
    pub(crate) step: u64,
    pub(crate) input: InputPlace,
    pub(crate) hook_feeds: HookFeeds,
    /// Whether a step was run since the variables were set up.
    has_run: bool,
    unjudged: BTreeSet<String>,
    /// The recording of the next run, if a hook requested one; afterwards, that of the last run.
    recording: Option<Box<Recording>>,
    timeline: Option<Box<Timeline>>,
}

impl TrainSession {
    /// Makes a model without values. [`place`](TrainSession::place) initializes them,
    /// [`restore`](TrainSession::restore) reads them from a checkpoint,
    /// [`borrow`](TrainSession::borrow) takes those of a training.
    pub(crate) fn new(body: Arc<Body>, meant: Meant, config: &RunConfig, seed: u64) -> Result<TrainSession> {
        let executor = config.executor();
        let state = executor.place(&Variables::default(), seed)?;
        let (collective, input) = (Arc::new(OneProcess), InputPlace::default());
        let odd = body.variables().iter().filter(|(_, spec)| !spec.initializer.is_finite());
        let unjudged = odd.map(|(_, spec)| spec.name.clone()).collect();
        Ok(TrainSession {
            body,
            executor,
            collective,
            state,
            seed,
            is_borrowed: false,
            meant,
            step: 0,
            input,
            hook_feeds: HookFeeds::new(),
            has_run: false,
            unjudged,
            recording: None,
            timeline: None,
        })
    }

    /// Returns the manifest: the meaning of the model beyond names and shapes. Every checkpoint
    /// stores it.
    pub fn manifest(&self) -> &Manifest {
        self.meant.manifest()
    }

    /// The number of training steps done.
    pub fn global_step(&self) -> u64 {
        self.step
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The names of all variables that are saved, in the order they were made.
    pub fn variable_names(&self) -> Vec<String> {
        self.saved().map(|(_, name)| name.to_string()).collect()
    }

    /// Returns whether the model has variables that training would change or that hold its
    /// statistics.
    pub(crate) fn has_weights(&self) -> bool {
        self.body.variables().iter().any(|(_, spec)| matches!(spec.role, Role::Model { .. }))
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Result<Array> {
        self.body.variables().find(name)?;
        self.state.read(name)
    }

    /// Sets a variable. It is an error in an evaluation during training, which only borrows the
    /// variables of the training.
    pub fn set_value(&mut self, name: &str, value: &Array) -> Result<()> {
        self.body.variables().find(name)?;
        self.check_own("set")?;
        self.state.write(name, value)?;
        if !self.has_run {
            self.judge(name, value);
        }
        Ok(())
    }

    /// Gives initial values to all variables that have no value yet.
    pub(crate) fn place(&mut self) -> Result<()> {
        self.state.extend(self.body.variables(), self.seed)
    }

    /// Borrows the variables and the step of a training for an evaluation between two steps.
    /// Nothing is copied; [`give_back`](TrainSession::give_back) returns them.
    pub(crate) fn borrow(&mut self, training: &mut TrainSession) -> Result<()> {
        self.meant.compare_live(&training.meant)?;
        if let Some((_, name)) = self.saved().find(|(_, name)| !training.state.holds(name)) {
            let known = training.saved().map(|(_, name)| name).collect::<Vec<_>>();
            return Err(Error::missing_variable(name, known)
                .context("the model has this variable in evaluation, but not in training"));
        }
        std::mem::swap(&mut self.state, &mut training.state);
        self.step = training.step;
        self.is_borrowed = true;
        Ok(())
    }

    /// Returns borrowed variables to the training.
    pub(crate) fn give_back(&mut self, training: &mut TrainSession) {
        std::mem::swap(&mut self.state, &mut training.state);
        self.is_borrowed = false;
    }

    fn check_own(&self, what: &str) -> Result<()> {
        match self.is_borrowed {
            true => Err(Error::config(format!(
                "an evaluation during training cannot {what} variables: they are those of the training"
            ))
            .help("do it in a hook of the training")),
            false => Ok(()),
        }
    }

    /// Returns the variables as a read-only state.
    pub(crate) fn freeze(self) -> Arc<dyn State> {
        self.state.freeze()
    }

    pub(crate) fn compile(&self, fetches: &[Value]) -> Result<Arc<Compiled>> {
        Ok(Arc::new(Compiled::new(&*self.executor, Program::new(self.body.clone(), fetches)?)?))
    }

    pub(crate) fn body(&self) -> &Arc<Body> {
        &self.body
    }

    /// Runs a program once on the feeds that its host part has prepared.
    pub(crate) fn run(&mut self, compiled: &Compiled, feeds: &[Array], outputs: &mut Vec<Array>) -> Result<()> {
        let collective = &*self.collective;
        let mut reduce = |_: VarId, gradient: estimand_graph::GradientMut<'_>| match gradient {
            estimand_graph::GradientMut::Dense(values) => collective.all_reduce_sum(values),
            estimand_graph::GradientMut::Rows { .. } => {
                Err(Error::unsupported("gradients of single rows cannot be combined among several workers"))
            }
        };
        let alone = collective.n_workers() == 1;
        let rules = self.body.optimizers().iter().map(|optimizer| &optimizer.rule);
        if let Some(rule) = rules.filter(|_| !alone).find(|rule| rule.is_whole()) {
            let text = format!("gradients of {} cannot be combined among several workers", rule.name());
            return Err(Error::unsupported(text).help("train with one worker, or with another optimizer"));
        }
        let mut recording = self.recording.take();
        if let Some(recording) = &mut recording {
            recording.begin_run();
        }
        let args = RunArgs {
            feeds,
            step: self.step,
            seed: self.seed,
            row_offset: 0,
            on_gradient: if alone { None } else { Some(&mut reduce) },
            trace: recording.as_mut().map(|recording| &mut recording.trace),
        };
        match compiled.program().trains() {
            true => {
                self.check_own("assign")?;
                self.has_run = true;
                compiled.step_prepared(&mut *self.state, args, outputs)?;
            }
            false => compiled.forward_prepared(&*self.state, args, outputs)?,
        }
        if let Some(recording) = recording {
            self.timeline = Some(Box::new(recording.end_run(compiled.program())));
        }
        Ok(())
    }

    /// Records the time of each step of the next run. This costs some microseconds and changes no
    /// result.
    pub fn time_next_run(&mut self) {
        self.recording = Some(Box::default());
    }

    /// Takes the timeline of the last recorded run, if it was not taken yet.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.timeline.take().map(|timeline| *timeline)
    }

    /// Measures the peak rates of the machine; `None` for executors that do not aim at speed.
    pub fn rates(&self) -> Option<Rates> {
        self.executor.rates()
    }

    /// Records that waiting for the next batch begins.
    pub(crate) fn begin_input(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.begin_input();
        }
    }

    fn read(&self, id: VarId) -> Result<Array> {
        self.state.read(&self.body.variables().spec(id).name)
    }

    fn saved(&self) -> impl Iterator<Item = (VarId, &str)> {
        saved_variables(self.body.variables()).map(|(id, spec)| (id, spec.name.as_str()))
    }

    /// Returns the settings of the optimizers, as TensorFlow stores them in checkpoints.
    fn optimizer_scalars(&self) -> Result<Vec<(String, f32)>> {
        let mut all = Vec::new();
        for optimizer in self.body.optimizers() {
            let steps = self.read(optimizer.iterations)?.item::<i64>()?;
            all.extend(optimizer.scalars(steps.try_into().unwrap_or(0)));
        }
        Ok(all)
    }

    /// Visits, one by one, all values that a later run needs to continue as if it had not stopped.
    pub(crate) fn each_saved(
        &self,
        position: Position,
        stop: Option<String>,
        hooks: Vec<(String, Vec<u8>)>,
        each: Each<'_>,
    ) -> Result<()> {
        for (id, name) in self.saved() {
            each(name.to_string(), self.read(id)?)?;
        }
        for (name, value) in self.optimizer_scalars()? {
            each(name, Array::scalar(value))?;
        }
        let bytes = |bytes: Vec<u8>| Array::from_vec([bytes.len()], bytes);
        let (name, manifest) = self.meant.saved()?;
        each(name, manifest)?;
        each(format!("{OWN}seed"), Array::scalar(self.seed as i64))?;
        each(format!("{OWN}input/epoch"), Array::scalar(self.input.epoch as i64))?;
        each(format!("{OWN}input/position"), bytes(position.to_bytes())?)?;
        if let Some(reason) = stop {
            each(format!("{OWN}stop"), bytes(reason.into_bytes())?)?;
        }
        for (name, state) in hooks {
            each(format!("{OWN}hook/{name}"), bytes(state)?)?;
        }
        if !self.unjudged.is_empty() {
            each(UNJUDGED.to_string(), Array::from_strings([self.unjudged.len()], &self.unjudged)?)?;
        }
        Ok(())
    }

    /// Decides whether a variable with this initial value must stay finite.
    fn judge(&mut self, name: &str, value: &Array) {
        match NotFinite::find(name, value) {
            Some(_) => self.unjudged.insert(name.to_string()),
            None => self.unjudged.remove(name),
        };
    }

    /// Returns the variables that may be infinite or NaN because their initial values were.
    pub(crate) fn unjudged(&self) -> Unjudged {
        Arc::new(self.unjudged.clone())
    }

    /// Finds the first number that should be finite and is not.
    pub(crate) fn find_not_finite(&self) -> Option<NotFinite> {
        let judged = self.saved().filter(|(_, name)| !self.unjudged.contains(*name));
        judged.filter_map(|(id, name)| NotFinite::find(name, &self.read(id).ok()?)).next()
    }

    /// Returns the total size in bytes of all saved variables.
    pub(crate) fn saved_bytes(&self) -> u64 {
        let variables = self.body.variables();
        let bytes = |spec: &VarSpec| spec.dims.iter().product::<usize>() * spec.dtype.size();
        self.saved().map(|(id, _)| bytes(variables.spec(id)) as u64).sum()
    }

    /// Restores everything from a checkpoint, ours or TensorFlow's. If any part cannot be read,
    /// nothing changes.
    pub(crate) fn restore(&mut self, prefix: &Path) -> Result<()> {
        self.check_own("restore")?;
        let reader = BundleReader::open(prefix)?;
        let entries = crate::fingerprint::compare(&reader, &self.body, prefix)?;
        self.meant.compare(&reader, prefix)?;
        let mut values = Vec::new();
        for (id, entry) in entries {
            let value = match entry.name() {
                Some(name) => reader.read(name)?,
                None => self.body.variables().initial(id, self.seed)?,
            };
            values.push((id, value));
        }
        let step = global_step(&reader)?;
        let named = values.iter().map(|(id, value)| (&*self.body.variables().spec(*id).name, value));
        let unjudged = unjudged(&reader, named)?;
        replace_values(&mut *self.state, self.body.variables(), self.seed, values)?;
        (self.unjudged, self.step) = (unjudged, step);
        if is_marked(&reader) {
            let what = reader.read(MARK)?;
            let what = what.strings()?.next().map(String::from_utf8_lossy).unwrap_or_default();
            warn!("{} is marked as not finite: {what}", prefix.display());
        }
        self.tell_changed_settings(&reader)
    }

    /// TF: there, a checkpoint's learning rate overrides a new one in the program. Here the
    /// program's value is used, and a log message reports the difference. (case 122)
    fn tell_changed_settings(&self, reader: &BundleReader) -> Result<()> {
        let scopes = Scopes::of(reader);
        for (name, value) in self.optimizer_scalars()? {
            let stored_name = scopes.name(&name);
            if !reader.contains(&stored_name) {
                continue;
            }
            let stored = reader.read(&stored_name)?.item::<f32>()?;
            if stored != value {
                warn!("{name} is {value}; the checkpoint was trained with {stored}. The program's value is used");
            }
        }
        Ok(())
    }
}

/// The variables of a checkpoint that may be infinite or NaN: those that it lists, or, if it has no
/// list, those that are not finite.
fn unjudged<'a>(
    reader: &BundleReader,
    mut values: impl Iterator<Item = (&'a str, &'a Array)>,
) -> Result<BTreeSet<String>> {
    if reader.contains(UNJUDGED) {
        let names = reader.read(UNJUDGED)?;
        return Ok(names.strings()?.map(|name| String::from_utf8_lossy(name).into_owned()).collect());
    }
    if reader.names().any(is_own) {
        return Ok(BTreeSet::new());
    }
    Ok(values.by_ref().filter_map(|(name, value)| NotFinite::find(name, value)).map(|bad| bad.variable).collect())
}
