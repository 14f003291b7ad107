//! Vocabulary files: any input gives terms or an error, and every term is found at its position.

use std::path::PathBuf;

use estimand_tensor::Limits;
use estimand_tensor::vocabulary::VocabularyFile;

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("estimand-fuzz-vocabulary-{}", std::process::id()))
}

/// Reads the bytes as strings and as integers, all lines and the first two.
pub fn check(input: &[u8]) {
    let path = path();
    std::fs::write(&path, input).expect("a file in the temporary folder");
    let file = VocabularyFile::new(&path).limits(Limits { field_bytes: 100, ..Limits::default() });
    let n_lines = input.split(|&byte| byte == b'\n').count();
    for file in [file.clone(), file.size(2)] {
        if let Ok(vocabulary) = file.read() {
            assert!(vocabulary.len() <= n_lines);
            assert_eq!(file.terms().expect("it could be read before").len(), vocabulary.len());
        }
        if let Ok(ints) = file.read_ints() {
            assert!(ints.len() <= n_lines);
        }
    }
}
