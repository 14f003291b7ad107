//! The tile interpreter: every operation against `f64` arithmetic, its bits on every instruction
//! set and number of threads, broadcasting against naive indexing, and random programs against a
//! scalar interpreter.

use crate::naive::{self, Random, Value};
use estimand_tensor::cpu::elementwise::{InputView, Instruction, TILE, TileProgram};
use estimand_tensor::cpu::isa::Isa;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Binary, DType, Unary};

const SETS: [Isa; 3] = [Isa::Portable, Isa::Avx2, Isa::Avx512];

fn available() -> impl Iterator<Item = Isa> {
    SETS.into_iter().filter(|isa| *isa <= Isa::detect())
}

/// Runs a program on dense inputs of `len` elements, given and returned as bytes.
fn run_dense(program: &TileProgram, pool: &Pool, len: usize, inputs: &[Vec<u64>], output: DType) -> Vec<u8> {
    let views: Vec<InputView> = inputs.iter().map(|x| InputView::new(x.as_ptr().cast(), &[1])).collect();
    let mut out = vec![0u64; (len * output.size()).div_ceil(8)];
    // SAFETY: the inputs have `len` elements in words of 8 bytes, the output has room for as many.
    unsafe { program.run(pool, &[len], &views, &[out.as_mut_ptr().cast()]) };
    out.iter().flat_map(|w| w.to_le_bytes()).take(len * output.size()).collect()
}

/// Values of a dtype packed into words, so that they are aligned for every dtype.
fn pack(dtype: DType, values: &[Value]) -> Vec<u64> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.cast(dtype).bytes()).collect();
    bytes.chunks(8).map(|c| c.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b))).collect()
}

fn unpack(dtype: DType, bytes: &[u8]) -> Vec<Value> {
    bytes.chunks(dtype.size()).map(|b| Value::from_bytes(dtype, b)).collect()
}

/// Ordinary and special values of a dtype.
fn samples(dtype: DType, n: usize, seed: u64) -> Vec<Value> {
    let mut random = Random(seed);
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -2.5,
        6.0,
        7.0,
        1e-40,
        -1e-40,
        1e30,
        -1e30,
        88.0,
        -90.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    (0..n)
        .map(|_| match random.below(4) {
            0 if dtype.is_float() => Value::F64(special[random.below(special.len())]).cast(dtype),
            1 => Value::F64((random.unit() - 0.5) * 60.0).cast(dtype),
            2 if matches!(dtype, DType::I32) => Value::I32([0, -1, i32::MIN, i32::MAX, 7][random.below(5)]),
            2 if matches!(dtype, DType::I64) => Value::I64([0, -1, i64::MIN, i64::MAX, 7][random.below(5)]),
            _ => Value::F64((random.unit() - 0.5) * 4.0 * if dtype.is_float() { 1.0 } else { 3.0 }).cast(dtype),
        })
        .collect()
}

