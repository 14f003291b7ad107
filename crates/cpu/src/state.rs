//! Variables in the machine's memory, and how a program finds its variables among them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_graph::executor::{State, misfit, missing};
use estimand_graph::{VarId, VarSpec, Variables};
use estimand_tensor::{Array, DType, Error, Result};
use indexmap::IndexMap;

/// Variables in the machine's memory. A live state is the only owner of its buffers.
#[derive(Default)]
pub(super) struct CpuState {
    arrays: Vec<Array>,
    /// The address of each array's elements.
    starts: Vec<*mut u8>,
    slots: HashMap<String, usize>,
    /// Whether the arrays may be shared. Nobody writes to a frozen state.
    is_frozen: bool,
    /// Identifies the assignment of names to slots: states with the same number have the same
    /// layout. All states without variables have 0.
    layout: u64,
}

// SAFETY: `starts` points into `arrays`. A live state is the only owner of these; those of a frozen
// one are only read.
unsafe impl Send for CpuState {}
// SAFETY: through a shared reference the pointers are only read from; writing requires an exclusive
// reference to a live state.
unsafe impl Sync for CpuState {}

/// The slots of a program's variables in a state. Variables that the program does not use have an
/// empty slot.
#[derive(Default)]
pub(super) struct Slots {
    by_id: Vec<usize>,
    layout: Option<u64>,
}

impl Slots {
    /// Finds the variables of a program in a state. Does nothing if the last state had the same
    /// layout.
    pub(super) fn find(&mut self, state: &CpuState, variables: &Variables, used: &[VarId]) -> Result<()> {
        if self.layout == Some(state.layout) {
            return Ok(());
        }
        self.layout = None;
        self.by_id.clear();
        self.by_id.resize(variables.len(), usize::MAX);
        for &id in used {
            self.by_id[id.0 as usize] = state.slot(variables.spec(id))?;
        }
        self.layout = Some(state.layout);
        Ok(())
    }
}

/// A state from a program's view: variables by their ids in its graph.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) state: &'a CpuState,
    pub(super) slots: &'a Slots,
}

impl<'a> Bound<'a> {
    fn slot(self, id: VarId) -> usize {
        self.slots.by_id[id.0 as usize]
    }

    pub(super) fn start(self, id: VarId) -> *mut u8 {
        self.state.starts[self.slot(id)]
    }

    pub(super) fn array(self, id: VarId) -> &'a Array {
        &self.state.arrays[self.slot(id)]
    }

    /// The elements of an f32 variable, for writing.
    ///
    /// # Safety
    /// The state must be borrowed exclusively, and nothing else may use these elements at the same
    /// time.
    #[allow(clippy::mut_from_ref, reason = "several variables are open at once; the contract forbids aliasing")]
    pub(super) unsafe fn weights(self, id: VarId) -> &'a mut [f32] {
        let array = self.array(id);
        debug_assert_eq!(array.dtype(), DType::F32);
        // SAFETY: the array holds `len` floats from `start`; exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.start(id).cast(), array.len()) }
    }
}

impl CpuState {
    /// Creates a state with the initial values of variables.
    pub(super) fn new(variables: &Variables, seed: u64) -> Result<CpuState> {
        let mut state = CpuState::default();
        state.extend(variables, seed)?;
        Ok(state)
    }

    /// Creates a frozen state from these values. Their memory is shared, and nobody writes to it.
    pub(super) fn frozen(values: IndexMap<String, Array>) -> Result<CpuState> {
        let mut state = CpuState { is_frozen: true, layout: new_layout(), ..CpuState::default() };
        for (slot, (name, value)) in values.into_iter().enumerate() {
            let array = if lies_well(value.bytes()) { value } else { own(&value)? };
            state.starts.push(array.bytes().as_ptr().cast_mut());
            state.arrays.push(array);
            state.slots.insert(name, slot);
        }
        Ok(state)
    }

    /// Returns an error unless a step may write to the state.
    pub(super) fn check_live(&self) -> Result<()> {
        match self.is_frozen {
            true => Err(Error::config("this state is frozen: it cannot be trained")
                .help("train a copy, which State::copy makes")),
            false => Ok(()),
        }
    }

    /// Returns the slot of a program's variable. Its dtype and sizes must be those of the program.
    fn slot(&self, spec: &VarSpec) -> Result<usize> {
        let slot = *self.slots.get(&spec.name).ok_or_else(|| missing(&spec.name).at(spec.site))?;
        let held = &self.arrays[slot];
        match held.dtype() == spec.dtype && held.dims() == &spec.dims[..] {
            true => Ok(slot),
            false => Err(misfit(&spec.name, (held.dtype(), held.dims()), (spec.dtype, &spec.dims)).at(spec.site)),
        }
    }

    fn held(&self, name: &str) -> Result<usize> {
        self.slots.get(name).copied().ok_or_else(|| missing(name))
    }

    fn put(&mut self, slot: usize, value: Array) -> Result<()> {
        let mut array = value;
        if array.as_mut_ptr().is_none() || !lies_well(array.bytes()) {
            array = own(&array)?;
        }
        // Strings have no address, and no kernel needs one.
        let start = array.as_mut_ptr().unwrap_or(std::ptr::null_mut());
        match self.arrays.get_mut(slot) {
            Some(held) => (*held, self.starts[slot]) = (array, start),
            None => {
                self.arrays.push(array);
                self.starts.push(start);
            }
        }
        Ok(())
    }
}

