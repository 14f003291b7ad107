//! A hook that records its calls for tests.

use std::cell::RefCell;
use std::rc::Rc;

use estimand::hook::{BeginContext, Fetch, Hook, HookContext};
use estimand::prelude::*;

/// What hooks were called with, in order.
#[derive(Clone, Default)]
pub struct Log(pub Rc<RefCell<Vec<String>>>);

/// Writes down what it is called with. Asks for the first product of the model.
pub struct Recorder {
    pub log: Log,
    /// The steps at which it fails, or asks for the end.
    pub fail_at: Option<u64>,
    pub stop_at: Option<u64>,
    pub fetch: Option<Fetch>,
}

impl Recorder {
    pub fn new(log: &Log) -> Recorder {
        Recorder { log: log.clone(), fail_at: None, stop_at: None, fetch: None }
    }

    fn note(&self, what: &str) {
        self.log.0.borrow_mut().push(what.to_string());
    }
}

impl Hook for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.note("begin");
        self.fetch = Some(cx.fetch_named("Mul")?);
        Ok(())
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.note(&format!("created {} {:?}", cx.global_step(), cx.loss()));
        Ok(())
    }

    fn before_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.note("before");
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let rows = self.fetch.and_then(|fetch| cx.value(fetch)).map(|array| array.len());
        self.note(&format!("after {} {rows:?}", cx.global_step()));
        if self.fail_at == Some(cx.global_step()) {
            return Err(Error::config("out of luck"));
        }
        if self.stop_at == Some(cx.global_step()) {
            cx.request_stop("enough");
        }
        Ok(())
    }

    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.note("end");
        Ok(())
    }
}
