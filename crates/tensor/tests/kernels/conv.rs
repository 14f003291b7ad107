use estimand_tensor::cpu::conv::{
    ConvShape, Pooling, conv2d, conv2d_backprop_filter, conv2d_backprop_filter_pooled,
    conv2d_backprop_filter_pooled_scratch_len, conv2d_backprop_filter_scratch_len, conv2d_backprop_input,
    conv2d_backprop_input_scratch_len, conv2d_max_pooled, conv2d_max_pooled_scratch_len, conv2d_scratch_len,
};
use estimand_tensor::cpu::matmul::Epilogue;
use estimand_tensor::cpu::pool2d::{PoolShape, max_pool_grad, max_pool_which};
use estimand_tensor::cpu::reduce;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{DType, Reduction};

use crate::numbers::{assert_close, assert_same_bits, on_every_machine, random};
use crate::windows::{for_each_tap, window};

/// Calls `term(x index, filter index, y index)` for every product a convolution adds up.
fn for_each_term(s: &ConvShape, mut term: impl FnMut(usize, usize, usize)) {
    let (oh, ow) = (s.out_height(), s.out_width());
    for image in 0..s.batch {
        for_each_tap(&s.window, s.height, s.width, |[oy, ox], [ky, kx], [y, x]| {
            for (i, o) in (0..s.in_channels).flat_map(|i| (0..s.out_channels).map(move |o| (i, o))) {
                term(
                    ((image * s.height + y) * s.width + x) * s.in_channels + i,
                    ((ky * s.window.size[1] + kx) * s.in_channels + i) * s.out_channels + o,
                    ((image * oh + oy) * ow + ox) * s.out_channels + o,
                );
            }
        });
    }
}

fn shapes() -> Vec<ConvShape> {
    let none = [0, 0];
    let one = [1, 1];
    let shape = |batch, height, width, in_channels, out_channels, window| ConvShape {
        batch,
        height,
        width,
        in_channels,
        out_channels,
        window,
    };
    vec![
        // The two convolutions of a small digit classifier.
        shape(3, 28, 28, 1, 20, window([5, 5], one, one, none, none)),
        shape(6, 12, 12, 20, 40, window([5, 5], one, one, none, none)),
        // A margin on every side, then on some.
        shape(2, 9, 7, 3, 16, window([3, 3], one, one, one, one)),
        shape(2, 8, 7, 4, 5, window([3, 4], [2, 3], one, [0, 1], [1, 2])),
        shape(5, 10, 11, 2, 3, window([2, 3], [3, 2], [2, 3], [2, 1], [0, 4])),
        // Dilated without a margin; steps wider than the window.
        shape(1, 13, 12, 5, 17, window([3, 3], one, [3, 2], none, none)),
        shape(2, 11, 9, 1, 33, window([2, 1], [4, 5], one, none, none)),
        // One by one; one pixel; a window as large as the image; more channels than a block of k.
        shape(4, 5, 6, 7, 64, window(one, one, one, none, none)),
        shape(4, 6, 6, 3, 2, window(one, [2, 2], one, none, none)),
        shape(17, 1, 1, 1, 1, window(one, one, one, none, none)),
        shape(19, 3, 4, 2, 1, window([3, 4], one, one, none, none)),
        shape(2, 3, 4, 300, 6, window([2, 2], one, one, one, none)),
        shape(1, 4, 5, 3, 270, window([3, 2], one, one, none, one)),
        // A filter that is large for its images, with a margin, without one, and in steps.
        shape(3, 3, 4, 300, 292, window([3, 3], one, one, one, one)),
        shape(3, 2, 3, 520, 1536, window(one, one, one, none, none)),
        shape(2, 3, 3, 900, 880, window(one, [2, 2], one, none, none)),
        // A smaller filter on few pixels.
        shape(8, 5, 5, 160, 144, window([1, 3], one, one, [0, 1], [0, 1])),
        // Many channels, and rows of the filter that several tasks share.
        shape(2, 17, 16, 260, 200, window([1, 2], one, one, none, one)),
        // A single large image.
        shape(1, 40, 37, 8, 24, window([3, 3], one, one, one, one)),
        // Nothing in one way or another.
        shape(0, 5, 5, 2, 3, window([3, 3], one, one, none, none)),
        shape(2, 2, 2, 2, 3, window([3, 3], one, one, none, none)),
        shape(2, 4, 4, 0, 3, window([3, 3], one, one, none, none)),
        shape(2, 4, 4, 2, 0, window([3, 3], one, one, none, none)),
        shape(1, 0, 0, 2, 3, window([1, 1], one, one, one, one)),
    ]
}

fn forward(pool: &Pool, s: &ConvShape, x: &[f32], filter: &[f32], epilogue: Epilogue) -> Vec<f32> {
    let (mut y, mut scratch) = (vec![f32::NAN; s.output_len()], vec![f32::NAN; conv2d_scratch_len(s)]);
    conv2d(pool, s, x, filter, &mut y, epilogue, &mut scratch);
    y
}

