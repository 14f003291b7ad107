//! The memory of one run: sizes, the arena, and the addresses of its buffers.
//!
//! Nothing here allocates in the steady state: sizes are recomputed only when a fed size changes,
//! and buffers move only when one of them must grow.

use estimand_graph::looks::look;
use estimand_graph::sizes::{Sizes, resolve_dim};
use estimand_tensor::{Array, DType, Dims, Error, Result, element_count};

use super::CpuExecutable;
use super::arena::arrange;
use super::plan::{Place, capacity};
use super::state::{Bound, CpuState, Slots};

/// The bytes of the shortest arena.
const SHORTEST: usize = 128;

/// Memory for one run at a time.
pub(crate) struct Workspace {
    /// The sizes of the symbols: of this run, and of the run that the other fields were computed
    /// for.
    sizes: Sizes,
    bound: Sizes,
    is_bound: bool,
    /// The sizes, the bytes and the address of every value, by the plan's indices.
    pub(super) dims: Vec<Dims>,
    pub(super) lens: Vec<usize>,
    pub(super) addresses: Vec<*mut u8>,
    /// Bytes of scratch memory of each step.
    pub(super) scratch: Vec<usize>,
    /// The capacity and the offset of each buffer.
    capacities: Vec<usize>,
    offsets: Vec<usize>,
    /// The arena for all buffers, and its address.
    arena: Option<Array>,
    start: *mut u8,
    /// The addresses of the inputs of each writing step: the values themselves, or copies.
    pub(super) written: Vec<[*mut u8; 2]>,
    /// The slots of the program's variables in the state.
    pub(super) slots: Slots,
    /// Hyper-parameters of the optimizers in this run.
    pub(super) hypers: Vec<Option<estimand_update::Hyper>>,
}

// SAFETY: the addresses point into the arena, or are renewed at the beginning of every run.
unsafe impl Send for Workspace {}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace {
            sizes: Sizes::default(),
            bound: Sizes::default(),
            is_bound: false,
            dims: Vec::new(),
            lens: Vec::new(),
            addresses: Vec::new(),
            scratch: Vec::new(),
            capacities: Vec::new(),
            offsets: Vec::new(),
            arena: None,
            start: std::ptr::null_mut(),
            written: Vec::new(),
            slots: Slots::default(),
            hypers: Vec::new(),
        }
    }
}

impl Workspace {
    /// Prepares the workspace for these feeds.
    pub(super) fn bind(&mut self, executable: &CpuExecutable, feeds: &[Array], state: &CpuState) -> Result<()> {
        executable.sizes.bind(&executable.program, feeds, &mut self.sizes)?;
        if !self.is_bound || !self.sizes.equal(&self.bound) {
            self.is_bound = false;
            self.resize(executable)?;
            self.bound.copy_from(&self.sizes);
            self.is_bound = true;
        }
        self.slots.find(state, executable.program.body().variables(), &executable.variables)?;
        let variables = Bound { state, slots: &self.slots };
        for &number in &executable.plan.outside {
            self.addresses[number] = match &executable.plan.places[number] {
                Place::Feed(i) => feeds[*i].bytes().as_ptr().cast_mut(),
                Place::Variable(id) => variables.start(*id),
                Place::Constant(_) | Place::Buffer(_) => continue,
            };
        }
        Ok(())
    }

    /// Recomputes everything that depends on the fed sizes.
    fn resize(&mut self, executable: &CpuExecutable) -> Result<()> {
        self.dims.resize(executable.plan.values.len(), Dims::new());
        for (dims, value) in self.dims.iter_mut().zip(&executable.plan.values) {
            dims.clear();
            for &dim in executable.program.spec(*value).shape.dims() {
                dims.push(resolve_dim(dim, &self.sizes).map_err(|e| executable.located(e, value.node))?);
            }
            element_count(dims).map_err(|e| executable.located(e, value.node))?;
        }
        executable.check_sizes(&self.dims)?;
        self.lens.clear();
        for (number, dims) in self.dims.iter().enumerate() {
            self.lens.push(byte_len(dims, executable.dtype(number).size())?);
            look(1);
        }
        self.scratch.clear();
        for step in &executable.steps {
            self.scratch.push(executable.scratch_bytes(step, &self.dims)?);
        }
        self.reserve(executable)?;
        self.addresses.clear();
        for place in &executable.plan.places {
            let address = match place {
                Place::Buffer(buffer) => self.buffer(*buffer),
                Place::Constant(array) => array.bytes().as_ptr().cast_mut(),
                Place::Feed(_) | Place::Variable(_) => std::ptr::null_mut(),
            };
            self.addresses.push(address);
        }
        Ok(())
    }

