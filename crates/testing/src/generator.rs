//! The pool of values built so far, and the loop that adds to it.

use estimand_graph::{Graph, SymbolDef, Tensor};
use estimand_tensor::{Array, DType, Dim, Dims, Error, Result};

use super::RandomProgram;
use super::dice::Dice;
use super::facts::Facts;
use super::{layout, leaves, linear, lookup, losses, pointwise, reducing, sequence};

/// A tensor with its sizes in this run and the facts about its elements.
#[derive(Clone, Debug)]
pub(super) struct PoolValue {
    pub(super) tensor: Tensor,
    pub(super) dims: Dims,
    pub(super) facts: Facts,
}

impl PoolValue {
    pub(super) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    pub(super) fn is_float(&self) -> bool {
        self.tensor.dtype() == DType::F32
    }
}

/// Adds a value; returns `false` if the pool has no suitable input.
type Family = fn(&mut Generator) -> Result<bool>;

/// The families with their weights.
const FAMILIES: [(usize, Family); 17] = [
    (2, leaves::any),
    (4, pointwise::unary),
    (6, pointwise::binary),
    (2, pointwise::compare),
    (2, pointwise::select),
    (2, pointwise::convert),
    (6, layout::any),
    (4, reducing::reduce),
    (3, reducing::scan_or_rank),
    (3, linear::product),
    (3, linear::image),
    (2, losses::soft),
    (1, losses::normalization),
    (2, lookup::gather),
    (2, lookup::segment),
    (1, lookup::one_hot_or_range),
    (2, sequence::recurrent),
];

/// The largest number of elements of a tensor, so that thousands of programs run in minutes.
pub(super) const MOST_ELEMENTS: usize = 3000;

