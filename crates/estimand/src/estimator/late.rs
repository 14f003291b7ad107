//! A stream that is opened at its first pull: the arrays of its placeholders are fed once the
//! session is there.

use estimand_data::{Dataset, InputContext, Position, Stream, StreamItem};
use estimand_tensor::Result;

pub(super) struct Late {
    data: Dataset,
    cx: InputContext,
    from: Position,
    opened: Option<Box<dyn Stream>>,
}

impl Late {
    pub(super) fn new(data: Dataset, cx: InputContext, from: Position) -> Late {
        Late { data, cx, from, opened: None }
    }
}

impl Stream for Late {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let stream = match self.opened.take() {
            Some(stream) => stream,
            None => self.data.open(&self.cx, &self.from)?,
        };
        self.opened.insert(stream).pull(want)
    }

    fn recycle(&mut self, item: StreamItem) {
        if let Some(stream) = &mut self.opened {
            stream.recycle(item);
        }
    }
}