    /// Grows the buffers that are too small. If any grows, all buffers may move.
    fn reserve(&mut self, executable: &CpuExecutable) -> Result<()> {
        let plan = &executable.plan;
        let mut grown = self.capacities.len() != plan.buffers.len();
        self.capacities.resize(plan.buffers.len(), 0);
        let mut need = |buffer: usize, bytes: usize| {
            if bytes > self.capacities[buffer] {
                self.capacities[buffer] = capacity(bytes);
                grown = true;
            }
        };
        for (place, bytes) in plan.places.iter().zip(&self.lens) {
            if let Place::Buffer(buffer) = place {
                need(*buffer, *bytes);
            }
        }
        for (i, bytes) in self.scratch.iter().enumerate() {
            need(plan.n_value_buffers + i, *bytes);
        }
        if grown {
            // If this fails, the old contents are lost.
            self.arena = None;
            let failed = std::mem::take(&mut self.capacities);
            let (offsets, total) = arrange(&plan.buffers, &failed).ok_or_else(|| executable.no_memory(&self.lens))?;
            // A short array would not begin at a cache line.
            let mut arena =
                Array::zeros(DType::U8, [total.max(SHORTEST)]).map_err(|_| executable.no_memory(&self.lens))?;
            self.capacities = failed;
            self.offsets = offsets;
            self.start = arena.as_mut_ptr().ok_or_else(|| Error::internal("a fresh arena is shared"))?;
            self.arena = Some(arena);
        }
        Ok(())
    }

    pub(super) fn buffer(&self, buffer: usize) -> *mut u8 {
        // SAFETY: `arrange` has put every buffer inside the arena.
        unsafe { self.start.add(self.offsets[buffer]) }
    }

    pub(super) fn symbols(&self) -> &Sizes {
        &self.sizes
    }

    /// Copies the fetched values to `outputs`, and reuses arrays that are large enough.
    pub(super) fn fetch(&self, executable: &CpuExecutable, feeds: &[Array], outputs: &mut Vec<Array>) -> Result<()> {
        outputs.truncate(executable.fetches.len());
        for (i, &number) in executable.fetches.iter().enumerate() {
            let dtype = executable.dtype(number);
            if dtype == DType::Str {
                // The host computes all strings: here they can only be passed on.
                let Place::Feed(fed) = executable.plan.places[number] else {
                    return Err(Error::unsupported("the cpu executor does not compute strings"));
                };
                outputs.truncate(i);
                outputs.push(feeds[fed].clone());
                continue;
            }
            let dims = &self.dims[number];
            if outputs.len() <= i {
                outputs.push(Array::zeros(dtype, dims)?);
            } else {
                outputs[i].reuse(dtype, dims)?;
            }
            let to = outputs[i].as_mut_ptr().ok_or_else(|| Error::internal("a fresh output is shared"))?;
            // SAFETY: the value has this length, the output was made for it, and they are different
            // memory.
            unsafe { std::ptr::copy_nonoverlapping(self.addresses[number], to, self.lens[number]) };
        }
        Ok(())
    }
}

/// The bytes of an array, or an error if no machine can hold it.
fn byte_len(dims: &[usize], size: usize) -> Result<usize> {
    Ok(element_count(dims)? * size)
}

impl CpuExecutable {
    /// The error for a run that needs more memory than is available. It names the largest value.
    fn no_memory(&self, lens: &[usize]) -> Error {
        let in_arena = |n: &usize| matches!(self.plan.places[*n], Place::Buffer(_));
        let total = (0..lens.len()).filter(in_arena).fold(0, |sum: usize, n| sum.saturating_add(lens[n]));
        let text = format!("there is not enough memory for the values of this run, which need {total} bytes");
        let error = Error::shape(text).help("feed a smaller batch, or smaller inputs");
        match (0..lens.len()).filter(in_arena).max_by_key(|&n| lens[n]) {
            None => error,
            Some(largest) => {
                let value = self.plan.values[largest];
                let error = error.context(format!(
                    "the largest value has {} bytes: {}",
                    lens[largest],
                    self.program.spec(value)
                ));
                self.located(error, value.node)
            }
        }
    }
}
