//! Compiles instructions over registers to steps over places: checks a program and lays it out.
//!
//! Registers are only names here. A stored value is computed directly into its output, a loaded
//! value is read in place, and a constant is expanded once per task. The other values get tiles,
//! which are reused after the last read. No step writes a tile that it reads, so the kernels may
//! assume that nothing overlaps.

use crate::cpu::isa::Isa;
use crate::{Binary, DType, Unary};

use super::kernel::Kernel;
use super::{Instruction, convert};

/// A compiled chain of element-wise operations. It is immutable and may run on several threads at
/// once.
///
/// See the [module](super) for an example.
pub struct TileProgram {
    pub(super) inputs: Vec<DType>,
    pub(super) outputs: Vec<DType>,
    pub(super) constants: Vec<(DType, u64)>,
    pub(super) n_tiles: usize,
    pub(super) steps: Vec<Step>,
    /// The number of bytes of the widest element of the program.
    pub(super) widest: usize,
    /// The approximate time per element, in picoseconds.
    pub(super) cost: usize,
}

/// One kernel call per tile. Operands are indices into the table of places: tiles, constants,
/// inputs, outputs.
pub(super) struct Step {
    pub kernel: Kernel,
    pub operands: [u8; 3],
    pub dst: u8,
    /// For a division of integers: its number among them, and their dtype. The second operand must
    /// not be 0.
    pub division: Option<(usize, DType)>,
}

/// The place of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Tile(u8),
    Constant(u8),
    Input(u8),
    Output(u8),
    /// Computed, but no place is assigned yet.
    Open,
}

struct Value {
    dtype: DType,
    place: Place,
    /// The last operation that reads the value.
    last_use: Option<usize>,
}

/// An operation between values.
struct Operation {
    kernel: Kernel,
    operands: [usize; 3],
    result: usize,
    division: Option<(usize, DType)>,
}

impl TileProgram {
    /// The largest number of registers of a program.
    pub const MAX_REGISTERS: usize = 16;
    /// The largest number of inputs of a program.
    pub const MAX_INPUTS: usize = 12;
    /// The largest number of outputs of a program.
    pub const MAX_OUTPUTS: usize = 4;
    /// The largest number of different constants in a program.
    pub const MAX_CONSTANTS: usize = 16;
    /// One tile more than registers: a result does not overwrite the operands of its own operation.
    pub(super) const MAX_TILES: usize = TileProgram::MAX_REGISTERS + 1;

    /// Checks and compiles a program for this processor.
    ///
    /// The error names the invalid instruction: a register read before it is written, a dtype that
    /// an operation does not accept, an output that is not stored exactly once, or a limit
    /// exceeded.
    pub fn new(inputs: &[DType], outputs: &[DType], instructions: Vec<Instruction>) -> Result<TileProgram, String> {
        TileProgram::for_isa(Isa::active(), inputs, outputs, instructions)
    }

    /// Like [`TileProgram::new`], for one instruction set, which the processor must support. All
    /// sets give the same bits.
    pub fn for_isa(
        isa: Isa,
        inputs: &[DType],
        outputs: &[DType],
        instructions: Vec<Instruction>,
    ) -> Result<TileProgram, String> {
        if isa > Isa::detect() {
            return Err(format!("this processor does not have {isa:?}"));
        }
        if inputs.len() > TileProgram::MAX_INPUTS || outputs.len() > TileProgram::MAX_OUTPUTS {
            return Err(format!("{} inputs and {} outputs are too many", inputs.len(), outputs.len()));
        }
        let mut reader = Reader::new(isa, inputs, outputs);
        for (i, instruction) in instructions.iter().enumerate() {
            reader.read(instruction).map_err(|e| format!("instruction {i}, {instruction:?}: {e}"))?;
        }
        reader.finish()
    }
}

/// The state while instructions are read one after the other.
struct Reader<'a> {
    isa: Isa,
    inputs: &'a [DType],
    outputs: &'a [DType],
    registers: [Option<usize>; TileProgram::MAX_REGISTERS],
    values: Vec<Value>,
    operations: Vec<Operation>,
    constants: Vec<(DType, u64)>,
    /// The value stored to each output.
    stored: Vec<Option<usize>>,
    cost: usize,
}

