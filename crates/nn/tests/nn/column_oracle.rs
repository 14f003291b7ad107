//! Generated configurations of columns against TensorFlow's own: `oracles/fixtures/columns.txt`,
//! which `oracles/gen/columns.py` explains.

use std::collections::BTreeMap;
use std::path::PathBuf;

use estimand_engine::Session;
use estimand_graph::{Combiner, Graph, Tensor};
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_tensor::{Array, Batch, DType, Ragged, Strings};

use super::column_cases::{Fed, ids};

const CASES: &str = include_str!("../../../../oracles/fixtures/columns.txt");

/// The bytes of a string token.
fn text(token: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = token.strip_prefix('\'').unwrap().bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            plain => bytes.push(plain),
        }
    }
    bytes
}

fn list<T: std::str::FromStr>(words: &str, separator: char) -> Vec<T> {
    words.split(separator).filter(|w| *w != "-").map(|w| w.parse().unwrap_or_else(|_| panic!("{w}"))).collect()
}

/// The tokens of a line as an array.
fn array(dtype: &str, dims: Vec<usize>, tokens: &str) -> Array {
    match dtype {
        "str" => {
            let strings: Strings = tokens.split(' ').filter(|t| *t != "-").map(text).collect();
            Array::from_string_list(dims, strings)
        }
        "i64" => Array::from_vec(dims, list::<i64>(tokens, ' ')),
        _ => Array::from_vec(dims, list::<f32>(tokens, ' ')),
    }
    .unwrap()
}

/// The words of a column, read from the left.
struct Words<'a> {
    words: std::str::SplitWhitespace<'a>,
    /// The file of a vocabulary.
    file: PathBuf,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        self.words.next().expect("a column's words end too early")
    }

    fn number<T: std::str::FromStr>(&mut self) -> T {
        let word = self.next();
        word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
    }

    fn optional<T: std::str::FromStr>(&mut self) -> Option<T> {
        match self.next() {
            "-" => None,
            word => Some(word.parse().unwrap_or_else(|_| panic!("{word} is no number"))),
        }
    }

    fn dtype(&mut self) -> DType {
        match self.next() {
            "str" => DType::Str,
            "i64" => DType::I64,
            _ => DType::F32,
        }
    }

    fn numeric(&mut self) -> NumericColumn {
        let (key, dims) = (self.next(), list::<usize>(self.next(), ','));
        let column = numeric_column(key).shape(dims).dtype(self.dtype());
        match self.next() {
            "zscore" => column.z_score(1.5, 2.5),
            "minmax" => column.min_max(-3.0, 9.0),
            "log" => column.normalizer(|x| x.cast(DType::F32).abs().log1p()),
            "square" => column.normalizer(|x| x * x),
            _ => column,
        }
    }

    fn terms(&mut self) -> TermList {
        let n: usize = self.number();
        let tokens: Vec<&str> = (0..n).map(|_| self.next()).collect();
        match tokens[0].starts_with('\'') {
            true => tokens.iter().map(|t| text(t)).collect::<Vec<_>>().into(),
            false => tokens.iter().map(|t| t.parse::<i64>().unwrap()).collect::<Vec<_>>().into(),
        }
    }

    fn combiner(&mut self) -> Combiner {
        combiner(self.next())
    }

    /// A cross's key.
    fn key(&mut self) -> ColumnKey {
        let mut ahead = self.words.clone();
        match ahead.next() {
            Some("=") => {
                self.next();
                ColumnKey::from(self.next())
            }
            _ => ColumnKey::from(self.column(false)),
        }
    }

    /// Two columns with one table.
    fn shared(&mut self) -> Vec<FeatureColumn> {
        let (dimension, combiner, norm, n) = (self.number(), self.combiner(), self.optional::<f64>(), self.number());
        let columns = [self.next(), self.next()].map(|key| categorical_column_with_identity(key, n));
        let shared = shared_embeddings(&columns, dimension).combiner(combiner);
        let shared = norm.map_or(shared.clone(), |n| shared.max_norm(n));
        shared.columns().into_iter().map(Into::into).collect()
    }

    /// A column; of steps if that is what it is for.
    fn column(&mut self, steps: bool) -> FeatureColumn {
        match self.next() {
            "numeric" => self.numeric().into(),
            "bucketized" => {
                let n: usize = self.number();
                let boundaries: Vec<f64> = (0..n).map(|_| self.number()).collect();
                assert_eq!(self.next(), "numeric");
                bucketized_column(&self.numeric(), boundaries).into()
            }
            "identity" => {
                let column = categorical_column_with_identity(self.next(), self.number());
                let default: Option<i64> = self.optional();
                step(default.map_or(column.clone(), |d| column.default_value(d)), steps)
            }
            "list" => {
                let (key, default, n_oov) = (self.next(), self.optional::<i64>(), self.number());
                let column = categorical_column_with_vocabulary_list(key, self.terms()).n_oov_buckets(n_oov);
                step(default.map_or(column.clone(), |d| column.default_value(d)), steps)
            }
            "file" => {
                let (key, default, n_oov) = (self.next(), self.optional::<i64>(), self.number());
                let size: Option<usize> = self.optional();
                let TermList::Text(terms) = self.terms() else { panic!("a file of integers") };
                std::fs::write(&self.file, terms.iter().collect::<Vec<_>>().join(&b'\n')).unwrap();
                let mut column = categorical_column_with_vocabulary_file(key, &self.file).n_oov_buckets(n_oov);
                if let Some(size) = size {
                    column = column.vocabulary_size(size);
                }
                let column = default.map_or(column.clone(), |d| column.default_value(d));
                // The next column has another file of this name.
                column.check().unwrap();
                step(column, steps)
            }
            "hash" => {
                let column = categorical_column_with_hash_bucket(self.next(), self.number()).dtype(self.dtype());
                step(column, steps)
            }
            "cross" => {
                let (size, hash_key, n) = (self.number(), self.number(), self.number::<usize>());
                let keys: Vec<ColumnKey> = (0..n).map(|_| self.key()).collect();
                crossed_column(keys, size).hash_key(hash_key).into()
            }
            "weighted" => {
                let key = self.next();
                weighted_categorical_column(self.column(false), key).into()
            }
            "indicator" => indicator_column(self.column(steps)).into(),
            "embedding" => {
                let (dimension, combiner, norm) = (self.number(), self.combiner(), self.optional::<f64>());
                let column = embedding_column(self.column(steps), dimension).combiner(combiner);
                norm.map_or(column.clone(), |n| column.max_norm(n)).into()
            }
            "steps" => self.column(true),
            "numbers" => {
                let (key, n, default) = (self.next(), self.number::<usize>(), self.number());
                sequence_numeric_column(key).shape([n]).default_value(default).into()
            }
            other => panic!("the fixture has a column `{other}` that the test does not know"),
        }
    }
}

