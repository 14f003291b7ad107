//! What TensorFlow made of images: `oracles/gen/images.py` explains the lines.

use std::collections::BTreeMap;

const FIXTURE: &str = include_str!("../../../../oracles/fixtures/images.txt");

pub struct Case {
    pub what: &'static str,
    settings: BTreeMap<&'static str, &'static str>,
    values: BTreeMap<&'static str, &'static str>,
}

pub fn cases(what: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in FIXTURE.lines().filter(|line| !line.starts_with('#')) {
        let (first, rest) = line.split_once(' ').unwrap();
        if first == "case" {
            let mut words = rest.split(' ');
            let what = words.next().unwrap();
            let settings = words.map(|word| word.split_once('=').unwrap()).collect();
            cases.push(Case { what, settings, values: BTreeMap::new() });
        } else {
            cases.last_mut().unwrap().values.insert(first, rest);
        }
    }
    cases.retain(|case| case.what == what);
    cases
}

impl Case {
    pub fn sizes(&self, name: &str) -> Vec<usize> {
        self.settings[name].split(',').map(|size| size.parse().unwrap()).collect()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.values[name].split(' ').map(|v| v.parse().unwrap()).collect()
    }

    /// An encoded file.
    #[cfg(feature = "image")]
    pub fn file(&self, name: &str) -> Vec<u8> {
        let hex = self.values[name].as_bytes();
        hex.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    pub fn floats(&self, name: &str) -> Vec<f32> {
        self.values[name].split(' ').map(|v| v.parse().unwrap()).collect()
    }
}
