//! Strings, ragged features and lookups through a session: the specification's cases, by hand.

use estimand::graph::{Combiner, Cpu, CrossKey, Lookup, LookupTable, RaggedTensor};
use estimand::prelude::*;
use estimand::tensor::Ragged;

fn floats(array: &Array) -> &[f32] {
    array.as_slice().unwrap()
}

fn assert_near(actual: &Array, expected: &[f32]) {
    let actual = floats(actual);
    let near = actual.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-5);
    assert!(near && actual.len() == expected.len(), "{actual:?} instead of {expected:?}");
}

/// The embedding table of cases 36 to 39.
const TABLE: [f32; 8] = [1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0];

fn table(g: &Graph) -> Tensor {
    g.variable("table", [4, 2], Initializer::Zeros)
}

fn session(g: &Graph) -> Session {
    let mut session = Session::new(g).unwrap();
    session.set_value("table", &Array::from_slice([4, 2], &TABLE).unwrap()).unwrap();
    session
}

/// Cases 36, 37 and 38, with an id below 0 in the empty row, on both ways of feeding.
#[test]
fn lookups_combine_rows() {
    let g = Graph::new();
    let ids = g.ragged_placeholder("ids", DType::I64);
    let dense = g.placeholder("dense", DType::I64, [Dim::BATCH, 3.into()]);
    let from_dense = RaggedTensor::from_dense(&dense);
    let t = table(&g);
    let expected: [(Lookup, [f32; 8]); 4] = [
        (Combiner::Mean.into(), [2.0, 3.5, 7.0, 11.0, 0.0, 0.0, 5.666667, 8.0]),
        (Combiner::Sum.into(), [4.0, 7.0, 14.0, 22.0, 0.0, 0.0, 17.0, 24.0]),
        (Combiner::SqrtN.into(), [2.828427, 4.949748, 9.899495, 15.556349, 0.0, 0.0, 9.814955, 13.856406]),
        (
            Lookup::new(Combiner::Mean).max_norm(4.0),
            [1.528992, 2.714986, 2.147502, 3.374646, 0.0, 0.0, 1.829261, 2.869134],
        ),
    ];
    let fetches: Vec<Tensor> = expected
        .iter()
        .flat_map(|(how, _)| [t.lookup(&ids, how.clone()), t.lookup(&from_dense, how.clone())])
        .collect();
    let fed = Ragged::new(Array::from([0i64, 1, 2, 2, -5, 3, 0, 1]), [0, 2, 4, 5, 8]).unwrap();
    let rows = [[0, 1, -1], [-1, 2, 2], [-1, -1, -1], [3, 0, 1i64]];
    let [values, splits] = ids.feed(&fed);
    let feeds = [values, splits, (&dense, Array::from_vec([4, 3], rows.concat()).unwrap())];
    let out = session(&g).run(&fetches.iter().collect::<Vec<_>>(), &feeds).unwrap();
    for ((_, expected), both) in expected.iter().zip(out.chunks(2)) {
        assert_near(&both[0], expected);
        assert_near(&both[1], expected);
    }
}

/// Case 39, and case 35 as the dense form of the same feature.
#[test]
fn weights_count() {
    let g = Graph::new();
    let ids = g.ragged_placeholder("ids", DType::I64);
    let weights = g.placeholder("weights", DType::F32, [ids.values.shape().dims()[0]]);
    let t = table(&g);
    let lookup = |combiner| t.lookup(&ids, Lookup::new(combiner).weights(&weights));
    let fetches = [
        lookup(Combiner::Mean),
        lookup(Combiner::Sum),
        lookup(Combiner::SqrtN),
        ids.multi_hot(4, Some(&weights)),
        ids.multi_hot(3, None),
    ];
    let fed = Ragged::new(Array::from([0i64, 1, 2, 2, 3, 0]), [0, 2, 4, 6]).unwrap();
    let [values, splits] = ids.feed(&fed);
    let feeds = [values, splits, (&weights, Array::from([2f32, 1.0, 1.0, 3.0, -1.0, 2.0]))];
    let out = session(&g).run(&fetches.each_ref(), &feeds).unwrap();
    assert_near(&out[0], &[1.666667, 3.0, 7.0, 11.0, 1.0, 2.0]);
    assert_near(&out[1], &[5.0, 9.0, 28.0, 44.0, -11.0, -13.0]);
    assert_near(&out[2], &[2.236068, 4.024922, 8.854378, 13.914021, 1.0, 2.0]);
    assert_near(&out[3], &[2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 2.0, 0.0, 0.0, -1.0]);
    // The id 3 is beyond: it counts nowhere.
    assert_near(&out[4], &[1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0]);
}

