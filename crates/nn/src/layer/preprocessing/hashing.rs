//! `Hashing`: categories by their hash.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::output_mode::OutputMode;
use super::term::Term;
use crate::config::{self, Described, Elements, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// Maps strings or integers to `num_bins` ids by TensorFlow's hash. Integers are hashed by their
/// decimal text.
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{Hashing, Layer};
/// use estimand_tensor::Array;
/// let g = Graph::new();
/// let words = g.constant(Array::from_strings([5], ["A", "B", "C", "D", "E"])?);
/// assert_eq!(Hashing::new(3).apply(&words).eval()?.as_slice::<i64>()?, [1, 0, 1, 1, 2]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Hashing {
    num_bins: usize,
    mask_value: Option<Term>,
    salt: Option<[u64; 2]>,
    output_mode: OutputMode,
    config: Config,
}

impl Hashing {
    /// Hashes into this many ids.
    pub fn new(num_bins: usize) -> Hashing {
        let output_mode = OutputMode::Int;
        Hashing { num_bins, mask_value: None, salt: None, output_mode, config: Config::default() }
    }

    /// The string that gets the id 0, which no other has then. By default there is none.
    pub fn mask_value(mut self, value: &str) -> Hashing {
        self.mask_value = Some(value.into());
        self
    }

    /// The integer that gets the id 0, which no other has then. By default there is none.
    pub fn mask_integer(mut self, value: i64) -> Hashing {
        self.mask_value = Some(value.into());
        self
    }

    /// Hashes with a secret key (SipHash), so that nobody can choose values that collide. By
    /// default the hash has no key.
    pub fn salt(mut self, salt: [u64; 2]) -> Hashing {
        self.salt = Some(salt);
        self
    }

    /// The form of the result. By default ids.
    pub fn output_mode(mut self, mode: OutputMode) -> Hashing {
        self.output_mode = mode;
        self
    }

    /// Whether an id is left to the mask value alone.
    fn masks(&self) -> bool {
        self.mask_value.is_some() && self.num_bins > 1
    }
}

config_setters!(Hashing);

/// Both halves of the key; one number stands for both.
fn salt(fields: &mut Fields<'_>, own: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let given = fields.value("salt", &own.map(|salt| Elements(salt.to_vec())));
    match given.map(|salt| salt.0).as_deref() {
        None => None,
        Some([one]) => Some([*one, *one]),
        Some([first, second]) => Some([*first, *second]),
        Some(_) => {
            fields.refuse_here("the field `salt` has more than two numbers");
            None
        }
    }
}

const MODES: [OutputMode; 4] = [OutputMode::Int, OutputMode::OneHot, OutputMode::MultiHot, OutputMode::Count];

impl Described for Hashing {
    const CLASS: &'static str = "Hashing";

    fn template() -> Hashing {
        Hashing::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Hashing {
        Hashing {
            num_bins: fields.required("num_bins", &self.num_bins),
            mask_value: fields.value("mask_value", &self.mask_value),
            salt: salt(fields, self.salt),
            output_mode: self.output_mode.field(fields, &MODES),
            config: self.config.fields_of(fields, self.output_mode.dtype(), &["int64", "float32"]),
        }
    }
}

impl Layer for Hashing {
    fn kind(&self) -> &'static str {
        "hashing"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.num_bins == 0 {
            build.refuse(Error::config("the number of bins is 0; expected at least 1"));
        }
        let dtype = build.input().dtype();
        let text = match (&self.mask_value, dtype) {
            (_, DType::Str | DType::I32 | DType::I64) => match (&self.mask_value, dtype == DType::Str) {
                (Some(Term::Integer(n)), true) => format!("the mask value is {n}, and the input has strings"),
                (Some(Term::Text(text)), false) => {
                    format!("the mask value is {text:?}, and the input has integers")
                }
                _ => return,
            },
            (_, other) => format!("the input holds {other}; expected strings or integers"),
        };
        build.refuse(Error::dtype(Some(DType::Str), dtype, text));
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        let n = self.num_bins as i64 - i64::from(self.masks());
        let mut ids = match self.salt {
            None => x.hash_bucket(n),
            Some(key) if x.dtype() == DType::Str => x.hash_bucket_strong(n, key),
            Some(key) => x.as_string().hash_bucket_strong(n, key),
        };
        if let (true, Some(value)) = (self.masks(), &self.mask_value) {
            let is_mask = value.is(x);
            ids = is_mask.select(ids.zeros_like(), ids + 1i64);
        }
        self.output_mode.encode(&ids, self.num_bins, None)
    }
}
