//! Random host programs: features of all kinds are converted to ids, looked up and combined.

use estimand_graph::{
    Combiner, CrossKey, Encoding, Graph, Initializer, Lookup, LookupTable, Parsed, RaggedTensor, Tensor,
};
use estimand_tensor::{Array, BatchSpec, DType, Dim, Error, FeatureSpec, Result, Shape, Strings};
use estimand_wire::example::ExampleBuilder;

use super::RandomProgram;
use super::dice::Dice;

/// Generates the program of a seed: two to four features, ragged or dense, some missing, empty or
/// with odd bytes. Each is hashed, crossed or looked up, and then embedded or counted.
pub fn generate_preprocessing(seed: u64) -> Result<RandomProgram> {
    let mut dice = Dice::new(seed);
    let batch = dice.pick(&[0, 1, 1, 2, 3, 5, 8]);
    let longest = dice.pick(&[0, 1, 3, 6, 6, 40, 1000]);
    let mut maker = Maker {
        graph: Graph::new(),
        dice,
        batch,
        longest,
        feeds: Vec::new(),
        fetches: Vec::new(),
        wrt: Vec::new(),
        losses: Vec::new(),
    };
    maker.run()?;
    let Maker { graph, feeds, fetches, wrt, losses, .. } = maker;
    let mut loss = graph.constant(0.0f32);
    for part in &losses {
        loss = loss + (part * &part.ones_like().cumsum(0)).sum();
    }
    graph.check()?;
    Ok(RandomProgram { graph, feeds, fetches, loss, wrt })
}

struct Maker {
    graph: Graph,
    dice: Dice,
    batch: usize,
    longest: usize,
    feeds: Vec<(Tensor, Array)>,
    fetches: Vec<Tensor>,
    wrt: Vec<Tensor>,
    losses: Vec<Tensor>,
}

/// Frequent words and odd ones.
const WORDS: [&[u8]; 12] =
    [b"a", b"b", b"wide", b"deep", b"caf\xc3\xa9", b"\xff\x00\xfe", b" ", b"", b"-1", b"12", b"x\ny", b"\xe2\x82"];

/// A vocabulary file with some of these words.
const VOCABULARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracles/fixtures/vocabulary.txt");

impl Maker {
    fn run(&mut self) -> Result<()> {
        let mut words = Vec::new();
        let mut ids = Vec::new();
        for i in 0..self.dice.between(2, 4) {
            let name = format!("feature_{i}");
            match self.dice.below(4) {
                0 => words.push(self.ragged(&name, DType::Str)?),
                1 => {
                    let dense = self.dense(&name, DType::Str)?;
                    let all = self.dice.chance(30);
                    words.push(if all { RaggedTensor::from_rows(&dense) } else { RaggedTensor::from_dense(&dense) });
                }
                2 => ids.push(self.ragged(&name, DType::I64)?),
                _ => {
                    let dtype = self.dice.pick(&[DType::I64, DType::I32]);
                    let dense = self.dense(&name, dtype)?;
                    ids.push(RaggedTensor::from_dense(&dense));
                }
            }
        }
        if self.dice.chance(50) {
            let (text, numbers) = self.examples()?;
            words.push(text);
            ids.push(numbers);
        }
        if words.is_empty() {
            words.push(self.ragged("words", DType::Str)?);
        }
        for feature in words.clone().iter().chain(&ids.clone()) {
            let made = self.ids(feature)?;
            self.fetches.extend([made.0.values.clone(), made.0.row_splits.clone()]);
            self.embed(&made.0, made.1)?;
        }
        if words.len() + ids.len() > 1 {
            self.cross(&words, &ids)?;
        }
        self.numbers()?;
        let first = words[0].clone();
        self.edit(&first)?;
        if words.len() > 1 {
            let joined = RaggedTensor::concat(&words.iter().collect::<Vec<_>>());
            let (terms, places) = joined.values.unique();
            self.fetches.extend([joined.values, joined.row_splits, terms, places]);
        }
        Ok(())
    }

