//! Logs the progress of a training to a CSV file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};

use estimand_graph::Tensor;
use estimand_tensor::{Array, DType, Error, Result, warn};

use super::watched::Watched;
use super::{BeginContext, Hook, HookContext};
use crate::{Every, Timer};

/// Writes rows of step, loss and chosen numbers to a CSV file, at the first step and then
/// periodically.
///
/// A resumed training appends to the file. It first cuts off the rows of steps after its
/// checkpoint, because it repeats those steps. A run that was killed and restarted therefore writes
/// the same file as an uninterrupted one. Each row is one `write`, so readers see complete rows.
///
/// ```
/// use estimand::hook::CsvLogHook;
/// # use estimand::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-csv-log-{}", std::process::id()));
/// # let rows = [("x", Array::from([0i64, 1])), ("y", Array::from([1.0f32, 1.0]))];
/// # let data = Dataset::from_arrays(rows).label("y").repeat(3).batch(2);
/// # let model = |cx: &ModelFnContext<'_>| {
/// #     let w = cx.graph().variable("w", [], Initializer::Zeros);
/// #     let loss = (w - cx.label()).square().mean();
/// #     Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.5)))
/// # };
/// # let estimator = Estimator::new(model).model_dir(&folder).build()?;
///
/// estimator.train(TrainSpec::new(&data).hook(CsvLogHook::new("training.csv", Every::Steps(2))))?;
/// assert_eq!(std::fs::read_to_string(folder.join("training.csv")).unwrap(), "step,loss\n1,1\n3,0\n");
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct CsvLogHook {
    path: PathBuf,
    every: Every,
    timer: Timer,
    columns: Vec<(String, Watched)>,
    /// Whether the current step will be written as a row.
    is_due: bool,
    file: Option<LogFile>,
}

impl CsvLogHook {
    /// Logs to a file. A relative path is below the model folder.
    pub fn new(path: impl Into<PathBuf>, every: Every) -> CsvLogHook {
        let timer = Timer::new(every);
        CsvLogHook { path: path.into(), every, timer, columns: Vec::new(), is_due: false, file: None }
    }

    /// Adds a scalar tensor by name, as a column of that name. Use it in hooks that are made
    /// outside of the model function.
    #[track_caller]
    pub fn named(mut self, name: impl Into<String>) -> CsvLogHook {
        let name = name.into();
        self.columns.push((name.clone(), Watched::Named(name, Location::caller())));
        self
    }

    /// Adds a scalar tensor as a column. Use it in hooks that a model function makes.
    pub fn tensor(mut self, column: impl Into<String>, tensor: &Tensor) -> CsvLogHook {
        self.columns.push((column.into(), Watched::Tensor(tensor.clone())));
        self
    }

    fn header(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| quoted(name));
        ["step".to_string(), "loss".to_string()].into_iter().chain(names).collect::<Vec<_>>().join(",") + "\n"
    }

    fn row(&self, cx: &HookContext<'_>) -> Result<String> {
        let mut row = cx.global_step().to_string();
        row += &cx.loss().map_or(",".to_string(), |loss| format!(",{loss}"));
        for (name, watched) in &self.columns {
            let value = watched.value(cx).map(number).transpose();
            row += &format!(",{}", value.map_err(|e| e.context(format!("in column `{name}`")))?.unwrap_or_default());
        }
        Ok(row + "\n")
    }
}

/// Formats a number as text that parses to the same number.
fn number(array: &Array) -> Result<String> {
    match (array.dtype(), array.len()) {
        (DType::F32, 1) => Ok(array.to_f64_vec()?.iter().map(|&v| (v as f32).to_string()).collect()),
        (dtype, 1) if dtype.is_number() => Ok(array.to_f64_vec()?.iter().map(f64::to_string).collect()),
        (dtype, _) => {
            Err(Error::shape(format!("a value of the CSV log is {dtype}{:?}; expected one number", array.dims()))
                .help("log its mean, or another single number"))
        }
    }
}

pub(crate) fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    }
}

impl Hook for CsvLogHook {
    fn name(&self) -> &str {
        "csv_log"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.every.check("a CSV log")?;
        let mut names = vec!["step", "loss"];
        for (name, _) in &self.columns {
            if names.contains(&name.as_str()) {
                return Err(Error::config(format!("the CSV log has two columns `{name}`")).help("rename one of them"));
            }
            names.push(name);
        }
        self.columns.iter_mut().try_for_each(|(_, watched)| watched.ask(cx, true))
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let path = cx.model_dir().join(&self.path);
        self.file = Some(LogFile::open(path, &self.header(), cx.global_step())?);
        Ok(())
    }

