use estimand_tensor::cpu::pool2d::{
    PoolShape, avg_pool, avg_pool_grad, max_pool, max_pool_grad, max_pool_grad_which, max_pool_which,
};
use estimand_tensor::parallel::Pool;

use crate::numbers::{assert_close, assert_same_bits, on_every_machine, random};
use crate::windows::{for_each_tap, window};

fn shapes() -> Vec<PoolShape> {
    let shape = |batch, height, width, channels, window| PoolShape { batch, height, width, channels, window };
    let (none, one, two) = ([0, 0], [1, 1], [2, 2]);
    vec![
        shape(5, 24, 24, 20, window(two, two, one, none, none)),
        // A row and a column left over; overlapping; with margins; gaps between the windows;
        // dilated.
        shape(3, 7, 9, 5, window(two, two, one, none, none)),
        shape(2, 8, 7, 17, window([3, 3], [2, 1], one, none, none)),
        shape(18, 6, 5, 3, window([3, 2], two, one, [1, 0], [1, 1])),
        shape(2, 9, 9, 4, window(two, [3, 4], one, none, none)),
        shape(1, 9, 10, 33, window([2, 3], one, [3, 2], [2, 1], [0, 2])),
        shape(70, 16, 16, 8, window(two, two, one, none, none)),
        shape(4, 1, 1, 1, window(one, one, one, none, none)),
        shape(0, 4, 4, 3, window(two, two, one, none, none)),
        shape(2, 1, 1, 3, window(two, two, one, none, none)),
        shape(2, 4, 4, 0, window(two, two, one, none, none)),
    ]
}

/// Calls `tap(x index, y index)` for every element under every window, row by row.
fn for_each_element(s: &PoolShape, mut tap: impl FnMut(usize, usize)) {
    let (oh, ow) = (s.out_height(), s.out_width());
    for image in 0..s.batch {
        for_each_tap(&s.window, s.height, s.width, |[oy, ox], _, [y, x]| {
            for c in 0..s.channels {
                tap(
                    ((image * s.height + y) * s.width + x) * s.channels + c,
                    ((image * oh + oy) * ow + ox) * s.channels + c,
                );
            }
        });
    }
}

/// Small integers, so that a window often has its maximum twice.
fn ties(n: usize, seed: u64) -> Vec<f32> {
    random(n, seed).into_iter().map(|x| (x * 6.0).round()).collect()
}

#[test]
fn max_pool_and_the_first_maximum_takes_the_gradient() {
    for s in shapes() {
        let (x, dy) = (ties(s.input_len(), 1), random(s.output_len(), 2));
        let mut y = vec![f64::NEG_INFINITY; dy.len()];
        for_each_element(&s, |i, o| y[o] = y[o].max(f64::from(x[i])));
        let mut dx = vec![0.0; x.len()];
        let mut taken = vec![false; dy.len()];
        for_each_element(&s, |i, o| {
            if !taken[o] && f64::from(x[i]) == y[o] {
                taken[o] = true;
                dx[i] += f64::from(dy[o]);
            }
        });
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut out = vec![f32::NAN; y.len() + dx.len()];
            let (out_y, out_dx) = out.split_at_mut(y.len());
            max_pool(pool, &s, &x, out_y);
            max_pool_grad(pool, &s, &x, out_y, &dy, out_dx);
            out
        });
        let want: Vec<f64> = y.into_iter().chain(dx).collect();
        assert_close(&got, &want, 1.0, &format!("{s:?}"));
    }
}

/// Remembering which element was the largest gives the bits of comparing again, also with
/// infinities and with NaN, which is nowhere the largest.
#[test]
fn the_largest_can_be_remembered() {
    for s in shapes() {
        let (mut x, dy) = (ties(s.input_len(), 1), random(s.output_len(), 2));
        x.iter_mut().skip(1).step_by(3).for_each(|x| *x = f32::NAN);
        x.iter_mut().step_by(7).for_each(|x| *x = f32::NEG_INFINITY);
        let pool = Pool::new(1);
        let (mut y, mut dx) = (vec![f32::NAN; dy.len()], vec![f32::NAN; x.len()]);
        max_pool(&pool, &s, &x, &mut y);
        max_pool_grad(&pool, &s, &x, &y, &dy, &mut dx);
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut out = vec![f32::NAN; y.len() + dx.len()];
            let (out_y, out_dx) = out.split_at_mut(y.len());
            let mut which = vec![f32::NAN; y.len()];
            max_pool_which(pool, &s, &x, out_y, &mut which);
            max_pool_grad_which(pool, &s, &which, &dy, out_dx);
            out
        });
        assert_same_bits(&got, &[y, dx].concat(), &format!("{s:?}"));
    }
}

#[test]
fn avg_pool_leaves_the_margin_out() {
    for s in shapes() {
        let (x, dy) = (random(s.input_len(), 3), random(s.output_len(), 4));
        let (mut sum, mut count) = (vec![0.0; dy.len()], vec![0.0; dy.len()]);
        for_each_element(&s, |i, o| {
            sum[o] += f64::from(x[i]);
            count[o] += 1.0;
        });
        let mut dx = vec![0.0; x.len()];
        for_each_element(&s, |i, o| dx[i] += f64::from(dy[o]) / count[o]);
        let got = on_every_machine(&format!("{s:?}"), |pool| {
            let mut out = vec![f32::NAN; sum.len() + dx.len()];
            let (out_y, out_dx) = out.split_at_mut(sum.len());
            avg_pool(pool, &s, &x, out_y);
            avg_pool_grad(pool, &s, &dy, out_dx);
            out
        });
        let want: Vec<f64> = sum.iter().zip(&count).map(|(sum, count): (&f64, &f64)| sum / count).chain(dx).collect();
        assert_close(&got, &want, 1.0, &format!("{s:?}"));
    }
}

#[test]
fn a_window_over_nothing_but_margin() {
    let s = PoolShape {
        batch: 1,
        height: 1,
        width: 1,
        channels: 2,
        window: window([1, 1], [1, 1], [1, 1], [1, 0], [0, 0]),
    };
    let (mut largest, mut mean, mut dx) = ([0.0; 4], [0.0; 4], [0.0; 2]);
    max_pool(Pool::global(), &s, &[3.0, 4.0], &mut largest);
    avg_pool(Pool::global(), &s, &[3.0, 4.0], &mut mean);
    assert_eq!(largest, [f32::NEG_INFINITY, f32::NEG_INFINITY, 3.0, 4.0]);
    assert_eq!(mean, [0.0, 0.0, 3.0, 4.0]);
    avg_pool_grad(Pool::global(), &s, &[5.0, 6.0, 7.0, 8.0], &mut dx);
    assert_eq!(dx, [7.0, 8.0]);
}
