//! Bearer tokens: who may ask.

use std::collections::HashSet;
use std::fmt;

use estimand_tensor::{Error, Result, Sha256};
use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::status::{Answer, Code, Status};

/// The tokens of which a request needs one. Only their hashes are kept, so the time of a
/// comparison says nothing about a token.
#[derive(Clone, Default)]
pub(crate) struct Tokens(HashSet<String>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

fn hash(token: &[u8]) -> String {
    Sha256::new().update(token).finish()
}

impl Tokens {
    pub(crate) fn add(&mut self, token: &str) -> Result<()> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::config("a token is empty, or has blanks or characters beyond ASCII"));
        }
        self.0.insert(hash(token.as_bytes()));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the header `authorization: Bearer TOKEN`.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Answer<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let denied = |message: &str| Err(Status::new(Code::Unauthenticated, message));
        let Some(value) = headers.get(AUTHORIZATION) else {
            return denied("the request has no token; send the header `authorization: Bearer TOKEN`");
        };
        let bytes = value.as_bytes();
        let is_bearer = bytes.get(..7).is_some_and(|head| head.eq_ignore_ascii_case(b"bearer "));
        match is_bearer && self.0.contains(&hash(bytes[7..].trim_ascii())) {
            true => Ok(()),
            false => denied("the token of the request is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_tokens() {
        let mut tokens = Tokens::default();
        let headers = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        assert!(tokens.check(&HeaderMap::new()).is_ok(), "no token is needed");
        tokens.add("secret").unwrap();
        assert!(tokens.check(&headers("Bearer secret")).is_ok() && tokens.check(&headers("bearer  secret")).is_ok());
        for wrong in ["Bearer secre", "Bearer secret2", "Bearer ", "Basic secret", "secret", ""] {
            assert_eq!(tokens.check(&headers(wrong)).unwrap_err().code, Code::Unauthenticated, "{wrong}");
        }
        assert!(tokens.check(&HeaderMap::new()).is_err());
        assert!(tokens.add("").is_err() && tokens.add("a b").is_err());
        assert_eq!(format!("{tokens:?}"), "1 tokens");
    }
}
