//! Results have the same bits for any number of threads, any batch a row is in, any vector width,
//! and with or without fused steps.

use estimand::graph::{Cpu, Executor, Padding, Program, Reference, RunArgs};
use estimand::prelude::*;
use estimand::tensor::cpu::isa::Isa;
use estimand::update::{Adadelta, Adamax, Nadam};

use crate::models::{self, Model, integers, uniform};

/// All variables after three steps, by name, as bits.
fn trained(model: &Model, cpu: Cpu, feeds: &[Array]) -> Vec<(String, Vec<u32>)> {
    let mut session = Session::with(&model.graph, cpu, 1).unwrap();
    let feeds = model.feeds(feeds);
    for _ in 0..3 {
        session.run(&[&model.train], &feeds).unwrap();
    }
    let names: Vec<String> = model.graph.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    names
        .into_iter()
        .map(|name| {
            let value = session.value(&name).unwrap();
            let bits = value.bytes().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            (name, bits)
        })
        .collect()
}

fn all_models() -> Vec<(&'static str, Model, Vec<Array>)> {
    vec![
        ("linear", models::linear(), vec![uniform("x", &[37, 4]).unwrap(), uniform("y", &[37, 1]).unwrap()]),
        ("iris", models::iris(), vec![uniform("x", &[128, 4]).unwrap(), integers("y", &[128], 3).unwrap()]),
        ("cnn", models::cnn(), vec![uniform("x", &[64, 28, 28, 1]).unwrap(), integers("y", &[64], 10).unwrap()]),
        (
            "lookup",
            models::lookup(5_000, 32, 8),
            vec![integers("ids", &[512, 8], 5_000).unwrap(), uniform("y", &[512, 1]).unwrap()],
        ),
        (
            "sequence",
            models::sequence(7, 5, 19),
            vec![uniform("x", &[37, 7, 5]).unwrap(), uniform("y", &[37, 1]).unwrap()],
        ),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (name, model, feeds) in all_models() {
        let one = trained(&model, Cpu::with_threads(1), &feeds);
        for threads in [2, 3, 8] {
            assert!(one == trained(&model, Cpu::with_threads(threads), &feeds), "{name} with {threads} threads");
        }
    }
}

#[test]
fn any_vector_width_gives_the_same_bits() {
    for (name, model, feeds) in all_models() {
        let widest = trained(&model, Cpu::with_threads(2), &feeds);
        // Process-wide, which the other tests do not notice: that is the law.
        for isa in [Isa::Avx2, Isa::Portable] {
            Isa::limit(isa);
            let narrow = trained(&model, Cpu::with_threads(2), &feeds);
            Isa::limit(Isa::Avx512);
            assert!(widest == narrow, "{name} on {isa:?}");
        }
    }
}

/// Features and targets that are subnormal, or become so when they are multiplied: TensorFlow's
/// kernels take them as zero.
#[test]
fn subnormal_numbers_are_zero_on_every_thread_and_width() {
    let model = models::iris();
    let tiny = |name: &str| {
        let values: Vec<f32> = uniform(name, &[128, 4]).unwrap().as_slice::<f32>().unwrap().to_vec();
        Array::from_vec([128, 4], values.into_iter().map(|v| v * 1e-37).collect::<Vec<f32>>()).unwrap()
    };
    let feeds = [tiny("x"), integers("y", &[128], 3).unwrap()];
    let one = trained(&model, Cpu::with_threads(1), &feeds);
    let is_subnormal = |bits: &u32| f32::from_bits(*bits).is_subnormal();
    for (name, bits) in one.iter().filter(|(name, _)| !name.ends_with("/iter")) {
        assert!(!bits.iter().any(is_subnormal), "{name} becomes subnormal");
    }
    for threads in [2, 3, 8] {
        assert!(one == trained(&model, Cpu::with_threads(threads), &feeds), "{threads} threads");
    }
    for isa in [Isa::Avx2, Isa::Portable] {
        Isa::limit(isa);
        let narrow = trained(&model, Cpu::with_threads(2), &feeds);
        Isa::limit(Isa::Avx512);
        assert!(one == narrow, "{isa:?}");
    }

    // 3e-39 + 0 is a sum of one element for each thread's task; the caller's own mode stays.
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let sum = &x + 0.0;
    let fed = Array::from(vec![3e-39_f32; 100_000]);
    for threads in [1, 3] {
        let mut session = Session::with(&g, Cpu::with_threads(threads), 1).unwrap();
        let out = session.run(&[&sum], &[(&x, fed.clone())]).unwrap().remove(0);
        assert!(out.as_slice::<f32>().unwrap().iter().all(|&v| v == 0.0), "{threads} threads");
        assert!(std::hint::black_box(3e-39_f32) + std::hint::black_box(0.0) > 0.0);
    }
}

#[test]
fn a_row_alone_has_the_bits_it_has_in_a_batch() {
    // Without dropout, whose mask belongs to the position in the batch by design.
    let model = models::iris();
    let rows = uniform("x", &[128, 4]).unwrap();
    let mut session = Session::new(&model.graph).unwrap();
    let mut predict = |x: Array| session.run(&[&model.logits], &[(&model.placeholders[0], x)]).unwrap().remove(0);
    let all = predict(rows.clone());
    let seven = predict(rows.rows(3..10).unwrap());
    assert_eq!(all.rows(3..10).unwrap().bytes(), seven.bytes());
    for i in [0, 5, 127] {
        let alone = predict(rows.rows(i..i + 1).unwrap());
        assert_eq!(all.rows(i..i + 1).unwrap().bytes(), alone.bytes(), "row {i}");
    }
}

#[test]
fn a_sequence_alone_has_the_bits_it_has_in_a_batch() {
    let model = models::sequence(7, 5, 19);
    let rows = uniform("x", &[37, 7, 5]).unwrap();
    let mut session = Session::new(&model.graph).unwrap();
    let mut predict = |x: Array| session.run(&[&model.logits], &[(&model.placeholders[0], x)]).unwrap().remove(0);
    let all = predict(rows.clone());
    for range in [0..1, 36..37, 20..33] {
        let few = predict(rows.rows(range.clone()).unwrap());
        assert_eq!(all.rows(range.clone()).unwrap().bytes(), few.bytes(), "rows {range:?}");
    }
}

#[test]
fn an_image_alone_has_the_bits_it_has_in_a_batch() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 28.into(), 28.into(), 1.into()]);
    let kernel = g.variable("kernel", [5, 5, 1, 20], Initializer::GlorotUniform);
    let net = x.conv2d(&kernel, (1, 1), Padding::Same).relu().max_pool((2, 2), (2, 2), Padding::Valid).flatten();
    let weights = g.variable("weights", [14 * 14 * 20, 10], Initializer::GlorotUniform);
    let out = net.matmul(&weights).softmax();
    let images = uniform("x", &[128, 28, 28, 1]).unwrap();
    let mut session = Session::new(&g).unwrap();
    let mut predict = |images: Array| session.run(&[&out], &[(&x, images)]).unwrap().remove(0);
    let all = predict(images.clone());
    for range in [0..1, 77..78, 60..67] {
        let few = predict(images.rows(range.clone()).unwrap());
        assert_eq!(all.rows(range.clone()).unwrap().bytes(), few.bytes(), "images {range:?}");
    }
}

