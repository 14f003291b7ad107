//! The user's line for nodes that library code adds.
//!
//! An op records the line that called it (`#[track_caller]`). Inside a column, a head or a premade
//! that line is a line of this library, which says nothing to the user. While a [`Line`] lives, the
//! graph replaces such lines by a line of the user's program. Lines of the user's own functions,
//! such as a normalizer or a custom layer, stay as they are.

use std::panic::Location;

use crate::graph::Graph;

type Site = &'static Location<'static>;

/// A guard: while it lives, nodes and errors of library code have a line of the user's program.
#[must_use = "the line counts until this is dropped: let _line = graph.line(..)"]
pub struct Line {
    graph: Graph,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.graph.lines().borrow_mut().pop();
    }
}

/// An open guard.
pub(crate) struct OpenLine {
    site: Site,
    /// The line of the innermost call, not of a column: the line for variables.
    call: Site,
    /// The sources of the crate that opened the guard: `crates/nn/src/`.
    library: &'static str,
}

impl Graph {
    /// Gives nodes, variables and errors of library code the line of a call until the returned
    /// value is dropped. `library` is `file!()`: the files of that crate count as the library's, as
    /// do those of all open guards.
    ///
    /// If `site` is itself a line of the library, the line of the guard around it counts.
    pub fn line(&self, site: Site, library: &'static str) -> Line {
        let site = self.user_line(site);
        self.open_line(OpenLine { site, call: site, library: sources(library) })
    }

    /// Like [`line`](Graph::line), with the line that made a column. Variables keep the line of the
    /// call that uses the column: the same column may be made at another line for another mode.
    pub fn line_of_column(&self, site: Site, library: &'static str) -> Line {
        let site = self.user_line(site);
        let call = self.lines().borrow().last().map_or(site, |line| line.call);
        self.open_line(OpenLine { site, call, library: sources(library) })
    }

    fn open_line(&self, line: OpenLine) -> Line {
        self.lines().borrow_mut().push(line);
        Line { graph: self.clone() }
    }

    /// Returns the line to show for a node or an error made at `site`: a line of the library is
    /// replaced by that of the innermost open guard.
    pub fn user_line(&self, site: Site) -> Site {
        self.replaced(site, |line| line.site)
    }

    /// The line to show for a variable made at `site`.
    pub(crate) fn variable_line(&self, site: Site) -> Site {
        self.replaced(site, |line| line.call)
    }

    fn replaced(&self, site: Site, line: fn(&OpenLine) -> Site) -> Site {
        let lines = self.lines().borrow();
        let is_of = |library: &str| site.file().starts_with(library);
        // An op that is passed as a function, such as `Tensor::exp`, is called by the core library.
        let is_library =
            || is_of(sources(file!())) || is_of_core(site.file()) || lines.iter().any(|line| is_of(line.library));
        match lines.last() {
            Some(innermost) if is_library() => line(innermost),
            _ => site,
        }
    }
}

/// The folder of a crate's sources, from one of its files.
fn sources(file: &'static str) -> &'static str {
    let end = file.rfind("/src/").or_else(|| file.rfind("\\src\\"));
    end.map_or(file, |end| &file[..end + "/src/".len()])
}

fn is_of_core(file: &str) -> bool {
    file.contains("/library/core/src/") || file.contains("\\library\\core\\src\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_a_crate_are_found_from_a_file() {
        assert_eq!(sources("crates/nn/src/layer/dense.rs"), "crates/nn/src/");
        assert_eq!(sources("/home/a/src/checkout/crates/nn/src/lib.rs"), "/home/a/src/checkout/crates/nn/src/");
        assert_eq!(sources("crates\\nn\\src\\lib.rs"), "crates\\nn\\src\\");
        assert_eq!(sources("build.rs"), "build.rs");
    }
}
