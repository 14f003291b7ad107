//! Losses, metrics, optimizers and schedules with every option set, for tests and for the exchange
//! with Keras.

use estimand_graph::{Clip, Optimizer};
use estimand_nn::metric::{self, Auc, Curve, MeanLoss, MetricValue, Precision, Recall, Summation};
use estimand_nn::*;
use estimand_update::{Adadelta, Adafactor, Adagrad, Adam, Adamax, Ema, Ftrl, Lion, Nadam, RmsProp, Schedule, Sgd};

/// Each schedule, with every setting at another value than Keras's default.
pub fn schedules() -> Vec<Schedule> {
    let (initial, decay_steps) = (0.5, 7);
    let exponential = Schedule::Exponential { initial, decay_steps, decay_rate: 0.25, staircase: true };
    let cosine = Schedule::Cosine { initial, decay_steps, alpha: 0.125 };
    let constant = Schedule::from(0.25);
    vec![
        constant.clone(),
        Schedule::InverseTime { initial, decay_steps, decay_rate: 0.75, staircase: true },
        Schedule::InverseTime { initial, decay_steps: 1, decay_rate: 0.75, staircase: false },
        Schedule::Polynomial { initial, decay_steps, end: 0.0625, power: 2.0, cycle: true },
        cosine.clone(),
        Schedule::CosineRestarts { initial, first_decay_steps: 5, t_mul: 1.5, m_mul: 0.5, alpha: 0.25 },
        Schedule::Piecewise { boundaries: vec![2, 5], values: vec![0.5, 0.25, 0.125] },
        Schedule::WarmUp { steps: 3, from: 0.125, then: Box::new(cosine) },
        Schedule::WarmUp { steps: 3, from: 0.125, then: Box::new(exponential.clone()) },
        constant.warm_up(2).warm_up(4),
        exponential,
    ]
}

/// Each rule, with every setting at another value than the default.
pub fn optimizers() -> Vec<Optimizer> {
    let rmsprop = |rule: RmsProp| rule.rho(0.75).momentum(0.5).epsilon(0.01).centered(true);
    vec![
        Optimizer::new(Sgd::default().momentum(0.5).nesterov(true), 0.25).clip(Clip::Value(0.5)),
        Optimizer::new(Adagrad::default().initial_accumulator(0.5).epsilon(0.01), 0.25).clip(Clip::Norm(0.5)),
        Optimizer::new(Adam::default().beta_1(0.5).beta_2(0.75).epsilon(0.01).amsgrad(true), 0.25)
            .clip(Clip::GlobalNorm(0.5))
            .lazy(),
        Optimizer::new(Adam::default().weight_decay(0.25), 0.25),
        Optimizer::new(
            Ftrl::default()
                .learning_rate_power(-0.25)
                .initial_accumulator(0.5)
                .l1(0.01)
                .l2(0.02)
                .l2_shrinkage(0.03)
                .beta(0.5),
            0.25,
        ),
        Optimizer::new(rmsprop(RmsProp::default()), 0.25),
        Optimizer::new(rmsprop(RmsProp::v1()), 0.25),
        Optimizer::new(Sgd::v1(0.5).nesterov(true), 0.25),
        Optimizer::new(Adadelta::default().rho(0.75).epsilon(0.01), 0.25),
        Optimizer::new(Adamax::default().beta_1(0.5).beta_2(0.75).epsilon(0.01), 0.25),
        Optimizer::new(Nadam::default().beta_1(0.5).beta_2(0.75).epsilon(0.01).schedule_decay(0.5), 0.25),
        Optimizer::new(Lion::default().beta_1(0.5).beta_2(0.75), 0.25).weight_decay(0.5),
        Optimizer::new(
            Adafactor::default()
                .beta_2_decay(-0.5)
                .epsilon_1(1e-20)
                .epsilon_2(0.01)
                .clip_threshold(0.5)
                .relative_step(false),
            0.25,
        )
        .ema(Ema::default()),
        Optimizer::new(Lion::default(), 0.25).ema(Ema::default().momentum(0.5).overwrite_frequency(3)),
        Optimizer::keras(rmsprop(RmsProp::default()), 0.25).weight_decay(0.25).ema(Ema::default()),
        Optimizer::keras(Adam::default().amsgrad(true), 0.25).weight_decay(0.25),
        Optimizer::keras(Nadam::default().beta_1(0.5), 0.25),
        Optimizer::keras(Adagrad::default().epsilon(0.01), 0.25).clip(Clip::GlobalNorm(0.5)),
    ]
}

