//! Recurrent cells, directly by their definitions, one number at a time.

use estimand_graph::op::{Cell, CellFunction, Recurrent};
use estimand_graph::slots::{KERNEL, Slots};
use estimand_tensor::Result;

use super::value::{Wide, check_dims};

fn value(function: CellFunction, x: f64) -> f64 {
    match function {
        CellFunction::Linear => x,
        CellFunction::Relu => x.max(0.0),
        CellFunction::Relu6 => x.clamp(0.0, 6.0),
        CellFunction::Elu => {
            if x < 0.0 {
                x.exp_m1()
            } else {
                x
            }
        }
        CellFunction::Selu => {
            CellFunction::SELU_SCALE * if x < 0.0 { CellFunction::SELU_ALPHA * x.exp_m1() } else { x }
        }
        CellFunction::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        CellFunction::Softsign => x / (1.0 + x.abs()),
        CellFunction::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        CellFunction::HardSigmoid => (0.2 * x + 0.5).clamp(0.0, 1.0),
        CellFunction::Tanh => x.tanh(),
        CellFunction::Exponential => x.exp(),
    }
}

/// The derivative of the function where its value is `y`.
fn slope(function: CellFunction, y: f64) -> f64 {
    let one_if = |yes: bool| f64::from(u8::from(yes));
    match function {
        CellFunction::Linear => 1.0,
        CellFunction::Relu => one_if(y > 0.0),
        CellFunction::Relu6 => one_if(y > 0.0 && y < 6.0),
        CellFunction::Elu => {
            if y < 0.0 {
                y + 1.0
            } else {
                1.0
            }
        }
        CellFunction::Selu if y < 0.0 => y + CellFunction::SELU_SCALE * CellFunction::SELU_ALPHA,
        CellFunction::Selu => CellFunction::SELU_SCALE,
        CellFunction::Softplus => -(-y).exp_m1(),
        CellFunction::Softsign => (1.0 - y.abs()).powi(2),
        CellFunction::Sigmoid => y * (1.0 - y),
        CellFunction::HardSigmoid => 0.2 * one_if(y > 0.0 && y < 1.0),
        CellFunction::Tanh => 1.0 - y * y,
        CellFunction::Exponential => y,
    }
}

/// The inputs of the op and its gradient, by row.
struct Network<'a> {
    step: &'a Recurrent,
    batch: usize,
    time: usize,
    units: usize,
    width: usize,
    kernel: &'a [f64],
    bias: &'a [f64],
    states: Vec<&'a [f64]>,
    mask: Option<&'a [bool]>,
    keep: Option<&'a [f64]>,
}

impl<'a> Network<'a> {
    fn new(step: &'a Recurrent, x: &[&'a Wide]) -> Result<Network<'a>> {
        let slots = Slots::of(step);
        let (batch, time, units) = (x[0].dims[0], x[0].dims[1], x[KERNEL].dims[0]);
        for at in slots.states.clone().chain(slots.keep) {
            check_dims("state", x[at].dims(), &[batch, units])?;
        }
        if let Some(at) = slots.mask {
            check_dims("mask", x[at].dims(), &[batch, time])?;
        }
        Ok(Network {
            step,
            batch,
            time,
            units,
            width: step.n_gates() * units,
            kernel: x[KERNEL].as_floats()?,
            bias: slots.bias.map_or(Ok(&[][..]), |at| x[at].as_floats())?,
            states: slots.states.map(|at| x[at].as_floats()).collect::<Result<_>>()?,
            mask: slots.mask.map(|at| x[at].as_bools()).transpose()?,
            keep: slots.keep.map(|at| x[at].as_floats()).transpose()?,
        })
    }

    fn counts(&self, row: usize, t: usize) -> bool {
        self.mask.is_none_or(|mask| mask[row * self.time + t])
    }

    fn keep(&self, row: usize, unit: usize) -> f64 {
        self.keep.map_or(1.0, |keep| keep[row * self.units + unit])
    }

    fn first(&self, state: usize, row: usize) -> Vec<f64> {
        self.states.get(state).map_or(Vec::new(), |s| s[row * self.units..(row + 1) * self.units].to_vec())
    }

    /// Multiplies a state with the kernel and adds the bias.
    fn product(&self, left: &[f64]) -> Vec<f64> {
        let column = |j: usize| {
            let sum: f64 = left.iter().enumerate().map(|(k, v)| v * self.kernel[k * self.width + j]).sum();
            sum + self.bias.get(j).unwrap_or(&0.0)
        };
        (0..self.width).map(column).collect()
    }

    /// Multiplies a gradient with the transposed kernel.
    fn product_back(&self, dz: &[f64]) -> Vec<f64> {
        let unit = |k: usize| (0..self.width).map(|j| dz[j] * self.kernel[k * self.width + j]).sum();
        (0..self.units).map(unit).collect()
    }

    /// Runs a step: replaces the states by those after it, and returns the values kept for the
    /// gradient.
    fn advance(&self, row: usize, x: &[f64], h: &mut [f64], c: &mut [f64]) -> Vec<f64> {
        let n = self.units;
        let Recurrent { activation, recurrent_activation: gate, .. } = *self.step;
        let seen: Vec<f64> = (0..n).map(|k| h[k] * self.keep(row, k)).collect();
        let z = self.product(&seen);
        let mut kept = vec![0.0; self.step.n_kept() * n];
        match self.step.cell {
            Cell::Simple => (0..n).for_each(|j| h[j] = value(activation, x[j] + z[j])),
            Cell::Lstm => {
                for j in 0..n {
                    for (k, function) in [gate, gate, activation, gate].into_iter().enumerate() {
                        kept[k * n + j] = value(function, x[k * n + j] + z[k * n + j]);
                    }
                    c[j] = kept[n + j] * c[j] + kept[j] * kept[2 * n + j];
                    (kept[4 * n + j], kept[5 * n + j]) = (c[j], value(activation, c[j]));
                    h[j] = kept[3 * n + j] * kept[5 * n + j];
                }
            }
            Cell::Gru { reset_after } => {
                for j in 0..2 * n {
                    kept[j] = value(gate, x[j] + z[j]);
                }
                let reset: Vec<f64> = (0..n).map(|k| seen[k] * kept[n + k]).collect();
                let z = if reset_after { z } else { self.product(&reset) };
                for j in 0..n {
                    let product = z[2 * n + j];
                    if reset_after {
                        kept[3 * n + j] = product;
                    }
                    let reset = if reset_after { kept[n + j] * product } else { product };
                    kept[2 * n + j] = value(activation, x[2 * n + j] + reset);
                    h[j] = kept[j] * h[j] + (1.0 - kept[j]) * kept[2 * n + j];
                }
            }
        }
        kept
    }
}