pub(super) struct Generator {
    pub(super) dice: Dice,
    pub(super) graph: Graph,
    pub(super) feeds: Vec<(Tensor, Array)>,
    pub(super) wrt: Vec<Tensor>,
    pub(super) pool: Vec<PoolValue>,
    /// The sizes of this program's axes. There are few, so that shapes often match.
    pub(super) palette: Vec<usize>,
    /// The batch size.
    pub(super) batch: usize,
    /// The number of variables and constants created.
    pub(super) n_leaves: usize,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        let mut dice = Dice::new(seed);
        let mut size = || match dice.chance(4) {
            true => 0,
            false => dice.pick(&[1, 2, 2, 3, 3, 5, 7, 8, 17]),
        };
        let palette = vec![1, size(), size(), size()];
        let batch = size();
        Generator {
            dice,
            graph: Graph::new(),
            feeds: Vec::new(),
            wrt: Vec::new(),
            pool: Vec::new(),
            palette,
            batch,
            n_leaves: 0,
        }
    }

    pub(super) fn run(mut self) -> Result<RandomProgram> {
        leaves::float_feed(&mut self, None)?;
        leaves::any(&mut self)?;
        let total: usize = FAMILIES.iter().map(|f| f.0).sum();
        let n_steps = self.dice.between(8, 18);
        for _ in 0..n_steps {
            let mut throw = self.dice.below(total);
            for (weight, family) in FAMILIES {
                if throw < weight {
                    family(&mut self)?;
                    break;
                }
                throw -= weight;
            }
        }
        self.finish()
    }

    /// Fetches the last values and a few others. Each float among them enters the loss with its own
    /// weights.
    fn finish(mut self) -> Result<RandomProgram> {
        let last = self.pool.len().saturating_sub(4);
        let mut chosen: Vec<PoolValue> = self.pool[last..].to_vec();
        for _ in 0..3 {
            let item = self.dice.pick(&self.pool[..]);
            if chosen.iter().all(|c| c.tensor.value() != item.tensor.value()) {
                chosen.push(item);
            }
        }
        let mut loss: Option<Tensor> = None;
        let floats = self.pool.iter().filter(|i| i.is_float() && chosen.iter().any(|c| same(c, i)));
        let mut floats: Vec<PoolValue> = floats.cloned().collect();
        if floats.is_empty() {
            // The first leaf is a float.
            floats.push(self.pool[0].clone());
        }
        for item in floats {
            let sizes: Vec<usize> = item.tensor.shape().dims().iter().map(|d| d.known().unwrap_or(1)).collect();
            let weights = self.dice.reals(sizes.iter().product(), 0.25, 1.0);
            let weights = self.graph.constant(Array::from_vec(sizes, weights)?);
            let part = (&item.tensor * &weights).sum();
            loss = Some(match loss {
                Some(sum) => sum + part,
                None => part,
            });
        }
        self.graph.check()?;
        let loss = loss.ok_or_else(|| Error::internal("a program without a loss"))?;
        let fetches = chosen.into_iter().map(|item| item.tensor).collect();
        Ok(RandomProgram { graph: self.graph, feeds: self.feeds, fetches, loss, wrt: self.wrt })
    }

    /// Adds a tensor to the pool, scaled to a moderate size.
    pub(super) fn push(&mut self, tensor: Tensor, facts: Facts) -> Result<bool> {
        let (tensor, facts) = self.settled(tensor, facts);
        let item = self.item(tensor, facts)?;
        self.pool.push(item);
        Ok(true)
    }

    /// A tensor with its sizes in this run.
    pub(super) fn item(&self, tensor: Tensor, facts: Facts) -> Result<PoolValue> {
        self.graph.check()?;
        let mut sizes = Vec::new();
        let given = |def| match def {
            SymbolDef::Axis(value, axis) => {
                let of = |(t, array): &(Tensor, Array)| (t.value() == value).then(|| array.dims()[axis]);
                Ok(self.feeds.iter().find_map(of))
            }
            _ => Ok(Some(self.batch)),
        };
        self.graph.body().symbols().evaluate(given, &mut sizes)?;
        let size = |d: &Dim| match *d {
            Dim::Known(n) => Ok(n),
            Dim::Sym(s) => sizes[s.0 as usize].ok_or_else(|| Error::internal(format!("nothing feeds the size {d}"))),
        };
        let dims = tensor.shape().dims().iter().map(size).collect::<Result<Dims>>()?;
        Ok(PoolValue { tensor, dims, facts })
    }

    /// Scales large numbers down: sums of many of them would lose digits.
    fn settled(&mut self, tensor: Tensor, facts: Facts) -> (Tensor, Facts) {
        let size = facts.size();
        match tensor.dtype() {
            DType::F32 if size > 8.0 && !(facts.is_exact() && size <= 64.0) => match self.dice.below(3) {
                0 => (tensor.softsign(), Facts::real(-1.0, 1.0)),
                1 => ((tensor * (2.0 / size)).tanh(), Facts::real(-1.0, 1.0)),
                _ => (tensor * (3.0 / size), facts.rising(|v| v * 3.0 / size)),
            },
            DType::I32 | DType::I64 if size > 1000.0 => (tensor.floor_mod(17), Facts::whole(0.0, 16.0)),
            _ => (tensor, facts),
        }
    }

    /// A random value of the pool that fits.
    pub(super) fn find(&mut self, fits: impl Fn(&PoolValue) -> bool) -> Option<PoolValue> {
        let fitting: Vec<usize> = (0..self.pool.len()).filter(|&i| fits(&self.pool[i])).collect();
        // Later values are preferred, so that programs become deep.
        let throw = self.dice.below(fitting.len()).max(self.dice.below(fitting.len()));
        fitting.get(throw).map(|&i| self.pool[i].clone())
    }

    /// Whether a tensor of this many elements may be built.
    pub(super) fn affords(&self, elements: usize) -> bool {
        elements <= MOST_ELEMENTS
    }
}

fn same(a: &PoolValue, b: &PoolValue) -> bool {
    a.tensor.value() == b.tensor.value()
}