    #[inline]
    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.is_due = self.timer.is_due(cx.global_step() + 1);
        if self.is_due {
            cx.request_values();
        }
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.is_due {
            let row = self.row(cx)?;
            self.timer.trigger(cx.global_step());
            self.file.as_mut().map_or(Ok(()), |file| file.append(&row))?;
        }
        Ok(())
    }

    /// A checkpoint guarantees the rows up to its step.
    fn before_save(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), LogFile::sync)
    }

    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), LogFile::sync)
    }

    /// Returns the step of the last row, so that a resumed run writes rows at the same steps as an
    /// uninterrupted one.
    fn state(&self) -> Option<Vec<u8>> {
        self.timer.last_step().map(|step| step.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        let bytes = <[u8; 8]>::try_from(state)
            .map_err(|_| Error::data(format!("the step of the last row has {} bytes; expected 8", state.len())))?;
        self.timer.trigger(u64::from_le_bytes(bytes));
        Ok(())
    }
}

/// A file to which rows are appended.
pub(crate) struct LogFile {
    file: File,
    path: PathBuf,
    /// The size in bytes of the complete rows.
    n_bytes: u64,
}

impl LogFile {
    /// Opens a file with this header, and cuts off rows of this step and later ones.
    pub(crate) fn open_before(path: PathBuf, header: &str, step: u64) -> Result<LogFile> {
        match step.checked_sub(1) {
            Some(last) => LogFile::open(path, header, last),
            None => {
                // No row stays, not even that of step 0.
                if path.exists() {
                    fs::remove_file(&path).map_err(|e| Error::io(&path, "remove", &e))?;
                }
                LogFile::open(path, header, 0)
            }
        }
    }

    /// Opens a file with this header, and cuts off rows of steps after `step`.
    fn open(path: PathBuf, header: &str, step: u64) -> Result<LogFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make the folder", &e))?;
        }
        let failed = |e: &io::Error| Error::io(&path, "open", e);
        let text = match fs::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|e| failed(&e))?,
        };
        let n_bytes = kept(&text, header, step, &path)?;
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|e| failed(&e))?;
        file.set_len(n_bytes).map_err(|e| failed(&e))?;
        let mut log = LogFile { file, path, n_bytes };
        if n_bytes == 0 {
            log.append(header)?;
        }
        Ok(log)
    }

    pub(crate) fn append(&mut self, row: &str) -> Result<()> {
        if let Err(error) = self.file.write_all(row.as_bytes()) {
            // An incomplete row would corrupt the next one. If this fails too, the error of the
            // write reports the cause.
            let _ = self.file.set_len(self.n_bytes);
            return Err(Error::io(&self.path, "write to", &error));
        }
        self.n_bytes += row.len() as u64;
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, "sync", &e))
    }
}

/// Returns how many bytes of a file to keep: up to the first row of a later step, or up to an
/// incomplete row of a killed process.
fn kept(text: &str, header: &str, step: u64, path: &Path) -> Result<u64> {
    // A power failure may leave zeros where bytes were never synced.
    let text = text.split('\0').next().unwrap_or_default();
    if !text.contains('\n') && header.starts_with(text) {
        return Ok(0);
    }
    let Some(rows) = text.strip_prefix(header) else {
        let first = text.lines().next().unwrap_or_default();
        return Err(Error::data(format!(
            "the file begins with the header `{first}`; the header of this log is `{}`",
            header.trim_end()
        ))
        .in_file(path)
        .help("name another file, or move this one away"));
    };
    let mut n_bytes = header.len();
    for (number, row) in (2..).zip(rows.split_inclusive('\n')) {
        let its_step = row.strip_suffix('\n').map(|row| row.split(',').next().unwrap_or_default().parse::<u64>());
        match its_step {
            Some(Ok(its_step)) if its_step <= step => n_bytes += row.len(),
            Some(Err(_)) => return Err(Error::data(format!("line {number} does not begin with a step")).in_file(path)),
            Some(Ok(_)) | None => {
                warn!("Rows of {} after step {step} are removed: their steps run again", path.display());
                break;
            }
        }
    }
    Ok(n_bytes as u64)
}
