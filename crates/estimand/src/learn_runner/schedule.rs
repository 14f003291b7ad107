//! The schedules of an experiment by name, and the default one of each role in a cluster.

use estimand_tensor::{Error, ErrorKind, Result};

use crate::RunConfig;
use crate::experiment::{ContinuousEval, Experiment, ExperimentResult};

/// A schedule of an [`Experiment`]: one of its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// [`Experiment::train`]
    Train,
    /// [`Experiment::evaluate`]
    Evaluate,
    /// [`Experiment::continuous_eval`]
    ContinuousEval,
    /// [`Experiment::continuous_eval_on_train_data`]
    ContinuousEvalOnTrainData,
    /// [`Experiment::continuous_train_and_eval`]
    ContinuousTrainAndEval,
    /// [`Experiment::train_and_evaluate`]
    TrainAndEvaluate,
    /// [`Experiment::local_run`]
    LocalRun,
    /// [`Experiment::run_std_server`], which is refused.
    RunStdServer,
    /// [`Experiment::test`]
    Test,
}

/// The properties of TensorFlow's class. They have names too, but cannot be run.
const PROPERTIES: [&str; 4] = ["estimator", "eval_metrics", "eval_steps", "train_steps"];

impl Schedule {
    /// All schedules.
    pub const ALL: [Schedule; 9] = [
        Schedule::Train,
        Schedule::Evaluate,
        Schedule::ContinuousEval,
        Schedule::ContinuousEvalOnTrainData,
        Schedule::ContinuousTrainAndEval,
        Schedule::TrainAndEvaluate,
        Schedule::LocalRun,
        Schedule::RunStdServer,
        Schedule::Test,
    ];

    /// Its name, that of the method.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Train => "train",
            Schedule::Evaluate => "evaluate",
            Schedule::ContinuousEval => "continuous_eval",
            Schedule::ContinuousEvalOnTrainData => "continuous_eval_on_train_data",
            Schedule::ContinuousTrainAndEval => "continuous_train_and_eval",
            Schedule::TrainAndEvaluate => "train_and_evaluate",
            Schedule::LocalRun => "local_run",
            Schedule::RunStdServer => "run_std_server",
            Schedule::Test => "test",
        }
    }

    /// The schedule with this name.
    pub fn named(name: &str) -> Result<Schedule> {
        if let Some(found) = Schedule::ALL.into_iter().find(|schedule| schedule.name() == name) {
            return Ok(found);
        }
        let names = Schedule::ALL.map(Schedule::name);
        let message = match PROPERTIES.contains(&name) {
            true => format!("Schedule references non-callable member {name}"),
            false => format!("Schedule references non-existent task {name}"),
        };
        Err(Error::config(message).suggest(name, names))
    }

    /// The default schedule of a configuration, as in TensorFlow: `train_and_evaluate` for a
    /// process alone and for a master, `train` for a worker, `run_std_server` for a parameter
    /// server. Other roles of a cluster have none.
    pub fn of(config: &RunConfig) -> Result<Schedule> {
        let Some(cluster) = config.cluster.as_ref().filter(|cluster| cluster.n_tasks() > 1) else {
            return Ok(Schedule::TrainAndEvaluate);
        };
        match cluster.task_type() {
            "master" => Ok(Schedule::TrainAndEvaluate),
            "ps" => Ok(Schedule::RunStdServer),
            "worker" => Ok(Schedule::Train),
            other => Err(Error::new(ErrorKind::Cluster, format!("No default schedule for task type: {other}"))
                .help("choose one with Options::schedule, for example continuous_eval for an evaluator")),
        }
    }

    /// Runs it, with the defaults of its method.
    pub fn run(self, experiment: &mut Experiment<'_>) -> Result<ExperimentResult> {
        match self {
            Schedule::Train => experiment.train(None),
            Schedule::Evaluate => experiment.evaluate(None, None),
            Schedule::ContinuousEval => experiment.continuous_eval(ContinuousEval::new()),
            Schedule::ContinuousEvalOnTrainData => experiment.continuous_eval_on_train_data(ContinuousEval::new()),
            Schedule::ContinuousTrainAndEval => experiment.continuous_train_and_eval(|_| true),
            Schedule::TrainAndEvaluate => experiment.train_and_evaluate(),
            Schedule::LocalRun => experiment.local_run(),
            Schedule::RunStdServer => experiment.run_std_server(),
            Schedule::Test => experiment.test(),
        }
    }
}