/// A table that two features share gets the sum of their gradients, as rows: with SGD and rate 1
/// each looked up row falls by its share.
#[test]
fn shared_tables_sum_their_gradients() {
    let g = Graph::new();
    let (a, b) = (g.ragged_placeholder("a", DType::I64), g.ragged_placeholder("b", DType::I64));
    let t = table(&g);
    let loss = (t.lookup(&a, Combiner::Mean) + t.lookup(&b, Combiner::Sum)).sum();
    let train = Optimizer::new(Sgd::default(), 1.0).minimize(&loss);
    let mut session = session(&g);
    // a: [0, 1], [] - halves of rows 0 and 1. b: [1], [1, 3] - twice row 1, once row 3. Row 2 is
    // not touched.
    let fed_a = Ragged::new(Array::from([0i64, 1]), [0, 2, 2]).unwrap();
    let fed_b = Ragged::new(Array::from([1i64, 1, 3]), [0, 1, 3]).unwrap();
    let feeds: Vec<_> = a.feed(&fed_a).into_iter().chain(b.feed(&fed_b)).collect();
    session.run(&[&train], &feeds).unwrap();
    assert_near(&session.value("table").unwrap(), &[0.5, 1.5, 0.5, 2.5, 7.0, 11.0, 12.0, 16.0]);
    let program = session.program(&[&train]).unwrap();
    assert!(program.to_string().starts_with("host:\n"), "{program}");
    assert!(program.host_steps().len() == 2, "{program}");
}

/// Cases 12 to 20: the order of keys, the hash key, several values, integers.
#[test]
fn crosses() {
    let g = Graph::new();
    let text = |name| g.placeholder(name, DType::Str, [Dim::BATCH, 1.into()]);
    let (a, b) = (text("a"), text("b"));
    let ints = g.placeholder("ints", DType::I64, [Dim::BATCH, 1.into()]);
    let key = CrossKey::from;
    let ragged_b = RaggedTensor::from_dense(&b);
    let crosses = [
        g.cross(&[key(&a), key(&b)], 1000, 0),
        g.cross(&[key(&b), key(&a)], 1000, 0),
        g.cross(&[key(&a), key(&b)], 1000, 1),
        g.cross(&[key(&a), key(&b)], 0, 0),
        g.cross(&[key(&ints), key(&a)], 1000, 0),
        // A ragged key comes before a dense one, wherever it stands.
        g.cross(&[key(&a), CrossKey::from(&ragged_b)], 1000, 0),
    ];
    let fetches: Vec<&Tensor> = crosses.iter().map(|c| &c.values).collect();
    let words = |words: [&str; 2]| Array::from_strings([2, 1], words).unwrap();
    let feeds =
        [(&a, words(["a", "b"])), (&b, words(["x", "y"])), (&ints, Array::from_vec([2, 1], vec![3i64, -2]).unwrap())];
    let out = Session::new(&g).unwrap().run(&fetches, &feeds).unwrap();
    let expected: [[i64; 2]; 6] =
        [[892, 805], [37, 590], [6, 345], [1484974617627318892, 5470948523078679805], [152, 76], [37, 590]];
    for (ids, expected) in out.iter().zip(expected) {
        assert_eq!(ids.as_slice::<i64>().unwrap(), expected);
    }
}

#[test]
fn ragged_rows_are_reduced_filtered_and_joined() {
    let g = Graph::new();
    let x = g.ragged_placeholder("x", DType::F32);
    let words = g.ragged_placeholder("words", DType::Str);
    let big = x.filter(&x.values.greater(1.5));
    let twice = RaggedTensor::concat(&[&words, &words]);
    let fetches = [&x.sum(), &x.mean(), &x.max(), &big.values, &big.row_splits, &twice.values, &twice.row_splits];
    // Rows [1, 2], [], [3]; words [a], [b, c], [].
    let fed = Ragged::new(Array::from([1f32, 2.0, 3.0]), [0, 2, 2, 3]).unwrap();
    let fed_words = Ragged::new(Array::from_strings([3], ["a", "b", "c"]).unwrap(), [0, 1, 3, 3]).unwrap();
    let feeds: Vec<_> = x.feed(&fed).into_iter().chain(words.feed(&fed_words)).collect();
    let out = Session::new(&g).unwrap().run(&fetches, &feeds).unwrap();
    assert_eq!(floats(&out[0]), [3.0, 0.0, 3.0]);
    assert_eq!(floats(&out[1]), [1.5, 0.0, 3.0]);
    assert_eq!(floats(&out[2]), [2.0, f32::MIN, 3.0]);
    assert_eq!((floats(&out[3]), out[4].as_slice::<i64>().unwrap()), (&[2.0, 3.0][..], &[0, 1, 1, 2][..]));
    assert_eq!(out[5], Array::from_strings([6], ["a", "a", "b", "c", "b", "c"]).unwrap());
    assert_eq!(out[6].as_slice::<i64>().unwrap(), [0, 2, 6, 6]);
}

