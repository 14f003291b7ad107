//! Divides rows into parts at random, such that every row is always in the same part.
//!
//! Rows are counted in blocks. Within a block, a permutation that depends only on the seed and the
//! block's number decides the part of each row, so every whole block holds the exact shares. See
//! `docs/decisions/splits.md`.

use std::sync::{Arc, OnceLock};

use estimand_tensor::random::{self, Key};
use estimand_tensor::{Batch, BatchSpec, Error, Result};

use crate::rows::gather;
use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

/// The smallest and the largest number of rows in a block. A block of very few rows would put
/// neighbours into different parts too often.
const BLOCKS: std::ops::RangeInclusive<u64> = 20..=10_000;

impl Dataset {
    /// Divides the rows at random into parts with the given shares, which add up to 1. Every row is
    /// in exactly one part, and always in the same one: in every epoch, every run, and on every
    /// machine, for any number of threads and workers.
    ///
    /// Only `seed` and the number of the row in its source decide the part. In every block of rows,
    /// the parts have exactly their shares: for `[0.7, 0.3]`, 14 and 6 of every 20 rows. Only the
    /// last block may differ by a few rows. Nothing is buffered; each part reads all rows and
    /// leaves out those of the others.
    ///
    /// Call it before [`shuffle`](Dataset::shuffle) and [`batch`](Dataset::batch). After `repeat`,
    /// `label`, `prefetch`, or `map` and `filter` of rows, it is applied to their input, so a new
    /// filter moves no row to another part. A generator must yield the same rows in every run.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let rows = Dataset::from_array(Array::from((0..100i64).collect::<Vec<_>>()));
    /// let [train, test] = rows.split([0.7, 0.3], 7);
    /// assert_eq!((train.iter().count(), test.iter().count()), (70, 30));
    /// let train = train.shuffle(100, 7).repeat(3).batch(10);
    /// # assert_eq!(train.iter().count(), 21);
    /// ```
    pub fn split<const N: usize>(&self, shares: [f64; N], seed: u64) -> [Dataset; N] {
        let rule = Arc::new(Rule::new(&shares, seed));
        std::array::from_fn(|part| self.part(&rule, part))
    }

    fn part(&self, rule: &Arc<Rule>, part: usize) -> Dataset {
        let below = self.stage().over_shuffled(&|input| input.part(rule, part));
        below.unwrap_or_else(|| {
            Dataset::new(Split { input: self.clone(), rule: rule.clone(), part, rows: OnceLock::new() })
        })
    }
}

/// Decides the part of each row.
struct Rule {
    shares: Vec<f64>,
    seed: u64,
    /// The number of rows in a block.
    block: u64,
    /// For each part, the number of rows of a block in it and in the parts before it.
    ends: Vec<u64>,
}

impl Rule {
    fn new(shares: &[f64], seed: u64) -> Rule {
        let mut sum = 0.0;
        let sums: Vec<f64> = shares
            .iter()
            .map(|share| {
                sum += share;
                sum
            })
            .collect();
        // The smallest block in which every part has a whole number of rows.
        let is_whole = |block: &u64| {
            let places = sums.iter().map(|sum| sum * *block as f64);
            places.into_iter().all(|place| (place - place.round()).abs() < 1e-6)
        };
        let block = BLOCKS.into_iter().find(is_whole).unwrap_or(*BLOCKS.end());
        let ends = sums.iter().map(|sum| (sum * block as f64).round() as u64).collect();
        Rule { shares: shares.to_vec(), seed, block, ends }
    }

    fn check(&self) -> Result<()> {
        let Rule { shares, block, ends, .. } = self;
        let refused = |what: String| {
            let message = format!("`split` was given the shares {shares:?}{what}");
            Err(Error::config(message).help("give each part a share between 0 and 1; together they are 1"))
        };
        if shares.iter().any(|share| !(*share > 0.0 && *share <= 1.0)) {
            return refused("; expected numbers above 0".to_string());
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return refused(format!(", which add up to {sum}; expected 1"));
        }
        let mut before = 0;
        for (share, &end) in shares.iter().zip(ends) {
            if end == before {
                return refused(format!("; {share} is less than one of {block} rows, the smallest part possible"));
            }
            before = end;
        }
        Ok(())
    }

    /// Fills in which rows of a block are in a part.
    fn fill(&self, part: usize, block: u64, order: &mut Vec<u64>, is_in: &mut Vec<bool>) {
        order.resize(self.block as usize, 0);
        random::Stream::new(Key::new(self.seed, "split"), block).fill_permutation(order);
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        is_in.clear();
        is_in.extend(order.iter().map(|place| (start..self.ends[part]).contains(place)));
    }
}