    /// Random row splits.
    fn splits(&mut self) -> Vec<i64> {
        let mut splits = vec![0];
        for _ in 0..self.batch {
            let n = if self.dice.chance(25) { 0 } else { self.dice.between(0, self.longest) };
            splits.push(splits[splits.len() - 1] + n as i64);
        }
        splits
    }

    fn values(&mut self, dtype: DType, dims: &[usize]) -> Result<Array> {
        let n = dims.iter().product();
        match dtype {
            DType::Str => {
                let mut strings = Strings::default();
                for _ in 0..n {
                    let word = self.dice.pick(&WORDS);
                    let twice =
                        if self.dice.chance(20) { word.repeat(self.dice.between(1, 40)) } else { word.to_vec() };
                    strings.push(&twice);
                }
                Array::from_string_list(dims, strings)
            }
            // Multiples of a sixteenth: their sums are exact in any order.
            DType::F32 => Array::from_vec(dims, (0..n).map(|_| self.dice.below(65) as f32 / 16.0 - 2.0).collect()),
            _ => {
                let ids: Vec<i64> = (0..n).map(|_| self.dice.below(14) as i64 - 2).collect();
                match dtype {
                    DType::I32 => Array::from_vec(dims, ids.iter().map(|&i| i as i32).collect()),
                    _ => Array::from_vec(dims, ids),
                }
            }
        }
    }

    fn ragged(&mut self, name: &str, dtype: DType) -> Result<RaggedTensor> {
        let splits = self.splits();
        let n = splits[splits.len() - 1] as usize;
        let ragged = self.graph.ragged_placeholder(name, dtype);
        let values = self.values(dtype, &[n])?;
        self.feeds.push((ragged.values.clone(), values));
        self.feeds.push((ragged.row_splits.clone(), Array::from(splits)));
        Ok(ragged)
    }

    fn dense(&mut self, name: &str, dtype: DType) -> Result<Tensor> {
        let width = self.dice.between(1, 3);
        let (shape, dims) = match self.dice.chance(30) {
            true => (Shape::from([Dim::BATCH]), vec![self.batch]),
            false => (Shape::from([Dim::BATCH, width.into()]), vec![self.batch, width]),
        };
        let tensor = self.graph.placeholder(name, dtype, shape);
        let values = self.values(dtype, &dims)?;
        self.feeds.push((tensor.clone(), values));
        Ok(tensor)
    }

    /// Features of serialized Examples, some of which are missing.
    fn examples(&mut self) -> Result<(RaggedTensor, RaggedTensor)> {
        let mut rows = Strings::default();
        for _ in 0..self.batch {
            let mut example = ExampleBuilder::new();
            let n = self.dice.between(0, self.longest.min(20));
            if self.dice.chance(70) {
                let text: Vec<&[u8]> = (0..n).map(|_| self.dice.pick(&WORDS)).collect();
                example = example.strings("text", text);
            }
            if self.dice.chance(70) {
                let numbers: Vec<i64> = (0..n).map(|_| self.dice.below(14) as i64 - 2).collect();
                example = example.ints("numbers", &numbers);
            }
            if self.dice.chance(70) {
                let place = self.dice.reals(2, -1.0, 1.0);
                example = example.floats("place", &place);
            }
            if self.dice.chance(30) {
                example = example.strings("title", ["odd \u{e9}"]).nothing("unknown");
            }
            rows.push(&example.build());
        }
        let serialized = self.graph.placeholder("examples", DType::Str, [Dim::BATCH]);
        self.feeds.push((serialized.clone(), Array::from(rows)));
        let spec = BatchSpec::from([
            ("place".to_string(), FeatureSpec::dense_or(Array::from([0.5f32, -0.5]))),
            ("text".to_string(), FeatureSpec::ragged(DType::Str)),
            ("title".to_string(), FeatureSpec::dense_or(Array::from_strings([], ["none"])?)),
            ("numbers".to_string(), FeatureSpec::ragged(DType::I64)),
        ]);
        let parsed = serialized.parse_example(&spec);
        for name in ["place", "title"] {
            self.fetches.push(parsed[name].values().clone());
        }
        let (Parsed::Ragged(text), Parsed::Ragged(numbers)) = (&parsed["text"], &parsed["numbers"]) else {
            return Err(Error::internal("a ragged feature is parsed as ragged"));
        };
        self.fetches.push(numbers.values.as_string());
        self.fetches.extend([text, numbers].map(|r| r.row_splits.clone()));
        Ok((text.clone(), numbers.clone()))
    }

