//! Host ops: tables, ragged rows, strings.
//!
//! Checks of values are left out, since ONNX has no op that fails a run. Everything else gives the
//! same values, or is refused.

pub(crate) mod ragged;
mod table;
mod text;

use estimand_graph::HostOp;
use estimand_graph::host::check::{Between, KnownTerms};
use estimand_graph::host::parse_example::ParseExample;
use estimand_graph::host::ragged::{
    FromDense, FromRows, LookupIds, MultiHot, RaggedConcat, RaggedFilter, RowIds, ToSteps,
};
use estimand_graph::host::sparse::{CrossOutput, SparseCross, Where};
use estimand_graph::host::table::{FindId, FindTerm};
use estimand_graph::host::text::{AsString, Cross, Edit, HashBucket, StringEqual, ToNumber};
use estimand_graph::host::{Agree, Bucketize, Unique};
use estimand_tensor::{Error, Result};

use crate::ops::At;
use crate::refuse::{hashed, no_counterpart};

/// Writes a host op. Returns the names of its outputs.
pub(crate) fn write(at: &mut At<'_, '_, '_, '_>, op: &HostOp) -> Result<Vec<String>> {
    let one = if let Some(FindId(find)) = op.get() {
        table::find_id(at, find)?
    } else if let Some(find) = op.get::<FindTerm>() {
        table::find_term(at, find)?
    } else if let Some(op) = op.get::<Bucketize>() {
        table::bucketize(at, op)?
    } else if op.get::<Between>().is_some() || op.get::<Agree>().is_some() {
        at.x(0)?
    } else if op.get::<KnownTerms>().is_some() {
        at.x(1)?
    } else if op.get::<FromDense>().is_some() {
        return ragged::from_dense(at);
    } else if op.get::<FromRows>().is_some() {
        return ragged::from_rows(at);
    } else if op.get::<RowIds>().is_some() {
        let (splits, values) = (at.x(0)?, at.x(1)?);
        ragged::row_ids(at, &splits, &values)?
    } else if let Some(op) = op.get::<LookupIds>() {
        return ragged::lookup_ids(at, op);
    } else if let Some(op) = op.get::<MultiHot>() {
        return ragged::multi_hot(at, op);
    } else if op.get::<RaggedFilter>().is_some() {
        return ragged::filter(at);
    } else if op.get::<RaggedConcat>().is_some() {
        return ragged::concat(at);
    } else if op.get::<ToSteps>().is_some() {
        ragged::to_steps(at)?
    } else if let Some(op) = op.get::<Unique>() {
        return ragged::unique(at, op);
    } else if op.get::<Where>().is_some() {
        let x = at.x(0)?;
        let places = at.add("NonZero", &[&x]);
        at.transpose(&places, &[1, 0])
    } else if let Some(op) = op.get::<StringEqual>() {
        text::equal(at, op)?
    } else if let Some(op) = op.get::<Edit>() {
        text::edit(at, op)?
    } else if let Some(op) = op.get::<AsString>() {
        text::as_string(at, op)?
    } else if let Some(op) = op.get::<ToNumber>() {
        text::to_number(at, op)?
    } else if let Some(op) = op.get::<HashBucket>() {
        return hashed(op.n);
    } else if let Some(op) = op.get::<Cross>() {
        return hashed(op.n_buckets);
    } else if let Some(SparseCross { output: CrossOutput::Hashed { n_buckets, .. }, .. }) = op.get() {
        return hashed(*n_buckets);
    } else if op.get::<ParseExample>().is_some() {
        return Err(Error::unsupported("ONNX cannot parse a tf.Example")
            .help("export the model with a receiver of named features: Receiver::raw or Receiver::like"));
    } else {
        return no_counterpart(at, "opset 17 has no op for it");
    };
    Ok(vec![one])
}
