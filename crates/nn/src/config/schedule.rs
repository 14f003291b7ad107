//! How learning rates are spelled: as numbers, or as the schedules of `tf.keras`.

use estimand_tensor::{Error, Result};
use estimand_update::Schedule;
use serde_json::{Value, json};

use super::objects::{configured, is_called};
use super::{Field, Fields, Node, object};

/// Keras's classes, and at the end an own one: Keras has a linear rise only before a cosine.
const CLASSES: [&str; 7] = [
    "ExponentialDecay",
    "InverseTimeDecay",
    "PolynomialDecay",
    "CosineDecay",
    "CosineDecayRestarts",
    "PiecewiseConstantDecay",
    "WarmUp",
];

impl Field for Schedule {
    fn write(&self) -> Result<Value> {
        let (class, config) = match self {
            Schedule::Constant(rate) => return rate.write(),
            Schedule::Exponential { initial, decay_steps, decay_rate, staircase } => {
                ("ExponentialDecay", decay(*initial, *decay_steps, *decay_rate, *staircase)?)
            }
            Schedule::InverseTime { initial, decay_steps, decay_rate, staircase } => {
                ("InverseTimeDecay", decay(*initial, *decay_steps, *decay_rate, *staircase)?)
            }
            Schedule::Polynomial { initial, decay_steps, end, power, cycle } => {
                let (initial, end, power) = (initial.write()?, end.write()?, power.write()?);
                let config = json!({
                    "initial_learning_rate": initial,
                    "decay_steps": decay_steps,
                    "end_learning_rate": end,
                    "power": power,
                    "cycle": cycle,
                    "name": null,
                });
                ("PolynomialDecay", config)
            }
            Schedule::Cosine { initial, decay_steps, alpha } => {
                ("CosineDecay", cosine(*initial, *decay_steps, *alpha, None, 0)?)
            }
            Schedule::CosineRestarts { initial, first_decay_steps, t_mul, m_mul, alpha } => {
                let config = json!({
                    "initial_learning_rate": initial.write()?,
                    "first_decay_steps": first_decay_steps,
                    "t_mul": t_mul.write()?,
                    "m_mul": m_mul.write()?,
                    "alpha": alpha.write()?,
                    "name": null,
                });
                ("CosineDecayRestarts", config)
            }
            Schedule::Piecewise { boundaries, values } => {
                let config = json!({"boundaries": boundaries, "values": values.write()?, "name": null});
                ("PiecewiseConstantDecay", config)
            }
            Schedule::WarmUp { steps, from, then } => match **then {
                Schedule::Cosine { initial, decay_steps, alpha } => {
                    ("CosineDecay", cosine(*from, decay_steps, alpha, Some(initial), *steps)?)
                }
                _ => {
                    let (from, then) = (from.write()?, then.write()?);
                    let config = json!({"initial_learning_rate": from, "warmup_steps": steps, "then": then});
                    return Ok(object("estimand", "WarmUp", config));
                }
            },
        };
        Ok(object("keras.optimizers.schedules", class, config))
    }

    fn read(node: &Node<'_>) -> Result<Schedule> {
        if node.value().is_number() {
            return checked(node, Schedule::Constant(f64::read(node)?));
        }
        if !node.value().is_object() {
            return Err(node.expected("a number or a schedule"));
        }
        let found = node.object()?;
        let Some(class) = CLASSES.into_iter().find(|name| is_called(found.class, name)) else {
            let error = Error::unknown("schedule", found.class, CLASSES);
            return Err(error.context(format!("at {}", node.path())));
        };
        let schedule = configured(found.config.as_ref(), |fields| {
            fields.ignored("name");
            read(class, fields)
        })?;
        checked(node, schedule)
    }
}

/// The fields of a class. Those that Keras demands are required.
fn read(class: &str, fields: &mut Fields<'_>) -> Schedule {
    if class == "PiecewiseConstantDecay" {
        return Schedule::Piecewise {
            boundaries: fields.required("boundaries", &Vec::new()),
            values: fields.required("values", &Vec::new()),
        };
    }
    let initial = fields.required("initial_learning_rate", &0.0);
    match class {
        "ExponentialDecay" => Schedule::Exponential {
            initial,
            decay_steps: fields.required("decay_steps", &1),
            decay_rate: fields.required("decay_rate", &1.0),
            staircase: fields.value("staircase", &false),
        },
        "InverseTimeDecay" => Schedule::InverseTime {
            initial,
            decay_steps: fields.required("decay_steps", &1),
            decay_rate: fields.required("decay_rate", &1.0),
            staircase: fields.value("staircase", &false),
        },
        "PolynomialDecay" => Schedule::Polynomial {
            initial,
            decay_steps: fields.required("decay_steps", &1),
            end: fields.value("end_learning_rate", &0.0001),
            power: fields.value("power", &1.0),
            cycle: fields.value("cycle", &false),
        },
        "CosineDecayRestarts" => Schedule::CosineRestarts {
            initial,
            first_decay_steps: fields.required("first_decay_steps", &1),
            t_mul: fields.value("t_mul", &2.0),
            m_mul: fields.value("m_mul", &1.0),
            alpha: fields.value("alpha", &0.0),
        },
        "CosineDecay" => {
            let (decay_steps, alpha) = (fields.required("decay_steps", &1), fields.value("alpha", &0.0));
            // Without a target there is no rise, whatever its number of steps.
            let (target, steps) = (fields.value("warmup_target", &None), fields.value("warmup_steps", &0));
            match target {
                None => Schedule::Cosine { initial, decay_steps, alpha },
                Some(target) => Schedule::WarmUp {
                    steps,
                    from: initial,
                    then: Box::new(Schedule::Cosine { initial: target, decay_steps, alpha }),
                },
            }
        }
        _ => Schedule::WarmUp {
            steps: fields.required("warmup_steps", &0),
            from: initial,
            then: Box::new(fields.required("then", &Schedule::Constant(0.0))),
        },
    }
}

fn checked(node: &Node<'_>, schedule: Schedule) -> Result<Schedule> {
    schedule.check().map_err(|text| node.refuse(text))?;
    Ok(schedule)
}

fn decay(initial: f64, decay_steps: u64, decay_rate: f64, staircase: bool) -> Result<Value> {
    Ok(json!({
        "initial_learning_rate": initial.write()?,
        "decay_steps": decay_steps,
        "decay_rate": decay_rate.write()?,
        "staircase": staircase,
        "name": null,
    }))
}

fn cosine(initial: f64, decay_steps: u64, alpha: f64, target: Option<f64>, warmup_steps: u64) -> Result<Value> {
    Ok(json!({
        "initial_learning_rate": initial.write()?,
        "decay_steps": decay_steps,
        "alpha": alpha.write()?,
        "name": null,
        "warmup_target": target.write()?,
        "warmup_steps": warmup_steps,
    }))
}
