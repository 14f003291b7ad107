//! The data-movement kernels against TensorFlow: `oracles/gen/movement.py` explains the fixture.

use estimand_fixture::{Case, cases};
use estimand_tensor::cpu::gather::{GatherDims, gather, gather_nd};
use estimand_tensor::cpu::layout::{Mirror, mirror_pad, one_hot, pad, resolve_range, strided_slice};
use estimand_tensor::cpu::resize::{
    Resize, resize_bilinear, resize_bilinear_grad, resize_nearest, resize_nearest_grad,
};
use estimand_tensor::cpu::scan::{Direction, Running, cumulative};
use estimand_tensor::cpu::scatter::scatter_nd;
use estimand_tensor::cpu::segment::{Reduction, segment, unsorted_segment, unsorted_segment_scratch_len};
use estimand_tensor::cpu::sort::top_k;
use estimand_tensor::parallel::Pool;

/// The elements of an array as the bytes that a kernel for any dtype takes.
fn memory(case: &Case, name: &str) -> Vec<u8> {
    case.array(name).to_ne_bytes()
}

fn assert_close(case: &Case, name: &str, ours: &[f32]) {
    let theirs = case.numbers::<f32>(name);
    assert_eq!(ours.len(), theirs.len(), "{name} of {case}");
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{name}[{i}] of {case}: {a}, TensorFlow {b}");
    }
}

fn check_resize(pool: &Pool, case: &Case) {
    let pair = |key| <[usize; 2]>::from(case.setting::<(usize, usize)>(key));
    let resize = Resize {
        from: pair("source"),
        to: pair("target"),
        channels: 2,
        align_corners: case.setting("align_corners"),
        half_pixel_centers: case.setting("half_pixel_centers"),
    };
    let (x, dy) = (case.numbers::<f32>("x"), case.numbers::<f32>("dy"));
    let (mut y, mut dx) = (vec![9.0; dy.len()], vec![9.0; x.len()]);
    if case.name() == "bilinear" {
        resize_bilinear(pool, &resize, &x, &mut y);
        resize_bilinear_grad(pool, &resize, &dy, &mut dx);
    } else {
        resize_nearest(pool, &resize, &x, &mut y);
        resize_nearest_grad(pool, &resize, &dy, &mut dx);
    }
    assert_close(case, "y", &y);
    assert_close(case, "dx", &dx);
}

fn check_segment(pool: &Pool, case: &Case) {
    let reduction = match case.setting::<String>("reduction").as_str() {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "max" => Reduction::Max,
        "min" => Reduction::Min,
        _ => Reduction::Prod,
    };
    let (width, ids, x) = (case.setting("width"), case.setting::<Vec<i32>>("ids"), case.numbers::<f32>("x"));
    let mut y = vec![9.0; case.numbers::<f32>("y").len()];
    if case.name() == "segment" {
        segment(pool, reduction, width, &ids, &x, &mut y).unwrap();
    } else {
        let mut scratch = vec![9; unsorted_segment_scratch_len(reduction, case.setting("n"))];
        unsorted_segment(pool, reduction, width, &ids, &x, &mut y, &mut scratch).unwrap();
    }
    assert_close(case, "y", &y);
}

fn check_strided_slice(pool: &Pool, case: &Case) {
    let (dims, strides) = (case.setting::<Vec<usize>>("dims"), case.setting::<Vec<isize>>("strides"));
    let [begin, end] = ["begin", "end"].map(|key| case.setting::<Vec<Option<i64>>>(key));
    let ranges = (0..dims.len()).map(|k| resolve_range(begin[k], end[k], strides[k] as i64, dims[k]));
    let (begin, size): (Vec<_>, Vec<_>) = ranges.unzip();
    assert_eq!(size, case.setting::<Vec<usize>>("shape"), "shape of {case}");
    let (x, expected) = (memory(case, "x"), memory(case, "y"));
    let mut y = vec![9; expected.len()];
    strided_slice(pool, &dims, &begin, &strides, &size, 4, &x, &mut y);
    assert_eq!(y, expected, "{case}");
}

