//! A scalar interpreter of element-wise programs, slow and obvious, and random material for it.

use estimand_tensor::cpu::elementwise::Instruction;
use estimand_tensor::cpu::math::erf_f64;
use estimand_tensor::{Binary, DType, Unary};

/// One element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    F32(f32),
    F64(f64),
    I32(i32),
    I64(i64),
    U8(u8),
    Bool(bool),
}

impl Value {
    pub fn dtype(self) -> DType {
        match self {
            Value::F32(_) => DType::F32,
            Value::F64(_) => DType::F64,
            Value::I32(_) => DType::I32,
            Value::I64(_) => DType::I64,
            Value::U8(_) => DType::U8,
            Value::Bool(_) => DType::Bool,
        }
    }

    pub fn bytes(self) -> Vec<u8> {
        match self {
            Value::F32(x) => x.to_le_bytes().to_vec(),
            Value::F64(x) => x.to_le_bytes().to_vec(),
            Value::I32(x) => x.to_le_bytes().to_vec(),
            Value::I64(x) => x.to_le_bytes().to_vec(),
            Value::U8(x) => vec![x],
            Value::Bool(x) => vec![x.into()],
        }
    }

    pub fn from_bytes(dtype: DType, b: &[u8]) -> Value {
        match dtype {
            DType::F32 => Value::F32(f32::from_le_bytes(b.try_into().unwrap())),
            DType::F64 => Value::F64(f64::from_le_bytes(b.try_into().unwrap())),
            DType::I32 => Value::I32(i32::from_le_bytes(b.try_into().unwrap())),
            DType::I64 => Value::I64(i64::from_le_bytes(b.try_into().unwrap())),
            DType::U8 => Value::U8(b[0]),
            DType::Bool => {
                assert!(b[0] < 2, "a boolean must be 0 or 1");
                Value::Bool(b[0] == 1)
            }
            DType::Str => unreachable!(),
        }
    }

    pub fn same_bits(self, other: Value) -> bool {
        let nan = |v| matches!(v, Value::F32(x) if x.is_nan()) || matches!(v, Value::F64(x) if x.is_nan());
        self.dtype() == other.dtype() && (self.bytes() == other.bytes() || (nan(self) && nan(other)))
    }

    pub fn cast(self, to: DType) -> Value {
        macro_rules! from {
            ($x:expr) => {
                match to {
                    DType::F32 => Value::F32($x as f32),
                    DType::F64 => Value::F64($x as f64),
                    DType::I32 => Value::I32($x as i32),
                    DType::I64 => Value::I64($x as i64),
                    DType::U8 => Value::U8($x as u8),
                    DType::Bool => Value::Bool($x as f64 != 0.0),
                    DType::Str => unreachable!(),
                }
            };
        }
        match self {
            Value::F32(x) => from!(x),
            Value::F64(x) => from!(x),
            Value::I32(x) => from!(x),
            Value::I64(x) => from!(x),
            Value::U8(x) => from!(x),
            Value::Bool(x) => from!(u8::from(x)),
        }
    }
}

/// `op` of one element; floats in `f64`.
pub fn unary(op: Unary, x: Value) -> Value {
    match x {
        Value::F32(v) => match unary(op, Value::F64(v.into())) {
            Value::F64(y) => Value::F32(y as f32),
            y => y,
        },
        Value::F64(x) => match op {
            Unary::IsNan => Value::Bool(x.is_nan()),
            Unary::IsFinite => Value::Bool(x.is_finite()),
            _ => Value::F64(unary_float(op, x)),
        },
        Value::I32(x) => match unary(op, Value::I64(x.into())) {
            Value::I64(y) => Value::I32(y as i32),
            y => y,
        },
        Value::I64(x) => Value::I64(match op {
            Unary::Neg => x.wrapping_neg(),
            Unary::Abs => x.wrapping_abs(),
            Unary::Sign => x.signum(),
            Unary::Square => x.wrapping_mul(x),
            Unary::Relu => x.max(0),
            Unary::Relu6 => x.clamp(0, 6),
            _ => unreachable!("{op:?} of integers"),
        }),
        Value::Bool(x) if op == Unary::LogicalNot => Value::Bool(!x),
        x => unreachable!("{op:?} of {x:?}"),
    }
}

