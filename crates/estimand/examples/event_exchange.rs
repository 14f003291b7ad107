//! Our side of the exchange of event files with TensorFlow and TensorBoard
//! (oracles/live/events.py).
//!
//! `write FOLDER FIRST LAST` writes one file as a training from step FIRST to LAST does;
//! `show FOLDER` writes every kind of summary; `read FILE` prints every event as `step kind` or,
//! for summaries, `step tag value`, numbers as their bits and texts as they are.

use std::io::{self, Write};

use estimand::events::{EventReader, EventWriter, SessionStatus, SummaryValue, Value, What};
use estimand::prelude::*;
use estimand_wire::{DataType, GraphDef, NodeDef};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", folder, first, last] => write(folder, number(first)?, number(last)?),
        ["show", folder] => show(folder),
        ["read", file] => read(file),
        _ => Err(Error::config("expected `write FOLDER FIRST LAST`, `show FOLDER` or `read FILE`")),
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::config(format!("`{text}` is no step")))
}

fn write(folder: &str, first: u64, last: u64) -> Result<()> {
    let mut writer = EventWriter::create(folder)?;
    let input = NodeDef::new("x", "Placeholder").attr("dtype", DataType::Float);
    let output = NodeDef::new("scope/y", "Relu").input("x").attr("T", DataType::Float);
    writer.graph(&GraphDef { node: vec![input, output], ..Default::default() })?;
    writer.session_log(first, SessionStatus::Checkpoint, "model.ckpt")?;
    writer.session_log(first + 1, SessionStatus::Start, "")?;
    for step in first + 1..=last {
        // A number of its own for each step and each run.
        let loss = 1.0 / (step + first) as f32;
        writer.summary(step, vec![Value::scalar("loss", loss), Value::scalar("scope/global_step_sec", f32::NAN)])?;
    }
    writer.scalar(last, "infinite", f32::INFINITY)?;
    writer.summary(last, vec![Value::text("checkpoint_path", format!("žluť/model.ckpt-{last}"))])?;
    writer.session_log(last, SessionStatus::Checkpoint, "model.ckpt")?;
    writer.sync()
}

/// Of numbers that the other side computes too.
fn show(folder: &str) -> Result<()> {
    let mut writer = EventWriter::create(folder)?;
    let numbers: Vec<f32> = (0..24).map(|i| i as f32 * 0.3 - 1.25).collect();
    writer.histogram(3, "scope/histogram", &Array::from(numbers.clone()))?;
    writer.image(3, "scope/picture", &Array::from_vec([2, 2, 2, 3], numbers.clone())?, 3)?;
    writer.text(3, "scope/text", "# žluť\n*text*")?;
    let labels: Vec<bool> = (0..24).map(|i| i % 3 == 0).collect();
    let predictions: Vec<f32> = (0..24).map(|i| (i * 7 % 24) as f32 / 24.0).collect();
    writer.pr_curve(3, "scope/curve", &Array::from(labels), &Array::from(predictions), 21, None)?;
    writer.tensor(3, "scope/tensor", &Array::from_vec([2, 12], numbers)?)?;
    writer.sync()
}

fn read(file: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    for event in EventReader::open(file)? {
        let event = event?;
        let step = event.step;
        match event.what {
            Some(What::Summary(summary)) => {
                for value in summary.value {
                    let text = match value.value {
                        Some(SummaryValue::SimpleValue(v)) => format!("{:08x}", v.to_bits()),
                        Some(SummaryValue::Tensor(tensor)) => {
                            tensor.string_val.iter().map(|text| String::from_utf8_lossy(text)).collect()
                        }
                        other => format!("{other:?}"),
                    };
                    line(&mut out, &format!("{step} {} {text}", value.tag))?;
                }
            }
            Some(What::FileVersion(version)) => line(&mut out, &format!("{step} version {version}"))?,
            Some(What::GraphDef(bytes)) => line(&mut out, &format!("{step} graph {}", bytes.len()))?,
            Some(What::SessionLog(log)) => {
                line(&mut out, &format!("{step} session {:?} {}", log.status(), log.checkpoint_path))?
            }
            other => line(&mut out, &format!("{step} {other:?}"))?,
        }
    }
    Ok(())
}

fn line(out: &mut impl Write, text: &str) -> Result<()> {
    writeln!(out, "{text}").map_err(|e| Error::io("stdout", "write to", &e))
}