/// Runs a program once from fresh state.
fn run(executor: &dyn Executor, program: Program, feeds: &[Array]) -> Vec<Array> {
    let mut state = executor.place(program.body().variables(), 1).unwrap();
    let executable = executor.compile(program).unwrap();
    let mut outputs = Vec::new();
    // The models declare their placeholders in the order of these values, which is the order of a
    // program's feeds.
    executable.step(&mut *state, RunArgs { feeds, ..RunArgs::default() }, &mut outputs).unwrap();
    outputs
}

#[test]
fn the_reference_agrees() {
    for (name, model, feeds) in all_models() {
        let feeds: Vec<Array> = feeds.iter().map(|f| f.rows(0..8).unwrap()).collect();
        let body = std::sync::Arc::new(model.graph.body().clone());
        let fetches = [model.loss.value(), model.train.value()];
        let cpu = Cpu::with_threads(1);
        let fused = run(&cpu, Program::new(body.clone(), &fetches).unwrap(), &feeds);
        let reference = run(&Reference, Program::plain(body, &fetches).unwrap(), &feeds);
        let (ours, naive) = (fused[0].item::<f32>().unwrap(), reference[0].item::<f32>().unwrap());
        assert!((ours - naive).abs() <= 1e-5 * naive.abs().max(1.0), "{name}: {ours} against {naive}");
    }
}

