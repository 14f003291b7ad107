//! Damaged configurations and archives: the bodies of the fuzz targets `keras_config` and
//! `keras_archive`, fed with damaged copies of what Keras wrote. Checksums are made right again, so
//! that the damage reaches the readers of the members.

use std::io::Cursor;
use std::path::Path;

use estimand::data::zip;
use estimand::tensor::Limits;

#[path = "../../fuzz/src/keras_archive.rs"]
mod keras_archive;
#[path = "../../fuzz/src/keras_config.rs"]
mod keras_config;
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;

use mutate::{Dice, damaged};

/// The configurations, vocabularies and weights of small files of Keras.
fn members() -> Vec<[Vec<u8>; 3]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_files");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of_keras = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "keras"));
    let mut all = Vec::new();
    for bytes in of_keras.map(|path| std::fs::read(path).unwrap()) {
        let members = zip::members(&bytes, &Limits::default()).unwrap();
        let find = |end: &str| {
            let found = members.iter().find(|member| member.name.ends_with(end));
            found.map_or_else(Vec::new, |member| member.unpack().unwrap())
        };
        all.push(["config.json", "vocabulary.txt", "model.weights.h5"].map(find));
    }
    assert!(all.len() > 30, "{}", all.len());
    all
}

/// JSON with one value replaced by one that makes readers stumble.
fn with_another_value(config: &[u8], dice: &mut Dice) -> Vec<u8> {
    const VALUES: [&str; 12] =
        ["null", "0", "-1", "1", "2147483647", "1099511627776", "1e300", "true", "\"\"", "\"a\"", "[]", "[1, [2, {}]]"];
    let mut document: serde_json::Value = serde_json::from_reader(Cursor::new(config)).unwrap();
    let mut place = &mut document;
    loop {
        let n = match place {
            serde_json::Value::Array(all) => all.len(),
            serde_json::Value::Object(all) => all.len(),
            _ => 0,
        };
        // Values far inside are the most, so the walk seldom ends early.
        if n == 0 || dice.below(12) == 0 {
            *place = serde_json::from_str(VALUES[dice.below(VALUES.len())]).unwrap();
            return document.to_string().into_bytes();
        }
        let at = dice.below(n);
        place = match place {
            serde_json::Value::Array(all) => &mut all[at],
            serde_json::Value::Object(all) => all.values_mut().nth(at).unwrap(),
            _ => return config.to_vec(),
        };
    }
}

#[test]
fn damaged_configurations_are_read_or_refused() {
    let configs: Vec<Vec<u8>> = members().into_iter().map(|[config, ..]| config).collect();
    configs.iter().for_each(|config| keras_config::check(config));
    let mut dice = Dice::new(5);
    for i in 0..800 {
        let config = match i % 4 {
            0 => damaged(&configs, &mut dice),
            _ => with_another_value(&configs[dice.below(configs.len())], &mut dice),
        };
        keras_config::check(&config);
    }
}

#[test]
fn damaged_members_are_read_or_refused() {
    let all = members();
    let mut dice = Dice::new(6);
    for i in 0..2_000 {
        let [config, vocabulary, weights] = all[dice.below(all.len())].clone();
        let parts = match i % 3 {
            0 => [with_another_value(&config, &mut dice), vocabulary, weights],
            1 => [config, damaged(&[vocabulary], &mut dice), weights],
            _ => [config, vocabulary, damaged(&[weights], &mut dice)],
        };
        let mut input = vec![1];
        for part in &parts[..2] {
            input.extend((part.len() as u16).to_le_bytes());
            input.extend(part);
        }
        input.extend(&parts[2]);
        keras_archive::check(&input);
    }
}