/// Equal, both NaN, or within a few units of the last place of the dtype.
fn close(got: Value, want: Value) -> bool {
    match (got, want) {
        (Value::F32(a), Value::F32(b)) => {
            a == b || (a.is_nan() && b.is_nan()) || f64::from((a - b).abs()) <= 4e-7 * f64::from(b.abs()) + 1e-44
        }
        (Value::F64(a), Value::F64(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 4e-15 * b.abs(),
        (a, b) => a == b,
    }
}

/// These gradients have a factor that may nearly vanish; the error is then small against its terms
/// only.
fn cancels(op: Binary, x: Value, y: Value, got: Value, want: Value) -> bool {
    let [Value::F64(x), Value::F64(y), Value::F64(got), Value::F64(want)] =
        [x, y, got, want].map(|v| v.cast(DType::F64))
    else {
        unreachable!("cast to f64");
    };
    let terms = match op {
        // No such output exists, and its powers leave the range of f32.
        Binary::TanhGrad | Binary::SigmoidGrad | Binary::RsqrtGrad | Binary::ReciprocalGrad
            if !(1e-9..1e9).contains(&x.abs()) =>
        {
            return true;
        }
        Binary::EluGrad | Binary::SeluGrad => x.abs() * (y.abs() + 2.0),
        Binary::TanhGrad => y.abs() * (1.0 + x * x),
        Binary::SigmoidGrad => (x * y).abs() * (1.0 + x.abs()),
        // The factor may be denormal, with few digits.
        Binary::SoftplusGrad => x.abs() * 1e-37,
        _ => return false,
    };
    (got - want).abs() <= 3e-7 * terms
}

const NUMERIC: [DType; 6] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::Bool];

/// A length with a whole tile, a partial one and a remainder that fills no vector.
const LEN: usize = TILE + 64 + 37;

#[test]
fn every_unary_operation_on_every_dtype() {
    let pool = Pool::new(1);
    for &op in Unary::ALL {
        for dtype in NUMERIC.into_iter().filter(|d| op.accepts(*d)) {
            let x = samples(dtype, LEN, 1);
            let mut first = None;
            for isa in available() {
                let program = single(isa, &[dtype], op.output(dtype), Instruction::Unary { op, dtype, dst: 2, x: 0 });
                let bytes = run_dense(&program, &pool, LEN, &[pack(dtype, &x)], op.output(dtype));
                for (x, got) in x.iter().zip(unpack(op.output(dtype), &bytes)) {
                    let want = naive::unary(op, *x);
                    // Larger angles have too few digits left.
                    if matches!((op, x), (Unary::Sin | Unary::Cos, Value::F32(x)) if x.is_finite() && x.abs() > 1e4) {
                        continue;
                    }
                    assert!(close(got, want), "{op:?} of {x:?} is {got:?}, not {want:?} ({isa:?})");
                }
                assert!(
                    first.get_or_insert_with(|| bytes.clone()) == &bytes,
                    "{op:?} on {dtype} has other bits on {isa:?}"
                );
            }
        }
    }
}

#[test]
fn every_binary_operation_on_every_dtype() {
    let pool = Pool::new(1);
    for &op in Binary::ALL {
        for dtype in NUMERIC.into_iter().filter(|d| op.accepts(*d)) {
            let (x, y) = (samples(dtype, LEN, 2), samples(dtype, LEN, 3));
            let mut first = None;
            for isa in available() {
                let instruction = Instruction::Binary { op, dtype, dst: 2, x: 0, y: 1 };
                let program = single(isa, &[dtype, dtype], op.output(dtype), instruction);
                let bytes = run_dense(&program, &pool, LEN, &[pack(dtype, &x), pack(dtype, &y)], op.output(dtype));
                for ((x, y), got) in x.iter().zip(&y).zip(unpack(op.output(dtype), &bytes)) {
                    let want = naive::binary(op, *x, *y);
                    assert!(
                        close(got, want) || cancels(op, *x, *y, got, want),
                        "{op:?} of {x:?}, {y:?} is {got:?}, not {want:?} ({isa:?})"
                    );
                }
                assert!(
                    first.get_or_insert_with(|| bytes.clone()) == &bytes,
                    "{op:?} on {dtype} has other bits on {isa:?}"
                );
            }
        }
    }
}

#[test]
fn every_cast() {
    let pool = Pool::new(1);
    for from in NUMERIC {
        for to in NUMERIC {
            let x = samples(from, LEN, 4);
            for isa in available() {
                let program = single(isa, &[from], to, Instruction::Cast { from, to, dst: 2, x: 0 });
                let got = unpack(to, &run_dense(&program, &pool, LEN, &[pack(from, &x)], to));
                for (x, got) in x.iter().zip(got) {
                    assert!(got.same_bits(x.cast(to)), "cast of {x:?} to {to} is {got:?}");
                }
            }
        }
    }
}

/// What TensorFlow 2.15.1's CPU kernels return for the same operands (raw ops called eagerly).
#[test]
fn corner_cases_as_tensorflow() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let unary = [
        (Unary::Relu, nan, nan),
        (Unary::Relu6, nan, nan),
        (Unary::Elu, nan, nan),
        (Unary::Selu, nan, nan),
        (Unary::Sign, nan, nan),
        (Unary::Sign, -0.0, 0.0),
        (Unary::Rsqrt, 0.0, inf),
        (Unary::Rsqrt, -0.0, -inf),
        (Unary::Rsqrt, inf, 0.0),
        (Unary::Reciprocal, 0.0, inf),
        (Unary::Round, 2.5, 2.0),
        (Unary::Softplus, nan, nan),
    ];
    for (op, x, want) in unary {
        let got = unary_f32(op, x);
        assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{op:?}({x}) = {got}, not {want}");
    }
    let binary = [
        (Binary::Maximum, nan, 1.0, nan),
        (Binary::Maximum, 1.0, nan, nan),
        (Binary::Minimum, nan, 1.0, nan),
        (Binary::Minimum, 1.0, nan, nan),
        (Binary::ReluGrad, 2.0, nan, 0.0),
        (Binary::Relu6Grad, 2.0, 6.0, 0.0),
        (Binary::EluGrad, 2.0, -0.5, 1.0),
        (Binary::SeluGrad, 2.0, -0.5, 2.516_198_6),
        (Binary::SeluGrad, 2.0, 0.5, 2.101_402),
        (Binary::SoftsignGrad, 2.0, -0.5, 0.888_888_9),
        (Binary::SqrtGrad, 2.0, 3.0, 0.75),
        (Binary::RsqrtGrad, 2.0, 3.0, -12.0),
        (Binary::ReciprocalGrad, 2.0, 3.0, -12.0),
        (Binary::DivNoNan, nan, 0.0, 0.0),
        (Binary::FloorMod, -5.5, 2.0, 0.5),
        (Binary::FloorMod, 5.5, -2.0, -0.5),
        (Binary::FloorMod, 5.5, inf, 5.5),
        (Binary::FloorMod, -5.5, inf, inf),
        (Binary::FloorMod, 1.0, 0.0, nan),
        (Binary::FloorDiv, -5.5, 2.0, -3.0),
        (Binary::FloorDiv, 1.0, 0.0, inf),
        (Binary::FloorDiv, 1.0, 0.1, 10.0),
        (Binary::Pow, nan, 0.0, 1.0),
        (Binary::Pow, 1.0, nan, 1.0),
        (Binary::Pow, -1.0, inf, 1.0),
        (Binary::Pow, -2.0, 3.0, -8.0),
    ];
    for (op, x, y, want) in binary {
        let got = binary_f32(op, x, y);
        assert!(got == want || (got.is_nan() && want.is_nan()), "{op:?}({x}, {y}) = {got}, not {want}");
    }
}

