//! TensorFlow's names, as written by `oracles/gen/tf_names.py`.

use super::FILES;

/// All of them: names, arguments as `name(argument)`, and files.
pub fn names(fixture: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in fixture.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("name"), Some(name)) => {
                names.push(name.to_string());
                let argument = |word: &str| format!("{name}({})", word.split('=').next().unwrap_or(word));
                names.extend(words.map(argument));
            }
            (Some("file"), Some(path)) => names.push(format!("{FILES}{path}")),
            _ => panic!("oracles/fixtures/tf_names.txt: `{line}`"),
        }
    }
    assert!(names.len() > 500, "the fixture has only {} names", names.len());
    names
}
