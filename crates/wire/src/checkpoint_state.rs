//! The file `checkpoint` of a model directory, which lists its checkpoints and names the newest.
//!
//! ```text
//! model_checkpoint_path: "model.ckpt-200"
//! all_model_checkpoint_paths: "model.ckpt-100"
//! all_model_checkpoint_paths: "model.ckpt-200"
//! ```
//!
//! It is a protobuf message in text format. Paths are relative to the directory, or absolute; the
//! reader of the directory joins them.

use std::fmt;

pub use crate::text::TextError;
use crate::text::{Quote, Token, Tokens};

/// The checkpoints of a directory.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CheckpointState {
    /// The newest checkpoint; empty if there is none.
    pub model_checkpoint_path: String,
    /// All checkpoints that are kept, oldest first, including the newest.
    pub all_model_checkpoint_paths: Vec<String>,
    /// The time when each was written, in seconds since 1970; empty in files of Estimators.
    pub all_model_checkpoint_timestamps: Vec<f64>,
    /// The time when the last permanently kept checkpoint was written.
    pub last_preserved_timestamp: Option<f64>,
}

impl CheckpointState {
    /// Parses the text. Unknown fields are an error, as in TensorFlow.
    pub fn parse(text: &str) -> Result<CheckpointState, TextError> {
        let mut tokens = Tokens::new(text);
        let mut state = CheckpointState::default();
        while let Some(token) = tokens.next()? {
            let Token::Word(field) = token else {
                return Err(tokens.error(format!("expected a field name, found {token}")));
            };
            match tokens.next()? {
                Some(Token::Mark(':')) => {}
                _ => return Err(tokens.error(format!("expected `:` after `{field}`"))),
            }
            match field {
                "model_checkpoint_path" => state.model_checkpoint_path = string(&mut tokens)?,
                "all_model_checkpoint_paths" => list(&mut tokens, &mut state.all_model_checkpoint_paths, string)?,
                "all_model_checkpoint_timestamps" => {
                    list(&mut tokens, &mut state.all_model_checkpoint_timestamps, number)?
                }
                "last_preserved_timestamp" => state.last_preserved_timestamp = Some(number(&mut tokens)?),
                _ => return Err(tokens.error(format!("unknown field `{field}`"))),
            }
            if let Some(Token::Mark(',' | ';')) = tokens.peek()? {
                tokens.next()?;
            }
        }
        Ok(state)
    }
}

/// Prints the text as TensorFlow writes it.
impl fmt::Display for CheckpointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.model_checkpoint_path.is_empty() {
            writeln!(f, "model_checkpoint_path: {}", Quote(self.model_checkpoint_path.as_bytes()))?;
        }
        for path in &self.all_model_checkpoint_paths {
            writeln!(f, "all_model_checkpoint_paths: {}", Quote(path.as_bytes()))?;
        }
        for time in &self.all_model_checkpoint_timestamps {
            writeln!(f, "all_model_checkpoint_timestamps: {time:?}")?;
        }
        if let Some(time) = self.last_preserved_timestamp {
            writeln!(f, "last_preserved_timestamp: {time:?}")?;
        }
        Ok(())
    }
}

/// The values of a repeated field: one, or several in brackets.
fn list<T>(
    tokens: &mut Tokens<'_>,
    values: &mut Vec<T>,
    value: fn(&mut Tokens<'_>) -> Result<T, TextError>,
) -> Result<(), TextError> {
    if tokens.peek()? != Some(Token::Mark('[')) {
        values.push(value(tokens)?);
        return Ok(());
    }
    tokens.next()?;
    if tokens.peek()? == Some(Token::Mark(']')) {
        tokens.next()?;
        return Ok(());
    }
    loop {
        values.push(value(tokens)?);
        match tokens.next()? {
            Some(Token::Mark(',')) => {}
            Some(Token::Mark(']')) => return Ok(()),
            _ => return Err(tokens.error("expected `,` or `]` in a list")),
        }
    }
}

fn string(tokens: &mut Tokens<'_>) -> Result<String, TextError> {
    let Some(Token::Quoted(mut bytes)) = tokens.next()? else {
        return Err(tokens.error("expected a string in quotes"));
    };
    while let Some(Token::Quoted(more)) = tokens.peek()? {
        bytes.extend(more);
        tokens.next()?;
    }
    String::from_utf8(bytes).map_err(|_| tokens.error("a path is not UTF-8"))
}

fn number(tokens: &mut Tokens<'_>) -> Result<f64, TextError> {
    match tokens.next()? {
        Some(Token::Word(word)) => word.parse().map_err(|_| tokens.error(format!("`{word}` is not a number"))),
        _ => Err(tokens.error("expected a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimator_file_round_trips() {
        // The newest, then all that are kept, oldest first.
        let text = "model_checkpoint_path: \"model.ckpt-7\"\n\
                    all_model_checkpoint_paths: \"model.ckpt-0\"\n\
                    all_model_checkpoint_paths: \"model.ckpt-7\"\n";
        let state = CheckpointState::parse(text).unwrap();
        assert_eq!(state.model_checkpoint_path, "model.ckpt-7");
        assert_eq!(state.all_model_checkpoint_paths, ["model.ckpt-0", "model.ckpt-7"]);
        assert_eq!(state.to_string(), text);
    }

    #[test]
    fn all_of_the_text_format() {
        let text = "# written by hand\n\
                    model_checkpoint_path : 'old' ; model_checkpoint_path: 'a\\303\\251' \"-1\",\n\
                    all_model_checkpoint_paths: [ 'x', \"y\" ] all_model_checkpoint_paths: []\n\
                    all_model_checkpoint_timestamps: 1700000000.25 last_preserved_timestamp: -1e3";
        let state = CheckpointState::parse(text).unwrap();
        let expected = CheckpointState {
            model_checkpoint_path: "aé-1".to_string(),
            all_model_checkpoint_paths: vec!["x".to_string(), "y".to_string()],
            all_model_checkpoint_timestamps: vec![1_700_000_000.25],
            last_preserved_timestamp: Some(-1000.0),
        };
        assert_eq!(state, expected);
        assert_eq!(CheckpointState::parse(&state.to_string()).unwrap(), expected);
        assert_eq!(CheckpointState::parse(" \n").unwrap(), CheckpointState::default());
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("\n\nmodel_checkpoint_path \"x\"", "line 3: expected `:` after `model_checkpoint_path`"),
            ("path: \"x\"", "line 1: unknown field `path`"),
            ("model_checkpoint_path: 7", "line 1: expected a string in quotes"),
            ("model_checkpoint_path: \"x", "line 1: a string has no closing quote"),
            ("model_checkpoint_path: \"\\377\"", "line 1: a path is not UTF-8"),
            ("all_model_checkpoint_paths: [\"x\"", "line 1: expected `,` or `]` in a list"),
            ("last_preserved_timestamp: soon", "line 1: `soon` is not a number"),
            (": 1", "line 1: expected a field name, found `:`"),
        ] {
            assert_eq!(CheckpointState::parse(text).unwrap_err().to_string(), message);
        }
    }
}
