//! Initial values of variables: a pure function of the seed and the variable's name.

use estimand_tensor::random::{Key, Stream};
use estimand_tensor::{Array, DType, Element, Error, Result};

/// The initial value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Initializer {
    /// 0 everywhere.
    Zeros,
    /// 1 everywhere.
    Ones,
    /// The same number everywhere.
    Constant(f64),
    /// The values of this array.
    Value(Array),
    /// Numbers one after another, each repeated: `[(0.0, 2), (1.0, 3)]` is two zeros and three
    /// ones. The variable has one axis.
    Runs(Vec<(f64, usize)>),
    /// Uniform in [low, high).
    RandomUniform {
        /// The smallest value.
        low: f64,
        /// The upper bound, excluded.
        high: f64,
    },
    /// Normal.
    RandomNormal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        stddev: f64,
    },
    /// Normal, redrawn until within two standard deviations.
    TruncatedNormal {
        /// Mean.
        mean: f64,
        /// Standard deviation before the tails are cut off.
        stddev: f64,
    },
    /// Uniform within `sqrt(6 / (fan_in + fan_out))`: TensorFlow's default.
    GlorotUniform,
    /// Truncated normal of variance `2 / (fan_in + fan_out)`.
    GlorotNormal,
    /// Uniform within `sqrt(6 / fan_in)`.
    HeUniform,
    /// Truncated normal of variance `2 / fan_in`.
    HeNormal,
    /// Uniform within `sqrt(3 / fan_in)`.
    LecunUniform,
    /// Truncated normal of variance `1 / fan_in`.
    LecunNormal,
    /// The rule of Glorot, He and Lecun with other settings: a variance of `scale / fan`.
    VarianceScaling {
        /// Factor of the variance, above 0.
        scale: f64,
        /// Which fan divides it.
        fan: Fan,
        /// How numbers spread.
        spread: Spread,
    },
    /// Orthonormal rows or columns, times a gain.
    Orthogonal {
        /// Factor.
        gain: f64,
    },
    /// The identity matrix, times a gain.
    Identity {
        /// Factor.
        gain: f64,
    },
}

/// The connections of a unit that [`Initializer::VarianceScaling`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// Those that come in.
    In,
    /// Those that go out.
    Out,
    /// The mean of both.
    Average,
}

/// How the numbers of [`Initializer::VarianceScaling`] spread around 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Normal, redrawn until within two standard deviations.
    TruncatedNormal,
    /// Normal.
    Normal,
    /// Uniform.
    Uniform,
}

