//! Runs several requests as one batch, and splits the outputs.

use std::time::Instant;

use estimand_tensor::{Array, DType, Result, Strings};

use super::Task;
use crate::model::{Computed, Signature};
use crate::status::{Answer, Status};

/// Whether the rows of two requests have the same shapes.
pub(super) fn have_equal_rows(a: &[Array], b: &[Array]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.dims().get(1..) == b.dims().get(1..))
}

/// Answers all requests of a batch.
pub(super) fn run(batch: Vec<Task>) {
    let now = Instant::now();
    let mut tasks = Vec::with_capacity(batch.len());
    for task in batch {
        if task.answer.is_closed() {
            continue;
        }
        match task.deadline {
            Some(deadline) if deadline <= now => {
                // The client may have gone away meanwhile.
                let _ = task.answer.send(Err(Status::late("the time limit passed while the request waited")));
            }
            _ => tasks.push(task),
        }
    }
    let joined = match &tasks[..] {
        [] => return,
        [_] => None,
        [first, ..] => run_joined(&first.signature, &tasks).ok(),
    };
    // If the rows of one request are wrong, the others must not suffer: each runs alone.
    let answers = joined.map(|all| all.into_iter().map(Ok).collect());
    let answers: Vec<Answer<Vec<Array>>> =
        answers.unwrap_or_else(|| tasks.iter().map(|task| task.signature.run(&task.arrays)).collect());
    for (task, answer) in tasks.into_iter().zip(answers) {
        let _ = task.answer.send(answer);
    }
}

/// The outputs of each request, computed in one run.
fn run_joined(signature: &Signature, tasks: &[Task]) -> Answer<Vec<Vec<Array>>> {
    let n_rows: usize = tasks.iter().map(|task| task.n_rows).sum();
    let inputs = (0..signature.inputs.len()).map(|i| {
        let parts: Vec<&Array> = tasks.iter().map(|task| &task.arrays[i]).collect();
        concatenate(&parts, n_rows)
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let Computed { outputs, more } = signature.compute(&inputs)?;
    if outputs.iter().any(|output| output.dims().first() != Some(&n_rows)) {
        return Err(Status::invalid("an output does not have a row for each row of the inputs"));
    }
    signature.count(&inputs, &more);
    let mut start = 0;
    let split = |task: &Task| {
        let rows = start..start + task.n_rows;
        start = rows.end;
        outputs.iter().map(|output| Ok(output.rows(rows.clone())?)).collect()
    };
    tasks.iter().map(split).collect()
}

/// Arrays of equal rows, one after the other.
fn concatenate(parts: &[&Array], n_rows: usize) -> Result<Array> {
    let first = parts[0];
    let mut dims: Vec<usize> = first.dims().to_vec();
    dims[0] = n_rows;
    if first.dtype() == DType::Str {
        let mut all = Strings::with_capacity(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            all.append_slice(part.string_slice()?);
        }
        return Array::from_string_list(dims, all);
    }
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes().iter().copied()).collect();
    Array::from_bytes(first.dtype(), dims, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_types_are_joined() {
        let floats = [Array::from([1f32, 2.0]), Array::from([3f32])];
        assert_eq!(concatenate(&floats.each_ref(), 3).unwrap(), Array::from([1f32, 2.0, 3.0]));
        let pairs = [[1i64, 2], [3, 4]].map(|pair| Array::from_vec([1, 2], pair.to_vec()).unwrap());
        assert_eq!(concatenate(&pairs.each_ref(), 2).unwrap(), Array::from_vec([2, 2], vec![1i64, 2, 3, 4]).unwrap());
        let bools = [Array::from([true]), Array::from([false, true])];
        assert_eq!(concatenate(&bools.each_ref(), 3).unwrap(), Array::from([true, false, true]));
        // Only the rows of a range are taken.
        let words = Array::from_strings([3], ["a", "b", "c"]).unwrap();
        let parts = [words.rows(2..3).unwrap(), words.rows(0..1).unwrap()];
        assert_eq!(concatenate(&parts.each_ref(), 2).unwrap(), Array::from_strings([2], ["c", "a"]).unwrap());
        assert!(have_equal_rows(&floats[..1], &floats[1..]) && !have_equal_rows(&floats[..1], &pairs[..1]));
    }
}