pub(super) fn forward(step: &Recurrent, x: &[&Wide]) -> Result<Vec<Wide>> {
    let net = Network::new(step, x)?;
    let (batch, time, n) = (net.batch, net.time, net.units);
    check_dims("sequence", x[0].dims(), &[batch, time, net.width])?;
    let xs = x[0].as_floats()?;
    let (mut sequence, mut all_kept, mut last) = (Vec::new(), Vec::new(), vec![Vec::new(); step.n_states()]);
    for row in 0..batch {
        let (mut h, mut c) = (net.first(0, row), net.first(1, row));
        for t in 0..time {
            let at = (row * time + t) * net.width;
            if net.counts(row, t) {
                all_kept.extend(net.advance(row, &xs[at..at + net.width], &mut h, &mut c));
            } else {
                let mut kept = vec![0.0; step.n_kept() * n];
                if step.cell == Cell::Lstm {
                    kept[4 * n..5 * n].copy_from_slice(&c);
                }
                all_kept.extend(kept);
            }
            sequence.extend(&h);
        }
        last[0].extend(h);
        if let Some(last) = last.get_mut(1) {
            last.extend(c);
        }
    }
    let floats = |dims: &[usize], values: Vec<f64>| Wide::floats(x[0].dtype, dims, values);
    let mut results = vec![floats(&[batch, time, n], sequence)];
    results.extend(last.into_iter().map(|last| floats(&[batch, n], last)));
    results.push(floats(&[batch, time, step.n_kept() * n], all_kept));
    Ok(results)
}

/// The gradients of a step: of its input, of the product with the kernel, and of the part of the
/// state that bypasses the kernel. `dc` becomes the gradient before the step.
struct StepGradient {
    dx: Vec<f64>,
    dz: Vec<f64>,
    past: Vec<f64>,
}