fn unary_float(op: Unary, x: f64) -> f64 {
    // The scale and the product of scale and alpha in Klambauer et al. (2017).
    let (scale, scale_alpha) = (1.050_700_987_355_480_5, 1.758_099_340_847_376_9);
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign if x == 0.0 => 0.0,
        Unary::Sign => x.signum(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Square => x * x,
        Unary::Reciprocal => 1.0 / x,
        // Beyond the range in which sine and cosine are accurate only their bounds matter.
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tanh => x.tanh(),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Erf => erf_f64(x),
        Unary::Softplus if x.is_nan() => x,
        Unary::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Unary::Softsign => x / (1.0 + x.abs()),
        // Minus zero passes, as it does in TensorFlow.
        Unary::Relu | Unary::Relu6 if x < 0.0 => 0.0,
        Unary::Relu6 if x > 6.0 => 6.0,
        Unary::Relu | Unary::Relu6 => x,
        Unary::Elu if x < 0.0 => x.exp_m1(),
        Unary::Elu => x,
        Unary::Selu if x < 0.0 => scale_alpha * x.exp_m1(),
        Unary::Selu => scale * x,
        Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => unreachable!("{op:?} does not return a float"),
    }
}

/// `op` of two elements; floats in `f64`.
pub fn binary(op: Binary, x: Value, y: Value) -> Value {
    macro_rules! compare {
        ($x:expr, $y:expr) => {
            match op {
                Binary::Less => return Value::Bool($x < $y),
                Binary::LessEqual => return Value::Bool($x <= $y),
                Binary::Greater => return Value::Bool($x > $y),
                Binary::GreaterEqual => return Value::Bool($x >= $y),
                Binary::Equal => return Value::Bool($x == $y),
                Binary::NotEqual => return Value::Bool($x != $y),
                _ => {}
            }
        };
    }
    macro_rules! integer {
        ($kind:ident, $x:expr, $y:expr) => {{
            compare!($x, $y);
            // Wide enough for every product; the cast wraps.
            let (x, y) = (i128::from($x), i128::from($y));
            Value::$kind(match op {
                Binary::Add => x + y,
                Binary::Sub => x - y,
                Binary::Mul => x.wrapping_mul(y),
                Binary::Maximum => x.max(y),
                Binary::Minimum => x.min(y),
                Binary::SquaredDifference => (x - y).wrapping_mul(x - y),
                Binary::FloorDiv | Binary::FloorMod if y == 0 => 0,
                Binary::FloorDiv => (x - x.rem_euclid(y) - if y < 0 && x.rem_euclid(y) != 0 { y } else { 0 }) / y,
                Binary::FloorMod => x.rem_euclid(y) + if y < 0 && x.rem_euclid(y) != 0 { y } else { 0 },
                _ => unreachable!("{op:?} of integers"),
            } as _)
        }};
    }
    match (x, y) {
        (Value::F32(a), Value::F32(b)) => match (op, binary(op, Value::F64(a.into()), Value::F64(b.into()))) {
            // The quotient is rounded before it is floored.
            (Binary::FloorDiv, _) => Value::F32((a / b).floor()),
            (_, Value::F64(z)) => Value::F32(z as f32),
            (_, z) => z,
        },
        (Value::F64(x), Value::F64(y)) => {
            compare!(x, y);
            Value::F64(binary_float(op, x, y))
        }
        (Value::I32(x), Value::I32(y)) => integer!(I32, x, y),
        (Value::I64(x), Value::I64(y)) => integer!(I64, x, y),
        (Value::U8(x), Value::U8(y)) => integer!(U8, x, y),
        (Value::Bool(x), Value::Bool(y)) => Value::Bool(match op {
            Binary::LogicalAnd => x && y,
            Binary::LogicalOr => x || y,
            Binary::Equal => x == y,
            Binary::NotEqual => x != y,
            _ => unreachable!("{op:?} of booleans"),
        }),
        _ => unreachable!("operands of different dtypes"),
    }
}

