//! Finds the smallest and the largest index of LIBSVM files, in one pass over all of them.

use std::sync::Arc;

use estimand_tensor::{Batch, Error, Feature, Result};

use super::IDS;
use super::format::LibSvmFormat;
use super::line::Layout;
use crate::files::Files;
use crate::files::chunk::{Broken, Chunks, Format, NextChunk, Reason};
use crate::ordered::Ordered;
use crate::stage::InputContext;

/// The indices that occur in files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The smallest and the largest; `None` if there are none.
    range: Option<(u64, u64)>,
}

impl Found {
    /// Reads all files. Bad rows do not count: they are reported when rows are read.
    pub(super) fn in_files(files: &Files, layout: Layout) -> Result<Found> {
        let paths = files.resolve()?;
        let n_threads = InputContext::default().threads();
        // With base 0, the id of a feature is its index.
        let format = Arc::new(LibSvmFormat { layout: Layout { base: 0, n_features: None, ..layout } });
        let parser = format.clone();
        let mut chunks = Chunks::new(files.clone(), paths.clone(), format.clone(), 0, 0)?;
        let mut found = Ordered::new(
            n_threads,
            2 * n_threads,
            move || chunks.next(),
            move |chunk: NextChunk| chunk.map(|chunk| Found::in_rows(&parser.parse(&chunk).batch)),
        );
        let mut all = Found::default();
        while let Some(one) = found.take()? {
            all = all.and(one.map_err(|Broken { file, offset, reason }| match (reason, paths.get(file)) {
                (Reason::Unreadable(error), _) => error,
                (Reason::Damage(damage), path) => {
                    let error = damage.help.into_iter().fold(Error::data(damage.message), Error::help);
                    path.map_or(error.clone(), |path| error.context(format.place(files, path, offset)).in_file(path))
                }
            })?);
        }
        Ok(all)
    }

    fn in_rows(rows: &Batch) -> Found {
        let Some(Feature::Ragged(ids)) = rows.features().get(IDS) else { return Found::default() };
        let ids = ids.values().as_slice::<i64>().unwrap_or_default();
        let range = ids.iter().min().zip(ids.iter().max()).map(|(&first, &last)| (first as u64, last as u64));
        Found { range }
    }

    fn and(self, other: Found) -> Found {
        let range = match (self.range, other.range) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, None) | (None, one) => one,
        };
        Found { range }
    }

    /// The index of the first feature.
    pub(super) fn base(self) -> u64 {
        match self.range {
            Some((0, _)) => 0,
            _ => 1,
        }
    }

    /// The number of features, if the first has the index `base`.
    pub(super) fn n_features(self, base: u64) -> usize {
        let n = self.range.map_or(0, |(_, last)| last.saturating_add(1).saturating_sub(base));
        usize::try_from(n).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use estimand_tensor::DType;

    use super::*;
    use crate::files::chunk::Chunk;

    #[test]
    fn the_range_of_indices_decides() {
        let layout =
            Layout { base: 0, n_features: None, label_dtype: DType::F32, has_many_labels: false, has_query: false };
        let format = LibSvmFormat { layout };
        let found = |text: &str| {
            let (path, bytes) = ("x".into(), text.as_bytes().to_vec());
            Found::in_rows(&format.parse(&Chunk { file: 0, path, offset: 0, bytes }).batch)
        };
        let one = found("1 qid:0 2:1 7:1 # 0:1\n\n-1 3:1\n");
        assert_eq!((one.base(), one.n_features(1)), (1, 7));
        let zero = one.and(found("1 0:1\n"));
        assert_eq!((zero.base(), zero.n_features(0)), (0, 8));
        // The second row is bad.
        let none = found("1\n2 0:1 x:y\n");
        assert_eq!((none.base(), none.n_features(1)), (1, 0));
        assert_eq!(found("1 9223372036854775807:1").n_features(0), 1 << 63);
    }
}
