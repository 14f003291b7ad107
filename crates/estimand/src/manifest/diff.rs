//! Describes the differences of two manifests.

use std::fmt;

use estimand_graph::meaning::{Listed, Listing, Meaning};

use super::{Entry, Manifest, VERSION};

/// The maximum number of values of one list that a message shows.
const SHOWN: usize = 3;

/// One difference: the entry, its old value and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    place: String,
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

impl Manifest {
    /// Returns the differences of a later manifest, including entries that only one of them has.
    ///
    /// Optional entries are compared only if both manifests have them. If this manifest has an
    /// older version, all entries are treated as optional, because that version did not write some
    /// of them.
    pub fn diff(&self, now: &Manifest) -> Vec<Difference> {
        self.differences(now, self.version == VERSION)
    }

    /// Returns the differences in the entries that both have. A model for prediction, for example,
    /// has no labels.
    pub fn diff_of_common(&self, now: &Manifest) -> Vec<Difference> {
        self.differences(now, false)
    }

    fn differences(&self, now: &Manifest, all: bool) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut add = |entry: &Entry, text: String| {
            let difference = Difference { place: entry.place(), text };
            // A column used in two layers is reported once.
            if !found.contains(&difference) {
                found.push(difference);
            }
        };
        for was in &self.entries {
            match now.entries.iter().find(|is| is.is_same_place(was)) {
                Some(is) => changes(was, is, all).into_iter().for_each(|text| add(was, text)),
                None if all && was.is_required => {
                    was.values.iter().for_each(|value| add(was, format!("was {value}, and is not there any more")));
                }
                None => {}
            }
        }
        let is_new = |is: &&Entry| !self.entries.iter().any(|was| was.is_same_place(is));
        for is in now.entries.iter().filter(|is| all && is.is_required).filter(is_new) {
            is.values.iter().for_each(|value| add(is, format!("is {value}, and was not there")));
        }
        found
    }
}

impl Entry {
    /// Returns the differences of a later entry.
    pub(crate) fn diff(&self, now: &Entry) -> Vec<Difference> {
        changes(self, now, true).into_iter().map(|text| Difference { place: now.place(), text }).collect()
    }
}

fn changes(was: &Entry, is: &Entry, all: bool) -> Vec<String> {
    let without = |values: &[Meaning], others: &[Meaning]| -> Vec<Meaning> {
        values.iter().filter(|value| !others.contains(value)).cloned().collect()
    };
    let (gone, come) = (without(&was.values, &is.values), without(&is.values, &was.values));
    let mut texts: Vec<String> = gone.iter().zip(&come).map(|(was, now)| change(&is.aspect, was, now)).collect();
    if all {
        let n = texts.len();
        texts.extend(gone[n..].iter().map(|value| format!("was {value}, and is not there any more")));
        texts.extend(come[n..].iter().map(|value| format!("is {value}, and was not there")));
    }
    texts
}

fn change(aspect: &str, was: &Meaning, is: &Meaning) -> String {
    match (was, is) {
        (Meaning::List(was), Meaning::List(is)) => list_change(aspect, was, is),
        _ => format!("was {was}, is {is}"),
    }
}

