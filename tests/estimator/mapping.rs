//! Pipeline maps that are built as graphs.

use estimand::Input;
use estimand::data::InputContext;
use estimand::graph::{Encoding, LookupTable, RaggedTensor};
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature};

fn words(n: usize) -> Dataset {
    let texts: Vec<String> = (0..n).map(|i| format!("Word {}", i % 7)).collect();
    let numbers: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let labels: Vec<i64> = (0..n as i64).collect();
    let rows =
        [("text", Array::from_strings([n], texts).unwrap()), ("x", Array::from(numbers)), ("y", Array::from(labels))];
    Dataset::from_arrays(rows).label("y")
}

/// Strings, a vocabulary, ragged rows and numbers: whatever the threads and the pieces, each row
/// has its own result, and labels stay.
#[test]
fn rows_have_their_own_results_on_any_threads() -> Result<()> {
    let table = LookupTable::from_list((0..7).map(|i| format!("word {i}")))?;
    let data = words(100).shuffle(100, 3).map_graph(move |row| {
        let x = row.dense("x");
        [
            ("id", Input::from(table.lookup(&row.dense("text").lower(Encoding::Bytes)))),
            ("squared", (&x * &x).into()),
            ("itself", RaggedTensor::from_dense(&x.reshape([-1, 1])).into()),
        ]
    });
    for n_threads in [1, 4] {
        let cx = InputContext { n_threads, seed: 5, ..InputContext::default() };
        let mut n = 0;
        for batch in data.batch(7).iter_from(&cx, &Default::default()) {
            let batch = batch?;
            let dense = |feature: &Feature| match feature {
                Feature::Dense(array) => array.clone(),
                Feature::Ragged(ragged) => ragged.values().clone(),
            };
            let (ids, squared) = (dense(batch.feature("id")?), dense(batch.feature("squared")?));
            let labels = dense(&batch.labels()["y"]);
            for (i, &label) in labels.as_slice::<i64>()?.iter().enumerate() {
                assert_eq!(ids.as_slice::<i64>()?[i], label % 7);
                assert_eq!(squared.as_slice::<f32>()?[i], (label * label) as f32);
                n += 1;
            }
            let Feature::Ragged(itself) = batch.feature("itself")? else { panic!("ragged") };
            // A zero is a missing number of a dense feature.
            let n_zeros = labels.as_slice::<i64>()?.iter().filter(|&&label| label == 0).count();
            assert_eq!(itself.values().len(), labels.len() - n_zeros);
            // What the graph does not make stays.
            let texts = dense(batch.feature("text")?);
            assert!(
                texts.strings()?.zip(labels.as_slice::<i64>()?).all(|(t, y)| t == format!("Word {}", y % 7).as_bytes())
            );
            assert_eq!(batch.feature("x")?.dtype(), DType::F32);
        }
        assert_eq!(n, 100, "{n_threads} threads");
    }
    Ok(())
}

/// A feature keeps its place and its missing rows if the graph does not make it, and its place if
/// the graph does.
#[test]
fn other_features_stay_as_they_are() -> Result<()> {
    let rows = Batch::new()
        .with_feature("a", Array::from([1.0f32, 2.0]))?
        .with_feature("b", Array::from([3.0f32, 0.0]))?
        .with_feature("c", Array::from([5.0f32, 0.0]))?
        .with_label("y", Array::from([0i64, 1]))?
        .with_weights(Array::from([0.5f32, 1.5]))?;
    let rows = rows.with_missing("b", Array::from([false, true]))?.with_missing("c", Array::from([false, true]))?;
    let data = Dataset::from_batch(rows).map_graph(|row| [("c", row.dense("c") + 1.0), ("d", row.dense("a") * 2.0)]);
    let batch = data.batch(2).iter().next().unwrap()?;
    assert_eq!(batch.features().keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(*batch.feature("b")?, Array::from([3.0f32, 0.0]).into());
    assert_eq!(*batch.feature("c")?, Array::from([6.0f32, 1.0]).into());
    assert_eq!(*batch.feature("d")?, Array::from([2.0f32, 4.0]).into());
    assert_eq!(batch.labels()["y"], Array::from([0i64, 1]).into());
    assert_eq!(batch.weights(), Some(&Array::from([0.5f32, 1.5])));
    assert_eq!((batch.missing("b"), batch.missing("c")), (Some(&Array::from([false, true])), None));
    Ok(())
}

#[test]
fn mistakes_are_told_with_their_place() {
    let error = |data: Dataset| data.batch(2).iter().next().unwrap().unwrap_err().to_string();
    let text = error(words(4).map_graph(|row| [("z", row.dense("w"))]));
    assert!(text.contains("`w`") && text.contains("in map_graph"), "{text}");
    let text = error(words(4).map_graph(|row| [("z", Dense::new(3).apply(&row.dense("x").reshape([-1, 1])))]));
    assert!(text.contains("the variable `dense/kernel`") && text.contains("model function"), "{text}");
    let text = error(words(4).map_graph(|row| [("z", row.dense("x")), ("z", row.dense("x"))]));
    assert!(text.contains("makes the feature `z` twice"), "{text}");
    let text = error(words(4).map_graph(|row| [("z", row.dense("x").sum())]));
    assert!(text.contains("`z`") && text.contains("rows"), "{text}");
}

/// The random numbers of a map: other ones for each row, batch and epoch, and the same ones with
/// any number of threads, in pieces of any size, and after a resume at any item.
#[test]
fn random_maps_differ_by_row_and_repeat_with_the_seed() -> Result<()> {
    let noise = |data: &Dataset| {
        data.map_graph(|row| {
            let x = row.dense("x");
            [("of_row", &x * 0.0 + x.graph().random_uniform([Dim::BATCH]))]
        })
    };
    // A position of version 0.1.0 did not count rows.
    let old = estimand::data::Position::new([0], [estimand::data::Position::default()]);
    let mapped = noise(&words(20).batch(6));
    assert_eq!(mapped.iter_from(&InputContext::default(), &old).collect::<Result<Vec<_>>>()?.len(), 4);
    let rows = noise(&words(20)).batch(6).repeat(2);
    let batches = noise(&words(20).batch(6)).repeat(2);
    for data in [&rows, &batches] {
        let read = |seed: u64, n_threads: usize, from: &estimand::data::Position| -> Result<Vec<Vec<f32>>> {
            let cx = InputContext { n_threads, seed, ..InputContext::default() };
            let numbers = |batch: Result<Batch>| Ok(batch?.feature("of_row")?.dense()?.as_slice::<f32>()?.to_vec());
            data.iter_from(&cx, from).map(numbers).collect()
        };
        let all = read(5, 1, &Default::default())?;
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [6, 6, 6, 2, 6, 6, 6, 2]);
        let mut sorted: Vec<u32> = all.iter().flatten().map(|x| x.to_bits()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() >= 39, "{} different numbers in 40 rows", sorted.len());
        assert_eq!(read(5, 4, &Default::default())?, all);
        assert_ne!(read(6, 1, &Default::default())?, all);
        let cx = InputContext { n_threads: 3, seed: 5, ..InputContext::default() };
        let mut stream = data.iter_from(&cx, &Default::default());
        for i in 1..all.len() {
            stream.next().expect("an item")?;
            assert_eq!(read(5, 2, stream.position())?, all[i..], "after {i} batches");
        }
    }
    Ok(())
}
