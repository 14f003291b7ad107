//! Event files, which TensorBoard reads.
//!
//! A model folder has one event file for each estimator that trained in it, and one in `eval/` for
//! each that evaluated: `events.out.tfevents.<seconds>.<host>`. [`EventWriter`] appends to a new
//! file, [`EventReader`] reads any, [`read_eval_metrics`] collects the results of evaluations.
//!
//! ```
//! use estimand::events::{EventReader, EventWriter, What};
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-events-doc-{}", std::process::id()));
//! let mut writer = EventWriter::create(&folder)?;
//! writer.scalar(100, "loss", 0.25)?;
//!
//! let events: Vec<_> = EventReader::open(writer.path())?.collect::<Result<_, _>>()?;
//! assert!(matches!(events[1].what, Some(What::Summary(_))));
//! assert_eq!(events[1].step, 100);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), estimand::prelude::Error>(())
//! ```

mod eval_metrics;
mod files;
mod folder;
mod host;
mod reader;
mod writer;

pub use estimand_wire::Event;
pub use estimand_wire::event::{SessionStatus, SummaryValue, Value, What};
pub use estimand_wire::plugin::RunStatus;

pub use eval_metrics::read_eval_metrics;
pub(crate) use files::{EventFiles, LentEvents};
pub(crate) use folder::each_event;
pub(crate) use host::host_name;
pub use reader::EventReader;
pub use writer::EventWriter;
