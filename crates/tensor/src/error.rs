//! The error type of all crates: what went wrong, where, and how to fix it.

use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};

use crate::DType;

/// The result type of all functions that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its location and its remedy.
///
/// Displayed on up to three lines: what happened, where, and help.
///
/// ```
/// # use estimand_tensor::Error;
/// let e = Error::config("learning rate is -1, expected a positive number").help("try Sgd::new(0.01)");
/// assert_eq!(e.to_string(), "learning rate is -1, expected a positive number\n  help: try Sgd::new(0.01)");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<String>,
    /// Whether the context has a source line.
    is_placed: bool,
    help: Option<String>,
    is_transient: bool,
}

/// The kind of error. It separates errors of the input from bugs in Estimand: only `Internal` is a
/// bug.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit together.
    Shape,
    /// An element type that an operation is not defined on.
    DType {
        /// The expected type, if there is only one.
        expected: Option<DType>,
        /// The type that was passed.
        actual: DType,
    },
    /// An index outside the range it must lie in.
    Index,
    /// An invalid option, argument or combination.
    Config,
    /// Bad data, with its position.
    Data {
        /// The file, if the data came from one.
        path: Option<PathBuf>,
        /// Row, from 1.
        row: Option<u64>,
        /// Column name.
        column: Option<String>,
    },
    /// A checkpoint that is damaged or does not belong to the model.
    Checkpoint {
        /// The file or prefix.
        path: PathBuf,
    },
    /// A variable that does not exist.
    MissingVariable {
        /// The closest existing name.
        nearest: Option<String>,
    },
    /// Something that the chosen executor or file format cannot do.
    Unsupported,
    /// A problem with the cluster's description or with one of its members.
    Cluster,
    /// Training diverged: the loss is NaN, or weights are not finite.
    Diverged,
    /// Another process or object holds the file or folder.
    Busy {
        /// The file or folder.
        path: PathBuf,
    },
    /// The run was interrupted by Ctrl-C or by the system. The progress is saved.
    Interrupted,
    /// The operating system reported an error.
    Io {
        /// The file or folder.
        path: PathBuf,
    },
    /// A bug in Estimand.
    Internal,
}