    /// The ids of a feature, and the number of possible ids.
    fn ids(&mut self, feature: &RaggedTensor) -> Result<(RaggedTensor, usize)> {
        let is_text = feature.values.dtype() == DType::Str;
        let n = self.dice.pick(&[1, 7, 100]);
        let (values, size) = match self.dice.below(3) {
            0 if is_text => (feature.values.hash_bucket_strong(n, [7, 1 << 40]), n as usize),
            1 => {
                let table = match is_text {
                    true if self.dice.chance(50) => LookupTable::from_file(VOCABULARY, None, DType::Str)?,
                    true => LookupTable::from_list(&WORDS[..8])?,
                    false => LookupTable::from_ints([3, -2, 0, 5])?,
                };
                let table = match self.dice.below(3) {
                    0 => table,
                    1 => table.default_id(1),
                    _ => table.n_oov_buckets(3)?,
                };
                let ids = table.lookup(&feature.values);
                let names = table.reverse(&ids, "UNK");
                if !is_text {
                    let known = LookupTable::from_list(["UNK", "5", "0", "-2", "3"])?;
                    self.fetches.push(known.lookup_known(&names, "name"));
                }
                self.fetches.extend([names, ids.ensure_between(-1.0, 1e6, "id"), ids.boolean_mask(&ids.greater(0.0))]);
                (ids, table.n_ids())
            }
            2 if !is_text => (feature.values.clone(), 12),
            _ => (feature.values.hash_bucket(n), n as usize),
        };
        Ok((feature.with_values(values), size))
    }

    /// Looks ids up in a table, or counts them.
    fn embed(&mut self, ids: &RaggedTensor, size: usize) -> Result<()> {
        // Rounding errors add up over long rows, except in sums of whole numbers, such as the
        // gradient of a plain sum.
        let is_long = self.longest > 100;
        let weights = match !is_long && self.dice.chance(40) {
            true => {
                let n = self.rows_of(&ids.values)?;
                let weights = self.graph.placeholder("weights", DType::F32, [ids.values.shape().dims()[0]]);
                let values = self.values(DType::F32, &[n])?;
                self.feeds.push((weights.clone(), values));
                Some(weights)
            }
            false => None,
        };
        if self.dice.chance(30) {
            self.fetches.push(ids.multi_hot(size.max(2) - 1, weights.as_ref()));
        }
        if self.dice.chance(20) {
            let per_step = self.dice.between(1, 3);
            let n_steps = (ids.row_lengths().max().maximum(0.0) + (per_step - 1) as f64).floor_div(per_step as f64);
            self.fetches.push(ids.to_steps(&n_steps, &[per_step], -1.0));
        }
        let width = self.dice.between(1, 5);
        let name = format!("table_{}", self.wrt.len());
        let table = self.graph.variable(&name, [size, width], Initializer::RandomUniform { low: -1.0, high: 1.0 });
        let combiner = self.dice.pick(&[Combiner::Sum, Combiner::Mean, Combiner::SqrtN]);
        let mut how = Lookup::new(if is_long { Combiner::Sum } else { combiner });
        if let Some(weights) = &weights {
            how = how.weights(weights);
        }
        if !is_long && self.dice.chance(30) {
            how = how.max_norm(0.7);
        }
        let rows = table.lookup(ids, how.clone());
        self.fetches.push(rows.clone());
        self.losses.push(rows);
        if !is_long && self.dice.chance(30) {
            // A second lookup in the same table.
            self.losses.push(table.lookup(ids, how).tanh());
        }
        self.wrt.push(table);
        Ok(())
    }

