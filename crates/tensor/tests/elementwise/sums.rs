//! Results that are added up while they are computed have the bits of `reduce`.

use estimand_tensor::cpu::elementwise::{InputView, Instruction, OutputSum, TileProgram, sums_scratch_len};
use estimand_tensor::cpu::reduce;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Binary, DType, MAX_RANK, Reduction};

const F32: DType = DType::F32;

/// `(x, y, c) -> (x - c, (x - c) * y)`, where `c` has the last axis.
fn program() -> TileProgram {
    let load = |dst: u8| Instruction::Load { dst, input: dst };
    let code = vec![
        load(0),
        load(2),
        Instruction::Binary { op: Binary::Sub, dtype: F32, dst: 0, x: 0, y: 2 },
        Instruction::Store { output: 0, src: 0 },
        load(1),
        Instruction::Binary { op: Binary::Mul, dtype: F32, dst: 1, x: 0, y: 1 },
        Instruction::Store { output: 1, src: 1 },
    ];
    TileProgram::new(&[F32; 3], &[F32; 2], code).unwrap()
}

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mixed = |i: usize| (i as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..n).map(|i| mixed(i) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// What `reduce` makes of an array.
fn reduced(kind: Reduction, dims: &[usize], x: &[f32]) -> Vec<u32> {
    let (axes, mut out) = ((1 << (dims.len() - 1)) - 1, vec![0f32; dims[dims.len() - 1]]);
    let mut scratch = vec![0u64; reduce::scratch_len(dims, axes) / 8];
    // SAFETY: the arrays have these sizes.
    unsafe {
        let scratch = std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), scratch.len() * 8);
        let (from, to) = (x.as_ptr().cast(), out.as_mut_ptr().cast());
        reduce::reduce(&Pool::new(1), kind, F32, dims, axes, from, to, scratch).unwrap();
    }
    out.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn sums_on_the_way_have_the_bits_of_reductions() {
    let program = program();
    // Few rows, one chain and more; several spans; no rows at all; outputs that bypass the caches.
    let shapes: &[&[usize]] =
        &[&[1], &[63], &[64], &[130], &[8, 14, 14], &[9, 40, 33], &[17, 70], &[1500, 1], &[0, 5], &[3, 150, 150]];
    for rows in shapes {
        for width in [2, 3, 15, 16, 17, 40, 64, 65, 96, 512] {
            let dims = [rows, &[width][..]].concat();
            let len: usize = dims.iter().product();
            if len > 1 << 18 && (cfg!(miri) || !(width == 40 || width == 2)) {
                continue;
            }
            let (x, y, c) = (numbers(len, 1), numbers(len, 2), numbers(width, 3));
            let mut dense = [0; MAX_RANK];
            let mut last = [0; MAX_RANK];
            let mut stride = 1;
            for (axis, &dim) in dims.iter().enumerate().rev() {
                dense[axis] = stride;
                stride *= dim;
            }
            last[dims.len() - 1] = 1;
            let view = |values: &[f32], strides| InputView { ptr: values.as_ptr().cast(), strides };
            let inputs = [view(&x, dense), view(&y, dense), view(&c, last)];
            let (mut plain, mut products) = (vec![0f32; len], vec![0f32; len]);
            let outputs = [plain.as_mut_ptr().cast(), products.as_mut_ptr().cast()];
            // SAFETY: inputs and outputs have the sizes of the space.
            unsafe { program.run(&Pool::new(1), &dims, &inputs, &outputs) };
            let cases = [
                [(Reduction::Sum, 0), (Reduction::Mean, 1)],
                [(Reduction::Mean, 1), (Reduction::Sum, 1)],
                [(Reduction::Sum, 1), (Reduction::Sum, 0)],
            ];
            for (case, n_threads) in cases.iter().zip([1, 3, 2]) {
                let mut stored = vec![f32::NAN; len];
                let mut sums = [vec![f32::NAN; width], vec![f32::NAN; width]];
                let wanted: Vec<OutputSum> = case
                    .iter()
                    .zip(&mut sums)
                    .map(|(&(kind, output), out)| OutputSum { kind, output, out: out.as_mut_ptr() })
                    .collect();
                let mut scratch = vec![0f64; sums_scratch_len(&dims, 2)];
                let outputs = [stored.as_mut_ptr().cast(), std::ptr::null_mut()];
                // SAFETY: as above; each sum has room for the last axis.
                unsafe {
                    program.run_and_sum(&Pool::new(n_threads), &dims, &inputs, &outputs, &wanted, &mut scratch);
                }
                assert!(stored.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()), "{dims:?}");
                for ((kind, output), sum) in case.iter().zip(&sums) {
                    let expected = reduced(*kind, &dims, if *output == 0 { &plain } else { &products });
                    let found: Vec<u32> = sum.iter().map(|x| x.to_bits()).collect();
                    assert_eq!(found, expected, "{kind:?} of output {output} over {dims:?}");
                }
            }
        }
    }
}
