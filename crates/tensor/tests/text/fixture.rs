//! Reads the fixtures of `oracles/gen/text.py`; `text_lines.py` beside it explains their lines.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use estimand_tensor::Strings;

/// One case of a fixture.
pub struct Case<'a> {
    pub title: &'a str,
    pub op: &'a str,
    settings: BTreeMap<&'a str, &'a str>,
    arrays: BTreeMap<&'a str, &'a str>,
}

impl<'a> Case<'a> {
    pub fn all(fixture: &'a str) -> Vec<Case<'a>> {
        let mut cases: Vec<Case<'_>> = vec![];
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once(' ').unwrap();
            if name == "case" {
                let mut words = rest.split(' ');
                let op = words.next().unwrap();
                let settings = words.map(|word| word.split_once('=').unwrap()).collect();
                cases.push(Case { title: rest, op, settings, arrays: BTreeMap::new() });
            } else {
                cases.last_mut().unwrap().arrays.insert(name, rest);
            }
        }
        cases
    }

    /// The cases of one op; there must be some.
    pub fn of(fixture: &'a str, op: &str) -> Vec<Case<'a>> {
        let cases: Vec<_> = Case::all(fixture).into_iter().filter(|case| case.op == op).collect();
        assert!(!cases.is_empty(), "no case of {op}");
        cases
    }

    pub fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    pub fn has_setting(&self, key: &str) -> bool {
        self.settings.contains_key(key)
    }

    pub fn one<T: FromStr<Err: Debug>>(&self, key: &str) -> T {
        self.settings[key].parse().unwrap()
    }

    /// A setting that is a word.
    pub fn word(&self, key: &str) -> String {
        String::from_utf8(self.text(key)).unwrap()
    }

    /// A setting that is a string.
    pub fn text(&self, key: &str) -> Vec<u8> {
        decode(self.settings[key])
    }

    pub fn numbers<T: FromStr<Err: Debug>>(&self, name: &str) -> Vec<T> {
        self.tokens(name).map(|token| token.parse().unwrap()).collect()
    }

    pub fn strings(&self, name: &str) -> Strings {
        self.tokens(name).map(decode).collect()
    }

    /// TensorFlow's message where it refuses.
    pub fn error(&self) -> Option<String> {
        self.has("error").then(|| String::from_utf8_lossy(&decode(self.arrays["error"])).into_owned())
    }

    fn tokens(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let tokens = self.arrays.get(name).unwrap_or_else(|| panic!("no {name} in {}", self.title));
        tokens.split(' ').filter(|token| *token != "-")
    }
}

/// The bytes of a string token.
fn decode(token: &str) -> Vec<u8> {
    let mut parts = token.strip_prefix('\'').unwrap().split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}