    /// The number of fed values for the axis of a placeholder, or for an axis that a dense feature
    /// keeps.
    fn rows_of(&mut self, values: &Tensor) -> Result<usize> {
        let feeds: Vec<(&Tensor, Array)> = self.feeds.iter().map(|(t, a)| (t, a.clone())).collect();
        Ok(estimand_engine::Session::new(&self.graph)?.run(&[values], &feeds)?[0].dims()[0])
    }

    fn cross(&mut self, words: &[RaggedTensor], ids: &[RaggedTensor]) -> Result<()> {
        // Crosses grow as products: long rows are reduced to the values that pass a hash.
        let thin = |feature: &RaggedTensor| feature.filter(&feature.values.hash_bucket(29).less(2.0));
        let mut keys: Vec<CrossKey> = words.iter().chain(ids).take(2).map(|f| CrossKey::Ragged(thin(f))).collect();
        if self.dice.chance(50) {
            let dtype = self.dice.pick(&[DType::Str, DType::I64]);
            let dense = self.graph.placeholder("dense_key", dtype, [Dim::BATCH, 2.into()]);
            let values = self.values(dtype, &[self.batch, 2])?;
            self.feeds.push((dense.clone(), values));
            let at = self.dice.below(keys.len() + 1);
            keys.insert(at, CrossKey::Dense(dense));
        }
        let n = self.dice.pick(&[1000, 1, 0]);
        let key = self.dice.pick(&[0, 99]);
        let crossed = self.graph.cross(&keys, n, key);
        self.fetches.extend([crossed.values, crossed.row_splits]);
        Ok(())
    }

    /// Edits, measures, splits and joins strings.
    fn edit(&mut self, feature: &RaggedTensor) -> Result<()> {
        let x = &feature.values;
        let unit = if self.dice.chance(50) { Encoding::Utf8 } else { Encoding::Bytes };
        let edited = match self.dice.below(6) {
            0 => x.lower(unit),
            1 => x.upper(unit),
            2 => x.strip(),
            3 => x.substr(0, 3, unit),
            4 => x.regex_replace("[aeiou]+", r"<\0>"),
            _ => x.regex_replace_first("(.)e", r"\1E"),
        };
        let space = self.dice.pick(&["", "e", "de"]);
        let pieces = edited.string_split(space, if self.dice.chance(50) { -1 } else { 2 });
        let joined = Tensor::string_join(&[&edited, &self.graph.constant(Array::from_strings([], ["+"])?), x], "/");
        let matches = x.regex_full_match("[a-z]+");
        let said = LookupTable::from_list(["-7", " 12", "300 ", "9007199254740993"])?;
        let numbers = said.reverse(&x.hash_bucket(5), "0");
        self.fetches.extend([numbers.to_number(DType::F32), numbers.to_number(DType::I64)]);
        self.fetches.extend([joined.reduce_join([0], ","), pieces.values, pieces.row_splits, joined, matches]);
        Ok(())
    }

    /// A ragged feature of numbers, reduced by row.
    fn numbers(&mut self) -> Result<()> {
        let numbers = self.ragged("numbers", DType::F32)?;
        let (sum, mean) = (numbers.sum(), numbers.mean());
        self.fetches.push(numbers.values.bucketize(&[-1.0, 0.0, 0.5, 1.0]));
        self.fetches.extend([numbers.max(), numbers.min(), numbers.row_lengths(), sum.clone(), mean.clone()]);
        self.losses.extend([sum, mean]);
        self.wrt.push(numbers.values);
        Ok(())
    }
}
