//! Random programs, forward and backward: `cpu` with passes = `cpu` without (bit for bit) =
//! `reference` (up to rounding).
//!
//! TensorFlow judges the same programs in `oracles/live/graphdef.py`.

use estimand_cpu::Cpu;
use estimand_graph::{Executor, Tensor};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType};
use estimand_testing::{RandomProgram, cpu_without_passes, difference, generate, generate_preprocessing};

/// One in four programs is one of the host.
fn program(seed: u64) -> RandomProgram {
    let program = if seed % 4 == 3 { generate_preprocessing(seed) } else { generate(seed) };
    program.unwrap_or_else(|e| panic!("program {seed}: {e}"))
}

/// What a program computes and its gradients, on an executor. Not the loss: a sum of so much may
/// cancel.
fn values(seed: u64, executor: &dyn Executor, passes: bool) -> Vec<(String, Array)> {
    let program = program(seed);
    let gradients = program.differentiate().unwrap_or_else(|e| panic!("program {seed}: {e}"));
    let mut tensors: Vec<Tensor> = program.fetches.clone();
    tensors.extend(gradients.into_iter().flatten());
    let values = program.run(executor, &tensors, passes);
    let values = values.unwrap_or_else(|e| panic!("program {seed} on {}: {e}\n{}", executor.name(), program.graph));
    tensors.iter().map(Tensor::name).zip(values).collect()
}

fn same_bits(a: &Array, b: &Array) -> bool {
    if a.dtype() == DType::Str { a == b } else { a.bytes() == b.bytes() }
}

#[test]
fn cpu_agrees_with_the_reference() {
    for seed in 0..300 {
        let (ours, expected) = (values(seed, &Cpu::new(), true), values(seed, &Reference, true));
        for ((name, a), (_, b)) in ours.iter().zip(&expected) {
            let why = difference(a, b).unwrap();
            assert_eq!(why, None, "program {seed}, `{name}`");
        }
    }
}

#[test]
fn passes_change_no_bit() {
    for seed in 0..300 {
        let plain = cpu_without_passes(Cpu::new());
        let (with, without) = (values(seed, &Cpu::new(), true), values(seed, &plain, false));
        for ((name, a), (_, b)) in with.iter().zip(&without) {
            assert!(same_bits(a, b), "program {seed}, `{name}`");
        }
    }
}

#[test]
fn threads_change_no_bit() {
    for seed in 0..100 {
        let (one, three) = (values(seed, &Cpu::with_threads(1), true), values(seed, &Cpu::with_threads(3), true));
        for ((name, a), (_, b)) in one.iter().zip(&three) {
            assert!(same_bits(a, b), "program {seed}, `{name}`");
        }
    }
}

#[test]
fn a_seed_is_a_program() {
    for seed in 0..50 {
        let text = || program(seed).graph.to_string();
        assert_eq!(text(), text());
    }
}
