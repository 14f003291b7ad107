//! The command line.

use std::path::PathBuf;

const USAGE: &str = "usage: estimand-lab [--full] [--table] [--only NAME] [--keep] [--threads N] [--folder PATH]
  --full         every point instead of a sample
  --table        ends with the table of docs/trust.md
  --only NAME    only the experiment of this name, or all whose names begin like this
  --keep         leaves the folders of experiments, to look at
  --threads N    so many experiments at once; the number of cores unless given
  --folder PATH  where experiments have their folders; the temporary folder unless given";

/// The command to run.
pub enum Arguments {
    Try(Wish),
    /// Run a program as process 1 of a new namespace.
    AsProcess1(String, Vec<String>),
}

/// The selected experiments and their settings.
pub struct Wish {
    pub is_full: bool,
    pub wants_table: bool,
    pub keeps_folders: bool,
    pub only: Option<String>,
    pub n_threads: usize,
    pub folder: PathBuf,
}

impl Arguments {
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let n_cores = std::thread::available_parallelism().map_or(2, usize::from);
        let folder = std::env::temp_dir().join("estimand-lab");
        let mut wish =
            Wish { is_full: false, wants_table: false, keeps_folders: false, only: None, n_threads: n_cores, folder };
        let usage = || USAGE.to_string();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--full" => wish.is_full = true,
                "--table" => wish.wants_table = true,
                "--keep" => wish.keeps_folders = true,
                "--only" => wish.only = Some(arguments.next().ok_or_else(usage)?),
                "--threads" => {
                    wish.n_threads =
                        arguments.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0).ok_or_else(usage)?;
                }
                "--folder" => wish.folder = arguments.next().ok_or_else(usage)?.into(),
                "--as-process-1" => {
                    let program = arguments.next().ok_or_else(usage)?;
                    return Ok(Arguments::AsProcess1(program, arguments.collect()));
                }
                _ => return Err(format!("`{argument}` is not understood\n{USAGE}")),
            }
        }
        Ok(Arguments::Try(wish))
    }
}