/// The standard deviation of a standard normal that is cut off at two deviations. Dividing by it
/// restores the variance.
const TRUNCATED_STDDEV: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// Returns every kind, for tests and lists.
    pub fn all() -> Vec<Initializer> {
        vec![
            Initializer::Zeros,
            Initializer::Ones,
            Initializer::Constant(0.5),
            Initializer::RandomUniform { low: -0.05, high: 0.05 },
            Initializer::RandomNormal { mean: 0.0, stddev: 0.05 },
            Initializer::TruncatedNormal { mean: 0.0, stddev: 0.05 },
            Initializer::GlorotUniform,
            Initializer::GlorotNormal,
            Initializer::HeUniform,
            Initializer::HeNormal,
            Initializer::LecunUniform,
            Initializer::LecunNormal,
            Initializer::VarianceScaling { scale: 2.0, fan: Fan::Out, spread: Spread::TruncatedNormal },
            Initializer::Orthogonal { gain: 1.0 },
            Initializer::Identity { gain: 1.0 },
        ]
    }

    /// Whether every value that it produces is finite.
    pub fn is_finite(&self) -> bool {
        match self {
            Initializer::Constant(value) => value.is_finite(),
            Initializer::Runs(runs) => runs.iter().all(|(value, _)| value.is_finite()),
            Initializer::Value(array) => match (array.as_slice::<f32>(), array.as_slice::<f64>()) {
                (Ok(values), _) => values.iter().all(|x| x.is_finite()),
                (_, Ok(values)) => values.iter().all(|x| x.is_finite()),
                _ => true,
            },
            Initializer::RandomUniform { low, high } => low.is_finite() && high.is_finite(),
            Initializer::RandomNormal { mean, stddev } | Initializer::TruncatedNormal { mean, stddev } => {
                mean.is_finite() && stddev.is_finite()
            }
            Initializer::VarianceScaling { scale: factor, .. }
            | Initializer::Orthogonal { gain: factor }
            | Initializer::Identity { gain: factor } => factor.is_finite(),
            Initializer::Zeros
            | Initializer::Ones
            | Initializer::GlorotUniform
            | Initializer::GlorotNormal
            | Initializer::HeUniform
            | Initializer::HeNormal
            | Initializer::LecunUniform
            | Initializer::LecunNormal => true,
        }
    }

    /// Checks whether it can fill a variable of this dtype and these sizes.
    pub fn check(&self, dtype: DType, dims: &[usize]) -> Result<()> {
        let floats = |ok: bool| match ok {
            true => Ok(()),
            false => {
                Err(Error::dtype(Some(DType::F32), dtype, format!("{self:?} needs a float variable, not {dtype}")))
            }
        };
        match self {
            Initializer::Zeros => Ok(()),
            Initializer::Ones | Initializer::Constant(_) if dtype == DType::Str => floats(false),
            Initializer::Ones => Ok(()),
            Initializer::Constant(v) => crate::tensor::scalar(dtype, *v).map(drop),
            Initializer::Value(array) if array.dtype() != dtype || array.dims() != dims => Err(Error::shape(format!(
                "the initial value is {}{:?}, but the variable is {dtype}{dims:?}",
                array.dtype(),
                array.dims()
            ))),
            Initializer::Value(_) => Ok(()),
            Initializer::Runs(runs) => {
                let n = runs.iter().try_fold(0usize, |sum, (_, n)| sum.checked_add(*n));
                match (n, dims) {
                    (Some(n), [size]) if n == *size => floats(dtype.is_float()),
                    _ => Err(Error::shape(format!(
                        "the initial values {runs:?} are for one axis; the variable is {dims:?}"
                    ))),
                }
            }
            Initializer::RandomUniform { low, high } if low > high || low.is_nan() || high.is_nan() => {
                Err(Error::config(format!("the range of the random uniform initializer is empty: {low} to {high}")))
            }
            Initializer::RandomNormal { stddev, .. } | Initializer::TruncatedNormal { stddev, .. }
                if *stddev < 0.0 || stddev.is_nan() =>
            {
                Err(Error::config(format!("the standard deviation is {stddev}; expected 0 or more")))
            }
            Initializer::VarianceScaling { scale, .. } if *scale <= 0.0 || scale.is_nan() => {
                Err(Error::config(format!("the scale of the variance is {scale}; expected a number above 0")))
            }
            Initializer::Orthogonal { .. } if dims.len() < 2 => Err(Error::shape(format!(
                "the orthogonal initializer needs two axes or more, but the variable is {dims:?}"
            ))),
            Initializer::Identity { .. } if dims.len() != 2 => {
                Err(Error::shape(format!("the identity initializer needs a matrix, but the variable is {dims:?}")))
            }
            _ => floats(dtype.is_float()),
        }
    }

    /// Computes the value of a variable from its name and a seed.
    pub fn sample(&self, dtype: DType, dims: &[usize], seed: u64, name: &str) -> Result<Array> {
        self.check(dtype, dims)?;
        let stream = Stream::new(Key::new(seed, name), 0);
        let n = estimand_tensor::element_count(dims)?;
        let (fan_in, fan_out) = fans(dims);
        let values = match self {
            Initializer::Zeros => return Array::zeros(dtype, dims),
            Initializer::Value(array) => return Ok(array.clone()),
            Initializer::Ones => return filled(dtype, dims, 1.0),
            Initializer::Constant(v) => return filled(dtype, dims, *v),
            Initializer::Runs(runs) => {
                let mut values = zeros(n)?;
                let mut rest = &mut values[..];
                for (value, n) in runs {
                    let (run, others) = std::mem::take(&mut rest).split_at_mut(*n);
                    run.fill(*value as f32);
                    rest = others;
                }
                values
            }
            Initializer::RandomUniform { low, high } => uniform(&stream, n, *low, *high)?,
            Initializer::RandomNormal { mean, stddev } => normal(&stream, n, *mean, *stddev)?,
            Initializer::TruncatedNormal { mean, stddev } => truncated(&stream, n, *mean, *stddev)?,
            Initializer::GlorotUniform => symmetric(&stream, n, 6.0 / (fan_in + fan_out))?,
            Initializer::HeUniform => symmetric(&stream, n, 6.0 / fan_in)?,
            Initializer::LecunUniform => symmetric(&stream, n, 3.0 / fan_in)?,
            Initializer::GlorotNormal => {
                truncated(&stream, n, 0.0, (2.0 / (fan_in + fan_out)).sqrt() / TRUNCATED_STDDEV)?
            }
            Initializer::HeNormal => truncated(&stream, n, 0.0, (2.0 / fan_in).sqrt() / TRUNCATED_STDDEV)?,
            Initializer::LecunNormal => truncated(&stream, n, 0.0, (1.0 / fan_in).sqrt() / TRUNCATED_STDDEV)?,
            Initializer::VarianceScaling { scale, fan, spread } => {
                let fan = match fan {
                    Fan::In => fan_in,
                    Fan::Out => fan_out,
                    Fan::Average => (fan_in + fan_out) / 2.0,
                };
                let variance = scale / fan;
                match spread {
                    Spread::TruncatedNormal => truncated(&stream, n, 0.0, variance.sqrt() / TRUNCATED_STDDEV)?,
                    Spread::Normal => normal(&stream, n, 0.0, variance.sqrt())?,
                    Spread::Uniform => symmetric(&stream, n, 3.0 * variance)?,
                }
            }
            Initializer::Orthogonal { gain } => orthogonal(&stream, dims, *gain)?,
            Initializer::Identity { gain } => {
                let (rows, columns) = (dims[0], dims[1]);
                let mut eye = zeros(n)?;
                for i in 0..rows.min(columns) {
                    eye[i * columns + i] = *gain as f32;
                }
                eye
            }
        };
        match dtype {
            DType::F64 => Array::from_vec(dims, values.into_iter().map(f64::from).collect()),
            _ => Array::from_vec(dims, values),
        }
    }
}

