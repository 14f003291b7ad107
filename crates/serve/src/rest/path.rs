//! The paths of TensorFlow Serving's REST interface.
//!
//! ```text
//! POST  /v1/models/NAME[/versions/N | /labels/L]:(classify|regress|predict)
//! GET   /v1/models[/NAME][/versions/N | /labels/L][/metadata]
//! ```
//!
//! Words are case-insensitive. Names and labels are URL-decoded after the path was split, so no
//! name can contain another part of the path.

use crate::model::Choice;
use crate::status::{Answer, Status};

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Predict,
    Classify,
    Regress,
    Status,
    Metadata,
}

/// A path in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Empty if the path does not name a model.
    pub(crate) model: String,
    pub(crate) choice: Choice,
    pub(crate) call: Call,
}

/// Reads a path.
pub(crate) fn parse(method: &str, path: &str) -> Answer<Target> {
    parts(method, path).unwrap_or_else(|| Err(Status::invalid(format!("Malformed request: {method} {path}"))))
}

/// The rest of a path after a word, ignoring case.
fn strip<'a>(path: &'a str, word: &str) -> Option<&'a str> {
    let head = path.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &path[word.len()..])
}

/// A name up to the next slash or colon, and the rest.
fn name(path: &str) -> Option<(&str, &str)> {
    let end = path.find(['/', ':']).unwrap_or(path.len());
    (end > 0).then(|| path.split_at(end))
}

/// The parts of a path; `None` if it has another form.
fn parts(method: &str, path: &str) -> Option<Answer<Target>> {
    let rest = strip(path, "/v1/models")?;
    let (model, rest) = match rest.strip_prefix('/') {
        // `/v1/models/metadata` names a model, and `/v1/models/versions/1` one called `versions`.
        Some(rest) => name(rest)?,
        None => ("", rest),
    };
    let (choice, rest) = if let Some(rest) = strip(rest, "/versions/") {
        let (version, rest) = name(rest)?;
        if !version.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let Ok(number) = version.parse() else {
            return Some(Err(Status::invalid(format!("Failed to convert version: {version} to numeric."))));
        };
        (Choice::Version(number), rest)
    } else if let Some(rest) = strip(rest, "/labels/") {
        let (label, rest) = name(rest)?;
        (Choice::Label(decode(label)), rest)
    } else {
        (Choice::Latest, rest)
    };
    let is = |word: &str| rest.eq_ignore_ascii_case(word);
    let call = match method {
        "POST" if is(":predict") => Call::Predict,
        "POST" if is(":classify") => Call::Classify,
        "POST" if is(":regress") => Call::Regress,
        "GET" | "HEAD" if rest.is_empty() => Call::Status,
        "GET" | "HEAD" if is("/metadata") => Call::Metadata,
        _ => return None,
    };
    if model.is_empty() && method == "POST" {
        return None;
    }
    Some(Ok(Target { model: decode(model), choice, call }))
}

/// Replaces `%XX`. Anything else after a percent sign stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let (bytes, mut out) = (text.as_bytes(), Vec::with_capacity(text.len()));
    let hex = |i: usize| bytes.get(i).and_then(|&byte| char::from(byte).to_digit(16));
    let mut i = 0;
    while i < bytes.len() {
        match (bytes[i], hex(i + 1), hex(i + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                i += 3;
            }
            (byte, ..) => {
                out.push(byte);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(model: &str, choice: Choice, call: Call) -> Target {
        Target { model: model.to_string(), choice, call }
    }

    #[test]
    fn paths_of_the_original() {
        for (method, path, expected) in [
            ("POST", "/v1/models/foo:predict", target("foo", Choice::Latest, Call::Predict)),
            ("POST", "/V1/Models/foo:PREDICT", target("foo", Choice::Latest, Call::Predict)),
            ("POST", "/v1/models/foo/versions/50:regress", target("foo", Choice::Version(50), Call::Regress)),
            (
                "POST",
                "/v1/models/a%20b%2Fc/labels/x%41:classify",
                target("a b/c", Choice::Label("xA".into()), Call::Classify),
            ),
            ("GET", "/v1/models", target("", Choice::Latest, Call::Status)),
            ("GET", "/v1/models/foo", target("foo", Choice::Latest, Call::Status)),
            ("GET", "/v1/models/foo/versions/007/metadata", target("foo", Choice::Version(7), Call::Metadata)),
            ("GET", "/v1/models/foo/labels/stable", target("foo", Choice::Label("stable".into()), Call::Status)),
            ("GET", "/v1/models/%2e%2e", target("..", Choice::Latest, Call::Status)),
        ] {
            assert_eq!(parse(method, path).unwrap(), expected, "{method} {path}");
        }
    }

    /// The cases of `http_rest_api_handler_test.cc`, and more.
    #[test]
    fn malformed_paths() {
        for (method, path) in [
            ("GET", "/v1/foo"),
            ("POST", "/v1/foo"),
            ("GET", "/v1/models/debug/model_name"),
            ("POST", "/v1/models"),
            ("POST", "/v1/models/:predict"),
            ("GET", "/v1/models/"),
            ("GET", "/v1/models/foo:predict"),
            ("GET", "/v1/models/foo/version/50:predict"),
            ("POST", "/v1/models/foo/version/50:regress"),
            ("POST", "/v1/models/foo/versions/HELLO:regress"),
            ("POST", "/v1/models/foo/versions/-1:regress"),
            ("POST", "/v1/models/foo/metadata"),
            ("POST", "/v1/models/foo/label/some_label:regress"),
            ("POST", "/v1/models/foo/versions/50/labels/some_label:regress"),
            ("POST", "/v1/models/foo/bar:predict"),
            ("POST", "/v1/models/../foo:predict"),
            ("POST", "/v1/models/foo:predict/"),
            ("PUT", "/v1/models/foo:predict"),
            ("DELETE", "/v1/models/foo"),
            ("GET", "/v1/models/\u{e4}/x"),
        ] {
            let status = parse(method, path).unwrap_err();
            assert_eq!(status.message, format!("Malformed request: {method} {path}"));
        }
        let status = parse("POST", "/v1/models/foo/versions/18446744073709551615:regress").unwrap_err();
        assert_eq!(status.message, "Failed to convert version: 18446744073709551615 to numeric.");
    }
}