fn step<C: Into<FeatureColumn> + Steps>(column: C, steps: bool) -> FeatureColumn {
    if steps { SequenceCategoricalColumn::of(column).into() } else { column.into() }
}

fn combiner(word: &str) -> Combiner {
    match word {
        "sum" => Combiner::Sum,
        "mean" => Combiner::Mean,
        "sqrtn" => Combiner::SqrtN,
        other => panic!("{other}"),
    }
}

/// The lines of a case by their first word.
struct Case<'a> {
    head: Vec<&'a str>,
    lines: Vec<(&'a str, &'a str)>,
}

impl<'a> Case<'a> {
    fn parse(text: &'a str) -> Case<'a> {
        let mut lines = text.lines();
        let head = lines.next().unwrap().split(' ').collect();
        Case { head, lines: lines.map(|line| line.split_once(' ').unwrap()).collect() }
    }

    fn with<'b>(&'b self, first: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        self.lines.iter().filter(move |(word, _)| *word == first).map(|(_, rest)| *rest)
    }

    fn columns(&self, file: &std::path::Path) -> Vec<FeatureColumn> {
        let columns = |line: &'a str| {
            let mut words = Words { words: line.split_whitespace(), file: file.to_path_buf() };
            let columns = match line.strip_prefix("shared ") {
                Some(rest) => {
                    words.words = rest.split_whitespace();
                    words.shared()
                }
                None => vec![words.column(false)],
            };
            assert_eq!(words.words.next(), None, "{line}");
            columns
        };
        self.with("column").flat_map(columns).collect()
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        for line in self.with("dense") {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            batch = batch.with_feature(words[0], array(words[1], list(words[2], ','), words[3])).unwrap();
        }
        for line in self.with("ragged") {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let splits: Vec<i64> = list(words[2], ',');
            let values = array(words[1], vec![splits[splits.len() - 1] as usize], words[3]);
            batch = batch.with_feature(words[0], Ragged::new(values, splits).unwrap()).unwrap();
        }
        batch
    }

    fn weights(&self) -> BTreeMap<&'a str, Array> {
        let weight = |line: &'a str| {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            (words[0], array("f32", list(words[2], ','), words[3]))
        };
        self.with("weight").map(weight).collect()
    }
}

