//! Small values derived by hand, or printed by TensorFlow 2.15.1 where a comment says so.

use estimand_graph::{GradientMut, Graph, Initializer, Mirror, Optimizer, Padding, Running, Tensor};
use estimand_tensor::{Array, DType, Dim, ErrorKind};
use estimand_update::{Adam, Sgd};

use super::*;

fn compile(fetches: &[&Tensor]) -> Result<(Box<dyn State>, Arc<dyn Executable>)> {
    let graph = fetches[0].graph();
    graph.check()?;
    let body = Arc::new(graph.body().clone());
    let state = Reference.place(body.variables(), 1)?;
    let fetches: Vec<Value> = fetches.iter().map(|t| t.value()).collect();
    Ok((state, Reference.compile(Program::new(body, &fetches)?)?))
}

fn run(fetches: &[&Tensor], feeds: &[Array]) -> Result<Vec<Array>> {
    let (mut state, program) = compile(fetches)?;
    let mut outputs = Vec::new();
    program.step(state.as_mut(), RunArgs { feeds, ..RunArgs::default() }, &mut outputs)?;
    Ok(outputs)
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    run(&[tensor], &[]).unwrap()[0].to_f64_vec().unwrap()
}

fn error(tensor: &Tensor, feeds: &[Array]) -> Error {
    run(&[tensor], feeds).unwrap_err()
}

fn image(graph: &Graph, dims: [usize; 4], values: &[f32]) -> Tensor {
    graph.constant(Array::from_slice(dims, values).unwrap())
}

#[test]
fn elements_at_the_edges() {
    let g = Graph::new();
    let c = |v: [f32; 4]| g.constant(v);
    assert_eq!(numbers(&c([0.5, 1.5, -0.5, 2.5]).round()), [0.0, 2.0, 0.0, 2.0]);
    let (a, b) = (c([7.0, -7.0, 7.0, 1.0]), c([2.0, 2.0, -2.0, 0.0]));
    assert_eq!(numbers(&a.floor_div(&b)), [3.0, -4.0, -4.0, f64::INFINITY]);
    assert_eq!(numbers(&a.floor_mod(&b))[..3], [1.0, 1.0, -1.0]);
    assert_eq!(numbers(&a.div_no_nan(&b))[3], 0.0);
    assert!(numbers(&c([f32::NAN; 4]).maximum(1.0)).iter().all(|v| v.is_nan()));
    assert!(numbers(&c([f32::NAN; 4]).relu()).iter().all(|v| v.is_nan()));
    let (a, b) = (g.constant([7i32, -7, 7, -7]), g.constant([2i32, 2, -2, -2]));
    assert_eq!(numbers(&a.floor_div(&b)), [3.0, -4.0, -4.0, 3.0]);
    assert_eq!(numbers(&a.floor_mod(&b)), [1.0, 1.0, -1.0, -1.0]);
    assert_eq!(numbers(&(g.constant([i32::MAX]) + 1)), [f64::from(i32::MIN)]);
    // TensorFlow 2.15.1: tf.math.erf in float64
    let erf = run(&[&g.constant([0.5f64, 3.5, -9.0]).erf()], &[]).unwrap()[0].to_f64_vec().unwrap();
    for (actual, expected) in erf.iter().zip([0.520_499_877_813_046_5, 0.999_999_256_901_627_6, -1.0]) {
        assert!((actual - expected).abs() < 1e-14, "{actual} {expected}");
    }
    assert_eq!(numbers(&g.constant([1.7f32, -1.7, 300.0]).cast(DType::I32)), [1.0, -1.0, 300.0]);
    assert_eq!(numbers(&g.constant([300i32, -1]).cast(DType::U8)), [44.0, 255.0]);
}

#[test]
fn integer_division_by_zero_names_the_node() {
    let g = Graph::new();
    let e = error(&g.constant([1i64]).floor_div(0), &[]).to_string();
    assert!(e.contains("by zero") && e.contains("`FloorDiv` (FloorDiv)") && e.contains("tests.rs"), "{e}");
}

