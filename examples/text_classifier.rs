//! Which language is a line written in: Rust, Python or English? Learnt from sources of this
//! project and from *Alice in Wonderland*.
//!
//! The graph receives raw lines of text. It splits them into words, hashes the words, looks up
//! their rows in a table and takes the mean of each line. Labels are names that a vocabulary turns
//! into numbers. All of that belongs to the model: it is checkpointed, exported and served with it,
//! and runs on the host before each numeric step.
//!
//!     cargo run --release --example text_classifier

use estimand::graph::{Combiner, Encoding, LookupTable};
use estimand::prelude::*;

const FILES: [(&str, &str); 7] = [
    ("rust", include_str!("../crates/graph/src/graph.rs")),
    ("rust", include_str!("../crates/engine/src/session.rs")),
    ("python", include_str!("../oracles/live/graphdef.py")),
    ("python", include_str!("../oracles/gen/movement.py")),
    ("python", include_str!("../oracles/gen/reference_ops.py")),
    ("python", include_str!("../oracles/gen/update_rules.py")),
    ("english", include_str!("data/alice.txt")),
];

/// Returns lines with their languages: training lines, and every fourth one for evaluation.
fn lines() -> Result<[(Array, Array); 2]> {
    let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (language, file) in FILES {
        let lines = file.lines().filter(|line| line.split_whitespace().count() > 2);
        for (i, line) in lines.enumerate() {
            let (texts, labels) = &mut parts[usize::from(i % 4 == 3)];
            texts.push(line);
            labels.push(language);
        }
    }
    let [learn, ask] = parts.map(|(texts, labels)| -> Result<(Array, Array)> {
        // Mix the files: a prime stride visits every line once.
        let mixed =
            |lines: &[&'static str]| -> Vec<&str> { (0..lines.len()).map(|i| lines[i * 7919 % lines.len()]).collect() };
        Ok((Array::from_strings([texts.len()], mixed(&texts))?, Array::from_strings([labels.len()], mixed(&labels))?))
    });
    Ok([learn?, ask?])
}

fn main() -> Result<()> {
    let g = Graph::new();
    let line = g.placeholder("line", DType::Str, [Dim::BATCH]);
    let language = g.placeholder("language", DType::Str, [Dim::BATCH]);

    // Separate names, numbers and signs, then split at spaces.
    let words = line.regex_replace(r"(\W)", r" \1 ").lower(Encoding::Bytes).string_split("", -1);
    let ids = words.with_values(words.values.hash_bucket(4096));
    let table = g.variable("embedding_weights", [4096, 16], Initializer::TruncatedNormal { mean: 0.0, stddev: 0.25 });
    let features = table.lookup(&ids, Combiner::SqrtN);

    let languages = LookupTable::from_list(["rust", "python", "english"])?;
    let label = languages.lookup(&language);
    let kernel = g.variable("kernel", [16, 3], Initializer::GlorotUniform);
    let bias = g.variable("bias", [3], Initializer::Zeros);
    let logits = features.matmul(&kernel) + bias;
    let loss = logits.sparse_softmax_cross_entropy(&label).mean();
    let train = Optimizer::new(Adagrad::default(), 0.5).minimize(&loss);
    let answer = logits.argmax(1);
    let correct = answer.equal(&label).cast(DType::F32).mean();

    let [(texts, labels), (asked, expected)] = lines()?;
    let mut session = Session::new(&g)?;
    let n = texts.len();
    for epoch in 0..20 {
        let mut losses = 0.0;
        let starts = (0..n).step_by(32);
        let n_batches = starts.len() as f32;
        for first in starts {
            let rows = first..n.min(first + 32);
            let feeds = [(&line, texts.rows(rows.clone())?), (&language, labels.rows(rows)?)];
            losses += session.run(&[&loss, &train], &feeds)?[0].item::<f32>()?;
        }
        if epoch % 5 == 4 {
            println!("epoch {}: loss {:.4}", epoch + 1, losses / n_batches);
        }
    }
    let accuracy = session.run(&[&correct], &[(&line, asked), (&language, expected)])?[0].item::<f32>()?;
    let question = Array::from_strings([3], ["let y = x?;", "def f(self): pass", "It is one of the files."])?;
    let names = languages.reverse(&answer, "?");
    println!("{}", session.run(&[&names], &[(&line, question)])?[0]);
    println!("accuracy = {accuracy:.4}");
    Ok(())
}