fn list_change(aspect: &str, was: &Listing, is: &Listing) -> String {
    let one = match was.shown().first().or(is.shown().first()) {
        Some((_, Listed::Float(_))) if aspect.starts_with("boundaries") => "boundary",
        Some((_, Listed::Float(_))) => "number",
        _ => "id",
    };
    let mut texts = Vec::new();
    if was.len() != is.len() {
        texts.push(format!("had {} {}, has {}", was.len(), was.noun(), is.len()));
    }
    let find = |list: &Listing, number: usize| {
        list.shown().binary_search_by_key(&number, |(number, _)| *number).ok().map(|i| list.shown()[i].1.clone())
    };
    let mut n_changed = 0;
    for (number, old) in was.shown() {
        let Some(new) = find(is, *number).filter(|new| new != old) else { continue };
        n_changed += 1;
        if n_changed <= SHOWN {
            texts.push(format!("{one} {number} was {old}, is {new}"));
        }
    }
    if n_changed > SHOWN {
        texts.push(format!("and {} more", n_changed - SHOWN));
    }
    if n_changed == 0 {
        // Values were only added or removed at the end, or the changed value is not in the stored
        // sample.
        match (find(was, is.len()), find(is, was.len())) {
            (Some(old), _) => texts.push(format!("{one} {} was {old}", is.len())),
            (_, Some(new)) => texts.push(format!("{one} {} is {new}", was.len())),
            (None, None) => {
                let (was, is) = (&was.sha256()[..12], &is.sha256()[..12]);
                texts.push(format!("values that are not kept here have changed: their SHA-256 was {was}.., is {is}.."));
            }
        }
    }
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(entries: &[(&str, &str, Meaning)]) -> Manifest {
        let entry = |(about, aspect, value): &(&str, &str, Meaning)| Entry {
            about: about.to_string(),
            at: String::new(),
            aspect: aspect.to_string(),
            is_required: *about != "predictions",
            values: vec![value.clone()],
            variables: Vec::new(),
        };
        Manifest { version: VERSION, entries: entries.iter().map(entry).collect() }
    }

    fn texts(differences: Vec<Difference>) -> Vec<String> {
        differences.iter().map(Difference::to_string).collect()
    }

    fn between(aspect: &str, was: impl Into<Meaning>, is: impl Into<Meaning>) -> Vec<String> {
        let (was, is) =
            (manifest(&[("column `c`", aspect, was.into())]), manifest(&[("column `c`", aspect, is.into())]));
        assert_eq!(was.diff(&is), was.diff_of_common(&is));
        texts(was.diff(&is))
    }

    #[test]
    fn changes_say_what_was_and_what_is() {
        let words = |words: &[&str]| Listing::of_texts(words);
        let numbers = |numbers: &[f64]| Listing::of_floats(numbers);
        let many = |changed: usize| {
            Listing::of_texts((0..9_999).map(|i| if i == changed { -1 } else { i as i64 }.to_string()))
        };
        for (found, expected) in [
            (
                between("vocabulary", words(&["a", "b"]), words(&["a", "c"])),
                "column `c`: vocabulary: id 1 was `b`, is `c`",
            ),
            (
                between("vocabulary", words(&["a", "b"]), words(&["a", "b", "c"])),
                "column `c`: vocabulary: had 2 terms, has 3; id 2 is `c`",
            ),
            (
                between("vocabulary", words(&["a", "b"]), words(&["a"])),
                "column `c`: vocabulary: had 2 terms, has 1; id 1 was `b`",
            ),
            (
                between("vocabulary", words(&["a", "b", "c", "d", "e"]), words(&["b", "c", "d", "e", "a"])),
                "column `c`: vocabulary: id 0 was `a`, is `b`; id 1 was `b`, is `c`; id 2 was `c`, is `d`; and 2 more",
            ),
            (
                between("boundaries of `x`", numbers(&[1.0, 2.5]), numbers(&[1.0, 2.75])),
                "column `c`: boundaries of `x`: boundary 1 was 2.5, is 2.75",
            ),
            (between("mean", 3.0, 3.5), "column `c`: mean: was 3, is 3.5"),
            (between("hash buckets", 100_i64, 200_i64), "column `c`: hash buckets: was 100, is 200"),
            (between("combiner", "sum", "mean"), "column `c`: combiner: was `sum`, is `mean`"),
            (between("vocabulary", 3_i64, words(&["a"])), "column `c`: vocabulary: was 3, is 1 terms (`a`)"),
        ] {
            assert_eq!(found, [expected]);
        }
        let hidden = between("vocabulary", many(5), many(6)).remove(0);
        assert!(hidden.contains("values that are not kept here have changed: their SHA-256 was "), "{hidden}");
        assert_eq!(between("vocabulary", many(5), many(5)), [""; 0]);
        assert_eq!(between("mean", f64::NAN, f64::NAN), [""; 0]);
    }

    #[test]
    fn what_only_one_side_has_counts_when_all_is_compared() {
        let one = manifest(&[("column `c`", "mean", 3.0.into()), ("predictions", "vocabulary", 1_i64.into())]);
        let none = Manifest::default();
        assert_eq!(texts(one.diff(&none)), ["column `c`: mean: was 3, and is not there any more"]);
        assert_eq!(texts(none.diff(&one)), ["column `c`: mean: is 3, and was not there"]);
        assert_eq!(one.diff_of_common(&none), []);
        // An older version did not write some entries.
        let older = Manifest { version: 0, ..none };
        assert_eq!(older.diff(&one), []);
    }
}
