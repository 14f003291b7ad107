//! The state of a solver as bytes of a checkpoint: everything that the next step depends on.
//!
//! Little-endian numbers, one after another: the version, the loss, L2, the sizes of all variables
//! with their names, the weights before L1 regularization, and the examples with their keys.

use estimand_tensor::{Error, Result, warn};

use super::loss::LOSSES;
use super::solver::Solver;
use super::table::{Example, Key, UNKNOWN};

/// The version of the format. Version 1 has no sketches of features.
const VERSION: u64 = 2;
/// The bytes of an example.
const EXAMPLE: usize = 64;

/// A variable: its name and its number of weights.
pub(super) type Sizes<'a> = [(&'a str, usize)];

/// Writes the state.
pub(super) fn write(solver: &Solver, variables: &Sizes<'_>) -> Vec<u8> {
    let loss = LOSSES.iter().position(|(_, loss)| *loss == solver.problem.loss).unwrap_or(0);
    let n_names: usize = variables.iter().map(|(name, _)| name.len() + 16).sum();
    let mut bytes = Vec::with_capacity(40 + n_names + 8 * solver.unshrunk.len() + EXAMPLE * solver.table.len());
    let put = |bytes: &mut Vec<u8>, n: u64| bytes.extend_from_slice(&n.to_le_bytes());
    let header = [VERSION, loss as u64, solver.problem.l2.to_bits(), variables.len() as u64];
    header.into_iter().for_each(|n| put(&mut bytes, n));
    for (name, n) in variables {
        put(&mut bytes, name.len() as u64);
        bytes.extend_from_slice(name.as_bytes());
        put(&mut bytes, *n as u64);
    }
    solver.unshrunk.iter().for_each(|weight| put(&mut bytes, weight.to_bits()));
    put(&mut bytes, solver.table.len() as u64);
    for (key, example) in solver.table.iter() {
        let Example { dual, label, weight, sketch, loss, conjugate } = *example;
        [key.0, key.1].into_iter().for_each(|n| put(&mut bytes, n));
        [dual, label, weight, loss, conjugate, sketch].into_iter().for_each(|n| put(&mut bytes, n.to_bits()));
    }
    bytes
}

/// Reads a state into a new solver of the same variables.
pub(super) fn read(solver: &mut Solver, variables: &Sizes<'_>, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader(bytes);
    let version = reader.number()?;
    if !(1..=VERSION).contains(&version) {
        let text = format!("the state of LinearSdca has version {version}; this library reads versions 1 to {VERSION}");
        return Err(Error::unsupported(text).help("use the version of Estimand that wrote the checkpoint"));
    }
    let loss = reader.number()?;
    let problem = solver.problem;
    match usize::try_from(loss).ok().and_then(|loss| LOSSES.get(loss)) {
        Some((_, loss)) if *loss == problem.loss => {}
        Some((name, _)) => {
            let text = format!("the checkpoint was trained with {name}, the program has {}", problem.loss.name());
            return Err(Error::config(text).help("train with the loss of the checkpoint, or in another model_dir"));
        }
        None => return Err(damaged(format!("it names loss {loss}"))),
    }
    let l2 = reader.float()?;
    if l2.is_nan() || l2 <= 0.0 {
        return Err(damaged(format!("its L2 regularization is {l2}")));
    }
    let n_variables = reader.number()?;
    if n_variables != variables.len() as u64 {
        return Err(damaged(format!("it has {n_variables} variables; expected {}", variables.len())));
    }
    for (name, n) in variables {
        let length = reader.number()?;
        let (stored, size) = (reader.take(length)?, reader.number()?);
        if stored != name.as_bytes() || size != *n as u64 {
            let stored = String::from_utf8_lossy(stored);
            return Err(damaged(format!("it has {size} weights of `{stored}`; expected {n} of `{name}`")));
        }
    }
    for weight in &mut solver.unshrunk {
        // Weights are sums over l2, so another l2 scales them.
        *weight = reader.finite()? * (l2 / problem.l2);
    }
    let n_examples = reader.number()?;
    let size = if version == 1 { EXAMPLE - 8 } else { EXAMPLE };
    if n_examples.checked_mul(size as u64) != Some(reader.0.len() as u64) {
        return Err(damaged(format!("{} bytes are left for {n_examples} examples", reader.0.len())));
    }
    for _ in 0..n_examples {
        let key = Key(reader.number()?, reader.number()?);
        let example = Example {
            dual: reader.finite()?,
            label: reader.float()?,
            weight: reader.finite()?,
            loss: reader.float()?,
            conjugate: reader.finite()?,
            sketch: if version == 1 { UNKNOWN } else { reader.float()? },
        };
        let Example { label, dual, .. } = example;
        let is_label =
            label.is_nan() || problem.loss.check_label(label).is_ok() && problem.loss.is_feasible(label, dual);
        if !is_label || example.weight < 0.0 || example.sketch.is_infinite() {
            return Err(damaged(format!("an example is {example:?}")));
        }
        if !solver.table.restore(key, example) {
            return Err(damaged("an example is in it twice".to_string()));
        }
    }
    if l2 != problem.l2 {
        warn!("L2 regularization is {}; the checkpoint was trained with {l2}. The program's value is used", problem.l2);
    }
    Ok(())
}