fn binary_float(op: Binary, x: f64, y: f64) -> f64 {
    let nan = x.is_nan() || y.is_nan();
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::DivNoNan if y == 0.0 => 0.0,
        Binary::DivNoNan => x / y,
        Binary::FloorDiv => (x / y).floor(),
        Binary::FloorMod => {
            let r = x % y;
            if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
        }
        Binary::Pow => x.powf(y),
        Binary::Maximum | Binary::Minimum if nan => f64::NAN,
        // Of two zeros, the second.
        Binary::Maximum => {
            if x > y {
                x
            } else {
                y
            }
        }
        Binary::Minimum => {
            if x < y {
                x
            } else {
                y
            }
        }
        Binary::SquaredDifference => (x - y) * (x - y),
        Binary::ReluGrad => {
            if y > 0.0 {
                x
            } else {
                0.0
            }
        }
        Binary::Relu6Grad => {
            if y > 0.0 && y < 6.0 {
                x
            } else {
                0.0
            }
        }
        Binary::EluGrad => {
            if y < 0.0 {
                x * (y + 1.0)
            } else {
                x
            }
        }
        Binary::SeluGrad => x * if y < 0.0 { y + 1.758_099_340_847_376_9 } else { 1.050_700_987_355_480_5 },
        Binary::SoftplusGrad => x / (1.0 + (-y).exp()),
        Binary::SoftsignGrad => x / ((1.0 + y.abs()) * (1.0 + y.abs())),
        Binary::TanhGrad => y * (1.0 - x * x),
        Binary::SigmoidGrad => y * x * (1.0 - x),
        Binary::SqrtGrad => y * 0.5 / x,
        Binary::RsqrtGrad => y * -0.5 * (x * x * x),
        Binary::ReciprocalGrad => -y * x * x,
        _ => unreachable!("{op:?} does not return a float"),
    }
}

/// Runs a program on one element of each input.
pub fn interpret(instructions: &[Instruction], inputs: &[Value], n_outputs: usize) -> Vec<Value> {
    let mut registers = [Value::U8(0); 16];
    let mut outputs = vec![Value::U8(0); n_outputs];
    for instruction in instructions {
        match *instruction {
            Instruction::Load { dst, input } => registers[dst as usize] = inputs[input as usize],
            Instruction::Constant { dst, dtype, bits } => {
                registers[dst as usize] = Value::from_bytes(dtype, &bits.to_le_bytes()[..dtype.size()]);
            }
            Instruction::Unary { op, dst, x, .. } => registers[dst as usize] = unary(op, registers[x as usize]),
            Instruction::Binary { op, dst, x, y, .. } => {
                registers[dst as usize] = binary(op, registers[x as usize], registers[y as usize]);
            }
            Instruction::Select { dst, condition, x, y, .. } => {
                let Value::Bool(c) = registers[condition as usize] else { unreachable!() };
                registers[dst as usize] = registers[if c { x } else { y } as usize];
            }
            Instruction::Cast { to, dst, x, .. } => registers[dst as usize] = registers[x as usize].cast(to),
            Instruction::Store { src, output } => outputs[output as usize] = registers[src as usize],
        }
    }
    outputs
}

/// A linear congruential generator (Knuth's MMIX constants): tests must not depend on a crate's
/// stream.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    pub fn unit(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}

/// An array broadcast along some axes of a space.
pub struct Strided {
    pub values: Vec<f32>,
    pub strides: Vec<usize>,
}

