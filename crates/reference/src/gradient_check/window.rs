//! Products, convolutions, pooling, resizing.

use estimand_graph::Padding;

use super::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        let turned = |dims: [usize; 2], turn: bool| if turn { [dims[1], dims[0]] } else { dims };
        let (x, y) = (turned([2, 3], a), turned([3, 4], b));
        let product = Op::MatMul(MatMul { transpose_a: a, transpose_b: b });
        cases.push(op(product.clone(), vec![floats(&x), more(&y)]));
        cases.push(op(product, vec![floats(&turned([2, 0], a)), more(&turned([0, 2], b))]));
        let batches = Op::BatchMatMul(BatchMatMul { adjoint_x: a, adjoint_y: b });
        cases.push(op(batches.clone(), vec![floats(&[2, x[0], x[1]]), more(&[2, y[0], y[1]])]));
        cases.push(op(batches.clone(), vec![floats(&[2, 1, x[0], x[1]]), more(&[3, y[0], y[1]])]));
        let rows = symbolic(&[BATCH, n(x[0]), n(x[1])], &[2, x[0], x[1]]);
        cases.push(op(batches.clone(), vec![rows, more(&y)]));
        let rows = symbolic(&[ANY, n(x[0]), n(x[1])], &[1, x[0], x[1]]);
        cases.push(op(batches, vec![rows, symbolic(&[BATCH, n(y[0]), n(y[1])], &[2, y[0], y[1]])]));
    }
    cases.push(op(
        Op::MatMul(MatMul { transpose_a: false, transpose_b: false }),
        vec![symbolic(&[BATCH, n(3)], &[2, 3]), more(&[3, 2])],
    ));
    for window in windows() {
        for rows in [n(2), BATCH] {
            cases.extend(convolutions(window, rows));
        }
    }
    for window in pools() {
        let image = [2, 4, 5, 2];
        cases.push(op(MaxPool { window }, vec![floats(&image)]));
        cases.push(op(AvgPool { window }, vec![floats(&image)]));
        cases.push(op(AvgPool { window }, vec![symbolic(&[BATCH, n(4), ANY, n(1)], &[1, 4, 5, 1])]));
        cases.push(op(MaxPool { window }, vec![symbolic(&[BATCH, n(4), ANY, n(1)], &[1, 4, 5, 1])]));
        let (h, w) = (
            placed(4, window.size.0, window.strides.0, 1, window.padding),
            placed(5, window.size.1, window.strides.1, 1, window.padding),
        );
        cases.push(op(AvgPoolGrad { window, shape: Shape::from(image) }, vec![floats(&[2, h, w, 2])]));
    }
    for (bilinear, half_pixel_centers) in [(false, false), (false, true), (true, false), (true, true)] {
        for size in [(2, 2), (3, 5), (5, 7), (1, 1)] {
            let resize = Resize { bilinear, size, half_pixel_centers };
            // The graph declares images as f32, but the reference executor computes them in f64.
            cases.push(case(&format!("{resize:?}"), vec![floats(&[1, 3, 4, 2])], move |x| {
                node(Op::Resize(resize), &[x[0].cast(DType::F32)])
            }));
            let shape = Shape::from([BATCH, n(3), n(4), n(1)]);
            let dy = symbolic(&[BATCH, n(size.0), n(size.1), n(1)], &[2, size.0, size.1, 1]);
            cases.push(case(&format!("gradient of {resize:?}"), vec![dy], move |x| {
                node(ResizeGrad { resize, shape: shape.clone() }, &[x[0].cast(DType::F32)])
            }));
        }
    }
    cases
}

fn windows() -> [Window; 5] {
    let window = |strides, dilations, padding| Window { strides, dilations, padding };
    [
        window((1, 1), (1, 1), Padding::Valid),
        window((1, 1), (1, 1), Padding::Same),
        window((2, 1), (1, 1), Padding::Same),
        window((2, 3), (1, 1), Padding::Valid),
        window((1, 1), (2, 1), Padding::Same),
    ]
}

fn pools() -> [PoolWindow; 3] {
    let pool = |size, strides, padding| PoolWindow { size, strides, padding };
    [pool((2, 2), (2, 2), Padding::Valid), pool((3, 2), (1, 2), Padding::Same), pool((2, 3), (3, 1), Padding::Same)]
}

fn placed(size: usize, window: usize, stride: usize, dilation: usize, padding: Padding) -> usize {
    padding.place(size, window, stride, dilation).unwrap().0
}

/// Both convolutions, and their gradients as separate ops.
fn convolutions(window: Window, rows: Dim) -> Vec<Case> {
    let (height, width) = (4, 5);
    let h = placed(height, 2, window.strides.0, window.dilations.0, window.padding);
    let w = placed(width, 3, window.strides.1, window.dilations.1, window.padding);
    let image = |channels: usize, h: usize, w: usize| symbolic(&[rows, n(h), n(w), n(channels)], &[2, h, w, channels]);
    let shape = Shape::from([rows, n(height), n(width), n(2)]);
    let (filter, depthwise) = ([2, 3, 2, 3], [2, 3, 2, 2]);
    vec![
        op(Conv2d { window }, vec![image(2, height, width), more(&filter)]),
        op(Conv2dBackpropInput { window, shape: shape.clone() }, vec![more(&filter), image(3, h, w)]),
        op(Conv2dBackpropFilter { window, shape: Shape::from(filter) }, vec![image(2, height, width), image(3, h, w)]),
        op(DepthwiseConv2d { window }, vec![image(2, height, width), more(&depthwise)]),
        op(DepthwiseConv2dBackpropInput { window, shape }, vec![more(&depthwise), image(4, h, w)]),
        op(
            Op::DepthwiseConv2dBackpropFilter(DepthwiseConv2dBackpropFilter { window, shape: Shape::from(depthwise) }),
            vec![image(2, height, width), image(4, h, w)],
        ),
    ]
}

pub(super) fn refused() -> Vec<Case> {
    let window = pools()[0];
    vec![case("gradient of max pooling", vec![floats(&[1, 4, 4, 1]), floats(&[1, 2, 2, 1])], move |x| {
        let pooled = node(MaxPool { window }, &x[..1]);
        node(MaxPoolGrad { window }, &[x[0].clone(), pooled, x[1].clone()])
    })]
}
