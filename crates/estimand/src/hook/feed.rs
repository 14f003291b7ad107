//! Values that hooks feed to placeholders of a model, in addition to the input.

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};

use super::{BeginContext, HookContext};

/// A placeholder that a hook feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed(usize);

impl BeginContext<'_> {
    /// Declares that this hook feeds a placeholder of the model. Neither the input nor another hook
    /// may feed it too.
    pub fn feed(&mut self, placeholder: &Tensor) -> Result<Feed> {
        self.own(placeholder)?;
        Ok(Feed(self.placeholders.feed_by_hook(placeholder)?))
    }
}

impl HookContext<'_> {
    /// Feeds a placeholder in the next step and all that follow, until the value is replaced.
    pub fn feed(&mut self, feed: Feed, value: Array) {
        let feeds = &mut self.session.hook_feeds;
        if feeds.len() <= feed.0 {
            feeds.resize(feed.0 + 1, None);
        }
        if let Some(place) = feeds.get_mut(feed.0) {
            *place = Some(value);
        }
    }
}
