//! Handwritten digits with the low-level API: a network of two hidden layers, trained by hand.
//!
//! `cargo run --release --example mlp`

use estimand::builtin::digits;
use estimand::prelude::*;
use estimand::tensor::random::{Key, Stream};

const BATCH: usize = 32;
const TRAIN: usize = 1_437;

fn dense(x: &Tensor, name: &str, units: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [x.dim(1), units], Initializer::GlorotUniform);
    let bias = g.variable("bias", [units], Initializer::Zeros);
    x.matmul(&kernel) + bias
}

fn main() -> Result<()> {
    let g = Graph::new();
    let x = g.placeholder("pixels", DType::F32, [Dim::BATCH, 64.into()]);
    let y = g.placeholder("label", DType::I64, [Dim::BATCH]);
    let hidden = dense(&x, "hidden_0", 128).relu();
    let hidden = dense(&hidden, "hidden_1", 64).relu();
    let logits = dense(&hidden, "logits", 10);
    let loss = logits.sparse_softmax_cross_entropy(&y).mean();
    let correct = logits.argmax(-1).equal(&y).cast(DType::F32).mean();
    let train = Optimizer::new(Adam::default(), 0.002).minimize(&loss);

    let data = digits()?;
    let order = permutation(data.len());
    let (pixels, labels) = (data.features.as_slice::<f32>()?, data.labels.as_slice::<i64>()?);
    let batch = |rows: &[u64]| -> Result<(Array, Array)> {
        let features = rows.iter().flat_map(|&r| &pixels[r as usize * 64..][..64]).copied().collect();
        let classes = rows.iter().map(|&r| labels[r as usize]).collect();
        Ok((Array::from_vec([rows.len(), 64], features)?, Array::from_vec([rows.len()], classes)?))
    };

    let mut session = Session::new(&g)?;
    for epoch in 0..40 {
        for rows in order[..TRAIN].chunks(BATCH) {
            let (features, classes) = batch(rows)?;
            session.run(&[&train], &[(&x, features), (&y, classes)])?;
        }
        if epoch % 10 == 9 {
            let (features, classes) = batch(&order[..TRAIN])?;
            println!("epoch {} loss {}", epoch + 1, session.run(&[&loss], &[(&x, features), (&y, classes)])?[0]);
        }
    }
    let (features, classes) = batch(&order[TRAIN..])?;
    let result = session.run(&[&loss, &correct], &[(&x, features), (&y, classes)])?;
    println!("steps = {}", session.step());
    println!("loss = {:.4}", result[0].item::<f32>()?);
    println!("accuracy = {:.4}", result[1].item::<f32>()?);
    Ok(())
}

fn permutation(n: usize) -> Vec<u64> {
    let stream = Stream::new(Key::new(0, "split"), 0);
    (0..n as u64).map(|i| stream.permute(i, n as u64)).collect()
}