fn unary_f32(op: Unary, x: f32) -> f32 {
    let program =
        single(Isa::detect(), &[DType::F32], DType::F32, Instruction::Unary { op, dtype: DType::F32, dst: 2, x: 0 });
    let bytes = run_dense(&program, &Pool::new(1), 1, &[pack(DType::F32, &[Value::F32(x)])], DType::F32);
    f32::from_le_bytes(bytes.try_into().unwrap())
}

fn binary_f32(op: Binary, x: f32, y: f32) -> f32 {
    let instruction = Instruction::Binary { op, dtype: DType::F32, dst: 2, x: 0, y: 1 };
    let program = single(Isa::detect(), &[DType::F32, DType::F32], DType::F32, instruction);
    let inputs = [pack(DType::F32, &[Value::F32(x)]), pack(DType::F32, &[Value::F32(y)])];
    f32::from_le_bytes(run_dense(&program, &Pool::new(1), 1, &inputs, DType::F32).try_into().unwrap())
}

/// Loads inputs 0.. into registers 0.., runs one instruction that writes register 2, stores it.
fn single(isa: Isa, inputs: &[DType], output: DType, instruction: Instruction) -> TileProgram {
    let mut instructions: Vec<_> = (0..inputs.len() as u8).map(|i| Instruction::Load { dst: i, input: i }).collect();
    instructions.extend([instruction, Instruction::Store { src: 2, output: 0 }]);
    TileProgram::for_isa(isa, inputs, &[output], instructions).unwrap()
}

