//! The text of the models' training programs: a change of the passes shows up here.
//!
//! Review a difference before you accept it: `UPDATE_GOLDEN=1 cargo test golden` writes the new
//! text.

use estimand::prelude::*;

use crate::models::{self, Model};

fn check(name: &str, model: Model) {
    let mut session = Session::new(&model.graph).unwrap();
    let text = session.program(&[&model.train, &model.loss]).unwrap().to_string();
    let path = format!("{}/../../tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{path} differs; the program now is\n{text}");
}

#[test]
fn linear() {
    check("linear", models::linear());
}

#[test]
fn iris() {
    check("iris", models::iris());
}

#[test]
fn cnn() {
    check("cnn", models::cnn());
}

#[test]
fn lookup() {
    check("lookup", models::lookup(1_000, 32, 8));
}

#[test]
fn sequence() {
    check("sequence", models::sequence(7, 5, 6));
}

/// With a part of the host: 13 numbers and eight hashed categories.
#[test]
fn ctr() {
    check("ctr", models::ctr(1_000, 4));
}
