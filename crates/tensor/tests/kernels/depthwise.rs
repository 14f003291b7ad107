use estimand_tensor::cpu::depthwise::{
    DepthwiseShape, depthwise_conv2d, depthwise_conv2d_backprop_filter, depthwise_conv2d_backprop_input,
};

use crate::numbers::{assert_close, assert_same_bits, on_every_machine, random};
use crate::windows::{for_each_tap, window};

fn for_each_term(s: &DepthwiseShape, mut term: impl FnMut(usize, usize, usize)) {
    let (oh, ow) = (s.out_height(), s.out_width());
    for image in 0..s.batch {
        for_each_tap(&s.window, s.height, s.width, |[oy, ox], [ky, kx], [y, x]| {
            for (c, m) in (0..s.channels).flat_map(|c| (0..s.multiplier).map(move |m| (c, m))) {
                let o = c * s.multiplier + m;
                term(
                    ((image * s.height + y) * s.width + x) * s.channels + c,
                    (ky * s.window.size[1] + kx) * s.channels * s.multiplier + o,
                    ((image * oh + oy) * ow + ox) * s.channels * s.multiplier + o,
                );
            }
        });
    }
}

fn shapes() -> Vec<DepthwiseShape> {
    let shape = |batch, height, width, channels, multiplier, window| DepthwiseShape {
        batch,
        height,
        width,
        channels,
        multiplier,
        window,
    };
    let (none, one) = ([0, 0], [1, 1]);
    vec![
        shape(3, 9, 8, 17, 1, window([3, 3], one, one, one, one)),
        shape(2, 7, 9, 3, 2, window([3, 2], [2, 1], one, [0, 1], [1, 0])),
        shape(20, 6, 6, 4, 3, window([2, 3], [1, 3], [2, 1], [2, 0], [0, 2])),
        shape(1, 30, 20, 32, 1, window([3, 3], [2, 2], one, none, one)),
        shape(2, 9, 11, 5, 1, window([3, 3], one, [2, 3], [1, 4], [3, 2])),
        shape(2, 10, 9, 3, 2, window([3, 3], one, one, [3, 2], [0, 3])),
        shape(2, 9, 10, 20, 1, window([3, 3], [2, 1], [1, 2], one, one)),
        shape(18, 1, 1, 1, 1, window(one, one, one, none, none)),
        shape(0, 4, 4, 2, 2, window(one, one, one, none, none)),
        shape(1, 2, 2, 2, 2, window([3, 3], one, one, none, none)),
        shape(2, 4, 4, 0, 2, window([3, 3], one, one, none, none)),
        shape(2, 4, 4, 2, 0, window([3, 3], one, one, none, none)),
    ]
}

#[test]
fn all_three_are_the_naive_sums() {
    for s in shapes() {
        let (x, filter, dy) = (random(s.input_len(), 1), random(s.filter_len(), 2), random(s.output_len(), 3));
        let (mut y, mut dx, mut df) = (vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; filter.len()]);
        for_each_term(&s, |i, f, o| {
            y[o] += f64::from(x[i]) * f64::from(filter[f]);
            dx[i] += f64::from(dy[o]) * f64::from(filter[f]);
            df[f] += f64::from(x[i]) * f64::from(dy[o]);
        });
        let mut scratch = vec![f32::NAN; s.scratch_len()];
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut out = vec![f32::NAN; y.len() + dx.len() + df.len()];
            let (out_y, rest) = out.split_at_mut(y.len());
            let (out_dx, out_df) = rest.split_at_mut(dx.len());
            depthwise_conv2d(pool, &s, &x, &filter, out_y, &mut scratch);
            depthwise_conv2d_backprop_input(pool, &s, &filter, &dy, out_dx, &mut scratch);
            depthwise_conv2d_backprop_filter(pool, &s, &x, &dy, out_df, &mut scratch);
            out
        });
        let want: Vec<f64> = y.into_iter().chain(dx).chain(df).collect();
        assert_close(&got, &want, 1.0, &format!("{s:?}"));
    }
}

#[test]
fn an_image_does_not_feel_its_batch() {
    for of_one in shapes() {
        let forward = |batch: usize, x: &[f32], filter: &[f32]| {
            let s = DepthwiseShape { batch, ..of_one };
            let mut y = vec![f32::NAN; s.output_len()];
            let pool = estimand_tensor::parallel::Pool::global();
            depthwise_conv2d(pool, &s, x, filter, &mut y, &mut vec![0.0; s.scratch_len()]);
            y
        };
        let of_one = DepthwiseShape { batch: 1, ..of_one };
        let (i, o) = (of_one.input_len(), of_one.output_len());
        let (x, filter) = (random(40 * i, 4), random(of_one.filter_len(), 5));
        let all = forward(40, &x, &filter);
        for batch in [1, 7] {
            let got = forward(batch, &x[3 * i..(3 + batch) * i], &filter);
            assert_same_bits(&got, &all[3 * o..(3 + batch) * o], &format!("{batch} of {of_one:?}"));
        }
    }
}
