//! `Estimator::open`: the model of a folder, without the program that trained it.

use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_nn::config::{self, CustomObjects, Node, visit_objects};
use estimand_tensor::{Error, Result, warn};
use serde_json::Value as Json;

use super::{VERSION, assets, path};
use crate::head::SharedHead;
use crate::model_fn::{ModelFn, ModelFnContext};
use crate::model_folder::read_up_to;
use crate::premade::KMeansSettings;
use crate::{Estimator, EstimatorBuilder, EstimatorSpec, HParams, RunConfig, premade};

/// The maximum size of a description in bytes: vocabularies of ten million terms fit.
const MAX_BYTES: u64 = 256 << 20;

impl Estimator {
    /// Opens the model of a folder without the program that trained it: a premade estimator's
    /// columns, network, head and vocabularies come from the folder. It predicts, evaluates and
    /// goes on training as the original does, with the same bits. [`OpenOptions`] take a
    /// configuration, classes of one's own, or a model function.
    ///
    /// ```
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-open-{}", std::process::id()));
    /// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
    /// let data = Dataset::from_arrays(rows).label("y").repeat(100).batch(4);
    /// let trained = DnnClassifier::new([3], [numeric_column("x").into()]).model_dir(&folder).build()?;
    /// trained.train(&data)?;
    ///
    /// let opened = Estimator::open(&folder)?;
    /// assert_eq!(opened.evaluate(&data)?, trained.evaluate(&data)?);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn open(folder: impl Into<PathBuf>) -> Result<Estimator> {
        OpenOptions::new().open(folder)
    }
}

/// Options of [`Estimator::open`].
///
/// ```
/// use estimand::prelude::*;
/// use estimand::OpenOptions;
/// # fn tries(data: &Dataset) -> Result<()> {
/// let config = RunConfig::new().save_checkpoints(Every::Steps(100));
/// let opened = OpenOptions::new().config(config).open("model")?;
/// opened.train(data)?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use]
pub struct OpenOptions {
    config: RunConfig,
    objects: CustomObjects,
    model_fn: Option<ModelFn>,
    params: HParams,
}

impl OpenOptions {
    /// The defaults.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Sets the run configuration. By default, [`RunConfig::new`]. Without a seed, the seed of the
    /// folder's checkpoint is used.
    pub fn config(mut self, config: RunConfig) -> OpenOptions {
        self.config = config;
        self
    }

    /// Sets the classes of one's own that the description may name: columns, rules of optimizers,
    /// heads. By default, none.
    pub fn custom_objects(mut self, objects: CustomObjects) -> OpenOptions {
        self.objects = objects;
        self
    }

    /// Sets the model function, for a folder that a model function trained. By default, the model
    /// is a premade estimator.
    pub fn model_fn(
        mut self,
        model_fn: impl Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync + 'static,
    ) -> OpenOptions {
        self.model_fn = Some(Arc::new(model_fn));
        self
    }

    /// Sets the parameters of the model function. By default, none.
    pub fn params(mut self, params: HParams) -> OpenOptions {
        self.params = params;
        self
    }

    /// Opens the model of a folder. It must have a checkpoint.
    #[track_caller]
    pub fn open(self, folder: impl Into<PathBuf>) -> Result<Estimator> {
        let folder = folder.into();
        if !folder.is_dir() {
            return Err(Error::config(format!("there is no folder {}", folder.display()))
                .help("give the model_dir of a trained estimator"));
        }
        let document = match self.model_fn {
            None => read(&folder)?,
            Some(_) => None,
        };
        let builder = match (&self.model_fn, document) {
            (Some(model_fn), _) => {
                let model_fn = model_fn.clone();
                Estimator::new(move |cx: &ModelFnContext<'_>| model_fn(cx))
            }
            (None, Some(document)) => premade(&folder, document, &self.objects)?,
            (None, None) => return Err(undescribed(&folder)),
        };
        let opened = builder.config(self.config).params(self.params).model_dir(&folder).build()?;
        match opened.latest_checkpoint()? {
            Some(_) => Ok(opened),
            None => Err(Error::config(format!("there is no checkpoint in {}", folder.display()))
                .help("train the model with the program that describes it; a checkpoint is saved at the first step")),
        }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The error of a folder without a description.
fn undescribed(folder: &Path) -> Error {
    let (folder, file) = (folder.display(), path(folder));
    let text = format!("{folder} has no description of its model: {} is missing", file.display());
    Error::config(text).help(
        "Estimand writes the description since version 0.2.0, when it trains a premade estimator. Build the estimator \
         in a program with this model_dir and train it for one step, or give the model function to OpenOptions",
    )
}

/// Reads the description of a folder; `None` if there is none.
fn read(folder: &Path) -> Result<Option<Json>> {
    let path = path(folder);
    let Some(bytes) = read_up_to(&path, MAX_BYTES)? else { return Ok(None) };
    parse(bytes).map(Some).map_err(|e| e.in_file(&path))
}

fn parse(bytes: Vec<u8>) -> Result<Json> {
    let damaged = |what: &str| Error::data(format!("the description of the model cannot be read: {what}"));
    if bytes.len() as u64 > MAX_BYTES {
        return Err(damaged(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not UTF-8"))?;
    let document = config::parse(&text)?;
    let version = document.get("version").and_then(Json::as_u64).ok_or_else(|| damaged("it has no version"))?;
    if version > VERSION {
        let text = format!("the description of the model has version {version}; this library reads up to {VERSION}");
        return Err(Error::unsupported(text).help("use the version of Estimand that wrote it, or a newer one"));
    }
    Ok(document)
}

/// Starts the estimator of a description.
#[track_caller]
fn premade(folder: &Path, mut document: Json, objects: &CustomObjects) -> Result<EstimatorBuilder> {
    if let Some(reason) = document.get("cannot_be_opened").and_then(Json::as_str) {
        let text = format!("the model in {} cannot be opened without its program: {reason}", folder.display());
        return Err(Error::config(text)
            .help("build it in a program with this model_dir, or give its model function to OpenOptions"));
    }
    let place = |error: Error| error.in_file(path(folder));
    let inside = |file: &mut Json| assets::find(folder, file);
    visit_objects(&mut document, config::File::CLASS, &mut { inside }).map_err(place)?;
    // The tables that a checkpoint initialized are in the folder's own checkpoint.
    visit_objects(&mut document, "Checkpoint", &mut |initial| {
        *initial = Json::Null;
        Ok(())
    })?;
    let root = Node::root(&document, objects);
    let left_out: Vec<String> = root
        .get("left_out")?
        .map(|node| <Vec<String> as config::Field>::read(&node))
        .transpose()
        .map_err(place)?
        .unwrap_or_default();
    for what in left_out {
        warn!("The program that trained {} had {what}, which its description does not hold", folder.display());
    }
    if let Some(node) = root.get("kmeans").map_err(place)? {
        return Ok(KMeansSettings::from_json(&node).map_err(place)?.estimator(Location::caller()));
    }
    let network = root.field("network").and_then(|node| premade::read_network(&node)).map_err(place)?;
    let head = root.field("head").and_then(|node| <SharedHead as config::Field>::read(&node)).map_err(place)?.0;
    network.check_head(&*head).map_err(place)?;
    Ok(premade::estimator(network, head, Location::caller()))
}
