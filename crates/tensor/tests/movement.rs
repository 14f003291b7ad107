//! The data-movement kernels against TensorFlow: `oracles/gen/movement.py` explains the fixture.

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
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

const FIXTURE: &str = include_str!("../../../oracles/fixtures/movement.txt");

/// One case of the fixture.
struct Case<'a> {
    title: &'a str,
    op: &'a str,
    settings: BTreeMap<&'a str, &'a str>,
    arrays: BTreeMap<&'a str, &'a str>,
}

impl<'a> Case<'a> {
    fn all() -> Vec<Case<'a>> {
        let mut cases: Vec<Case<'_>> = vec![];
        for line in FIXTURE.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once(' ').unwrap();
            if name == "case" {
                let mut words = rest.split(' ');
                let op = words.next().unwrap();
                let settings = words.map(|word| word.split_once('=').unwrap()).collect();
                cases.push(Case { title: rest, op, settings, arrays: BTreeMap::new() });
            } else {
                cases.last_mut().unwrap().arrays.insert(name, rest);
            }
        }
        cases
    }

    fn word(&self, key: &str) -> &'a str {
        self.settings[key]
    }

    fn one<T: FromStr<Err: Debug>>(&self, key: &str) -> T {
        self.settings[key].parse().unwrap()
    }

    fn list<T: FromStr<Err: Debug>>(&self, key: &str) -> Vec<T> {
        self.settings[key].split(',').map(|v| v.parse().unwrap()).collect()
    }

    fn array<T: FromStr<Err: Debug>>(&self, name: &str) -> Vec<T> {
        self.arrays[name].split(' ').filter(|v| *v != "-").map(|v| v.parse().unwrap()).collect()
    }

    /// The floats of an array as the bytes that a kernel for any dtype takes.
    fn bytes(&self, name: &str) -> Vec<u8> {
        self.array::<f32>(name).iter().flat_map(|v| v.to_ne_bytes()).collect()
    }

    fn assert_close(&self, name: &str, ours: &[f32]) {
        let theirs = self.array::<f32>(name);
        assert_eq!(ours.len(), theirs.len(), "{} of {}", name, self.title);
        for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{name}[{i}] of {}: {a}, TensorFlow {b}", self.title);
        }
    }
}

fn check_resize(pool: &Pool, case: &Case<'_>) {
    let pair = |key| <[usize; 2]>::try_from(case.list(key)).unwrap();
    let resize = Resize {
        from: pair("source"),
        to: pair("target"),
        channels: 2,
        align_corners: case.one("align_corners"),
        half_pixel_centers: case.one("half_pixel_centers"),
    };
    let (x, dy) = (case.array::<f32>("x"), case.array::<f32>("dy"));
    let (mut y, mut dx) = (vec![9.0; dy.len()], vec![9.0; x.len()]);
    if case.op == "bilinear" {
        resize_bilinear(pool, &resize, &x, &mut y);
        resize_bilinear_grad(pool, &resize, &dy, &mut dx);
    } else {
        resize_nearest(pool, &resize, &x, &mut y);
        resize_nearest_grad(pool, &resize, &dy, &mut dx);
    }
    case.assert_close("y", &y);
    case.assert_close("dx", &dx);
}

fn check_segment(pool: &Pool, case: &Case<'_>) {
    let reduction = match case.word("reduction") {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "max" => Reduction::Max,
        "min" => Reduction::Min,
        _ => Reduction::Prod,
    };
    let (width, ids, x) = (case.one("width"), case.list::<i32>("ids"), case.array::<f32>("x"));
    let mut y = vec![9.0; case.array::<f32>("y").len()];
    if case.op == "segment" {
        segment(pool, reduction, width, &ids, &x, &mut y).unwrap();
    } else {
        let mut scratch = vec![9; unsorted_segment_scratch_len(reduction, case.one("n"))];
        unsorted_segment(pool, reduction, width, &ids, &x, &mut y, &mut scratch).unwrap();
    }
    case.assert_close("y", &y);
}