#[test]
fn reductions_of_nothing() {
    let g = Graph::new();
    let empty = g.constant(Array::zeros(DType::F32, [0, 2]).unwrap());
    assert_eq!(numbers(&empty.sum_axes([0])), [0.0, 0.0]);
    assert_eq!(numbers(&empty.prod()), [1.0]);
    assert_eq!(numbers(&empty.max()), [f64::NEG_INFINITY]);
    assert_eq!(numbers(&empty.min()), [f64::INFINITY]);
    assert!(numbers(&empty.mean())[0].is_nan());
    let integers = g.constant(Array::zeros(DType::I32, [0]).unwrap());
    assert_eq!(numbers(&integers.max()), [f64::from(i32::MIN)]);
    assert!(error(&integers.mean(), &[]).to_string().contains("mean of no integers"));
    // TF: integer means are rounded towards 0.
    assert_eq!(numbers(&g.constant([-1i32, -2]).mean()), [-1.0]);
    assert_eq!(numbers(&g.constant([true, false]).all()), [0.0]);
}

#[test]
fn order_and_scans() {
    let g = Graph::new();
    let x = g.constant(Array::from_slice([2, 3], &[3.0f32, 1.0, 3.0, 2.0, 5.0, 4.0]).unwrap());
    assert_eq!(numbers(&x.argmax(1)), [0.0, 1.0]);
    assert_eq!(numbers(&x.argmin(0)), [1.0, 0.0, 0.0]);
    let (values, indices) = x.top_k(2);
    assert_eq!(numbers(&values), [3.0, 3.0, 5.0, 4.0]);
    assert_eq!(numbers(&indices), [0.0, 2.0, 1.0, 2.0]);
    assert_eq!(numbers(&x.cumsum(1)), [3.0, 4.0, 7.0, 2.0, 7.0, 11.0]);
    assert_eq!(numbers(&x.cumprod(Running::along(1).exclusive().reverse())), [3.0, 3.0, 1.0, 20.0, 4.0, 1.0]);
}