/// Whether one of the stages of a plan has a property.
fn any_stage(data: &Dataset, has: &dyn Fn(&dyn Stage) -> bool) -> bool {
    has(data.stage()) || data.stage().inputs().iter().any(|input| any_stage(input, has))
}

/// Whether a stage gives workers different rows. A generator could, but most do not.
fn differs_by_worker(stage: &dyn Stage) -> bool {
    let of = |worker| stage.identity(&InputContext { worker, n_workers: 2, ..InputContext::default() });
    stage.landmark() != "generator" && of(0) != of(1)
}

/// One part of a split. The position holds the number of rows read, and the input's position.
struct Split {
    input: Dataset,
    rule: Arc<Rule>,
    part: usize,
    /// The numbers of its rows, if the input's rows can be read by number.
    rows: OnceLock<Result<Vec<u64>>>,
}

impl Split {
    fn rows(&self) -> Result<&[u64]> {
        let find = || -> Result<Vec<u64>> {
            let n_rows = self.input.stage().indexed().map_or(Ok(0), Indexed::n_rows)?;
            let mut members = Members::new(self.rule.clone(), self.part);
            Ok((0..n_rows).filter(|&row| members.contains(row)).collect())
        };
        self.rows.get_or_init(find).as_deref().map_err(Clone::clone)
    }
}

impl Stage for Split {
    fn describe(&self) -> String {
        let Rule { shares, seed, block, .. } = &*self.rule;
        format!("split(part {} of {shares:?}, seed {seed}): exact in every {block} rows", self.part + 1)
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        if self.unit() == Unit::Batch {
            return Err(Error::config("`split` was called after `batch`: it divides rows")
                .help("call it before `batch`, and batch each part"));
        }
        if any_stage(&self.input, &|stage| stage.reshuffles()) {
            let message = "`split` was called after something that shuffles: the parts would be others in every epoch";
            return Err(Error::config(message).help("call `split` first, and shuffle each part"));
        }
        if any_stage(&self.input, &differs_by_worker) {
            let message = "`split` was called after something that gives each worker its own rows: the number of workers \
                           would decide the parts";
            return Err(Error::config(message).help("call `split` first, and shard each part"));
        }
        self.rule.check()
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.input.spec()
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        self.input.stage().indexed().is_some().then_some(self)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([next], [below]) = from.parts()?;
        let input = self.input.stage().open(cx, below)?;
        Ok(Box::new(PartStream { input, members: Members::new(self.rule.clone(), self.part), next }))
    }
}

impl Indexed for Split {
    fn n_rows(&self) -> Result<u64> {
        Ok(self.rows()?.len() as u64)
    }

    fn gather(&self, rows: &[u64]) -> Result<Batch> {
        self.gather_into(rows, Batch::new())
    }

    fn gather_into(&self, rows: &[u64], spare: Batch) -> Result<Batch> {
        let input = self.input.stage().indexed().ok_or_else(|| Error::internal("rows that have no numbers"))?;
        let own = self.rows()?;
        let number = |&row: &u64| {
            let known = usize::try_from(row).ok().and_then(|row| own.get(row));
            known.copied().ok_or_else(|| Error::index(format!("there is no row {row}; the part has {}", own.len())))
        };
        input.gather_into(&rows.iter().map(number).collect::<Result<Vec<_>>>()?, spare)
    }
}

/// The rows of one part, block by block.
struct Members {
    rule: Arc<Rule>,
    part: usize,
    /// The number of the current block.
    block: Option<u64>,
    order: Vec<u64>,
    is_in: Vec<bool>,
}

impl Members {
    fn new(rule: Arc<Rule>, part: usize) -> Members {
        Members { rule, part, block: None, order: Vec::new(), is_in: Vec::new() }
    }

    fn contains(&mut self, row: u64) -> bool {
        let (block, place) = (row / self.rule.block, row % self.rule.block);
        if self.block != Some(block) {
            self.rule.fill(self.part, block, &mut self.order, &mut self.is_in);
            self.block = Some(block);
        }
        self.is_in[place as usize]
    }
}

struct PartStream {
    input: Box<dyn Stream>,
    members: Members,
    /// The number of the next row.
    next: u64,
}

impl Stream for PartStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        while let Some(StreamItem { batch, after }) = self.input.pull(want)? {
            let (first, n) = (self.next, batch.n_rows() as u64);
            self.next = first.saturating_add(n);
            let own: Vec<u64> = (0..n).filter(|i| self.members.contains(first.saturating_add(*i))).collect();
            if !own.is_empty() {
                let after = Position::new([self.next], [after]);
                return Ok(Some(StreamItem { batch: gather(&batch, &own)?, after }));
            }
        }
        Ok(None)
    }
}
