//! Folders of SavedModels: any input gives a model or an error, and so does every signature.

use std::fs;

use estimand_tf::saved_model::{ReadLimits, SavedModel};

/// Opens the bytes as the graph of an export without variables, and reads its signatures.
pub fn check(input: &[u8]) {
    let thread = std::thread::current().id();
    let folder = std::env::temp_dir().join(format!("estimand-fuzz-export-{}-{thread:?}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder in the temporary folder");
    fs::write(folder.join("saved_model.pb"), input).expect("a file in the temporary folder");
    let limits = ReadLimits::default().file_bytes(1 << 20).nodes(1 << 14).elements(1 << 22).repeated_bytes(1 << 22);
    if let Ok(model) = SavedModel::open_within(&folder, limits) {
        let names: Vec<String> = model.signatures().map(|(name, _)| name.to_string()).collect();
        names.iter().take(8).for_each(|name| drop(model.signature(name)));
    }
    let _ = fs::remove_dir_all(&folder);
}