/// The rest of the bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(n).ok().and_then(|n| self.0.split_at_checked(n));
        let (taken, rest) = split.ok_or_else(|| damaged(format!("{n} bytes of a name are missing")))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64> {
        let (taken, rest) =
            self.0.split_first_chunk().ok_or_else(|| damaged("it ends in the middle of a number".to_string()))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*taken))
    }

    fn float(&mut self) -> Result<f64> {
        self.number().map(f64::from_bits)
    }

    fn finite(&mut self) -> Result<f64> {
        match self.float()? {
            number if number.is_finite() => Ok(number),
            number => Err(damaged(format!("a number in it is {number}"))),
        }
    }
}

fn damaged(what: String) -> Error {
    Error::data(format!("the state of LinearSdca in the checkpoint cannot be read: {what}"))
        .help("continue from another checkpoint, or train in another model_dir")
}

#[cfg(test)]
mod tests {
    use super::super::loss::SdcaLoss;
    use super::super::solver::Problem;
    use super::*;

    const VARIABLES: &Sizes<'_> = &[("a/weights", 2), ("bias", 1)];

    fn solver(l2: f64, n_shards: usize) -> Solver {
        let problem = Problem { loss: SdcaLoss::Logistic, l1: 0.5, l2, n_partitions: 1.0, adaptive: false };
        Solver::new(problem, 3, n_shards)
    }

    fn filled() -> Solver {
        let mut solver = solver(2.0, 1);
        solver.unshrunk = vec![0.1, -0.2, 1.0 / 3.0];
        for i in 0..9 {
            let (dual, sketch) = (0.1 * f64::from(i), f64::from(i) - 3.5);
            let example = Example { dual, label: 1.0, weight: 2.0, sketch, loss: 0.3, conjugate: -0.5 };
            solver.table.restore(Key::of(i.to_string().as_bytes()), example);
        }
        solver
    }

    #[test]
    fn a_state_is_read_as_it_was_written() -> Result<()> {
        let bytes = write(&filled(), VARIABLES);
        for n_shards in [1, 4] {
            let mut again = solver(2.0, n_shards);
            read(&mut again, VARIABLES, &bytes)?;
            assert_eq!(again.unshrunk, filled().unshrunk);
            let examples = |solver: &Solver| solver.table.iter().map(|(key, example)| (key.0, *example)).collect();
            let (mut one, mut two): (Vec<_>, Vec<_>) = (examples(&again), examples(&filled()));
            if n_shards == 1 {
                assert_eq!(write(&again, VARIABLES), bytes);
            }
            one.sort_by_key(|(key, _)| *key);
            two.sort_by_key(|(key, _)| *key);
            assert_eq!(one, two);
        }
        let mut other = solver(4.0, 1);
        read(&mut other, VARIABLES, &bytes)?;
        assert_eq!(other.unshrunk[0], 0.05);
        Ok(())
    }

    /// Version 1 ends each example after the conjugate.
    #[test]
    fn states_without_sketches_are_read() -> Result<()> {
        let bytes = write(&filled(), VARIABLES);
        let (header, examples) = bytes.split_at(bytes.len() - 9 * EXAMPLE);
        let mut old = header.to_vec();
        old[0] = 1;
        examples.chunks(EXAMPLE).for_each(|example| old.extend(&example[..EXAMPLE - 8]));
        let mut again = solver(2.0, 1);
        read(&mut again, VARIABLES, &old)?;
        assert!(again.table.iter().all(|(_, example)| example.sketch.is_nan() && example.weight == 2.0));
        assert_eq!(again.table.len(), 9);
        Ok(())
    }

    #[test]
    fn damaged_states_are_errors() {
        let bytes = write(&filled(), VARIABLES);
        let refused = |bytes: &[u8]| read(&mut solver(2.0, 1), VARIABLES, bytes).unwrap_err().to_string();
        for n in 0..bytes.len() {
            refused(&bytes[..n]);
        }
        refused(&[&bytes[..], &[0]].concat());
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x80;
            // Most of them are errors, and none of them panics.
            let _ = read(&mut solver(2.0, 1), VARIABLES, &other);
        }
        let mut other = bytes.clone();
        other[8] = 2;
        assert!(refused(&other).contains("the checkpoint was trained with hinge_loss, the program has logistic_loss"));
        other[8] = 9;
        assert!(refused(&other).contains("it names loss 9"));
        let mut endless = bytes.clone();
        endless[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(refused(&endless).contains("cannot be read"));
    }
}