fn check_lookup(pool: &Pool, case: &Case) {
    let (dims, ids) = (case.setting::<Vec<usize>>("dims"), case.setting::<Vec<i64>>("ids"));
    let expected = memory(case, "y");
    let mut y = vec![9; expected.len()];
    match case.name() {
        "gather" => {
            let [batch, outer, limit, n_ids, inner] = dims[..] else { panic!("five sizes") };
            let dims = GatherDims { batch, outer, limit, n_ids, inner };
            gather(pool, dims, 4, &memory(case, "x"), &ids, &mut y).unwrap();
        }
        "gather_nd" => gather_nd(pool, &dims, case.setting("inner"), 4, &memory(case, "x"), &ids, &mut y).unwrap(),
        _ => {
            let value = |key| case.setting::<f32>(key).to_ne_bytes();
            one_hot(pool, dims.try_into().unwrap(), &ids, &value("on"), &value("off"), &mut y);
        }
    }
    assert_eq!(y, expected, "{case}");
}

fn check_pad(pool: &Pool, case: &Case) {
    let (dims, expected) = (case.setting::<Vec<usize>>("dims"), memory(case, "y"));
    let paddings: Vec<(usize, usize)> =
        case.setting::<Vec<_>>("before").into_iter().zip(case.setting::<Vec<_>>("after")).collect();
    let mut y = vec![9; expected.len()];
    if case.name() == "pad" {
        pad(pool, &dims, &paddings, &case.setting::<f32>("value").to_ne_bytes(), &memory(case, "x"), &mut y);
    } else {
        let mode = if case.bytes("mode") == b"REFLECT" { Mirror::Reflect } else { Mirror::Symmetric };
        mirror_pad(pool, &dims, &paddings, mode, 4, &memory(case, "x"), &mut y);
    }
    assert_eq!(y, expected, "{case}");
}

fn check_scan(pool: &Pool, case: &Case) {
    let (dims, axis) = (case.setting::<Vec<usize>>("dims"), case.setting::<usize>("axis"));
    let dims = [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()];
    let direction = Direction { exclusive: case.setting("exclusive"), reverse: case.setting("reverse") };
    let running = if case.name() == "cumsum" { Running::Sum } else { Running::Prod };
    let x = case.numbers::<f32>("x");
    let mut y = vec![9.0; x.len()];
    cumulative(pool, running, direction, dims, &x, &mut y);
    assert_close(case, "y", &y);
}

#[test]
fn every_case_agrees_with_tensorflow() {
    let pool = Pool::new(2);
    for case in &cases("movement") {
        match case.name() {
            "bilinear" | "nearest" => check_resize(&pool, case),
            "segment" | "unsorted_segment" => check_segment(&pool, case),
            "strided_slice" => check_strided_slice(&pool, case),
            "gather" | "gather_nd" | "one_hot" => check_lookup(&pool, case),
            "pad" | "mirror_pad" => check_pad(&pool, case),
            "cumsum" | "cumprod" => check_scan(&pool, case),
            "scatter_nd" => {
                let mut y = vec![9.0; case.numbers::<f32>("y").len()];
                let (dims, ids, x) =
                    (case.setting::<Vec<_>>("dims"), case.setting::<Vec<i32>>("ids"), case.numbers::<f32>("x"));
                scatter_nd(&pool, &dims, case.setting("inner"), &ids, &x, &mut y).unwrap();
                assert_close(case, "y", &y);
            }
            "top_k" => {
                let indices = case.numbers::<i32>("indices");
                let (mut ours, mut values) = (vec![9; indices.len()], vec![9.0; indices.len()]);
                top_k(&pool, case.setting("n"), case.setting("k"), &case.numbers::<f32>("x"), &mut values, &mut ours);
                assert_eq!((values, ours), (case.numbers("values"), indices), "{case}");
            }
            other => panic!("no check for {other}"),
        }
    }
}