fn input_gradient(pool: &Pool, s: &ConvShape, filter: &[f32], dy: &[f32]) -> Vec<f32> {
    let mut scratch = vec![f32::NAN; conv2d_backprop_input_scratch_len(s)];
    let mut dx = vec![f32::NAN; s.input_len()];
    conv2d_backprop_input(pool, s, filter, dy, &mut dx, &mut scratch);
    dx
}

#[test]
fn forward_is_the_sum_over_the_window() {
    for s in shapes() {
        let (x, filter, bias) = (random(s.input_len(), 1), random(s.filter_len(), 2), random(s.out_channels, 3));
        let scale = [random(s.out_channels, 13), random(s.out_channels, 14)];
        for (with_bias, relu) in [(false, false), (true, false), (true, true)] {
            // The last case has everything.
            let with_scale = relu;
            let mut want = vec![0.0; s.output_len()];
            for_each_term(&s, |i, f, o| want[o] += f64::from(x[i]) * f64::from(filter[f]));
            for (i, y) in want.iter_mut().enumerate() {
                let channel = i % s.out_channels;
                *y += if with_bias { f64::from(bias[channel]) } else { 0.0 };
                if with_scale {
                    *y = *y * f64::from(scale[0][channel]) + f64::from(scale[1][channel]);
                }
                *y = if relu { y.max(0.0) } else { *y };
            }
            let scale = with_scale.then(|| [&scale[0][..], &scale[1][..]]);
            let epilogue = Epilogue { bias: with_bias.then_some(&bias[..]), scale, relu };
            let got = on_every_machine(&format!("{s:?}"), |pool| forward(pool, &s, &x, &filter, epilogue));
            assert_close(&got, &want, 1.0, &format!("{s:?}"));
        }
    }
}

#[test]
fn input_gradient_is_the_transpose() {
    for s in shapes() {
        let (dy, filter) = (random(s.output_len(), 4), random(s.filter_len(), 5));
        let mut want = vec![0.0; s.input_len()];
        for_each_term(&s, |i, f, o| want[i] += f64::from(dy[o]) * f64::from(filter[f]));
        let got = on_every_machine(&format!("{s:?}"), |pool| input_gradient(pool, &s, &filter, &dy));
        assert_close(&got, &want, 1.0, &format!("{s:?}"));
    }
}

#[test]
fn filter_gradient_is_the_sum_over_pixels() {
    for s in shapes() {
        let (x, dy) = (random(s.input_len(), 6), random(s.output_len(), 7));
        let mut want = vec![0.0; s.filter_len()];
        for_each_term(&s, |i, f, o| want[f] += f64::from(x[i]) * f64::from(dy[o]));
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut scratch = vec![f32::NAN; conv2d_backprop_filter_scratch_len(&s)];
            let mut dfilter = vec![f32::NAN; s.filter_len()];
            conv2d_backprop_filter(pool, &s, &x, &dy, &mut dfilter, &mut scratch);
            dfilter
        });
        assert_close(&got, &want, 2.0, &format!("{s:?}"));
    }
}

/// Pooling image by image has the bits of a convolution and then a pooling.
#[test]
fn pooled_convolution_is_two_kernels() {
    for s in shapes() {
        let p = PoolShape {
            batch: s.batch,
            height: s.out_height(),
            width: s.out_width(),
            channels: s.out_channels,
            window: window([2, 3], [2, 1], [1, 1], [0, 1], [0, 0]),
        };
        let (x, filter, bias) = (random(s.input_len(), 1), random(s.filter_len(), 2), random(s.out_channels, 3));
        let epilogue = Epilogue { bias: Some(&bias), relu: true, ..Epilogue::default() };
        let one = Pool::new(1);
        let mut want = vec![f32::NAN; 2 * p.output_len()];
        let (y, which) = want.split_at_mut(p.output_len());
        max_pool_which(&one, &p, &forward(&one, &s, &x, &filter, epilogue), y, which);
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut scratch = vec![f32::NAN; conv2d_max_pooled_scratch_len(&s)];
            let mut out = vec![f32::NAN; 2 * p.output_len()];
            let (y, which) = out.split_at_mut(p.output_len());
            conv2d_max_pooled(pool, &s, &x, &filter, epilogue, &p, y, which, &mut scratch);
            out
        });
        assert_same_bits(&got, &want, &format!("{s:?}"));
    }
}