#[test]
fn bad_input_is_named() {
    let g = Graph::new();
    let ids = g.ragged_placeholder("ids", DType::I64);
    let out = table(&g).lookup(&ids, Combiner::Sum);
    let run = |ids_fed: Vec<i64>, splits: Vec<i64>| {
        let feeds = [(&ids.values, Array::from(ids_fed)), (&ids.row_splits, Array::from(splits))];
        session(&g).run(&[&out], &feeds).unwrap_err().to_string()
    };
    for (message, expected) in [
        (run(vec![4], vec![0, 1]), "4"),
        (run(vec![1], vec![0, 2]), "ends at 2, but there are 1 values"),
        (run(vec![1, 1], vec![0, 2, 1, 2]), "falls from 2 to 1 at row 1"),
        (run(vec![1], vec![1, 1]), "starts at 1"),
        (run(vec![1], vec![]), "row_splits"),
    ] {
        assert!(message.contains(expected), "{message} should contain {expected}");
    }
    let floats = g.placeholder("floats", DType::F32, [Dim::BATCH]);
    floats.hash_bucket(10);
    assert!(g.check().unwrap_err().to_string().contains("cannot hash f32 into buckets"));
}

/// Cases 30 to 33: lists, integers and files, with default ids and buckets for what is unknown.
#[test]
fn vocabularies() {
    let g = Graph::new();
    let words = g.placeholder("words", DType::Str, [Dim::BATCH]);
    let ints = g.placeholder("ints", DType::I64, [Graph::ANY]);
    let path = std::env::temp_dir().join(format!("estimand-vocabulary-{}.txt", std::process::id()));
    std::fs::write(&path, "a\r\nb\nc").unwrap();
    let file = |size| LookupTable::from_file(&path, size, DType::Str);
    let colours = LookupTable::from_list(["R", "G", "B", "Y"]).unwrap();
    let fetches = [
        colours.lookup(&words),
        colours.clone().default_id(0).lookup(&words),
        LookupTable::from_ints([10, 20, 30]).unwrap().n_oov_buckets(3).unwrap().lookup(&ints),
        file(Some(2)).unwrap().n_oov_buckets(5).unwrap().lookup(&words),
        file(None).unwrap().reverse(&ints, "UNK"),
    ];
    let feeds = [
        (&words, Array::from_strings([4], ["R", "Z", "B", "a"]).unwrap()),
        (&ints, Array::from([10i64, 11, 12, 13, 0])),
    ];
    let out = Session::new(&g).unwrap().run(&fetches.each_ref(), &feeds).unwrap();
    assert_eq!(out[0].as_slice::<i64>().unwrap(), [0, -1, 2, -1]);
    assert_eq!(out[1].as_slice::<i64>().unwrap(), [0, 0, 2, 0]);
    assert_eq!(out[2].as_slice::<i64>().unwrap(), [0, 4, 4, 5, 4]);
    assert_eq!(out[3].as_slice::<i64>().unwrap()[3], 0);
    assert!(out[3].as_slice::<i64>().unwrap()[..3].iter().all(|id| (2..7).contains(id)));
    assert_eq!(out[4], Array::from_strings([5], ["UNK", "UNK", "UNK", "UNK", "a"]).unwrap());
    for (error, text) in [
        (file(Some(5)), "3"),
        (LookupTable::from_file("no/such/file", None, DType::Str), "no/such/file"),
        (LookupTable::from_list(["a", "b", "a"]), "terms 0 and 2 are the same term"),
        (LookupTable::from_list::<&str>([]), "the vocabulary is empty"),
        (colours.n_oov_buckets(0), "the number of hash buckets is 0"),
    ] {
        let error = error.map(drop).unwrap_err().to_string();
        assert!(error.contains(text), "{error} should contain {text}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// The host is a pure function: threads share it and run it ahead of the step, and nothing changes.
#[test]
fn the_host_runs_ahead_in_any_thread() {
    use estimand::graph::{Compiled, Executor, Program, RunArgs};

    let model = crate::models::ctr(1_000, 4);
    let batches: Vec<Vec<Array>> = (0..12).map(|seed| crate::models::ctr_batch(seed, 16).unwrap()).collect();
    let cpu = Cpu::with_threads(1);
    let fetches = [model.loss.value(), model.train.value()];
    let program = Program::new(std::sync::Arc::new(model.graph.body().clone()), &fetches).unwrap();
    let compiled = Compiled::new(&cpu, program).unwrap();
    let losses = |prepared: Option<Vec<Vec<Array>>>| -> Vec<f32> {
        let mut state = cpu.place(model.graph.body().variables(), 3).unwrap();
        let mut outputs = Vec::new();
        let mut loss = |i: usize| {
            match &prepared {
                None => compiled.step(&mut *state, RunArgs { feeds: &batches[i], ..RunArgs::default() }, &mut outputs),
                Some(p) => {
                    compiled.step_prepared(&mut *state, RunArgs { feeds: &p[i], ..RunArgs::default() }, &mut outputs)
                }
            }
            .unwrap();
            outputs[0].item::<f32>().unwrap()
        };
        (0..batches.len()).map(&mut loss).collect()
    };
    let ahead = std::thread::scope(|scope| {
        let threads: Vec<_> = batches
            .chunks(4)
            .map(|part| scope.spawn(|| part.iter().map(|b| compiled.prepare(b.clone())).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).map(|p| p.unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(losses(None), losses(Some(ahead)));
}