impl Error {
    /// Creates an error from its kind and a message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let (message, context) = (message.into(), Vec::new());
        Error(Box::new(Inner { kind, message, context, is_placed: false, help: None, is_transient: false }))
    }

    /// Shapes that do not fit together.
    pub fn shape(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Shape, message)
    }

    /// A wrong element type.
    pub fn dtype(expected: Option<DType>, actual: DType, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::DType { expected, actual }, message)
    }

    /// An index out of range.
    pub fn index(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Index, message)
    }

    /// A bad option or combination.
    pub fn config(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Config, message)
    }

    /// Bad data. Its location is added later or not known.
    pub fn data(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Data { path: None, row: None, column: None }, message)
    }

    /// An operation that is not supported here.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// A bug in Estimand.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message).help("this is a bug in Estimand; please report it with the program")
    }

    /// A checkpoint that is damaged or does not belong to the model.
    pub fn checkpoint(path: impl AsRef<Path>, message: impl Into<String>) -> Error {
        let path = path.as_ref().to_path_buf();
        let place = format!("in checkpoint {}", path.display());
        Error::new(ErrorKind::Checkpoint { path }, message).context(place)
    }

    /// A failed file operation: `what` names it ("read", "rename").
    pub fn io(path: impl AsRef<Path>, what: &str, error: &std::io::Error) -> Error {
        use std::io::ErrorKind as Io;
        let path = path.as_ref().to_path_buf();
        let message = format!("cannot {what} {}: {error}", path.display());
        let result = Error::new(ErrorKind::Io { path }, message);
        match error.kind() {
            Io::Interrupted | Io::TimedOut | Io::WouldBlock | Io::BrokenPipe => result.transient(),
            Io::ConnectionReset | Io::ConnectionAborted | Io::NotConnected => result.transient(),
            _ => result,
        }
    }

    /// A name that does not exist. The help suggests the nearest of the known names, or lists them.
    ///
    /// ```
    /// use estimand_tensor::Error;
    ///
    /// let error = Error::unknown("metric", "acuracy", ["accuracy", "auc"]);
    /// assert_eq!(error.to_string(), "there is no metric `acuracy`\n  help: did you mean `accuracy`?");
    /// let error = Error::unknown("metric", "f1", ["accuracy", "auc"]);
    /// assert_eq!(error.to_string(), "there is no metric `f1`\n  help: there are accuracy, auc");
    /// ```
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        Error::config(format!("there is no {what} `{name}`")).suggest(name, known)
    }

    /// Adds help: the name among `known` that is nearest to `name`, or a list of them.
    pub fn suggest<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        self.suggest_of(name, &known.into_iter().collect::<Vec<&str>>())
    }

    fn suggest_of(self, name: &str, known: &[&str]) -> Error {
        match (nearest_name(name, known.iter().copied()), known) {
            (Some(near), _) => self.help(format!("did you mean `{near}`?")),
            (None, []) => self.help("there is none"),
            (None, [only]) => self.help(format!("there is only `{only}`")),
            (None, few) if few.len() <= LISTED_NAMES => self.help(format!("there are {}", few.join(", "))),
            (None, [first, ..]) => self.help(format!("there are {}, of which the first is `{first}`", known.len())),
        }
    }

    /// A variable that does not exist. The help suggests the nearest of the known names, or lists
    /// them.
    pub fn missing_variable<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = nearest_name(name, known.iter().copied());
        Error::new(ErrorKind::MissingVariable { nearest }, format!("there is no variable `{name}`"))
            .suggest(name, known)
    }

    /// Adds the location of the error. The innermost location is added first.
    pub fn context(mut self, place: impl Into<String>) -> Error {
        self.0.context.push(place.into());
        self
    }

    /// Names the file in which the error happened. The error becomes bad data of that file.
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Error {
        let path = path.as_ref();
        let (row, column) = match self.0.kind {
            ErrorKind::Data { row, column, .. } => (row, column),
            _ => (None, None),
        };
        self.0.kind = ErrorKind::Data { path: Some(path.to_path_buf()), row, column };
        self.context(format!("in {}", path.display()))
    }

    /// Adds a source line as the location, unless the context ends with that line already.
    pub fn at(mut self, site: &Location<'_>) -> Error {
        self.0.is_placed = true;
        let place = format!("at {}:{}", site.file(), site.line());
        match self.0.context.iter().any(|known| known.ends_with(&place)) {
            true => self,
            false => self.context(place),
        }
    }

    /// Adds a source line, unless [`at`](Error::at) has added one before. Use it for the line of a
    /// whole model, where a line inside it says more.
    pub fn at_unless_placed(self, site: &Location<'_>) -> Error {
        if self.0.is_placed { self } else { self.at(site) }
    }

    /// Adds help on how to fix the error.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Adds to the help.
    pub fn more_help(mut self, more: impl fmt::Display) -> Error {
        self.0.help = Some(match self.0.help.take() {
            Some(help) => format!("{help}; {more}"),
            None => more.to_string(),
        });
        self
    }

    /// Marks the error as transient: a retry may succeed, as with a busy server or a lost
    /// connection.
    pub fn transient(mut self) -> Error {
        self.0.is_transient = true;
        self
    }

    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        self.0.is_transient
    }

    /// The kind of error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The message, without location and help.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for place in &self.0.context {
            write!(f, "\n  {place}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// The same text as `Display`, since a person reads the error that ends a `main`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// The number of names that a help text lists.
const LISTED_NAMES: usize = 20;

/// The longest name that is compared. Names come from files, and the time to compare grows with the
/// square of their length.
const LONGEST_NAME: usize = 256;

/// Returns the candidate that a name most likely stands for, if it is a likely typo.
///
/// At most a third of all letters of the two names may be in one of them only. Capital letters
/// count like small ones. A path without its first parts also stands for the whole path.
///
/// ```
/// use estimand_tensor::nearest_name;
/// assert_eq!(nearest_name("sice", ["age", "size"]).as_deref(), Some("size"));
/// assert_eq!(nearest_name("bias", ["dnn/kernel", "dnn/bias"]).as_deref(), Some("dnn/bias"));
/// assert_eq!(nearest_name("fare", ["age", "size"]), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let wanted = letters(name);
    let distance = |known: &str| {
        if name.len().max(known.len()) > LONGEST_NAME {
            return None;
        }
        if !name.is_empty() && known.strip_suffix(name).is_some_and(|start| start.ends_with('/')) {
            return Some(1);
        }
        let known = letters(known);
        let distance = edit_distance(&wanted, &known);
        (distance * 3 <= wanted.len() + known.len()).then_some(distance)
    };
    let near = known.into_iter().filter_map(|known| Some((distance(known)?, known)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known.to_string())
}

/// The letters of a name, all small.
fn letters(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// The number of letters to remove and to add that turn one name into another.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let kept = diagonal;
            diagonal = row[j + 1];
            row[j + 1] = if from == to { kept } else { row[j].min(diagonal) + 1 };
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_what_where_help() {
        let e = Error::shape("MatMul of [2, 3] and [4, 5]").context("in scope `dnn`").help("transpose one of them");
        assert_eq!(e.to_string(), "MatMul of [2, 3] and [4, 5]\n  in scope `dnn`\n  help: transpose one of them");
    }

    #[test]
    fn nearest_variable_is_suggested_only_when_close() {
        let known = ["dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias"];
        let e = Error::missing_variable("dnn/hiddenlayer_0/kernal", known);
        assert!(e.to_string().contains("did you mean `dnn/hiddenlayer_0/kernel`?"), "{e}");
        assert_eq!(nearest_name("zzz", known), None);
    }

    #[test]
    fn edit_distance_by_hand() {
        let distance = |a: &str, b: &str| edit_distance(&letters(a), &letters(b));
        // k and s, e and i, and the last g: of "kitten", "ittn" stays.
        assert_eq!(distance("kitten", "sitting"), 5);
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("", "")), (3, 3, 0));
        assert_eq!((distance("lable", "label"), distance("AGE", "gae"), distance("ca", "abc")), (2, 2, 3));
    }

    #[test]
    fn a_name_is_suggested_only_if_it_is_a_likely_typo() {
        let nearest = |name: &str, known: &[&str]| nearest_name(name, known.iter().copied());
        let near = [
            ("sice", "size"),
            ("aeg", "age"),
            ("Age", "age"),
            ("xx", "x"),
            ("probabilitis", "probabilities"),
            ("wroker", "worker"),
            ("LEARNING_RATE", "learning_rate"),
            ("int64", "i64"),
            ("number", "numeric"),
            ("logits/BiasAdd", "dnn/logits/BiasAdd"),
        ];
        for (name, known) in near {
            assert_eq!(nearest(name, &["somewhere", known]).as_deref(), Some(known), "{name}");
        }
        let far = [("fare", "age"), ("fare", "sex"), ("x", "y"), ("sex", "age"), ("age", "wage_per_hour"), ("", "a")];
        for (name, known) in far {
            assert_eq!(nearest(name, &[known]), None, "{name}");
        }
        // The nearest of several, and of equally near ones the first.
        assert_eq!(nearest("hour", &["houses", "hours", "your"]).as_deref(), Some("hours"));
        assert_eq!(nearest("a".repeat(300).as_str(), &["a".repeat(301).as_str()]), None);
    }

    #[test]
    fn a_line_is_shown_once() {
        let site = Location::caller();
        let line = format!("at {}:{}", site.file(), site.line());
        let error = Error::config("wrong").context(format!("in column `x`, made {line}")).at(site).at(site);
        assert_eq!(error.to_string(), format!("wrong\n  in column `x`, made {line}"));
        assert_eq!(error.at_unless_placed(Location::caller()).to_string().matches("error.rs").count(), 1);
        assert_eq!(Error::config("wrong").at_unless_placed(site).to_string(), format!("wrong\n  {line}"));
    }
}