/// Fan-in and fan-out by TensorFlow's rule: for a filter, its taps count too.
fn fans(dims: &[usize]) -> (f64, f64) {
    let (fan_in, fan_out) = match dims {
        [] => (1, 1),
        [n] => (*n, *n),
        [taps @ .., i, o] => {
            let taps = taps.iter().fold(1usize, |all, &size| all.saturating_mul(size));
            (taps.saturating_mul(*i), taps.saturating_mul(*o))
        }
    };
    // TF: a fan of 0 counts as 1.
    (fan_in.max(1) as f64, fan_out.max(1) as f64)
}

/// Numbers that sizes of a file or a mistake may have made too many for the memory.
fn repeated<T: Copy>(value: T, n: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    if values.try_reserve_exact(n).is_err() {
        let n_bytes = n.saturating_mul(size_of::<T>());
        return Err(Error::shape(format!("there is not enough memory for {n} initial values of {n_bytes} bytes")));
    }
    values.resize(n, value);
    Ok(values)
}

fn zeros(n: usize) -> Result<Vec<f32>> {
    repeated(0.0, n)
}

fn filled(dtype: DType, dims: &[usize], value: f64) -> Result<Array> {
    fn repeat<T: Element>(one: &Array, dims: &[usize]) -> Result<Array> {
        Array::from_vec(dims, repeated(one.item::<T>()?, estimand_tensor::element_count(dims)?)?)
    }
    let one = crate::tensor::scalar(dtype, value)?;
    match dtype {
        DType::F32 => repeat::<f32>(&one, dims),
        DType::F64 => repeat::<f64>(&one, dims),
        DType::I32 => repeat::<i32>(&one, dims),
        DType::I64 => repeat::<i64>(&one, dims),
        DType::U8 => repeat::<u8>(&one, dims),
        DType::Bool => repeat::<bool>(&one, dims),
        DType::Str => Err(Error::internal("strings are refused by check")),
    }
}

fn uniform(stream: &Stream, n: usize, low: f64, high: f64) -> Result<Vec<f32>> {
    let mut values = zeros(n)?;
    stream.fill_uniform_f32(0, n, &mut values);
    values.iter_mut().for_each(|v| *v = (low + f64::from(*v) * (high - low)) as f32);
    Ok(values)
}

fn symmetric(stream: &Stream, n: usize, limit_squared: f64) -> Result<Vec<f32>> {
    let limit = limit_squared.sqrt();
    uniform(stream, n, -limit, limit)
}

fn normal(stream: &Stream, n: usize, mean: f64, stddev: f64) -> Result<Vec<f32>> {
    let mut values = zeros(n)?;
    stream.fill_normal_f32(0, n, &mut values);
    values.iter_mut().for_each(|v| *v = (mean + f64::from(*v) * stddev) as f32);
    Ok(values)
}

fn truncated(stream: &Stream, n: usize, mean: f64, stddev: f64) -> Result<Vec<f32>> {
    let mut values = zeros(n)?;
    stream.fill_truncated_normal_f32(0, n, &mut values);
    values.iter_mut().for_each(|v| *v = (mean + f64::from(*v) * stddev) as f32);
    Ok(values)
}