/// The pooled gradient has the bits of its three kernels one after the other, where it is one
/// kernel (64 divides the pixels and the groups of images are those of a sum) and where it is not.
#[test]
fn pooled_gradient_is_three_kernels() {
    let conv = |batch, size, in_channels, out_channels, window| ConvShape {
        batch,
        height: size,
        width: size,
        in_channels,
        out_channels,
        window,
    };
    let five = window([5, 5], [1, 1], [1, 1], [0, 0], [0, 0]);
    let same = window([3, 3], [1, 1], [1, 1], [1, 1], [1, 1]);
    let shapes = [128, 37, 16, 7, 2, 1, 0].map(|batch| conv(batch, 28, 1, 20, five));
    let others =
        [conv(5, 16, 3, 17, same), conv(33, 8, 2, 70, same), conv(40, 9, 2, 16, same), conv(40, 8, 2, 1, same)];
    for s in shapes.into_iter().chain(others) {
        let p = PoolShape {
            batch: s.batch,
            height: s.out_height(),
            width: s.out_width(),
            channels: s.out_channels,
            window: window([2, 2], [2, 2], [1, 1], [0, 0], [0, 0]),
        };
        let (image, x, dy) = (random(s.input_len(), 20), random(p.input_len(), 21), random(p.output_len(), 22));
        let one = Pool::new(1);
        let (mut y, mut dx) = (vec![f32::NAN; p.output_len()], vec![f32::NAN; p.input_len()]);
        let mut which = y.clone();
        max_pool_which(&one, &p, &x, &mut y, &mut which);
        max_pool_grad(&one, &p, &x, &y, &dy, &mut dx);
        let (mut dfilter, mut dbias) = (vec![f32::NAN; s.filter_len()], vec![f32::NAN; s.out_channels]);
        let mut scratch = vec![f32::NAN; conv2d_backprop_filter_scratch_len(&s)];
        conv2d_backprop_filter(&one, &s, &image, &dx, &mut dfilter, &mut scratch);
        let dims = [s.batch, p.height, p.width, p.channels];
        let mut scratch = vec![0_u64; reduce::scratch_len(&dims, 0b0111) / 8];
        // SAFETY: sizes as `dims` says, scratch as asked for.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), scratch.len() * 8);
            let (from, to) = (dx.as_ptr().cast(), dbias.as_mut_ptr().cast());
            reduce::reduce(&one, Reduction::Sum, DType::F32, &dims, 0b0111, from, to, bytes).unwrap();
        }
        let want = [dfilter, dbias].concat();
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut scratch = vec![u64::MAX; conv2d_backprop_filter_pooled_scratch_len(&s).div_ceil(2)];
            // SAFETY: two floats are as long as a u64, and any bits are a float.
            let scratch = unsafe { scratch.align_to_mut().1 };
            let (mut dfilter, mut dbias) = (vec![f32::NAN; s.filter_len()], vec![f32::NAN; s.out_channels]);
            let pooling = Pooling { shape: &p, which: &which, dy: &dy };
            conv2d_backprop_filter_pooled(pool, &s, &image, pooling, &mut dfilter, &mut dbias, scratch).unwrap();
            [dfilter, dbias].concat()
        });
        assert_same_bits(&got, &want, &format!("{s:?}"));
    }
}

/// With the second shape a block of k is two filter rows of 100: the chain law of the module,
/// spelled out.
#[test]
fn forward_bits_are_those_of_the_law() {
    let s = shapes()[1];
    let (x, filter) = (random(s.input_len(), 8), random(s.filter_len(), 9));
    let element = |image: usize, oy: usize, ox: usize, o: usize| {
        let block = |rows: std::ops::Range<usize>| {
            let mut sum = 0.0_f32;
            for ky in rows {
                for k in 0..100 {
                    let i = ((image * 12 + oy + ky) * 12 + ox) * 20 + k;
                    sum = x[i].mul_add(filter[(ky * 100 + k) * 40 + o], sum);
                }
            }
            sum
        };
        block(0..2) + block(2..4) + block(4..5)
    };
    let want: Vec<f32> = (0..s.output_len()).map(|i| element(i / 2560, i / 320 % 8, i / 40 % 8, i % 40)).collect();
    assert_same_bits(&forward(Pool::global(), &s, &x, &filter, Epilogue::default()), &want, "law");
}

/// An image alone, in a batch of 7 and in one of 128 has the same bits.
#[test]
fn an_image_does_not_feel_its_batch() {
    for of_one in shapes() {
        let with = |batch: usize| ConvShape { batch, ..of_one };
        let n = if of_one.height > 20 { 16 } else { 128 };
        let all = with(n);
        let (x, dy, filter) = (random(all.input_len(), 10), random(all.output_len(), 11), random(all.filter_len(), 12));
        let y_all = forward(Pool::global(), &all, &x, &filter, Epilogue::default());
        let dx_all = input_gradient(Pool::global(), &all, &filter, &dy);
        for batch in [1, 7] {
            let (s, first) = (with(batch), 3);
            let (i, o) = (with(1).input_len(), with(1).output_len());
            let (xs, ys) = (first * i..(first + batch) * i, first * o..(first + batch) * o);
            let y = forward(Pool::global(), &s, &x[xs.clone()], &filter, Epilogue::default());
            assert_same_bits(&y, &y_all[ys.clone()], &format!("forward of {batch}, {s:?}"));
            let dx = input_gradient(Pool::global(), &s, &filter, &dy[ys]);
            assert_same_bits(&dx, &dx_all[xs], &format!("input gradient of {batch}, {s:?}"));
        }
    }
}
