//! Moves rows or columns of an old table to their positions in a new one.

use estimand_tensor::{Array, Error, Result};

/// Returns a copy of `fresh` with values of `old`: along `axis`, element `i` is element
/// `sources[i]` of `old`, if there is one.
pub(super) fn remap(old: &Array, fresh: &Array, axis: usize, sources: &[Option<usize>]) -> Result<Array> {
    let shown = |array: &Array| format!("{}{:?}", array.dtype(), array.dims());
    let differ = |why: String| {
        let (old, new) = (shown(old), shown(fresh));
        Error::shape(format!("it is {old} in the checkpoint and {new} in the model: {why}"))
    };
    if fresh.rank() <= axis || old.rank() != fresh.rank() || old.dtype() != fresh.dtype() {
        return Err(differ(format!(
            "expected the same dtype and number of axes, with the vocabulary along axis {axis}"
        )));
    }
    let n = fresh.dims()[axis];
    if sources.len() != n {
        return Err(differ(format!(
            "the new vocabulary has {} terms and buckets, but axis {axis} has the size {n}",
            sources.len()
        ))
        .help("set n_oov_buckets as in the column, and new_vocab_size to the number of terms it uses"));
    }
    let n_old = old.dims()[axis];
    let others = |array: &Array| {
        let mut dims = array.dims().to_vec();
        dims.remove(axis);
        dims
    };
    if others(old) != others(fresh) {
        return Err(differ(format!("only axis {axis} may differ")));
    }
    if let Some(beyond) = sources.iter().flatten().find(|&&source| source >= n_old) {
        return Err(differ(format!(
            "term {beyond} of the old vocabulary is outside axis {axis}, which has the size {n_old}"
        ))
        .help("set old_vocab_size to the number of terms that the checkpoint was trained with"));
    }
    let n_outer: usize = fresh.dims()[..axis].iter().product();
    let width = fresh.dims()[axis + 1..].iter().product::<usize>() * fresh.dtype().size();
    let mut bytes = fresh.bytes().to_vec();
    for outer in 0..n_outer {
        for (at, source) in sources.iter().enumerate() {
            let Some(source) = source else { continue };
            let (to, from) = ((outer * n + at) * width, (outer * n_old + source) * width);
            bytes[to..to + width].copy_from_slice(&old.bytes()[from..from + width]);
        }
    }
    Array::from_bytes(fresh.dtype(), fresh.dims(), &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize, from: i32) -> Array {
        Array::from_vec([rows, columns], (from..).take(rows * columns).collect::<Vec<i32>>()).unwrap()
    }

    #[test]
    fn rows_and_columns_go_where_they_belong() {
        // Old rows (1 2) (3 4) (5 6); the new ones are the third, a fresh one, the first.
        let fresh = matrix(3, 2, -10);
        let rows = remap(&matrix(3, 2, 1), &fresh, 0, &[Some(2), None, Some(0)]).unwrap();
        assert_eq!(rows.as_slice::<i32>().unwrap(), [5, 6, -8, -7, 1, 2]);
        // Old columns (1 3 5) (2 4 6) of rows; the new ones: fresh, the first.
        let columns = remap(&matrix(3, 2, 1), &fresh, 1, &[None, Some(0)]).unwrap();
        assert_eq!(columns.as_slice::<i32>().unwrap(), [-10, 1, -8, 3, -6, 5]);
        // A bias has one axis; an old table may be longer or shorter.
        let bias = |values: &[f32]| Array::from(values.to_vec());
        assert_eq!(remap(&bias(&[7.0]), &bias(&[0.0, 0.0]), 0, &[None, Some(0)]).unwrap(), bias(&[0.0, 7.0]));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let (old, fresh) = (matrix(2, 2, 0), matrix(3, 2, 0));
        let error =
            |old: &Array, axis, sources: &[Option<usize>]| remap(old, &fresh, axis, sources).unwrap_err().to_string();
        assert!(error(&old, 0, &[None; 4]).contains("4 terms and buckets, but axis 0 has the size 3"));
        assert!(
            error(&old, 0, &[None, None, Some(2)])
                .contains("term 2 of the old vocabulary is outside axis 0, which has the size 2")
        );
        assert!(error(&old, 1, &[None, None]).contains("i32[2, 2] in the checkpoint and i32[3, 2] in the model"));
        assert!(error(&Array::from([1i32]), 0, &[None; 3]).contains("the same dtype and number of axes"));
        assert!(
            error(&Array::zeros(estimand_tensor::DType::F32, [3, 2]).unwrap(), 0, &[None; 3])
                .contains("the same dtype")
        );
    }
}
