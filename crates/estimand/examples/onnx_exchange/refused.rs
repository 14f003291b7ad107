//! Models that cannot be exported, and the errors they give.

use std::path::Path;

use estimand::export::ExportSpec;
use estimand::prelude::*;

/// Prints the error of each model on one line.
pub fn print(folder: &Path) -> Result<()> {
    let job = || categorical_column_with_hash_bucket("job", 50);
    let crossed: FeatureColumn = crossed_column(["job", "city"], 100).into();
    let listed = categorical_column_with_vocabulary_list("job", ["cook"]).n_oov_buckets(3);
    let all: [(&str, FeatureColumn); 4] = [
        ("hash", job().into()),
        ("embedding", embedding_column(job(), 2).into()),
        ("cross", crossed),
        ("oov", listed.into()),
    ];
    for (name, column) in all {
        let (job, city) = (Array::from_strings([2], ["cook", "nurse"])?, Array::from_strings([2], ["Rome", "Oslo"])?);
        let rows = [("job", job), ("city", city), ("y", Array::from([0i64, 1]))];
        let data = Dataset::from_arrays(rows).label("y").batch(2);
        let columns: Vec<FeatureColumn> = vec![column];
        let config = RunConfig::new().tf_random_seed(1);
        let model_dir = folder.join(name);
        let model = match name {
            "embedding" => DnnClassifier::new([2], columns).config(config).model_dir(model_dir).build()?,
            _ => LinearClassifier::new(columns).config(config).model_dir(model_dir).build()?,
        };
        model.train(data.repeat(2))?;
        let base = folder.join(format!("{name}_onnx"));
        match model.export_onnx(&base, ExportSpec::default()) {
            Ok(path) => println!("{name}: exported to {}", path.display()),
            Err(error) => println!("{name}: {}", error.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}