fn check_strided_slice(pool: &Pool, case: &Case<'_>) {
    let (dims, strides) = (case.list::<usize>("dims"), case.list::<isize>("strides"));
    let bounds = |key| case.word(key).split(',').map(|v| v.parse().ok()).collect::<Vec<Option<i64>>>();
    let (begin, end) = (bounds("begin"), bounds("end"));
    let ranges = (0..dims.len()).map(|k| resolve_range(begin[k], end[k], strides[k] as i64, dims[k]));
    let (begin, size): (Vec<_>, Vec<_>) = ranges.unzip();
    assert_eq!(size, case.list::<usize>("shape"), "shape of {}", case.title);
    let x: Vec<u8> = case.array::<i32>("x").iter().flat_map(|v| v.to_ne_bytes()).collect();
    let expected: Vec<u8> = case.array::<i32>("y").iter().flat_map(|v| v.to_ne_bytes()).collect();
    let mut y = vec![9; expected.len()];
    strided_slice(pool, &dims, &begin, &strides, &size, 4, &x, &mut y);
    assert_eq!(y, expected, "{}", case.title);
}

fn check_lookup(pool: &Pool, case: &Case<'_>) {
    let (dims, ids) = (case.list::<usize>("dims"), case.list::<i64>("ids"));
    let expected = case.bytes("y");
    let mut y = vec![9; expected.len()];
    match case.op {
        "gather" => {
            let [batch, outer, limit, n_ids, inner] = dims[..] else { panic!("five sizes") };
            let dims = GatherDims { batch, outer, limit, n_ids, inner };
            gather(pool, dims, 4, &case.bytes("x"), &ids, &mut y).unwrap();
        }
        "gather_nd" => gather_nd(pool, &dims, case.one("inner"), 4, &case.bytes("x"), &ids, &mut y).unwrap(),
        _ => {
            let value = |key| case.one::<f32>(key).to_ne_bytes();
            one_hot(pool, dims.try_into().unwrap(), &ids, &value("on"), &value("off"), &mut y);
        }
    }
    assert_eq!(y, expected, "{}", case.title);
}

fn check_pad(pool: &Pool, case: &Case<'_>) {
    let (dims, expected) = (case.list::<usize>("dims"), case.bytes("y"));
    let paddings: Vec<(usize, usize)> = case.list("before").into_iter().zip(case.list("after")).collect();
    let mut y = vec![9; expected.len()];
    if case.op == "pad" {
        pad(pool, &dims, &paddings, &case.one::<f32>("value").to_ne_bytes(), &case.bytes("x"), &mut y);
    } else {
        let mode = if case.word("mode") == "REFLECT" { Mirror::Reflect } else { Mirror::Symmetric };
        mirror_pad(pool, &dims, &paddings, mode, 4, &case.bytes("x"), &mut y);
    }
    assert_eq!(y, expected, "{}", case.title);
}

fn check_scan(pool: &Pool, case: &Case<'_>) {
    let (dims, axis) = (case.list::<usize>("dims"), case.one::<usize>("axis"));
    let dims = [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()];
    let direction = Direction { exclusive: case.one("exclusive"), reverse: case.one("reverse") };
    let running = if case.op == "cumsum" { Running::Sum } else { Running::Prod };
    let x = case.array::<f32>("x");
    let mut y = vec![9.0; x.len()];
    cumulative(pool, running, direction, dims, &x, &mut y);
    case.assert_close("y", &y);
}

#[test]
fn every_case_agrees_with_tensorflow() {
    let pool = Pool::new(2);
    for case in Case::all() {
        match case.op {
            "bilinear" | "nearest" => check_resize(&pool, &case),
            "segment" | "unsorted_segment" => check_segment(&pool, &case),
            "strided_slice" => check_strided_slice(&pool, &case),
            "gather" | "gather_nd" | "one_hot" => check_lookup(&pool, &case),
            "pad" | "mirror_pad" => check_pad(&pool, &case),
            "cumsum" | "cumprod" => check_scan(&pool, &case),
            "scatter_nd" => {
                let mut y = vec![9.0; case.array::<f32>("y").len()];
                let (dims, ids, x) = (case.list("dims"), case.list::<i32>("ids"), case.array::<f32>("x"));
                scatter_nd(&pool, &dims, case.one("inner"), &ids, &x, &mut y).unwrap();
                case.assert_close("y", &y);
            }
            "top_k" => {
                let indices = case.array::<i32>("indices");
                let (mut ours, mut values) = (vec![9; indices.len()], vec![9.0; indices.len()]);
                top_k(&pool, case.one("n"), case.one("k"), &case.array::<f32>("x"), &mut values, &mut ours);
                assert_eq!((values, ours), (case.array("values"), indices), "{}", case.title);
            }
            other => panic!("no check for {other}"),
        }
    }
}