/// `tanh(x * w + b)` with w, b broadcast along every possible set of axes, at awkward sizes.
#[test]
fn broadcasting_is_naive_indexing() {
    let program = TileProgram::new(
        &[DType::F32; 3],
        &[DType::F32],
        vec![
            Instruction::Load { dst: 0, input: 0 },
            Instruction::Load { dst: 1, input: 1 },
            Instruction::Binary { op: Binary::Mul, dtype: DType::F32, dst: 0, x: 0, y: 1 },
            Instruction::Load { dst: 1, input: 2 },
            Instruction::Binary { op: Binary::Add, dtype: DType::F32, dst: 0, x: 1, y: 0 },
            Instruction::Store { src: 0, output: 0 },
        ],
    )
    .unwrap();
    let pool = Pool::new(2);
    let shapes: [&[usize]; 14] = [
        &[],
        &[0],
        &[1],
        &[1023],
        &[1024],
        &[1025],
        &[7, 10],
        &[130, 10],
        &[3, 0, 5],
        &[300, 17],
        &[2, 3, 700],
        &[5, 1, 4, 61],
        &[3, 1100],
        &[2, 2, 2, 2, 2, 2, 2, 9],
    ];
    for dims in shapes {
        let len: usize = dims.iter().product();
        let mut random = Random(dims.len() as u64);
        for mask in 0..1u32 << dims.len().min(4) {
            let data = [
                naive::Strided::random(dims, 0, &mut random),
                naive::Strided::random(dims, mask, &mut random),
                naive::Strided::random(dims, mask.rotate_left(1) ^ 1, &mut random),
            ];
            let views = data.each_ref().map(|d| InputView::new(d.values.as_ptr().cast(), &d.strides));
            let mut out = vec![0f32; len];
            // SAFETY: the views have the strides of their own values; the output has `len`
            // elements.
            unsafe { program.run(&pool, dims, &views, &[out.as_mut_ptr().cast()]) };
            for (i, got) in out.iter().enumerate() {
                let want = data[2].at(dims, i) + data[0].at(dims, i) * data[1].at(dims, i);
                assert_eq!(got.to_bits(), want.to_bits(), "dims {dims:?}, mask {mask:b}, element {i}");
            }
        }
    }
}

/// The columns of a matrix, read as the rows of its transpose.
#[test]
fn any_stride_is_followed() {
    let program = single(
        Isa::detect(),
        &[DType::I64],
        DType::F64,
        Instruction::Cast { from: DType::I64, to: DType::F64, dst: 2, x: 0 },
    );
    let (rows, columns) = (37, 65);
    let x: Vec<i64> = (0..rows * columns).map(|i| i as i64).collect();
    let mut out = vec![0f64; x.len()];
    let view = InputView::new(x.as_ptr().cast(), &[1, columns]);
    // SAFETY: the view walks the matrix column by column; the output has as many elements.
    unsafe { program.run(&Pool::new(1), &[columns, rows], &[view], &[out.as_mut_ptr().cast()]) };
    for c in 0..columns {
        for r in 0..rows {
            assert_eq!(out[c * rows + r], (r * columns + c) as f64);
        }
    }
}

#[test]
fn random_programs_equal_the_scalar_interpreter() {
    let pool = Pool::new(3);
    let mut random = Random(77);
    for round in 0..150 {
        let (inputs, outputs, instructions) = naive::random_program(&mut random);
        let len = [1, 5, 64, 1000, 1024, 1025, 3000][random.below(7)];
        let data: Vec<Vec<Value>> =
            inputs.iter().enumerate().map(|(i, d)| samples(*d, len, round * 16 + i as u64)).collect();
        let packed: Vec<Vec<u64>> = inputs.iter().zip(&data).map(|(d, x)| pack(*d, x)).collect();
        let views: Vec<InputView> = packed.iter().map(|x| InputView::new(x.as_ptr().cast(), &[1])).collect();
        let mut first: Option<Vec<Vec<u64>>> = None;
        for isa in available() {
            let program = TileProgram::for_isa(isa, &inputs, &outputs, instructions.clone()).unwrap();
            let mut out: Vec<Vec<u64>> = outputs.iter().map(|_| vec![0; len]).collect();
            let pointers: Vec<*mut u8> = out.iter_mut().map(|o| o.as_mut_ptr().cast()).collect();
            // SAFETY: inputs and outputs have `len` elements of at most 8 bytes.
            unsafe { program.run(&pool, &[len], &views, &pointers) };
            for i in (0..len).step_by(1 + len / 50) {
                let row: Vec<Value> = data.iter().map(|d| d[i]).collect();
                for (o, want) in naive::interpret(&instructions, &row, outputs.len()).into_iter().enumerate() {
                    let bytes: Vec<u8> = out[o].iter().flat_map(|w| w.to_le_bytes()).collect();
                    let size = outputs[o].size();
                    let got = Value::from_bytes(outputs[o], &bytes[i * size..(i + 1) * size]);
                    assert!(
                        got.same_bits(want),
                        "round {round}, element {i}, output {o}: {got:?}, not {want:?}: {instructions:#?}"
                    );
                }
            }
            assert!(first.get_or_insert_with(|| out.clone()) == &out, "{isa:?} has other bits: {instructions:#?}");
        }
    }
}

