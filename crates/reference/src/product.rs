//! Matrix products.

use estimand_tensor::{Error, Result};

use super::value::{Wide, broadcast_position, check_broadcast, indices};

/// Products of the matrices in the last two axes; the leading axes are broadcast to those of
/// `dims`.
pub(super) fn matmul(x: &Wide, y: &Wide, transpose_x: bool, transpose_y: bool, dims: &[usize]) -> Result<Wide> {
    let (a, b) = (Stack::new(x, transpose_x)?, Stack::new(y, transpose_y)?);
    if a.columns != b.rows {
        return Err(Error::shape(format!(
            "cannot multiply {:?} by {:?}: the inner sizes {} and {} differ",
            x.dims(),
            y.dims(),
            a.columns,
            b.rows
        )));
    }
    let lead = &dims[..dims.len() - 2];
    check_broadcast(a.lead, lead)?;
    check_broadcast(b.lead, lead)?;
    let element = |index: &[usize]| -> f64 {
        let (lead, at) = index.split_at(dims.len() - 2);
        let (a_at, b_at) = (broadcast_position(a.lead, lead), broadcast_position(b.lead, lead));
        (0..a.columns).map(|k| a.get(a_at, at[0], k) * b.get(b_at, k, at[1])).sum()
    };
    Ok(Wide::floats(x.dtype, dims, indices(dims).map(|index| element(&index)).collect()))
}

/// Matrices in the last two axes, transposed if requested.
struct Stack<'a> {
    values: &'a [f64],
    lead: &'a [usize],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl Stack<'_> {
    fn new(x: &Wide, transposed: bool) -> Result<Stack<'_>> {
        let (lead, matrix) = x.dims.split_at(x.dims.len() - 2);
        let (rows, columns) = if transposed { (matrix[1], matrix[0]) } else { (matrix[0], matrix[1]) };
        Ok(Stack { values: x.as_floats()?, lead, rows, columns, transposed })
    }

    fn get(&self, matrix: usize, row: usize, column: usize) -> f64 {
        let at = if self.transposed { column * self.rows + row } else { row * self.columns + column };
        self.values[matrix * self.rows * self.columns + at]
    }
}
