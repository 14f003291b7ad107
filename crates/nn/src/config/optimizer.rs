//! How optimizers are spelled: as those of `tf.keras.optimizers.legacy`, or as those of the newer
//! generation of the same names, `tf.keras.optimizers` since 2.11 and Keras 3.
//!
//! A document of the newer generation has the field `use_ema`. Its rule takes the newer form.

use std::sync::Arc;

use estimand_graph::{Clip, Optimizer};
use estimand_tensor::{Error, Result};
use estimand_update::{
    Adadelta, Adafactor, Adagrad, Adam, Adamax, Ema, Ftrl, Lion, Nadam, RmsProp, Schedule, Sgd, UpdateRule,
};
use serde_json::{Map, Value};

use super::objects::{configured, is_called, written_settings};
use super::{Field, Fields, Node, object};

/// Reads the settings of a rule. The fields of the optimizer, such as `learning_rate`, are read
/// apart.
pub(super) type ReadRule = fn(&mut Fields<'_>) -> Arc<dyn UpdateRule>;

/// A limit of gradients: its key, and what it makes.
type LimitField = (&'static str, fn(f64) -> Clip);

/// The name of TensorFlow 1's RMSprop. Keras's has the same name but for one letter's case.
const RMSPROP_V1: &str = "RMSPropOptimizer";
/// The name of TensorFlow 1's momentum.
const MOMENTUM_V1: &str = "MomentumOptimizer";

const CLASSES: [(&str, ReadRule); 13] = [
    ("SGD", |fields| sgd(fields, Sgd::default())),
    (MOMENTUM_V1, |fields| sgd(fields, Sgd::v1(0.0))),
    ("Adagrad", adagrad),
    ("Adam", |fields| Arc::new(adam(fields))),
    ("AdamW", |fields| Arc::new(adam(fields).weight_decay(fields.value("weight_decay", &0.004)))),
    ("Ftrl", ftrl),
    ("RMSprop", |fields| rmsprop(fields, RmsProp::default(), 1e-7)),
    (RMSPROP_V1, |fields| rmsprop(fields, RmsProp::v1(), 1e-10)),
    ("Adadelta", adadelta),
    ("Adamax", adamax),
    ("Nadam", nadam),
    ("Lion", lion),
    ("Adafactor", adafactor),
];

/// Whether a document is of Keras's newer generation, all of which have this field.
fn is_newer(fields: &Fields<'_>) -> bool {
    fields.has("use_ema")
}

fn sgd(fields: &mut Fields<'_>, rule: Sgd) -> Arc<dyn UpdateRule> {
    Arc::new(rule.momentum(fields.value("momentum", &0.0)).nesterov(fields.value("nesterov", &false)))
}

fn adagrad(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    let epsilon = fields.value("epsilon", &1e-7);
    let initial = fields.value("initial_accumulator_value", &0.1);
    Arc::new(Adagrad::default().initial_accumulator(initial).epsilon(epsilon))
}

fn adam(fields: &mut Fields<'_>) -> Adam {
    Adam::default()
        .beta_1(fields.value("beta_1", &0.9))
        .beta_2(fields.value("beta_2", &0.999))
        .epsilon(fields.value("epsilon", &1e-7))
        .amsgrad(fields.value("amsgrad", &false))
}

fn lion(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    Arc::new(Lion::default().beta_1(fields.value("beta_1", &0.9)).beta_2(fields.value("beta_2", &0.99)))
}

fn adafactor(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    Arc::new(
        Adafactor::default()
            .beta_2_decay(fields.value("beta_2_decay", &-0.8))
            .epsilon_1(fields.value("epsilon_1", &1e-30))
            .epsilon_2(fields.value("epsilon_2", &1e-3))
            .clip_threshold(fields.value("clip_threshold", &1.0))
            .relative_step(fields.value("relative_step", &true)),
    )
}

fn ftrl(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    Arc::new(
        Ftrl::default()
            .learning_rate_power(fields.value("learning_rate_power", &-0.5))
            .initial_accumulator(fields.value("initial_accumulator_value", &0.1))
            .l1(fields.value("l1_regularization_strength", &0.0))
            .l2(fields.value("l2_regularization_strength", &0.0))
            .l2_shrinkage(fields.value("l2_shrinkage_regularization_strength", &0.0))
            .beta(fields.value("beta", &0.0)),
    )
}

fn rmsprop(fields: &mut Fields<'_>, rule: RmsProp, epsilon: f64) -> Arc<dyn UpdateRule> {
    let momentum = fields.value("momentum", &0.0);
    Arc::new(
        rule.rho(fields.value("rho", &0.9))
            .momentum(momentum)
            .epsilon(fields.value("epsilon", &epsilon))
            .centered(fields.value("centered", &false)),
    )
}

fn adadelta(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    Arc::new(Adadelta::default().rho(fields.value("rho", &0.95)).epsilon(fields.value("epsilon", &1e-7)))
}

fn adamax(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    Arc::new(
        Adamax::default()
            .beta_1(fields.value("beta_1", &0.9))
            .beta_2(fields.value("beta_2", &0.999))
            .epsilon(fields.value("epsilon", &1e-7)),
    )
}

fn nadam(fields: &mut Fields<'_>) -> Arc<dyn UpdateRule> {
    let schedule_decay = match is_newer(fields) {
        true => 1.0,
        // TF: Keras writes it as `decay`, but its constructor takes only the other name.
        false => fields.renamed(&["schedule_decay", "decay"], &0.004),
    };
    Arc::new(
        Nadam::default()
            .beta_1(fields.value("beta_1", &0.9))
            .beta_2(fields.value("beta_2", &0.999))
            .epsilon(fields.value("epsilon", &1e-7))
            .schedule_decay(schedule_decay),
    )
}

impl Field for Optimizer {
    fn write(&self) -> Result<Value> {
        let name = self.rule().name();
        let Some(settings) = self.rule().settings() else {
            let text = format!("the optimizer {name} cannot be written as JSON: its rule has no `settings`");
            return Err(Error::unsupported(text).help("implement Formula::settings or UpdateRule::settings for it"));
        };
        let mut config = Map::new();
        config.insert("name".to_string(), name.into());
        config.insert("learning_rate".to_string(), self.learning_rate().write()?);
        config.extend(written_settings(settings)?);
        if let Some(clip) = self.gradient_clip() {
            let (key, limit) = match clip {
                Clip::Value(limit) => ("clipvalue", limit),
                Clip::Norm(limit) => ("clipnorm", limit),
                Clip::GlobalNorm(limit) => ("global_clipnorm", limit),
            };
            config.insert(key.to_string(), limit.write()?);
        }
        if self.rule().is_newer() || self.decay().is_some() || self.average().is_some() {
            write_options(self, &mut config)?;
        }
        if self.is_lazy() {
            config.insert("lazy".to_string(), true.into());
        }
        let (module, class) = match name {
            "RMSProp" => ("estimand", RMSPROP_V1),
            "Momentum" => ("estimand", MOMENTUM_V1),
            _ if self.rule().is_newer() => ("keras.optimizers", name),
            _ if CLASSES.iter().any(|(class, _)| *class == name) => ("keras.optimizers.legacy", name),
            _ => ("custom", name),
        };
        Ok(object(module, class, Value::Object(config)))
    }

    fn read(node: &Node<'_>) -> Result<Optimizer> {
        let found = node.object()?;
        let objects = node.custom_objects();
        let ours = || CLASSES.iter().find(|(class, _)| is_called(found.class, class)).map(|(_, read)| *read);
        let Some(rule) = objects.find::<ReadRule>(found.class).or_else(ours) else {
            let known = CLASSES.iter().map(|(class, _)| *class).chain(objects.names::<ReadRule>());
            return Err(Error::unknown("optimizer", found.class, known).context(format!("at {}", node.path())));
        };
        configured(found.config.as_ref(), |fields| read(fields, rule))
    }
}

/// The options that all optimizers of the newer generation have.
fn write_options(optimizer: &Optimizer, config: &mut Map<String, Value>) -> Result<()> {
    if let Some(decay) = optimizer.decay() {
        config.insert("weight_decay".to_string(), decay.write()?);
    }
    config.insert("use_ema".to_string(), optimizer.average().is_some().into());
    if let Some(ema) = optimizer.average() {
        let (momentum, frequency) = ema.settings();
        config.insert("ema_momentum".to_string(), momentum.write()?);
        config.insert("ema_overwrite_frequency".to_string(), frequency.write()?);
    }
    Ok(())
}

/// Reads the options of the newer generation.
fn read_options(fields: &mut Fields<'_>, optimizer: Optimizer) -> Optimizer {
    let optimizer = match fields.is_asked("weight_decay") {
        true => optimizer,
        false => match fields.value("weight_decay", &None::<f64>) {
            Some(decay) => optimizer.weight_decay(decay),
            None => optimizer,
        },
    };
    let ema = Ema::default().momentum(fields.value("ema_momentum", &0.99));
    // TF: a frequency of 0 is none.
    let ema = match fields.value("ema_overwrite_frequency", &None::<u64>).filter(|steps| *steps > 0) {
        Some(steps) => ema.overwrite_frequency(steps),
        None => ema,
    };
    if !fields.value("use_ema", &false) {
        return optimizer;
    }
    if fields.has("loss_scale_factor") {
        fields.refuse_here(
            "`use_ema` is set, and this is of Keras 3, whose average begins after the first step; \
             Estimand has that of tf.keras 2.15, which begins before it",
        );
    }
    optimizer.ema(ema)
}

/// The fields of the rule, then those that all optimizers have.
fn read(fields: &mut Fields<'_>, rule: ReadRule) -> Optimizer {
    let newer = is_newer(fields);
    let rule = rule(fields);
    let rule = rule.newer().filter(|_| newer).unwrap_or(rule);
    let usual = Schedule::Constant(rule.default_learning_rate());
    let rate = fields.renamed(&["learning_rate", "lr"], &usual);
    let decay = if fields.is_asked("decay") { 0.0 } else { fields.value("decay", &0.0) };
    let rate = match rate {
        rate if decay == 0.0 => rate,
        Schedule::Constant(initial) => {
            Schedule::InverseTime { initial, decay_steps: 1, decay_rate: decay, staircase: false }
        }
        rate => {
            fields.refuse_here("`decay` is set, and the learning rate is a schedule: expected one of the two");
            rate
        }
    };
    let mut optimizer = Optimizer::from_rule(rule, rate);
    // TF: for the newer generation, a limit of 0 is none.
    let clips: [LimitField; 3] =
        [("clipvalue", Clip::Value), ("clipnorm", Clip::Norm), ("global_clipnorm", Clip::GlobalNorm)];
    let limit = |(key, clip): LimitField| {
        let limit = fields.value(key, &None::<f64>).filter(|limit| !newer || *limit != 0.0);
        limit.map(|limit| (key, clip(limit)))
    };
    let set: Vec<(&str, Clip)> = clips.into_iter().filter_map(limit).collect();
    match set[..] {
        [] => {}
        [(_, clip)] => optimizer = optimizer.clip(clip),
        [(one, _), (other, _), ..] => {
            fields.refuse_here(&format!("`{one}` and `{other}` are set: expected one limit of gradients"));
        }
    }
    if fields.value("lazy", &false) {
        optimizer = optimizer.lazy();
    }
    // Here the rule's name is the scope of its slots.
    fields.ignored("name");
    let optimizer = read_options(fields, optimizer);
    read_newer(fields);
    if let Err(error) = optimizer.check() {
        fields.refuse_here(&error.to_string());
    }
    optimizer
}

/// Options of the newer generation that Estimand does not have.
fn read_newer(fields: &mut Fields<'_>) {
    fields.only_read("jit_compile", &[false.into(), Value::Null]);
    for key in ["loss_scale_factor", "gradient_accumulation_steps"] {
        fields.only_read(key, &[Value::Null]);
    }
    fields.ignored("is_legacy_optimizer");
}