/// Elements give the same bits alone, in a batch, on any number of threads, streamed past the
/// caches or not.
#[test]
fn bits_depend_on_the_element_alone() {
    let f32s = DType::F32;
    let unary = |op, dst, x| Instruction::Unary { op, dtype: f32s, dst, x };
    let program = TileProgram::new(
        &[f32s],
        &[f32s],
        vec![
            Instruction::Load { dst: 0, input: 0 },
            unary(Unary::Tanh, 1, 0),
            unary(Unary::Exp, 2, 1),
            unary(Unary::Log1p, 3, 2),
            Instruction::Binary { op: Binary::Pow, dtype: f32s, dst: 0, x: 3, y: 1 },
            Instruction::Store { src: 0, output: 0 },
        ],
    )
    .unwrap();
    // 9 MiB: written past the caches.
    let len = 9 << 18;
    let x: Vec<f32> = (0..len).map(|i| (i as f32 * 0.618).fract() * 20.0 - 10.0).collect();
    let run = |threads, range: std::ops::Range<usize>| {
        let mut out = vec![0f32; range.len()];
        let view = InputView::new(x[range.clone()].as_ptr().cast(), &[1]);
        // SAFETY: the view and the output have the range's elements.
        unsafe { program.run(&Pool::new(threads), &[range.len()], &[view], &[out.as_mut_ptr().cast()]) };
        out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let whole = run(1, 0..len);
    for threads in [2, 3, 8] {
        assert!(run(threads, 0..len) == whole, "{threads} threads");
    }
    for n in [1, 7, 128, 1023] {
        for start in [0, 5, 1000, 77_777] {
            assert!(run(2, start..start + n) == whole[start..start + n], "{n} elements from {start}");
        }
    }
}

#[test]
fn an_output_may_overwrite_a_dense_input() {
    // y = x + 1 over x, while x is read again by the second output.
    let f32s = DType::F32;
    let program = TileProgram::new(
        &[f32s],
        &[f32s, f32s],
        vec![
            Instruction::Load { dst: 0, input: 0 },
            Instruction::Constant { dst: 1, dtype: f32s, bits: u64::from(1f32.to_bits()) },
            Instruction::Binary { op: Binary::Add, dtype: f32s, dst: 1, x: 0, y: 1 },
            Instruction::Store { src: 1, output: 0 },
            Instruction::Binary { op: Binary::Mul, dtype: f32s, dst: 2, x: 0, y: 1 },
            Instruction::Store { src: 2, output: 1 },
        ],
    )
    .unwrap();
    let mut x: Vec<f32> = (0..2500).map(|i| i as f32).collect();
    let mut product = vec![0f32; 2500];
    let view = InputView::new(x.as_ptr().cast(), &[1]);
    // SAFETY: output 0 is the memory of the dense input 0, which is allowed.
    unsafe { program.run(&Pool::new(1), &[2500], &[view], &[x.as_mut_ptr().cast(), product.as_mut_ptr().cast()]) };
    for i in 0..2500 {
        assert_eq!((x[i], product[i]), (i as f32 + 1.0, i as f32 * (i as f32 + 1.0)));
    }
}

#[test]
fn wrong_programs_are_refused() {
    let f32s = DType::F32;
    let refuse = |outputs: &[DType], instructions: Vec<Instruction>, words: &str| {
        let message = TileProgram::new(&[f32s], outputs, instructions).err().expect("an error");
        assert!(message.contains(words), "{message}");
    };
    let load = Instruction::Load { dst: 0, input: 0 };
    let store = Instruction::Store { src: 0, output: 0 };
    refuse(&[f32s], vec![store], "register 0 has not been written");
    refuse(&[f32s], vec![load], "output 0 is never stored");
    refuse(&[f32s], vec![load, store, store], "stored before");
    refuse(&[DType::I32], vec![load, store], "register 0 holds f32, not i32");
    refuse(&[f32s], vec![Instruction::Load { dst: 0, input: 1 }], "no such input");
    refuse(&[f32s], vec![Instruction::Load { dst: 16, input: 0 }], "no such register");
    refuse(
        &[f32s],
        vec![load, Instruction::Unary { op: Unary::LogicalNot, dtype: f32s, dst: 0, x: 0 }],
        "not defined on this dtype",
    );
    let constants = (0..17).map(|bits| Instruction::Constant { dst: 0, dtype: f32s, bits }).collect();
    refuse(&[f32s], constants, "too many constants");
}
