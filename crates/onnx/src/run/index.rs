//! Elements by coordinates, places of elements, distinct and largest ones.

use std::collections::HashMap;

use estimand_tensor::{Array, DType, Error, Result};

use super::call::Call;
use super::values::{Lines, Numbers, axis, integers, longs, pick, place, strides, strings};

/// The first element of the slice that each row of coordinates names.
fn slices(dims: &[usize], coordinates: &[i64], n: usize) -> Result<Vec<usize>> {
    let strides = strides(dims);
    if n > dims.len() {
        return Err(Error::shape(format!("{n} coordinates for {} axes", dims.len())));
    }
    let one = |row: &[i64]| {
        row.iter().enumerate().try_fold(0, |sum, (axis, &number)| match place(number, dims[axis]) {
            Some(i) => Ok(sum + i * strides[axis]),
            None => Err(Error::index(format!("index {number} is out of range for an axis of {}", dims[axis]))),
        })
    };
    coordinates.chunks_exact(n.max(1)).map(one).collect()
}

/// The number of coordinates in each row, and the sizes of the rows.
fn rows(indices: &Array) -> Result<(usize, &[usize])> {
    let (n, rows) = indices.dims().split_last().ok_or_else(|| Error::shape("the indices have no axes"))?;
    match n {
        0 => Err(Error::unsupported("this library does not write rows without coordinates")),
        &n => Ok((n, rows)),
    }
}

/// Slices by coordinates, after axes that both inputs share.
pub(super) fn gather_nd(call: &Call<'_>) -> Result<Array> {
    let (x, indices) = (call.x(0)?, call.x(1)?);
    let (n, rows) = rows(indices)?;
    let shared = usize::try_from(call.int("batch_dims", 0)?).unwrap_or(usize::MAX);
    if shared > rows.len() || shared + n > x.rank() || x.dims()[..shared] != rows[..shared] {
        return Err(Error::shape(format!("{:?} at {:?}, of which {shared} axes are shared", x.dims(), indices.dims())));
    }
    let coordinates = integers(indices)?;
    let n_batches: usize = rows[..shared].iter().product();
    let (whole, own) = (x.dims()[shared..].iter().product::<usize>(), &x.dims()[shared..]);
    let width: usize = own[n..].iter().product();
    let mut places = Vec::new();
    let each = coordinates.len().checked_div(n_batches).unwrap_or(0);
    for batch in 0..n_batches {
        for first in slices(own, &coordinates[batch * each..(batch + 1) * each], n)? {
            places.extend((0..width).map(|i| (0, batch * whole + first + i)));
        }
    }
    pick(&[x], &[rows, &own[n..]].concat(), places)
}

/// The input with slices replaced at coordinates, or added to.
pub(super) fn scatter_nd(call: &Call<'_>) -> Result<Array> {
    let (x, indices, updates) = (call.x(0)?, call.x(1)?, call.x(2)?);
    let (n, rows) = rows(indices)?;
    let firsts = slices(x.dims(), &integers(indices)?, n)?;
    let rest = &x.dims()[n..];
    let width: usize = rest.iter().product();
    if updates.dims() != [rows, rest].concat() || updates.dtype() != x.dtype() {
        let text =
            format!("updates of {}{:?} for {:?} at {:?}", updates.dtype(), updates.dims(), x.dims(), indices.dims());
        return Err(Error::shape(text));
    }
    let written =
        firsts.iter().enumerate().flat_map(|(row, &first)| (0..width).map(move |i| (first + i, row * width + i)));
    match call.word("reduction", "none")? {
        "none" => {
            let mut places: Vec<(usize, usize)> = (0..x.len()).map(|i| (0, i)).collect();
            written.for_each(|(to, from)| places[to] = (1, from));
            pick(&[x, updates], x.dims(), places)
        }
        "add" => {
            let mut sums = Numbers::of(x)?;
            match (&mut sums, Numbers::of(updates)?) {
                (Numbers::Floats(sums), Numbers::Floats(v)) => written.for_each(|(to, from)| sums[to] += v[from]),
                (Numbers::Ints(sums), Numbers::Ints(v)) => {
                    written.for_each(|(to, from)| sums[to] = sums[to].wrapping_add(v[from]));
                }
                _ => return Err(Error::internal("two inputs of one type have numbers of two kinds")),
            }
            sums.array(x.dtype(), x.dims())
        }
        other => call.unknown_word("reduction", other),
    }
}

