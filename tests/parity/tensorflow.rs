//! TensorFlow's names, as written by `oracles/gen/tf_names.py` and `contrib_names.py`.

use estimand_fixture::cases;

use super::FILES;

/// All of them: names, arguments as `name(argument)`, and files.
pub fn names() -> Vec<String> {
    let mut names = Vec::new();
    for case in cases("tf_names").into_iter().chain(cases("contrib_names")) {
        match case.name() {
            "name" => {
                let name: String = case.setting("name");
                let arguments = case.setting::<Vec<String>>("arguments");
                names.push(name.clone());
                names.extend(arguments.iter().map(|argument| format!("{name}({argument})")));
            }
            "file" => names.push(format!("{FILES}{}", case.setting::<String>("path"))),
            _ => panic!("{case}"),
        }
    }
    assert!(names.len() > 500, "the fixture has only {} names", names.len());
    names
}
