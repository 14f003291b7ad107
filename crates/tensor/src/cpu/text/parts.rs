//! Runs a string kernel on several threads. The strings are cut into parts by their number alone,
//! never by the number of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::cpu::split::for_each_part;
use crate::parallel::Pool;
use crate::{Result, Strings};

/// The number of strings of one part: some tens of microseconds of the cheapest kernel.
const PART: usize = 4096;

/// Calls `kernel(range, part of out)` for consecutive ranges of `0..out.len()`.
///
/// ```
/// # use estimand_tensor::{Strings, parallel::Pool, cpu::text::{fingerprints, parts}};
/// # let words: Strings = ["a", "b"].into_iter().collect();
/// let mut hashes = vec![0; words.len()];
/// parts::fill(Pool::global(), &mut hashes, &|range, out| fingerprints(words.as_slice().range(range), out));
/// ```
pub fn fill<T, K>(pool: &Pool, out: &mut [T], kernel: &K)
where
    T: Send,
    K: Fn(Range<usize>, &mut [T]) + Sync,
{
    for_each_part(pool, out, PART, &|start, out| kernel(start..start + out.len(), out));
}

/// Like [`fill`], with a kernel that may fail. Returns the error of the first part that has one.
pub fn try_fill<T, K>(pool: &Pool, out: &mut [T], kernel: &K) -> Result<()>
where
    T: Send,
    K: Fn(Range<usize>, &mut [T]) -> Result<()> + Sync,
{
    let first_error = Mutex::new(None);
    for_each_part(pool, out, PART, &|start, out| {
        if let Err(error) = kernel(start..start + out.len(), out) {
            let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|&(other, _)| start < other) {
                *first = Some((start, error));
            }
        }
    });
    first_error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
}

/// Calls `kernel(range, list)` for consecutive ranges of `0..n`. Each call appends its strings to
/// its own list; the lists are joined in order.
pub fn collect<K>(pool: &Pool, n: usize, kernel: &K) -> Result<Strings>
where
    K: Fn(Range<usize>, &mut Strings) -> Result<()> + Sync,
{
    if n <= PART {
        let mut all = Strings::default();
        kernel(0..n, &mut all)?;
        return Ok(all);
    }
    let mut lists = vec![Ok(Strings::default()); n.div_ceil(PART)];
    for_each_part(pool, &mut lists, 1, &|part, lists| {
        let range = part * PART..n.min((part + 1) * PART);
        for list in lists {
            let mut strings = Strings::default();
            *list = kernel(range.clone(), &mut strings).map(|()| strings);
        }
    });
    let lists = lists.into_iter().collect::<Result<Vec<_>>>()?;
    let mut all = Strings::with_capacity(lists.iter().map(Strings::len).sum());
    all.reserve_bytes(lists.iter().map(Strings::byte_len).sum());
    lists.iter().for_each(|list| all.append(list));
    Ok(all)
}

/// Like [`collect`], with a kernel that produces rows: strings, and row splits over them from 0.
pub fn collect_ragged<K>(pool: &Pool, n: usize, kernel: &K) -> (Strings, Vec<i64>)
where
    K: Fn(Range<usize>) -> (Strings, Vec<i64>) + Sync,
{
    if n <= PART {
        return kernel(0..n);
    }
    let mut rows = vec![Default::default(); n.div_ceil(PART)];
    for_each_part(pool, &mut rows, 1, &|part, rows| {
        rows.fill_with(|| kernel(part * PART..n.min((part + 1) * PART)));
    });
    let mut all = Strings::with_capacity(rows.iter().map(|(strings, _)| strings.len()).sum());
    all.reserve_bytes(rows.iter().map(|(strings, _)| strings.byte_len()).sum());
    let mut splits = Vec::with_capacity(n + 1);
    splits.push(0);
    for (strings, row_splits) in &rows {
        let before = all.len() as i64;
        splits.extend(row_splits.iter().skip(1).map(|split| split + before));
        all.append(strings);
    }
    (all, splits)
}