/// Whether memory begins at a cache line, or is not longer than one. Kernels are fastest on such
/// memory; that of a vector may begin elsewhere.
fn lies_well(bytes: &[u8]) -> bool {
    bytes.len() <= LINE || (bytes.as_ptr() as usize).is_multiple_of(LINE)
}

/// The bytes of a cache line.
const LINE: usize = 64;

fn new_layout() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A copy that shares no memory.
fn own(array: &Array) -> Result<Array> {
    match array.dtype() {
        DType::Str => Array::from_strings(array.dims(), array.strings()?),
        dtype => Array::from_bytes(dtype, array.dims(), array.bytes()),
    }
}

impl State for CpuState {
    fn holds(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    fn read(&self, name: &str) -> Result<Array> {
        let array = &self.arrays[self.held(name)?];
        match self.is_frozen {
            true => Ok(array.clone()),
            false => own(array),
        }
    }

    fn write(&mut self, name: &str, value: &Array) -> Result<()> {
        self.check_live()?;
        let slot = self.held(name)?;
        let held = &self.arrays[slot];
        if value.dtype() != held.dtype() || value.dims() != held.dims() {
            return Err(misfit(name, (value.dtype(), value.dims()), (held.dtype(), held.dims())));
        }
        self.put(slot, own(value)?)
    }

    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()> {
        self.extend_with(variables, seed, Vec::new())
    }

    /// The initial value of a large table takes longer than to read it, so it is not made in vain.
    fn extend_with(&mut self, variables: &Variables, seed: u64, values: Vec<(VarId, Array)>) -> Result<()> {
        self.check_live()?;
        let mut given: HashMap<VarId, Array> = values.into_iter().collect();
        for (id, spec) in variables.iter() {
            let held = self.slots.get(&spec.name).copied();
            let value = match given.remove(&id) {
                Some(value) if value.dtype() != spec.dtype || value.dims() != &spec.dims[..] => {
                    let (found, expected) = ((value.dtype(), value.dims()), (spec.dtype, &spec.dims[..]));
                    return Err(misfit(&spec.name, found, expected));
                }
                Some(value) => value,
                None if held.is_some() => continue,
                None => variables.initial(id, seed)?,
            };
            if let Some(slot) = held {
                self.slot(spec)?;
                self.put(slot, value)?;
                continue;
            }
            let slot = self.arrays.len();
            self.put(slot, value)?;
            self.slots.insert(spec.name.clone(), slot);
            self.layout = new_layout();
        }
        Ok(())
    }

    fn freeze(mut self: Box<Self>) -> Arc<dyn State> {
        self.is_frozen = true;
        Arc::new(*self)
    }

    fn copy(&self) -> Result<Box<dyn State>> {
        let mut copy = CpuState { slots: self.slots.clone(), layout: self.layout, ..CpuState::default() };
        for (slot, array) in self.arrays.iter().enumerate() {
            copy.put(slot, own(array)?)?;
        }
        Ok(Box::new(copy))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_states_share_the_memory_of_values() -> Result<()> {
        let table = own(&Array::from_vec([4, 2], (0..8).map(|i| i as f32).collect::<Vec<_>>())?)?;
        let state = || CpuState::frozen(IndexMap::from([("table".to_string(), table.clone())]));
        let (a, mut b) = (state()?, state()?);
        assert_eq!(a.starts, b.starts);
        assert_eq!(a.starts[0].cast_const(), table.bytes().as_ptr());
        for error in [b.write("table", &table), b.extend(&Variables::default(), 0), b.check_live()] {
            assert!(error.unwrap_err().to_string().contains("frozen"));
        }
        let mut copy = b.copy()?;
        copy.write("table", &Array::zeros(DType::F32, [4, 2])?)?;
        assert_eq!(a.read("table")?, table);
        Ok(())
    }

    /// A large table is in memory once: a state takes the memory of a value that is read from a
    /// file, and gives it out again when it is frozen.
    #[test]
    fn a_value_moves_in_and_is_shared_after_the_training() -> Result<()> {
        let graph = estimand_graph::Graph::new();
        graph.variable("table", [4, 2], estimand_graph::Initializer::Zeros);
        let body = graph.body();
        let (id, _) = body.variables().iter().next().ok_or(Error::internal("no variable"))?;
        let ones = || own(&Array::from_vec([4, 2], vec![1f32; 8])?);
        for is_held in [false, true] {
            let mut state = CpuState::default();
            if is_held {
                state.extend(body.variables(), 0)?;
            }
            let table = ones()?;
            let start = table.bytes().as_ptr();
            state.extend_with(body.variables(), 0, vec![(id, table)])?;
            assert_eq!(state.starts[0].cast_const(), start);
            // A live state gives out a copy.
            assert_ne!(state.read("table")?.bytes().as_ptr(), start);
            let frozen = Box::new(state).freeze();
            assert_eq!(frozen.read("table")?.bytes().as_ptr(), start);
            // The caller still holds this one.
            let kept = ones()?;
            let mut state = frozen.copy()?;
            state.extend_with(body.variables(), 0, vec![(id, kept.clone())])?;
            state.write("table", &Array::zeros(DType::F32, [4, 2])?)?;
            assert_eq!((kept, frozen.read("table")?), (ones()?, ones()?));
        }
        Ok(())
    }
}