impl<'a> Reader<'a> {
    fn new(isa: Isa, inputs: &'a [DType], outputs: &'a [DType]) -> Reader<'a> {
        Reader {
            isa,
            inputs,
            outputs,
            registers: [None; TileProgram::MAX_REGISTERS],
            values: Vec::new(),
            operations: Vec::new(),
            constants: Vec::new(),
            stored: vec![None; outputs.len()],
            cost: 0,
        }
    }

    fn read(&mut self, instruction: &Instruction) -> Result<(), String> {
        let isa = self.isa;
        match *instruction {
            Instruction::Load { dst, input } => {
                let dtype = *self.inputs.get(usize::from(input)).ok_or("there is no such input")?;
                if dtype == DType::Str {
                    return Err("strings cannot be loaded".into());
                }
                self.define(dst, dtype, Place::Input(input))
            }
            Instruction::Constant { dst, dtype, bits } => {
                if dtype == DType::Str {
                    return Err("there are no constant strings".into());
                }
                let place = self.constant(dtype, bits)?;
                self.define(dst, dtype, place)
            }
            Instruction::Unary { op, dtype, dst, x } => {
                let x = self.operand(x, dtype)?;
                let kernel = op.accepts(dtype).then(|| convert::unary_kernel(op, dtype, isa)).flatten();
                self.cost += unary_cost(op, dtype);
                self.compute(kernel, [x, x, x], dst, op.output(dtype))
            }
            Instruction::Binary { op, dtype, dst, x, y } => {
                let (x, y) = (self.operand(x, dtype)?, self.operand(y, dtype)?);
                let kernel = op.accepts(dtype).then(|| convert::binary_kernel(op, dtype, isa)).flatten();
                self.cost += binary_cost(op, dtype);
                self.compute(kernel, [x, y, x], dst, op.output(dtype))?;
                if is_integer_division(op, dtype) {
                    let number = self.operations.iter().filter(|o| o.division.is_some()).count();
                    self.operations.last_mut().expect("just computed").division = Some((number, dtype));
                }
                Ok(())
            }
            Instruction::Select { dtype, dst, condition, x, y } => {
                let operands =
                    [self.operand(condition, DType::Bool)?, self.operand(x, dtype)?, self.operand(y, dtype)?];
                self.cost += CHEAP;
                self.compute(convert::select_kernel(dtype, isa), operands, dst, dtype)
            }
            Instruction::Cast { from, to, dst, x } => {
                let x = self.operand(x, from)?;
                self.cost += CHEAP;
                self.compute(convert::cast_kernel(from, to, isa), [x, x, x], dst, to)
            }
            Instruction::Store { src, output } => {
                let dtype = *self.outputs.get(usize::from(output)).ok_or("there is no such output")?;
                let value = self.operand(src, dtype)?;
                match self.stored[usize::from(output)].replace(value) {
                    Some(_) => Err("the output has been stored before".into()),
                    None => Ok(()),
                }
            }
        }
    }

    /// The value in a register. It must have this dtype.
    fn operand(&self, register: u8, dtype: DType) -> Result<usize, String> {
        let value = self.registers.get(usize::from(register)).copied().flatten();
        let value = value.ok_or_else(|| format!("register {register} has not been written"))?;
        match self.values[value].dtype {
            found if found == dtype => Ok(value),
            found => Err(format!("register {register} holds {found}, not {dtype}")),
        }
    }

    fn define(&mut self, register: u8, dtype: DType, place: Place) -> Result<(), String> {
        let slot = self.registers.get_mut(usize::from(register)).ok_or("there is no such register")?;
        *slot = Some(self.values.len());
        self.values.push(Value { dtype, place, last_use: None });
        Ok(())
    }

    fn constant(&mut self, dtype: DType, bits: u64) -> Result<Place, String> {
        let known = self.constants.iter().position(|c| *c == (dtype, bits));
        let at = known.unwrap_or_else(|| {
            self.constants.push((dtype, bits));
            self.constants.len() - 1
        });
        if at >= TileProgram::MAX_CONSTANTS {
            return Err("too many constants".into());
        }
        Ok(Place::Constant(at as u8))
    }

    fn compute(&mut self, kernel: Option<Kernel>, operands: [usize; 3], dst: u8, dtype: DType) -> Result<(), String> {
        let kernel = kernel.ok_or("the operation is not defined on this dtype")?;
        for operand in operands {
            self.values[operand].last_use = Some(self.operations.len());
        }
        self.operations.push(Operation { kernel, operands, result: self.values.len(), division: None });
        self.define(dst, dtype, Place::Open)
    }

    /// Assigns a place to every value, and numbers the places.
    fn finish(mut self) -> Result<TileProgram, String> {
        let mut copies = Vec::new();
        for output in 0..self.outputs.len() {
            let value = self.stored[output].ok_or_else(|| format!("output {output} is never stored"))?;
            let output = output as u8;
            match self.values[value].place {
                Place::Open => self.values[value].place = Place::Output(output),
                place => copies.push((place, output, self.values[value].dtype)),
            }
        }
        let n_tiles = self.allocate_tiles();
        let n_constants = self.constants.len();
        let number = |place: Place| match place {
            Place::Tile(i) => i,
            Place::Constant(i) => n_tiles as u8 + i,
            Place::Input(i) => (n_tiles + n_constants) as u8 + i,
            Place::Output(i) => (n_tiles + n_constants + self.inputs.len()) as u8 + i,
            Place::Open => unreachable!("every value has a place by now"),
        };
        let place_of = |value: usize| number(self.values[value].place);
        let mut steps: Vec<Step> = (self.operations.iter())
            .map(|o| Step {
                kernel: o.kernel,
                operands: o.operands.map(place_of),
                dst: place_of(o.result),
                division: o.division,
            })
            .collect();
        for (from, output, dtype) in copies {
            let kernel = convert::copy_kernel(dtype, self.isa).ok_or("strings cannot be stored")?;
            let dst = number(Place::Output(output));
            steps.push(Step { kernel, operands: [number(from); 3], dst, division: None });
        }
        let dtypes = self.values.iter().map(|v| v.dtype);
        Ok(TileProgram {
            inputs: self.inputs.to_vec(),
            outputs: self.outputs.to_vec(),
            n_tiles,
            widest: dtypes.map(DType::size).max().unwrap_or(1),
            cost: self.cost + CHEAP * (self.inputs.len() + self.outputs.len()),
            steps,
            constants: self.constants,
        })
    }

    /// Assigns tiles to the values that stay inside the program. Returns the number of tiles.
    fn allocate_tiles(&mut self) -> usize {
        let mut busy = [false; TileProgram::MAX_TILES];
        let mut n_tiles = 0;
        for (i, operation) in self.operations.iter().enumerate() {
            let result = operation.result;
            if self.values[result].place == Place::Open {
                // At most MAX_REGISTERS values are alive, including operands, so one of the tiles
                // is free.
                let tile = busy.iter().position(|b| !b).unwrap_or(0);
                self.values[result].place = Place::Tile(tile as u8);
                // The tile of a result that is never read is free again at once.
                busy[tile] = self.values[result].last_use.is_some();
                n_tiles = n_tiles.max(tile + 1);
            }
            for operand in operation.operands {
                if let (Place::Tile(tile), true) =
                    (self.values[operand].place, self.values[operand].last_use == Some(i))
                {
                    busy[usize::from(tile)] = false;
                }
            }
        }
        n_tiles
    }
}

/// Whether an operation fails if its second operand is 0. Floats become infinite or NaN instead.
pub fn is_integer_division(op: Binary, dtype: DType) -> bool {
    matches!(op, Binary::FloorDiv | Binary::FloorMod) && dtype.is_integer()
}

/// The cost in picoseconds per element: of arithmetic, and of memory per operand.
const CHEAP: usize = 60;

fn unary_cost(op: Unary, dtype: DType) -> usize {
    use Unary::*;
    let transcendental = matches!(
        op,
        Exp | Expm1 | Log | Log1p | Sin | Cos | Tanh | Sigmoid | Erf | Softplus | Elu | Selu | Sqrt | Rsqrt
    );
    match (transcendental, dtype) {
        (true, DType::F64) => 200 * CHEAP,
        (true, _) => 6 * CHEAP,
        (false, _) => CHEAP,
    }
}

fn binary_cost(op: Binary, dtype: DType) -> usize {
    use Binary::*;
    match (op, dtype) {
        (Pow | SoftplusGrad, DType::F64) => 200 * CHEAP,
        (Pow | SoftplusGrad, _) => 20 * CHEAP,
        (FloorMod | FloorDiv, _) => 50 * CHEAP,
        _ => CHEAP,
    }
}
