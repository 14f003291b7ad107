//! Random numbers.

use std::sync::Arc;

use super::rules::*;

/// Random numbers: a pure function of (seed, key, step, global row).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Random {
    /// The distribution.
    pub kind: RandomKind,
    /// The shape of the result; the first axis counts rows.
    pub shape: Shape,
    /// The name that distinguishes this stream from all others.
    pub key: Arc<str>,
}

/// Distributions of `Random`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RandomKind {
    /// In [0, 1).
    Uniform,
    /// Mean 0, standard deviation 1.
    Normal,
    /// Normal, redrawn until within two standard deviations.
    TruncatedNormal,
    /// Integers (I64) in [low, high).
    Integers {
        /// The smallest value.
        low: i64,
        /// The upper bound, excluded.
        high: i64,
    },
}

impl OpRules for Random {
    fn name(&self) -> &'static str {
        match self.kind {
            RandomKind::Uniform => "RandomUniform",
            RandomKind::Normal => "RandomNormal",
            RandomKind::TruncatedNormal => "TruncatedNormal",
            RandomKind::Integers { .. } => "RandomIntegers",
        }
    }

    fn infer(&self, _x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        match self.kind {
            RandomKind::Integers { low, high } if low >= high => {
                Err(Error::config(format!("the range of the random integers is empty: [{low}, {high})")))
            }
            RandomKind::Integers { .. } => one(DType::I64, self.shape.clone()),
            RandomKind::Uniform | RandomKind::Normal | RandomKind::TruncatedNormal => {
                one(DType::F32, self.shape.clone())
            }
        }
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    /// The generation of random numbers counts no operations.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    /// TensorFlow draws from the same distribution, but other numbers.
    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let sizes = writer.shape(&def.name, "shape", self.shape.dims(), DType::I32)?;
        let def = typed(def, "T", DType::I32).input(sizes).attr("seed", 0i64).attr("seed2", seed(&self.key));
        let floats = |op: &str, def: NodeDef| typed(NodeDef { op: op.into(), ..def }, "dtype", DType::F32);
        Ok(match self.kind {
            RandomKind::Uniform => floats("RandomUniform", def),
            RandomKind::Normal => floats("RandomStandardNormal", def),
            RandomKind::TruncatedNormal => floats("TruncatedNormal", def),
            RandomKind::Integers { low, high } => {
                let low = writer.constant(&def.name, "minval", &Array::scalar(low))?;
                let high = writer.constant(&def.name, "maxval", &Array::scalar(high))?;
                let def = NodeDef { op: "RandomUniformInt".into(), ..def };
                typed(def, "Tout", DType::I64).input(low).input(high)
            }
        })
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![
            ("RandomUniform", read),
            ("RandomStandardNormal", read),
            ("TruncatedNormal", read),
            ("RandomUniformInt", read),
        ]
    }
}

/// A seed that distinguishes streams by their keys. It is positive, since TensorFlow takes 0 for
/// "none".
fn seed(key: &str) -> i64 {
    let hash =
        key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 33) as i64 | 1
}

/// Random numbers of the same distribution. Ours are drawn by row, so the numbers differ.
fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let shape = reading.shape(0)?;
    let kind = match reading.op() {
        "RandomUniform" => RandomKind::Uniform,
        "RandomStandardNormal" => RandomKind::Normal,
        "TruncatedNormal" => RandomKind::TruncatedNormal,
        _ => RandomKind::Integers { low: reading.integer(1)?, high: reading.integer(2)? },
    };
    let dtype = match kind {
        RandomKind::Integers { .. } => reading.dtype_or("Tout", Some(DType::I64))?,
        RandomKind::Uniform | RandomKind::Normal | RandomKind::TruncatedNormal => {
            reading.dtype_or("dtype", Some(DType::F32))?
        }
    };
    let drawn = reading.add(Random { kind, shape, key: reading.name().into() }, &[])?;
    Ok(drawn.iter().map(|drawn| drawn.cast(dtype)).collect())
}