impl Network<'_> {
    fn back(
        &self,
        kept: &[f64],
        h: &[f64],
        seen: &[f64],
        before: [&[f64]; 2],
        dh: &[f64],
        dc: &mut [f64],
    ) -> StepGradient {
        let n = self.units;
        let Recurrent { activation, recurrent_activation: gate, .. } = *self.step;
        let (mut dx, mut past) = (vec![0.0; self.width], vec![0.0; n]);
        match self.step.cell {
            Cell::Simple => (0..n).for_each(|j| dx[j] = dh[j] * slope(activation, h[j])),
            Cell::Lstm => {
                for j in 0..n {
                    let [input, forget, candidate, output, _, function] = [0, 1, 2, 3, 4, 5].map(|k| kept[k * n + j]);
                    let through = dc[j] + dh[j] * output * slope(activation, function);
                    dx[j] = through * candidate * slope(gate, input);
                    dx[n + j] = through * before[1][j] * slope(gate, forget);
                    dx[2 * n + j] = through * input * slope(activation, candidate);
                    dx[3 * n + j] = dh[j] * function * slope(gate, output);
                    dc[j] = through * forget;
                }
            }
            Cell::Gru { reset_after } => {
                for j in 0..n {
                    let [update, candidate] = [kept[j], kept[2 * n + j]];
                    dx[j] = dh[j] * (before[0][j] - candidate) * slope(gate, update);
                    dx[2 * n + j] = dh[j] * (1.0 - update) * slope(activation, candidate);
                    past[j] = dh[j] * update;
                }
                let mut dz = dx.clone();
                if !reset_after {
                    // The candidate's part of the kernel was multiplied with reset * seen.
                    dz[..2 * n].fill(0.0);
                }
                let d_seen = self.product_back(&dz);
                for j in 0..n {
                    let reset = kept[n + j];
                    let d_reset = if reset_after { dx[2 * n + j] * kept[3 * n + j] } else { d_seen[j] * seen[j] };
                    dx[n + j] = d_reset * slope(gate, reset);
                    (dz[j], dz[n + j]) = (dx[j], dx[n + j]);
                    dz[2 * n + j] = dx[2 * n + j] * if reset_after { reset } else { 0.0 };
                }
                return StepGradient { dx, dz, past };
            }
        }
        StepGradient { dz: dx.clone(), dx, past }
    }
}

pub(super) fn gradient(step: &Recurrent, x: &[&Wide]) -> Result<Vec<Wide>> {
    let net = Network::new(step, x)?;
    let (slots, n, width) = (Slots::of(step), net.units, net.width);
    let n_kept = step.n_kept() * n;
    let floats = |at: usize| x[at].as_floats();
    let (kept, sequence) = (floats(0)?, floats(slots.sequence())?);
    let upstream = slots.upstream(step).map(floats).collect::<Result<Vec<_>>>()?;
    let mut all_dx = vec![0.0; net.batch * net.time * width];
    let (mut d_kernel, mut d_bias) = (vec![0.0; n * width], vec![0.0; width]);
    let mut d_states = vec![Vec::new(); step.n_states()];
    let is_reset = step.cell == Cell::Gru { reset_after: false };
    for row in 0..net.batch {
        let of = |all: &[f64]| all[row * n..(row + 1) * n].to_vec();
        let (mut dh, mut dc) = (of(upstream[1]), upstream.get(2).map_or(Vec::new(), |d| of(d)));
        for t in (0..net.time).rev() {
            let at = row * net.time + t;
            (0..n).for_each(|j| dh[j] += upstream[0][at * n + j]);
            if !net.counts(row, t) {
                continue;
            }
            let (h_first, c_first) = (net.first(0, row), net.first(1, row));
            let h_before = if t == 0 { &h_first[..] } else { &sequence[(at - 1) * n..at * n] };
            let c_before = match step.cell {
                Cell::Lstm if t > 0 => &kept[(at - 1) * n_kept + 4 * n..(at - 1) * n_kept + 5 * n],
                _ => &c_first[..],
            };
            let own = &kept[at * n_kept..(at + 1) * n_kept];
            let seen: Vec<f64> = (0..n).map(|k| h_before[k] * net.keep(row, k)).collect();
            let found = net.back(own, &sequence[at * n..(at + 1) * n], &seen, [h_before, c_before], &dh, &mut dc);
            all_dx[at * width..(at + 1) * width].copy_from_slice(&found.dx);
            let mut d_seen = net.product_back(&found.dz);
            if is_reset {
                let mut candidate = found.dx.clone();
                candidate[..2 * n].fill(0.0);
                let through = net.product_back(&candidate);
                (0..n).for_each(|k| d_seen[k] += through[k] * own[n + k]);
            }
            for k in 0..n {
                for j in 0..width {
                    let (left, right) = match is_reset && j >= 2 * n {
                        true => (seen[k] * own[n + k], found.dx[j]),
                        false => (seen[k], found.dz[j]),
                    };
                    d_kernel[k * width + j] += left * right;
                }
                dh[k] = found.past[k] + d_seen[k] * net.keep(row, k);
            }
            (0..width).for_each(|j| d_bias[j] += found.dz[j]);
        }
        d_states[0].extend(dh);
        if let Some(states) = d_states.get_mut(1) {
            states.extend(dc);
        }
    }
    let mut gradients = vec![all_dx, d_kernel];
    gradients.extend(step.has_bias().then_some(d_bias));
    gradients.extend(d_states);
    let dims = |at: usize| match at {
        0 => vec![net.batch, net.time, width],
        _ => x[at].dims().to_vec(),
    };
    Ok(slots.differentiated().zip(gradients).map(|(at, g)| Wide::floats(x[0].dtype, &dims(at), g)).collect())
}