/// The coordinates of the elements that are not 0, one list for each axis.
pub(super) fn non_zero(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let found: Vec<usize> = match Numbers::of(x)? {
        Numbers::Floats(v) => (0..v.len()).filter(|&i| v[i] != 0.0).collect(),
        Numbers::Ints(v) => (0..v.len()).filter(|&i| v[i] != 0).collect(),
    };
    let strides = strides(x.dims());
    let coordinate = |axis: usize, i: usize| (i / strides[axis] % x.dims()[axis]) as i64;
    let all = (0..x.rank()).flat_map(|axis| found.iter().map(move |&i| (axis, i))).map(|(axis, i)| coordinate(axis, i));
    longs(&[x.rank(), found.len()], all.collect())
}

/// The distinct elements in the order of their first places, those places, the place of each
/// element among the distinct ones, and how often each appears.
pub(super) fn unique(call: &Call<'_>) -> Result<Vec<Array>> {
    let x = call.x(0)?;
    if call.flag("sorted", true)? {
        return call.unknown_word("sorted", "1");
    }
    let keys: Vec<Vec<u8>> = match x.dtype() {
        DType::Str => strings(x)?.into_iter().map(<[u8]>::to_vec).collect(),
        _ => match Numbers::of(x)? {
            // 0 and -0 are equal.
            Numbers::Floats(v) => v.into_iter().map(|v| (v + 0.0).to_bits().to_le_bytes().to_vec()).collect(),
            Numbers::Ints(v) => v.into_iter().map(|v| v.to_le_bytes().to_vec()).collect(),
        },
    };
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let (mut firsts, mut counts, mut inverse) = (Vec::new(), Vec::new(), Vec::new());
    for (i, key) in keys.into_iter().enumerate() {
        let number = *known.entry(key).or_insert(firsts.len());
        if number == firsts.len() {
            firsts.push(i as i64);
            counts.push(0);
        }
        counts[number] += 1;
        inverse.push(number as i64);
    }
    let values = pick(&[x], &[firsts.len()], firsts.iter().map(|&i| (0, i as usize)))?;
    let list = |numbers: Vec<i64>| longs(&[numbers.len()], numbers);
    let mut all = vec![values, list(firsts)?, list(inverse)?, list(counts)?];
    all.truncate(call.n_outputs());
    Ok(all)
}

/// The largest or smallest elements of each line in order, and their places. The first of equal
/// elements comes first. ONNX does not say where NaN belongs, and the result of onnxruntime depends
/// on the order of the elements. Here NaN is larger than all numbers, as in ONNX's reference
/// implementation and in numpy.
pub(super) fn top_k(call: &Call<'_>) -> Result<Vec<Array>> {
    let (x, k) = (call.x(0)?, call.int_of(1)?);
    let along = axis(call.int("axis", -1)?, x.rank())?;
    let largest = call.flag("largest", true)?;
    if !call.flag("sorted", true)? {
        return call.unknown_word("sorted", "0");
    }
    let numbers = Numbers::of(x)?;
    let n = x.dims()[along];
    let k = usize::try_from(k).ok().filter(|&k| k <= n).ok_or_else(|| Error::index(format!("the first {k} of {n}")))?;
    let rising = |a: usize, b: usize| match &numbers {
        Numbers::Floats(v) => v[a].partial_cmp(&v[b]).unwrap_or_else(|| v[a].is_nan().cmp(&v[b].is_nan())),
        Numbers::Ints(v) => v[a].cmp(&v[b]),
    };
    let lines = Lines::new(x.dims(), along);
    let mut dims = x.dims().to_vec();
    dims[along] = k;
    let (mut places, mut numbers_of) = (vec![(0, 0); dims.iter().product()], vec![0; dims.iter().product()]);
    for (line, all) in lines.each().enumerate() {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| if largest { rising(all[b], all[a]) } else { rising(all[a], all[b]) });
        let (outer, inner) = (line / lines.inner, line % lines.inner);
        for (j, &i) in order[..k].iter().enumerate() {
            let to = (outer * k + j) * lines.inner + inner;
            places[to] = (0, all[i]);
            numbers_of[to] = i as i64;
        }
    }
    Ok(vec![pick(&[x], &dims, places)?, longs(&dims, numbers_of)?])
}

/// The numbers from a start up to a limit.
pub(super) fn range(call: &Call<'_>) -> Result<Array> {
    let (start, limit, step) = (call.int_of(0)?, call.int_of(1)?, call.int_of(2)?);
    if step < 1 {
        return call.unknown_word("delta", &step.to_string());
    }
    let numbers: Vec<i64> = (start..limit).step_by(step as usize).collect();
    let n = numbers.len();
    Numbers::Ints(numbers).array(call.x(0)?.dtype(), &[n])
}
