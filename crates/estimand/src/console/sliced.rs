//! Metrics of an evaluation as tables: one metric per row, slices as columns.

use std::collections::{BTreeMap, BTreeSet};

use super::Table;

/// The maximum number of slices in one table; more continue in another table.
const N_SLICES: usize = 5;

/// Makes the tables of metrics by key. Slices (`accuracy/sex=f` beside `accuracy`) have a column
/// each.
pub(crate) fn sliced<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<Table> {
    let values: BTreeMap<&str, f64> = values.into_iter().collect();
    let slice = |key: &&'a str| Some(slice_of(key, |whole| values.contains_key(whole))?.1);
    let slices: Vec<&str> = values.keys().filter_map(slice).collect::<BTreeSet<_>>().into_iter().collect();
    if slices.is_empty() {
        return vec![Table::new(values)];
    }
    let keys: Vec<&str> = values.keys().copied().filter(|key| slice(key).is_none()).collect();
    let table = |(i, slices): (usize, &[&str])| {
        let all = (i == 0).then_some("all");
        let mut table = Table::with_header([""], all.into_iter().chain(slices.iter().copied()));
        for key in &keys {
            let of_all = all.map(|_| values.get(key).copied());
            let of_slices = slices.iter().map(|slice| values.get(format!("{key}/{slice}").as_str()).copied());
            let numbers: Vec<Option<f64>> = of_all.into_iter().chain(of_slices).collect();
            if numbers.iter().any(Option::is_some) {
                table = table.row([*key], numbers);
            }
        }
        table
    };
    slices.chunks(N_SLICES).enumerate().map(table).collect()
}

/// Splits a key into the metric of all rows and the slice, if such a metric exists.
pub(crate) fn slice_of(key: &str, exists: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let parts = key.rsplit_once('/').filter(|(_, slice)| slice.contains('='));
    parts.filter(|(whole, _)| exists(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> String {
        sliced(values).iter().map(Table::to_string).collect::<Vec<_>>().join("\n\n")
    }

    #[test]
    fn slices_stand_side_by_side() {
        let values = [
            ("loss", 100.0),
            ("accuracy", 0.75),
            ("accuracy/age=30", 0.5),
            ("accuracy/sex=m", 1.0),
            ("average_loss", 12.5),
            ("average_loss/sex=m", 0.25),
            ("label/a=b", 3.0),
        ];
        let expected = [
            "                 all  age=30  sex=m",
            "accuracy        0.75     0.5   1",
            "average_loss   12.5            0.25",
            // There is no `label`.
            "label/a=b       3",
            "loss          100",
        ];
        assert_eq!(text(values), expected.join("\n"));
        assert_eq!(text([("loss", 0.5), ("auc", 0.75)]), "auc   0.75\nloss  0.5");
    }

    #[test]
    fn many_slices_go_on_below() {
        let names: Vec<String> = (0..7).map(|i| format!("m/g={i}")).collect();
        let all = names.iter().map(String::as_str).chain(["m", "loss"]);
        let expected = [
            "      all  g=0  g=1  g=2  g=3  g=4",
            "loss  0.5",
            "m     0.5  0.5  0.5  0.5  0.5  0.5",
            "",
            "   g=5  g=6",
            "m  0.5  0.5",
        ];
        assert_eq!(text(all.map(|name| (name, 0.5))), expected.join("\n"));
    }
}