impl Strided {
    /// Random values; bit d of `broadcast` makes axis d constant.
    pub fn random(dims: &[usize], broadcast: u32, random: &mut Random) -> Strided {
        let mut strides = vec![0; dims.len()];
        let mut len = 1;
        for d in (0..dims.len()).rev() {
            if broadcast >> d & 1 == 0 {
                strides[d] = len;
                len *= dims[d];
            }
        }
        Strided { values: (0..len).map(|_| random.unit() as f32 - 0.5).collect(), strides }
    }

    /// The value at a flat, row-major position of the space.
    pub fn at(&self, dims: &[usize], mut flat: usize) -> f32 {
        let mut offset = 0;
        for d in (0..dims.len()).rev() {
            offset += flat % dims[d] * self.strides[d];
            flat /= dims[d];
        }
        self.values[offset]
    }
}

/// Inputs, outputs and instructions of a random program whose operations are exact, so that results
/// can be compared bit by bit.
pub fn random_program(random: &mut Random) -> (Vec<DType>, Vec<DType>, Vec<Instruction>) {
    const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::Bool];
    const UNARY: [Unary; 9] = [
        Unary::Neg,
        Unary::Abs,
        Unary::Sign,
        Unary::Floor,
        Unary::Round,
        Unary::Sqrt,
        Unary::Square,
        Unary::Relu,
        Unary::LogicalNot,
    ];
    const BINARY: [Binary; 12] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Maximum,
        Binary::Minimum,
        Binary::Less,
        Binary::Equal,
        Binary::LogicalAnd,
        Binary::LogicalOr,
        Binary::ReluGrad,
        Binary::FloorDiv,
        Binary::FloorMod,
    ];
    let inputs: Vec<DType> = (0..1 + random.below(4)).map(|_| DTYPES[random.below(6)]).collect();
    let mut registers = [None; 16];
    let mut instructions = Vec::new();
    for (i, dtype) in inputs.iter().enumerate() {
        instructions.push(Instruction::Load { dst: i as u8, input: i as u8 });
        registers[i] = Some(*dtype);
    }
    for _ in 0..3 + random.below(25) {
        let dst = random.below(16) as u8;
        let known: Vec<u8> = (0..16).filter(|r| registers[*r as usize].is_some()).collect();
        let x = known[random.below(known.len())];
        let dtype = registers[x as usize].unwrap();
        let same: Vec<u8> = known.iter().copied().filter(|r| registers[*r as usize] == Some(dtype)).collect();
        let y = same[random.below(same.len())];
        let (instruction, result) = match random.below(8) {
            0 => {
                let bits = if dtype == DType::Bool { random.below(2) as u64 } else { 0x4040_0000_4010_0003 };
                (Instruction::Constant { dst, dtype, bits }, dtype)
            }
            1 => {
                let to = DTYPES[random.below(6)];
                (Instruction::Cast { from: dtype, to, dst, x }, to)
            }
            2 => {
                let Some(condition) = known.iter().copied().find(|r| registers[*r as usize] == Some(DType::Bool))
                else {
                    continue;
                };
                (Instruction::Select { dtype, dst, condition, x, y }, dtype)
            }
            3 | 4 => {
                let op = UNARY[random.below(UNARY.len())];
                if !op.accepts(dtype) {
                    continue;
                }
                (Instruction::Unary { op, dtype, dst, x }, op.output(dtype))
            }
            _ => {
                let op = BINARY[random.below(BINARY.len())];
                if !op.accepts(dtype) {
                    continue;
                }
                (Instruction::Binary { op, dtype, dst, x, y }, op.output(dtype))
            }
        };
        instructions.push(instruction);
        registers[dst as usize] = Some(result);
    }
    let known: Vec<u8> = (0..16).filter(|r| registers[*r as usize].is_some()).collect();
    let mut outputs = Vec::new();
    for output in 0..1 + random.below(4) as u8 {
        let src = known[random.below(known.len())];
        instructions.push(Instruction::Store { src, output });
        outputs.push(registers[src as usize].unwrap());
    }
    (inputs, outputs, instructions)
}
