//! `Setting`: a setting of a constraint or rule, for those who write them down.

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// On or off.
    Flag(bool),
    /// A number.
    Number(f64),
    /// Whole numbers, such as axes.
    Integers(Vec<i64>),
}