/// Every loss with every option at another value than the default, in every reduction.
pub fn losses() -> Vec<Box<dyn Loss>> {
    let with = |reduction: Reduction| -> Vec<Box<dyn Loss>> {
        vec![
            Box::new(AbsoluteError::new().reduction(reduction)),
            Box::new(CategoricalHinge::new().reduction(reduction)),
            Box::new(CosineSimilarity::new().reduction(reduction)),
            Box::new(Hinge::new().reduction(reduction)),
            Box::new(Huber::new().delta(0.25).reduction(reduction)),
            Box::new(KlDivergence::new().reduction(reduction)),
            Box::new(LogCosh::new().reduction(reduction)),
            Box::new(LogLoss::new().epsilon(0.125).reduction(reduction)),
            Box::new(LogPoisson::new().compute_full_loss(false).reduction(reduction)),
            Box::new(MeanAbsolutePercentageError::new().reduction(reduction)),
            Box::new(MeanSquaredError::new().reduction(reduction)),
            Box::new(MeanSquaredLogarithmicError::new().reduction(reduction)),
            Box::new(Poisson::new().reduction(reduction)),
            Box::new(SigmoidCrossEntropy::new().label_smoothing(0.25).reduction(reduction)),
            Box::new(SigmoidCrossEntropy::new().from_probabilities().reduction(reduction)),
            Box::new(SoftmaxCrossEntropy::new().label_smoothing(0.25).reduction(reduction)),
            Box::new(SoftmaxCrossEntropy::new().from_probabilities().reduction(reduction)),
            Box::new(SparseSoftmaxCrossEntropy::new().reduction(reduction)),
            Box::new(SparseSoftmaxCrossEntropy::new().from_probabilities().reduction(reduction)),
            Box::new(SquaredHinge::new().reduction(reduction)),
        ]
    };
    Reduction::ALL.into_iter().flat_map(with).collect()
}

/// Every metric with every option at another value than the default.
pub fn metrics() -> Vec<Box<dyn MetricValue>> {
    let auc = Auc::new().curve(Curve::Pr).summation_method(Summation::Minoring).n_thresholds(5).from_logits();
    vec![
        Box::new(metric::Accuracy::new().name("other")),
        Box::new(auc.multi_label(true).label_weights([0.5, 0.25, 0.25]).name("other")),
        Box::new(Auc::new().summation_method(Summation::Majoring).n_thresholds(3)),
        Box::new(metric::BinaryAccuracy::new().threshold(0.25).name("other")),
        Box::new(metric::CategoricalAccuracy::new().name("other")),
        Box::new(metric::ConfusionMatrix::new(2).name("other")),
        Box::new(metric::CosineSimilarity::new().name("other")),
        Box::new(metric::ExpectedCalibrationError::new().n_bins(4).name("other")),
        Box::new(metric::FalseNegatives::new().threshold(0.25).name("other")),
        Box::new(metric::FalsePositives::new().threshold(0.25).name("other")),
        Box::new(metric::Mean::new().name("other")),
        Box::new(metric::MeanAbsoluteError::new().name("other")),
        Box::new(metric::MeanIou::new(2).name("other")),
        Box::new(MeanLoss::new(Huber::new().delta(0.25)).name("other")),
        Box::new(metric::MeanPerClassAccuracy::new(2).name("other")),
        Box::new(metric::MeanRelativeError::new().normalizer([1.0, 2.0, 4.0]).name("other")),
        Box::new(metric::MeanSquaredError::new().name("other")),
        Box::new(Precision::new().thresholds(0.25).name("other")),
        Box::new(Precision::new().thresholds([0.25, 0.375])),
        Box::new(metric::PrecisionAtRecall::new(0.75).name("other")),
        Box::new(metric::R2Score::new().name("other")),
        Box::new(Recall::new().thresholds(vec![0.25]).name("other")),
        Box::new(Recall::new().thresholds([0.25, 0.375])),
        Box::new(metric::RecallAtPrecision::new(0.75).name("other")),
        Box::new(metric::RootMeanSquaredError::new().name("other")),
        Box::new(metric::SensitivityAtSpecificity::new(0.75).name("other")),
        Box::new(metric::SparseCategoricalAccuracy::new().name("other")),
        Box::new(metric::SparseTopKCategoricalAccuracy::new().k(1).name("other")),
        Box::new(metric::SpecificityAtSensitivity::new(0.75).name("other")),
        Box::new(metric::TopKCategoricalAccuracy::new().k(1).name("other")),
        Box::new(metric::TrueNegatives::new().threshold(0.25).name("other")),
        Box::new(metric::TruePositives::new().threshold(0.25).name("other")),
    ]
}
