//! The writes of a run: optimizer updates and assignments. They are collected and committed
//! together at the end of the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use estimand_graph::{Apply, Body, GradientMut, OnGradient, VarId};
use estimand_tensor::{DType, Result};
use estimand_update::{Hyper, SparseRule, UpdateRule};

use super::index::checked_ids;
use super::state::Live;
use super::value::Wide;

/// New values that are not visible yet.
#[derive(Default)]
pub(super) struct Writes(BTreeMap<VarId, Arc<Wide>>);

impl Writes {
    pub fn assign(&mut self, id: VarId, value: Arc<Wide>) {
        self.0.insert(id, value);
    }

    /// Computes the update of one variable: `gradient` is dense, or (indices, rows).
    pub fn apply(
        &mut self,
        body: &Body,
        live: &Live,
        apply: &Apply,
        gradient: &[Arc<Wide>],
        on_gradient: &mut Option<OnGradient<'_>>,
    ) -> Result<()> {
        let config = &body.optimizers()[apply.optimizer.0 as usize];
        let variable = |id: VarId| live.value(body.variables().spec(id));
        let step = variable(config.iterations)?.as_ints()?.first().map_or(0, |&n| n.max(0) as u64);
        let mut update = Update {
            rule: config.rule.as_ref(),
            hyper: config.hyper(step, |id| Ok(variable(id)?.as_floats()?.first().copied().unwrap_or(0.0)))?,
            weights: self.narrow(body, live, apply.variable)?,
            slots: apply.slots.iter().map(|&slot| self.narrow(body, live, slot)).collect::<Result<_>>()?,
        };
        let dims = variable(apply.variable)?.dims.clone();
        match gradient {
            [dense] => {
                let mut values = narrow(dense)?;
                if let Some(see) = on_gradient {
                    see(apply.variable, GradientMut::Dense(&mut values))?;
                }
                update.dense(&values);
            }
            _ => {
                let [indices, rows] = [&gradient[0], &gradient[1]];
                let ids = checked_ids("rows", indices, dims[0])?;
                let mut values = narrow(rows)?;
                if let Some(see) = on_gradient {
                    let rows = GradientMut::Rows { indices: indices.as_ints()?, values: &mut values };
                    see(apply.variable, rows)?;
                }
                update.rows(&ids, &values, dims[0], config.lazy);
            }
        }
        if let Some(constraint) = &body.variables().spec(apply.variable).constraint {
            constraint.project(&dims, &mut update.weights);
        }
        for (id, values) in
            [apply.variable].iter().chain(&apply.slots).zip([update.weights].iter().chain(&update.slots))
        {
            let wide = values.iter().map(|&v| v.into()).collect();
            self.assign(*id, Arc::new(Wide::floats(DType::F32, &dims, wide)));
        }
        Ok(())
    }

    /// The current value. A second update of a variable in one run continues from the result of the
    /// first.
    fn narrow(&self, body: &Body, live: &Live, id: VarId) -> Result<Vec<f32>> {
        match self.0.get(&id) {
            Some(written) => narrow(written),
            None => narrow(live.value(body.variables().spec(id))?),
        }
    }

    /// Replaces the live values with the new ones.
    pub fn commit(self, body: &Body, live: &mut Live) -> Result<()> {
        self.0.into_iter().try_for_each(|(id, value)| live.replace(&body.variables().spec(id).name, value))
    }
}

fn narrow(value: &Wide) -> Result<Vec<f32>> {
    Ok(value.as_floats()?.iter().map(|&v| v as f32).collect())
}

/// An update rule applied to one variable and its slots.
struct Update<'a> {
    rule: &'a dyn UpdateRule,
    hyper: Hyper,
    weights: Vec<f32>,
    slots: Vec<Vec<f32>>,
}

impl Update<'_> {
    fn dense(&mut self, gradient: &[f32]) {
        let mut slots: Vec<&mut [f32]> = self.slots.iter_mut().map(Vec::as_mut_slice).collect();
        self.rule.update(&self.hyper, &mut self.weights, gradient, &mut slots);
    }

    /// Sums duplicates in order of position. Rows without a gradient decay if the rule requires it.
    fn rows(&mut self, ids: &[usize], values: &[f32], n_rows: usize, lazy: bool) {
        let width = self.weights.len() / n_rows.max(1);
        let mut sums: Vec<Option<Vec<f32>>> = vec![None; n_rows];
        for (i, &id) in ids.iter().enumerate() {
            let row = &values[i * width..(i + 1) * width];
            match &mut sums[id] {
                Some(sum) => sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += v),
                none => *none = Some(row.to_vec()),
            }
        }
        let decays = self.rule.sparse() == SparseRule::DecayWholeTable && !lazy;
        for (row, sum) in sums.into_iter().enumerate() {
            let range = row * width..(row + 1) * width;
            let mut slots: Vec<&mut [f32]> = self.slots.iter_mut().map(|slot| &mut slot[range.clone()]).collect();
            let weights = &mut self.weights[range.clone()];
            match sum {
                Some(gradient) => self.rule.update(&self.hyper, weights, &gradient, &mut slots),
                None if decays => self.rule.decay(&self.hyper, weights, &mut slots),
                None => {}
            }
        }
    }
}