#[test]
fn elements_move() {
    let g = Graph::new();
    let x = g.constant(Array::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
    assert_eq!(numbers(&x.transpose(&[])), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(numbers(&x.strided_slice(&[(1, -3, -1), (0, 3, 2)])), [4.0, 6.0, 1.0, 3.0]);
    assert_eq!(numbers(&x.reverse(&[1])), [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    assert_eq!(numbers(&Tensor::concat(&[&x, &x.slice(&[0, 0], &[2, 1])], 1)), [1., 2., 3., 1., 4., 5., 6., 4.]);
    let row = g.constant([1.0f32, 2.0, 3.0]);
    assert_eq!(numbers(&row.mirror_pad(&[(2, 1)], Mirror::Reflect)), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
    assert_eq!(numbers(&row.mirror_pad(&[(2, 1)], Mirror::Symmetric)), [2.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
    assert_eq!(numbers(&row.pad(&[(1, 2)], 9.0)), [9.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
    assert_eq!(numbers(&row.tile(&[2])), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}

#[test]
fn windows_over_images() {
    let g = Graph::new();
    let x = image(&g, [1, 3, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let ones = image(&g, [2, 2, 1, 1], &[1.0; 4]);
    // Sums of 2 x 2 blocks; SAME adds a row below and a column to the right.
    assert_eq!(numbers(&x.conv2d(&ones, (1, 1), Padding::Valid)), [12.0, 16.0, 24.0, 28.0]);
    assert_eq!(numbers(&x.conv2d(&ones, (2, 2), Padding::Same)), [12.0, 9.0, 15.0, 9.0]);
    assert_eq!(numbers(&x.max_pool((2, 2), (2, 2), Padding::Same)), [5.0, 6.0, 8.0, 9.0]);
    assert_eq!(numbers(&x.avg_pool((2, 2), (2, 2), Padding::Same)), [3.0, 4.5, 7.5, 9.0]);
    let flat = image(&g, [1, 1, 2, 1], &[1.0, 1.0]);
    let pooled = flat.max_pool((1, 2), (1, 2), Padding::Valid);
    let estimand_graph::Gradient::Dense(dx) = &estimand_graph::gradients(&pooled, &[&flat])[0] else {
        panic!("a dense gradient")
    };
    assert_eq!(numbers(dx), [1.0, 0.0]);
    // Half-pixel centres: 2 pixels to 4 lie at -0.25, 0.25, 0.75, 1.25.
    let pair = image(&g, [1, 1, 2, 1], &[0.0, 4.0]);
    assert_eq!(numbers(&pair.resize_bilinear((1, 4))), [0.0, 1.0, 3.0, 4.0]);
    assert_eq!(numbers(&pair.resize_nearest((1, 4))), [0.0, 0.0, 4.0, 4.0]);
}

#[test]
fn indices_out_of_range_are_named() {
    let g = Graph::new();
    let table = g.constant([1.0f32, 2.0, 3.0]);
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let rows = table.gather(&ids);
    let e = error(&rows, &[Array::from([0i64, 3])]);
    assert_eq!(*e.kind(), ErrorKind::Index);
    let text = e.to_string();
    assert!(text.contains("indices[1] is 3, which is not in [0, 3)") && text.contains("`GatherV2`"), "{text}");
    let logits = g.constant(Array::zeros(DType::F32, [1, 2]).unwrap());
    let loss = logits.sparse_softmax_cross_entropy(&g.constant([2i32]));
    assert!(error(&loss, &[]).to_string().contains("labels[0] is 2, which is not in [0, 2)"));
    let nd = table.gather_nd(&g.constant(Array::from_slice([1, 1], &[-1i32]).unwrap()));
    assert!(error(&nd, &[]).to_string().contains("indices[0] is [-1], which is not inside [3]"));
    let segments = table.segment_sum(&g.constant([0i32, 5, 0]), 2);
    assert!(error(&segments, &[]).to_string().contains("segment_ids[1] is 5, which is not below 2"));
    assert_eq!(numbers(&g.constant([5i32, -1, 1]).one_hot(2, DType::F32)), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let largest = numbers(&table.segment_max(&g.constant([0i32, -1, 0]), 2));
    assert_eq!(largest, [3.0, f64::from(f32::MIN)]);
}

#[test]
fn sizes_that_only_the_run_knows_are_checked() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Graph::ANY]);
    let y = g.placeholder("y", DType::F32, [Graph::ANY]);
    let feeds = [Array::from([1.0f32, 2.0]), Array::from([1.0f32, 2.0, 3.0])];
    assert!(error(&(&x + &y), &feeds).to_string().contains("cannot be broadcast"));
    assert!(error(&(&x + &g.constant([1.0f32; 3])), &feeds[..1]).to_string().contains("cannot be broadcast"));
    assert!(error(&x.slice(&[1], &[4]), &feeds[..1]).to_string().contains("size 2"));
    assert!(error(&x.reshape([3, -1]), &feeds[..1]).to_string().contains("cannot reshape"));
    assert!(error(&x.top_k(3).0, &feeds[..1]).to_string().contains("k = 3"));
}

#[test]
fn reads_see_the_state_before_the_run() {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Value(Array::from([1.0f32, 2.0])));
    let loss = w.square().sum();
    let train = Optimizer::new(Sgd::default(), 0.25).minimize(&loss);
    let (mut state, program) = compile(&[&train, &loss, &w]).unwrap();
    let mut outputs = Vec::new();
    let mut seen = Vec::new();
    // w - 0.25 * 2w is half of w.
    for (expected_loss, expected) in [(5.0, [1.0f32, 2.0]), (1.25, [0.5, 1.0])] {
        let mut see = |_, gradient: GradientMut<'_>| {
            if let GradientMut::Dense(g) = gradient {
                seen.push(g.to_vec());
            }
            Ok(())
        };
        let args = RunArgs { on_gradient: Some(&mut see), ..RunArgs::default() };
        program.step(state.as_mut(), args, &mut outputs).unwrap();
        assert_eq!(outputs[0].item::<f32>().unwrap(), expected_loss);
        assert_eq!(outputs[1].as_slice::<f32>().unwrap(), expected);
    }
    assert_eq!(seen, [[2.0, 4.0], [1.0, 2.0]]);
    program.forward(state.as_ref(), RunArgs::default(), &mut outputs).unwrap();
    assert_eq!(state.read("w").unwrap(), Array::from([0.25f32, 0.5]));
    assert_eq!(state.read("SGD/iter").unwrap(), Array::from(2i64));
}

#[test]
fn gradients_can_be_changed_and_refused() {
    let g = Graph::new();
    let table = g.variable("table", [3, 1], Initializer::Zeros);
    let train = Optimizer::new(Sgd::default(), 1.0).minimize(&table.gather(&g.constant([2i64, 0, 2])).sum());
    let (mut state, program) = compile(&[&train]).unwrap();
    let id = g.body().variables().find("table").unwrap();
    let mut refuse = |_, _: GradientMut<'_>| Err(Error::config("not now"));
    let args = RunArgs { on_gradient: Some(&mut refuse), ..RunArgs::default() };
    assert!(program.step(state.as_mut(), args, &mut Vec::new()).is_err());
    assert_eq!(state.read("table").unwrap().to_f64_vec().unwrap(), [0.0; 3]);
    let mut number = |variable, gradient: GradientMut<'_>| {
        assert_eq!(variable, id);
        let GradientMut::Rows { indices, values } = gradient else { panic!("rows of a table") };
        assert_eq!((indices, &*values), (&[2, 0, 2][..], &[1.0; 3][..]));
        values.copy_from_slice(&[1.0, 2.0, 4.0]);
        Ok(())
    };
    let args = RunArgs { on_gradient: Some(&mut number), ..RunArgs::default() };
    program.step(state.as_mut(), args, &mut Vec::new()).unwrap();
    assert_eq!(state.read("table").unwrap().to_f64_vec().unwrap(), [-2.0, 0.0, -5.0]);
}

#[test]
fn rows_are_summed_and_the_rest_decays() {
    let run = |lazy: bool| {
        let g = Graph::new();
        let table = g.variable("table", [3, 1], Initializer::Ones);
        let picked = table.gather(&g.constant([0i64, 2, 0]));
        let optimizer = Optimizer::new(Adam::default(), 0.1);
        let optimizer = if lazy { optimizer.lazy() } else { optimizer };
        let train = optimizer.minimize(&picked.sum());
        let (mut state, program) = compile(&[&train]).unwrap();
        let m = "Adam/table/m";
        state.write(m, &Array::from_slice([3, 1], &[0.0f32, 1.0, 0.0]).unwrap()).unwrap();
        program.step(state.as_mut(), RunArgs::default(), &mut Vec::new()).unwrap();
        state.read(m).unwrap().to_f64_vec().unwrap()
    };
    // m = 0.9 m + 0.1 g with g = (2, -, 1): row 1 has no gradient.
    let near = |actual: Vec<f64>, expected: [f64; 3]| actual.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-6);
    assert!(near(run(false), [0.2, 0.9, 0.1]));
    assert!(near(run(true), [0.2, 1.0, 0.1]));
}

#[test]
fn random_rows_do_not_depend_on_the_batch() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let noise = x.zeros_like() + &g.random_uniform(x.shape().clone());
    let (mut state, program) = compile(&[&noise]).unwrap();
    let mut draw = |rows: usize, row_offset: u64| {
        let feeds = [Array::zeros(DType::F32, [rows, 3]).unwrap()];
        let mut outputs = Vec::new();
        let args = RunArgs { feeds: &feeds, row_offset, seed: 3, step: 5, ..RunArgs::default() };
        program.step(state.as_mut(), args, &mut outputs).unwrap();
        outputs.remove(0)
    };
    let whole = draw(4, 0);
    assert_eq!(whole.rows(2..4).unwrap(), draw(2, 2));
}

#[test]
fn custom_ops_are_held_to_their_specs() {
    use estimand_graph::custom::CustomOp;
    use estimand_tensor::TensorSpec;
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let twice = CustomOp::new("twice", [TensorSpec::new(DType::F32, [Dim::BATCH])], |x: &[Array]| {
        Ok(vec![Array::from(x[0].as_slice::<f32>()?.iter().map(|v| v * 2.0).collect::<Vec<_>>())])
    });
    let wrong =
        CustomOp::new("wrong", [TensorSpec::new(DType::F32, [Dim::BATCH])], |_: &[Array]| Ok(vec![1i64.into()]));
    let site = std::panic::Location::caller();
    let feeds = [Array::from([1.0f32, 2.0])];
    let doubled = run(&[&g.node(Op::Custom(twice), &[&x], site)], &feeds).unwrap();
    assert_eq!(doubled[0], Array::from([2.0f32, 4.0]));
    let e = error(&g.node(Op::Custom(wrong), &[&x], site), &feeds).to_string();
    assert!(e.contains("`wrong` returned i64[] as output 0, expected f32[2]"), "{e}");
}
