//! Heads as JSON: `{"class_name": "MultiClassHead", "config": {"n_classes": 3, ..}}`.

use std::sync::Arc;

use estimand_nn::config::{self, CustomObjects, Described, Field, Fields, Json, Node, Read};
use estimand_tensor::Result;

use super::slice::Slice;
use super::{
    BinaryClassHead, Head, LogisticRegressionHead, MultiClassHead, MultiHead, MultiLabelHead, PoissonRegressionHead,
    RegressionHead, SequentialHeadWrapper, Term,
};

/// Where a document says that its heads come from.
const MODULE: &str = "estimand.heads";

/// A class with its reader.
const fn class<H: Head + Described + 'static>() -> (&'static str, Read<Arc<dyn Head>>) {
    (H::CLASS, |config| config::read::<H>(config).map(|head| Arc::new(head) as Arc<dyn Head>))
}

/// Every class that can be read.
const CLASSES: [(&str, Read<Arc<dyn Head>>); 8] = [
    class::<BinaryClassHead>(),
    class::<LogisticRegressionHead>(),
    class::<MultiClassHead>(),
    class::<MultiHead>(),
    class::<MultiLabelHead>(),
    class::<PoissonRegressionHead>(),
    class::<RegressionHead>(),
    class::<SequentialHeadWrapper>(),
];

/// Reads a head from JSON: what [`Head::to_json`] writes. Mistakes in its settings are errors, as
/// of [`Head::check`]. A head of the user's own is read by the function that
/// [`CustomObjects::object`] was given for its class, as an `Arc<dyn Head>`.
///
/// ```
/// use estimand::head;
/// use estimand::nn::config::CustomObjects;
/// use estimand::prelude::*;
///
/// let json = MultiClassHead::new(3).label_vocabulary(["red", "green", "blue"]).to_json()?;
/// assert_eq!(json["config"]["label_vocabulary"][2], "blue");
/// let again = head::from_json(&json.to_string(), &CustomObjects::new())?;
/// assert_eq!(again.to_json()?, json);
/// # Ok::<(), Error>(())
/// ```
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<Arc<dyn Head>> {
    let document = config::parse(text)?;
    SharedHead::read(&Node::root(&document, objects)).map(|head| head.0)
}

/// A head as JSON.
pub(super) fn written<H: Head + Described>(head: &H) -> Result<Json> {
    config::write(MODULE, head)
}

/// A head of any class as a field.
#[derive(Clone, Debug)]
pub(crate) struct SharedHead(pub Arc<dyn Head>);

impl Field for SharedHead {
    fn write(&self) -> Result<Json> {
        self.0.to_json()
    }

    fn read(node: &Node<'_>) -> Result<SharedHead> {
        let head = config::read_object(node, "head", &CLASSES)?;
        head.check().map_err(|error| error.context(format!("at {}", node.path())))?;
        Ok(SharedHead(head))
    }
}

impl Field for Term {
    fn write(&self) -> Result<Json> {
        match self {
            Term::Text(text) => text.write(),
            Term::Int(n) => n.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Term> {
        match node.value() {
            Json::String(text) => Ok(Term::Text(text.clone())),
            value => value.as_i64().map(Term::Int).ok_or_else(|| node.expected("a text or a whole number")),
        }
    }
}

impl Described for Slice {
    const CLASS: &'static str = "Slice";

    fn template() -> Slice {
        Slice::new(String::new(), Vec::new())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Slice {
        Slice { feature: fields.required("feature", &self.feature), values: fields.required("values", &self.values) }
    }
}

impl Field for Slice {
    fn write(&self) -> Result<Json> {
        config::write(MODULE, self).map(|mut written| written["config"].take())
    }

    fn read(node: &Node<'_>) -> Result<Slice> {
        config::read(node)
    }
}
