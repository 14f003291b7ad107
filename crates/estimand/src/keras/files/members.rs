//! The members of a `.keras` file.

use estimand_data::zip;
use estimand_hdf5::File;
use estimand_tensor::{Error, Limits, Result};

/// The member with the weights.
pub(super) const WEIGHTS: &str = "model.weights.h5";

/// The members of a `.keras` file.
pub(super) struct Archive<'a> {
    members: Vec<zip::Member<'a>>,
    limits: Limits,
}

impl<'a> Archive<'a> {
    pub fn of(bytes: &'a [u8], limits: &Limits) -> Result<Archive<'a>> {
        Ok(Archive { members: zip::members(bytes, limits)?, limits: *limits })
    }

    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    fn find(&self, name: &str) -> Result<&zip::Member<'a>> {
        self.members.iter().find(|member| member.name == name).ok_or_else(|| {
            let help = "a .keras file is an archive that Keras' model.save(..) writes";
            Error::data(format!("the archive has no member `{name}`")).help(help)
        })
    }

    /// A member that is a text.
    pub fn text(&self, name: &str) -> Result<String> {
        let (member, limits) = (self.find(name)?, &self.limits);
        if member.size() > limits.text_bytes {
            let found = format!("the member `{name}` has {} bytes", member.size());
            return Err(Limits::exceeded("text_bytes", limits.text_bytes, found));
        }
        member.unpack().and_then(text).map_err(|error| error.context(format!("in the member `{name}`")))
    }

    pub fn weights(&self) -> Result<File> {
        let bytes = self.find(WEIGHTS)?.unpack();
        let file = bytes.and_then(|bytes| File::from_bytes(bytes, &self.limits));
        file.map_err(|error| error.context(format!("in the member `{WEIGHTS}`")))
    }
}

/// The bytes as a text.
pub(super) fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::data("the text is not UTF-8"))
}