#[test]
fn going_on_from_a_checkpoint_is_never_having_stopped() {
    let folder = std::env::temp_dir().join(format!("estimand-laws-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let prefix = folder.join("model.ckpt-5");
    // The CNN has dropout and Adam: randomness and slots must go on too.
    let model = models::cnn();
    let feeds = [uniform("x", &[8, 28, 28, 1]).unwrap(), integers("y", &[8], 10).unwrap()];
    let feeds = model.feeds(&feeds);
    let train = |session: &mut Session, steps: usize| {
        for _ in 0..steps {
            session.run(&[&model.train], &feeds).unwrap();
        }
    };
    let mut whole = Session::new(&model.graph).unwrap();
    train(&mut whole, 10);
    let mut first = Session::new(&model.graph).unwrap();
    train(&mut first, 5);
    first.save(&prefix).unwrap();
    let mut second = Session::with(&model.graph, Cpu::with_threads(1), 0).unwrap();
    second.restore(&prefix).unwrap();
    assert_eq!(second.step(), 5);
    train(&mut second, 5);
    for (_, spec) in model.graph.body().variables().iter() {
        let (a, b) = (whole.value(&spec.name).unwrap(), second.value(&spec.name).unwrap());
        assert!(a.bytes() == b.bytes(), "{}", spec.name);
    }
    // Another model: the variable that is missing is named, and nothing has changed.
    let other = models::iris();
    let mut stranger = Session::new(&other.graph).unwrap();
    let before = stranger.value("logits/bias").unwrap();
    let error = stranger.restore(&prefix).unwrap_err().to_string();
    assert!(error.contains("hiddenlayer_0/kernel") && error.contains("model.ckpt-5"), "{error}");
    assert_eq!(stranger.value("logits/bias").unwrap(), before);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_rule_updates_rows_as_the_reference_does() {
    let rules: [(&str, Optimizer); 8] = [
        ("sgd", Optimizer::new(Sgd::default().momentum(0.9), 0.1)),
        ("adagrad", Optimizer::new(Adagrad::default(), 0.1)),
        ("adam", Optimizer::new(Adam::default().amsgrad(true), 0.1)),
        ("ftrl", Optimizer::new(Ftrl::default().l1(0.01), 0.1)),
        ("rmsprop", Optimizer::new(RmsProp::default().centered(true), 0.1)),
        ("adadelta", Optimizer::new(Adadelta::default(), 1.0)),
        ("adamax", Optimizer::new(Adamax::default(), 0.1)),
        ("nadam", Optimizer::new(Nadam::default(), 0.1)),
    ];
    for (name, optimizer) in rules {
        for optimizer in [optimizer.clone(), optimizer.lazy()] {
            let g = Graph::new();
            let table = g.variable("table", [200, 3], Initializer::RandomUniform { low: -1.0, high: 1.0 });
            let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
            let loss = table.gather(&ids).square().sum();
            let train = optimizer.minimize(&loss);
            let mut sessions =
                [Session::with(&g, Cpu::with_threads(3), 1).unwrap(), Session::with(&g, Reference, 1).unwrap()];
            for step in 0..5 {
                // Duplicates within a batch, other rows in every step, and one step without any.
                let rows = integers(&format!("ids{step}"), &[if step == 3 { 0 } else { 40 }], 50).unwrap();
                for session in &mut sessions {
                    session.run(&[&train], &[(&ids, rows.clone())]).unwrap();
                }
            }
            let [ours, naive] = sessions.map(|s| s.value("table").unwrap().to_f64_vec().unwrap());
            let worst = ours.iter().zip(&naive).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-6, "{name}: {worst}");
        }
    }
}
