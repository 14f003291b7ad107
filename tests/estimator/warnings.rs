//! Where warnings go, in processes of their own: the level and the subscriber belong to a process.

use std::process::{Command, Stdio};

use estimand::console::{self, Level};
use estimand::prelude::*;

use crate::hooks::log_lines::logged;
use crate::models::{line, linear};

const FORM: &str = "ESTIMAND_TEST_WARNINGS_FORM";

/// A process that evaluates a model that was never trained.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let evaluate = || Estimator::new(linear).build()?.evaluate(line(4).batch(4)).map(drop);
    match std::env::var(FORM).unwrap().as_str() {
        "off" => console::verbosity(Level::Off),
        "info" => console::verbosity(Level::Info),
        "own subscriber" => return logged(evaluate).0,
        _ => {}
    }
    evaluate()
}

/// What the process writes to stderr.
fn stderr(form: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "warnings::child", "--ignored", "--test-threads=1"]).env(FORM, form);
    let output = command.stdout(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{form}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn warnings_go_to_stderr_unless_the_program_says_otherwise() {
    let warning = "WARN: The model was never trained: there is no checkpoint in";
    let default = stderr("default");
    assert_eq!(default.matches(warning).count(), 1, "{default}");
    assert!(!default.contains("INFO"), "{default}");
    let info = stderr("info");
    assert_eq!(info.matches(warning).count(), 1, "once, not by the subscriber and without it: {info}");
    assert!(info.contains("INFO: Starting evaluation"), "{info}");
    assert_eq!(stderr("off"), "");
    assert_eq!(stderr("own subscriber"), "");
}
