//! Layers that several models use: which model has the newest weights.
//!
//! Every model has a state of its own, because names differ from model to model. A layer has one
//! [`Sharing`], which points to the state that was changed last. Before a model uses its weights,
//! it copies those that another model has changed since. Models that share nothing copy nothing.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use estimand_graph::executor::misfit;
use estimand_tensor::{Array, Error, Result};

use super::lazy_state::LazyState;

/// The variables of a model. Models that share layers read them from each other.
pub(super) struct Values(Mutex<Versioned>);

/// A state, and a number that no other state has had and that changes with it.
pub(super) struct Versioned {
    state: LazyState,
    version: u64,
}

impl Versioned {
    /// The state, whose values stay as they are.
    pub fn state(&mut self) -> &mut LazyState {
        &mut self.state
    }

    /// The state, which is about to change.
    pub fn state_mut(&mut self) -> &mut LazyState {
        self.version = next_version();
        &mut self.state
    }

    pub fn replace(&mut self, state: LazyState) {
        (self.state, self.version) = (state, next_version());
    }
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(1);
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

impl Values {
    pub fn new(state: LazyState) -> Arc<Values> {
        Arc::new(Values(Mutex::new(Versioned { state, version: next_version() })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Versioned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who has the newest weights of a layer. All models that use the layer point to it.
#[derive(Default)]
pub(super) struct Sharing(Mutex<Option<Owner>>);

#[derive(Clone)]
struct Owner {
    values: Arc<Values>,
    names: Arc<[String]>,
}

impl Sharing {
    fn lock(&self) -> MutexGuard<'_, Option<Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A layer of one model.
pub(super) struct Share {
    sharing: Arc<Sharing>,
    /// The layer's name and those of its weights, in this model.
    layer: String,
    names: Arc<[String]>,
    /// The version of the other model's state that was copied last.
    seen: AtomicU64,
}

impl Share {
    pub fn new(sharing: &Arc<Sharing>, layer: &str, names: &[String]) -> Share {
        Share { sharing: sharing.clone(), layer: layer.to_string(), names: names.into(), seen: AtomicU64::new(0) }
    }

    /// Says that these values, those of this model, are the newest.
    pub fn claim(&self, values: &Arc<Values>) {
        let mut owner = self.sharing.lock();
        if !owner.as_ref().is_some_and(|owner| Arc::ptr_eq(&owner.values, values)) {
            *owner = Some(Owner { values: values.clone(), names: self.names.clone() });
        }
    }

    /// The weights are those of the model that made the layer, and are copied when somebody asks
    /// for them. If this is the first model, its own are the newest.
    pub fn join(&self, values: &Arc<Values>) -> Result<()> {
        self.claim_if_first(values);
        self.seen.store(0, Ordering::Relaxed);
        let Some(owner) = self.owner_besides(values) else { return Ok(()) };
        for (own, theirs) in self.names.iter().zip(owner.names.iter()) {
            let given = owner.values.lock().state().spec(theirs)?;
            let held = values.lock().state().spec(own)?;
            if given != held {
                return Err(self.misfit(misfit(own, (given.0, &given.1), (held.0, &held.1))));
            }
        }
        Ok(())
    }

    fn claim_if_first(&self, values: &Arc<Values>) {
        let mut owner = self.sharing.lock();
        if owner.is_none() {
            *owner = Some(Owner { values: values.clone(), names: self.names.clone() });
        }
    }

    /// The other model that has the newest weights.
    fn owner_besides(&self, values: &Arc<Values>) -> Option<Owner> {
        self.sharing.lock().clone().filter(|owner| !Arc::ptr_eq(&owner.values, values))
    }

    /// Whether the layer has no other weights than these.
    pub fn is_within(&self, names: &HashSet<&str>) -> bool {
        self.names.iter().all(|name| names.contains(name.as_str()))
    }

    /// Copies the weights that another model has changed since the last time.
    pub fn catch_up(&self, values: &Arc<Values>) -> Result<()> {
        let Some(owner) = self.owner_besides(values) else { return Ok(()) };
        // Never two states at once: two models may read from each other.
        let mut theirs = owner.values.lock();
        let version = theirs.version;
        if version == self.seen.load(Ordering::Relaxed) {
            return Ok(());
        }
        let arrays: Vec<Array> = owner.names.iter().map(|name| theirs.state().read(name)).collect::<Result<_>>()?;
        drop(theirs);
        let mut ours = values.lock();
        for (name, array) in self.names.iter().zip(&arrays) {
            ours.state_mut().write(name, array).map_err(|error| self.misfit(error))?;
        }
        self.seen.store(version, Ordering::Relaxed);
        Ok(())
    }

    fn misfit(&self, error: Error) -> Error {
        error
            .context(format!("layer `{}` has its weights from another model", self.layer))
            .help("apply a layer to values of the same shape in all models, or make a layer for each")
    }

    /// A layer that one model would have twice: itself, and inside of a model.
    pub fn find_twice(shares: &[Share]) -> Option<(&str, &str)> {
        let mut seen: HashMap<*const Sharing, &Share> = HashMap::new();
        for share in shares {
            if let Some(other) = seen.insert(Arc::as_ptr(&share.sharing), share) {
                return other.names.first().zip(share.names.first()).map(|(a, b)| (a.as_str(), b.as_str()));
            }
        }
        None
    }
}