/// Features that are fed, or parsed from examples by the columns' own spec.
fn fed(case: &Case<'_>, columns: &[FeatureColumn]) -> Fed {
    let examples: Vec<Vec<u8>> = case.with("example").map(text).collect();
    if examples.is_empty() {
        return Fed::new(&case.batch());
    }
    let graph = Graph::new();
    let rows = graph.constant(Array::from_strings([examples.len()], &examples).unwrap());
    let parsed = rows.parse_example(&make_parse_example_spec(columns).unwrap());
    Fed { features: Inputs::of(&graph, "feature", parsed), graph, feeds: Vec::new() }
}

fn run(fed: &Fed, fetches: &[&Tensor], weights: &BTreeMap<&str, Array>, what: &str) -> Vec<Array> {
    fed.graph.check().unwrap_or_else(|e| panic!("{what}\n{e}"));
    let own: Vec<String> = fed.graph.body().variables().iter().map(|(_, v)| v.name.clone()).collect();
    let mut names: Vec<&str> = own.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, weights.keys().copied().collect::<Vec<_>>(), "variables of\n{what}");
    let mut session = Session::new(&fed.graph).unwrap();
    for (name, value) in weights {
        session.set_value(name, value).unwrap_or_else(|e| panic!("{what}\n{e}"));
    }
    let feeds: Vec<(&Tensor, Array)> = fed.feeds.iter().map(|(tensor, array)| (tensor, array.clone())).collect();
    session.run(fetches, &feeds).unwrap_or_else(|e| panic!("{what}\n{e}"))
}

/// Whether floats agree within 1e-6, relative to those above 1; sums, in which large terms cancel,
/// relative to the largest of all.
fn assert_close(what: &str, actual: &Array, line: &str, sums: bool) {
    let (dims, values) = line.split_once(' ').unwrap();
    assert_eq!(actual.dims(), list::<usize>(dims, ','), "{what}");
    let values = list::<f32>(values, ' ');
    let largest = if sums { values.iter().fold(1f32, |most, v| most.max(v.abs())) } else { 1.0 };
    for (i, (a, e)) in actual.as_slice::<f32>().unwrap().iter().zip(values).enumerate() {
        assert!(
            (a - e).abs() <= 1e-6 * e.abs().max(largest),
            "element {i} is {a}, TensorFlow has {e}\n{what}\n{actual:?}"
        );
    }
}

#[test]
fn columns_agree_with_tensorflow() {
    let file = std::env::temp_dir().join(format!("estimand-column-oracle-{}.txt", std::process::id()));
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for source in CASES.split("\ncase ").skip(1) {
        let case = Case::parse(source);
        let columns = case.columns(&file);
        *seen.entry(case.head[1]).or_default() += 1;
        if case.head[1] == "ids" {
            let (splits, values) = case.with("ids").next().unwrap().split_once(' ').unwrap();
            let (splits, values) = (list::<usize>(splits, ','), list::<i64>(values, ' '));
            let rows: Vec<Vec<i64>> = splits.windows(2).map(|row| values[row[0]..row[1]].to_vec()).collect();
            assert_eq!(ids(&columns[0], &case.batch()), rows, "{source}");
            continue;
        }
        let fed = fed(&case, &columns);
        let mut fetches = Vec::new();
        match case.head[1] {
            "dense" => fetches.push(input_layer(&fed.features, &columns)),
            "linear" => {
                let model = LinearModel::new(&columns).sparse_combiner(combiner(case.head[2]));
                fetches.push(model.units(case.head[3].parse().unwrap()).apply(&fed.features).logits);
            }
            _ => fetches.extend(<[Tensor; 2]>::from(sequence_input_layer(&fed.features, &columns))),
        }
        let out = run(&fed, &fetches.iter().collect::<Vec<_>>(), &case.weights(), source);
        assert_close(source, &out[0], case.with("out").next().unwrap(), case.head[1] == "linear");
        if let Some(lengths) = case.with("lengths").next() {
            assert_eq!(out[1].as_slice::<i64>().unwrap(), list::<i64>(lengths, ' '), "{source}");
        }
    }
    let _ = std::fs::remove_file(&file);
    assert!(seen.values().sum::<usize>() == 500 && seen.len() == 4, "{seen:?}");
}
