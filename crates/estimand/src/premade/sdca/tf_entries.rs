//! The entries of TensorFlow's `LinearSDCA` in checkpoints, so that both programs can train one
//! folder in turns: the weights before L1 regularization, and a table of the examples.
//!
//! TensorFlow writes its table as it lies in memory. Places without an example have the key (0, 0)
//! or (1, 1). An example is at the place that its hash names, or at one of those that follow in
//! growing steps while places are taken. Values are the dual variable, the loss and its conjugate,
//! both times the weight, and the weight. Labels are not in it.

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Array, Error, Result};

use super::MAX_SHARDS;
use super::loss::SdcaLoss;
use super::solver::Solver;
use super::state::Sizes;
use super::table::{Example, Key, UNKNOWN};

/// The name of the table. Its parts are numbered from 1.
const TABLE: &str = "ShardedMutableHashTable";
/// The end of the names of weights before L1 regularization.
const UNSHRUNK: &str = "_unshrunk";
/// Numbers in a key, and in the values of an example.
const KEYS: usize = 2;
const VALUES: usize = 4;

/// Returns whether TensorFlow's estimators have a loss.
fn is_of_tensorflow(loss: SdcaLoss) -> bool {
    match loss {
        SdcaLoss::Logistic | SdcaLoss::Squared => true,
        SdcaLoss::Hinge | SdcaLoss::SmoothHinge | SdcaLoss::Poisson => false,
    }
}

/// Returns all entries; none for a loss that TensorFlow's estimators do not have.
pub(super) fn write(solver: &Solver, variables: &Sizes<'_>, dims: &[&[usize]]) -> Result<Vec<(String, Array)>> {
    let mut all = Vec::new();
    if !is_of_tensorflow(solver.problem.loss) {
        return Ok(all);
    }
    let mut first = 0;
    for ((name, n), dims) in variables.iter().zip(dims) {
        let weights = solver.unshrunk[first..first + n].iter().map(|weight| *weight as f32).collect();
        all.push((format!("{name}{UNSHRUNK}"), Array::from_vec(*dims, weights)?));
        first += n;
    }
    let n_shards = solver.table.n_shards();
    for shard in 0..n_shards {
        let examples = solver.table.shard(shard);
        // At most half of the places are taken.
        let n_places = (2 * examples.len()).next_power_of_two().max(4);
        let (mut keys, mut values) = (vec![0; KEYS * n_places], vec![0f32; VALUES * n_places]);
        for (key, example) in examples {
            let mut place = hash(*key) as usize & (n_places - 1);
            let mut n_probes = 0;
            while keys[KEYS * place] != 0 || keys[KEYS * place + 1] != 0 {
                n_probes += 1;
                place = (place + n_probes) & (n_places - 1);
            }
            let Example { dual, weight, loss, conjugate, .. } = *example;
            keys[KEYS * place..KEYS * (place + 1)].copy_from_slice(&[key.0 as i64, key.1 as i64]);
            let numbers = [dual, weight * loss, weight * conjugate, weight].map(|number| number as f32);
            values[VALUES * place..VALUES * (place + 1)].copy_from_slice(&numbers);
        }
        let [of_keys, of_values] = names(shard, n_shards);
        all.push((of_keys, Array::from_vec([n_places, KEYS], keys)?));
        all.push((of_values, Array::from_vec([n_places, VALUES], values)?));
    }
    Ok(all)
}

/// Reads the entries into a new solver. Returns whether they are there.
pub(super) fn read(solver: &mut Solver, variables: &Sizes<'_>, checkpoint: &BundleReader) -> Result<bool> {
    let first = format!("{TABLE}-1-of-");
    let parts = checkpoint.names().find_map(|name| name.strip_prefix(&first)?.strip_suffix("-keys"));
    let Some(parts) = parts else { return Ok(false) };
    let n_shards = match parts.parse() {
        Ok(n @ 1..=MAX_SHARDS) => n,
        _ => return Err(damaged(format!("`{first}{parts}-keys` is not one of 1 to {MAX_SHARDS} parts"))),
    };
    let loss = solver.problem.loss;
    if !is_of_tensorflow(loss) {
        let text = format!("the checkpoint is TensorFlow's, which has no {}", loss.name());
        return Err(Error::config(text).help("train in another model_dir"));
    }
    let mut place = 0;
    for (name, n) in variables {
        let name = format!("{name}{UNSHRUNK}");
        let weights = checkpoint.read(&name)?;
        let weights = weights.as_slice::<f32>()?;
        if weights.len() != *n {
            return Err(damaged(format!("`{name}` has {} weights; expected {n}", weights.len())));
        }
        for (to, weight) in solver.unshrunk[place..place + n].iter_mut().zip(weights) {
            *to = finite(*weight, &name)?;
        }
        place += n;
    }
    for shard in 0..n_shards {
        let [of_keys, of_values] = names(shard, n_shards);
        let (keys, values) = (checkpoint.read(&of_keys)?, checkpoint.read(&of_values)?);
        let sizes = (keys.dims().to_vec(), values.dims().to_vec());
        let fits = matches!((&sizes.0[..], &sizes.1[..]), ([n, KEYS], [m, VALUES]) if n == m);
        if !fits {
            return Err(damaged(format!("`{of_keys}` is {:?} and `{of_values}` {:?}", sizes.0, sizes.1)));
        }
        let (keys, _) = keys.as_slice::<i64>()?.as_chunks::<KEYS>();
        let (values, _) = values.as_slice::<f32>()?.as_chunks::<VALUES>();
        for (key, values) in keys.iter().zip(values) {
            if matches!(key, [0, 0] | [1, 1]) {
                continue;
            }
            let mut numbers = [0.0; VALUES];
            for (to, number) in numbers.iter_mut().zip(values) {
                *to = finite(*number, &of_values)?;
            }
            let [dual, loss, conjugate, weight] = numbers;
            if weight < 0.0 {
                return Err(damaged(format!("an example in `{of_values}` has the weight {weight}")));
            }
            let of_one = |sum: f64| if weight > 0.0 { sum / weight } else { 0.0 };
            let (loss, conjugate) = (of_one(loss), of_one(conjugate));
            let example = Example { dual, label: UNKNOWN, weight, sketch: UNKNOWN, loss, conjugate };
            if !solver.table.restore(Key(key[0] as u64, key[1] as u64), example) {
                return Err(damaged(format!("an example is in `{of_keys}` twice")));
            }
        }
    }
    Ok(true)
}

/// The names of a part of the table: its keys and its values.
fn names(shard: usize, n_shards: usize) -> [String; 2] {
    ["keys", "values"].map(|what| format!("{TABLE}-{}-of-{n_shards}-{what}", shard + 1))
}

/// The hash that decides the place of a key in a part.
fn hash(key: Key) -> u64 {
    [key.0, key.1].into_iter().fold(0u64, |hash, word| {
        let mixed = word.wrapping_add(0x9e37_79b9_7f4a_7800).wrapping_add(hash << 10).wrapping_add(hash >> 4);
        hash ^ mixed
    })
}

fn finite(number: f32, name: &str) -> Result<f64> {
    match number.is_finite() {
        true => Ok(f64::from(number)),
        false => Err(damaged(format!("a number in `{name}` is {number}"))),
    }
}

fn damaged(what: String) -> Error {
    Error::data(format!("the state of TensorFlow's LinearSDCA in the checkpoint cannot be read: {what}"))
        .help("continue from another checkpoint, or train in another model_dir")
}