/// Gram-Schmidt (twice, for accuracy) on the rows or columns of a normal matrix, whichever are
/// fewer.
fn orthogonal(stream: &Stream, dims: &[usize], gain: f64) -> Result<Vec<f32>> {
    let columns = dims[dims.len() - 1];
    let rows: usize = dims[..dims.len() - 1].iter().product();
    let (count, length) = (rows.min(columns), rows.max(columns));
    let sample = normal(stream, count * length, 0.0, 1.0)?;
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for chunk in sample.chunks_exact(length.max(1)) {
        let mut v: Vec<f64> = chunk.iter().map(|&x| x.into()).collect();
        for _ in 0..2 {
            for earlier in &vectors {
                let overlap: f64 = v.iter().zip(earlier).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(earlier).for_each(|(a, b)| *a -= overlap * b);
            }
        }
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.iter_mut().for_each(|a| *a /= norm);
        vectors.push(v);
    }
    let at = |r: usize, c: usize| if rows <= columns { vectors[r][c] } else { vectors[c][r] };
    Ok((0..rows * columns).map(|i| (at(i / columns, i % columns) * gain) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(a: &Array) -> (f64, f64) {
        let v = a.to_f64_vec().unwrap();
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        (mean, v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64)
    }

    #[test]
    fn variances_are_those_of_the_definitions() {
        // fan_in 300, fan_out 200: glorot 2/500, he 2/300, lecun 1/300.
        let scaled = |scale, fan, spread| Initializer::VarianceScaling { scale, fan, spread };
        for (initializer, variance) in [
            (Initializer::GlorotUniform, 2.0 / 500.0),
            (Initializer::GlorotNormal, 2.0 / 500.0),
            (Initializer::HeUniform, 2.0 / 300.0),
            (Initializer::HeNormal, 2.0 / 300.0),
            (Initializer::LecunUniform, 1.0 / 300.0),
            (Initializer::LecunNormal, 1.0 / 300.0),
            (scaled(2.0, Fan::Out, Spread::TruncatedNormal), 2.0 / 200.0),
            (scaled(0.5, Fan::In, Spread::Normal), 0.5 / 300.0),
            (scaled(3.0, Fan::Average, Spread::Uniform), 3.0 / 250.0),
            (Initializer::RandomUniform { low: -1.0, high: 1.0 }, 1.0 / 3.0),
            (Initializer::RandomNormal { mean: 0.0, stddev: 2.0 }, 4.0),
            (Initializer::TruncatedNormal { mean: 0.0, stddev: 1.0 }, TRUNCATED_STDDEV * TRUNCATED_STDDEV),
        ] {
            let (mean, v) = moments(&initializer.sample(DType::F32, &[300, 200], 7, "kernel").unwrap());
            assert!((v / variance - 1.0).abs() < 0.02, "{initializer:?}: variance {v}, expected {variance}");
            assert!(mean.abs() < 0.02 * variance.sqrt(), "{initializer:?}: mean {mean}");
        }
    }

    #[test]
    fn orthogonal_has_orthonormal_rows_or_columns() {
        for dims in [[4usize, 9], [9, 4], [5, 5]] {
            let q =
                Initializer::Orthogonal { gain: 2.0 }.sample(DType::F32, &dims, 1, "q").unwrap().to_f64_vec().unwrap();
            let (rows, columns) = (dims[0], dims[1]);
            let (few, many) = (rows.min(columns), rows.max(columns));
            let at = |i: usize, k: usize| if rows <= columns { q[i * columns + k] } else { q[k * columns + i] };
            for i in 0..few {
                for j in 0..few {
                    let dot: f64 = (0..many).map(|k| at(i, k) * at(j, k)).sum();
                    assert!((dot - if i == j { 4.0 } else { 0.0 }).abs() < 1e-5, "{dims:?} {i} {j}: {dot}");
                }
            }
        }
    }

    #[test]
    fn pure_function_of_seed_and_name() {
        let sample = |seed, name| Initializer::GlorotUniform.sample(DType::F32, &[3, 4], seed, name).unwrap();
        assert_eq!(sample(1, "a"), sample(1, "a"));
        assert_ne!(sample(1, "a"), sample(2, "a"));
        assert_ne!(sample(1, "a"), sample(1, "b"));
    }

    #[test]
    fn every_kind_fills_odd_shapes() {
        for initializer in Initializer::all() {
            for dims in [&[2usize, 3][..], &[0, 3], &[1, 1]] {
                let a = initializer.sample(DType::F32, dims, 0, "v").unwrap();
                assert_eq!(a.dims(), dims);
                assert!(a.to_f64_vec().unwrap().iter().all(|v| v.is_finite()), "{initializer:?}");
            }
        }
        assert!(Initializer::Identity { gain: 1.0 }.check(DType::F32, &[2]).is_err());
        let none = Initializer::VarianceScaling { scale: 0.0, fan: Fan::In, spread: Spread::Uniform };
        assert!(none.check(DType::F32, &[2, 2]).unwrap_err().to_string().contains("expected a number above 0"));
        assert!(Initializer::GlorotUniform.check(DType::I64, &[2, 2]).is_err());
        assert!(Initializer::Constant(0.5).check(DType::I32, &[2]).is_err());
    }
}
