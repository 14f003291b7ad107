//! Windows over images: poolings, convolutions, depthwise convolutions, resizes.

use estimand_tensor::cpu::conv::{self, ConvShape, Pooling};
use estimand_tensor::cpu::depthwise::{self, DepthwiseShape};
use estimand_tensor::cpu::matmul::Epilogue;
use estimand_tensor::cpu::pool2d::{self, PoolShape};
use estimand_tensor::cpu::resize::{self, Resize};
use estimand_tensor::cpu::window::Window;
use estimand_tensor::parallel::Pool;

use crate::attack::{Attacks, HALF, HUGE, in_child, none};

/// Windows that are wrong in one place, and one that is not.
fn windows() -> Vec<(String, Window)> {
    let good = Window::new([2, 2], [2, 2]);
    let mut all = vec![("good".to_string(), good)];
    for huge in HUGE.into_iter().chain([0]) {
        for axis in 0..2 {
            let mut add = |what: &str, change: &dyn Fn(&mut Window)| {
                let mut window = good;
                change(&mut window);
                all.push((format!("{what}[{axis}] = {huge}"), window));
            };
            add("size", &|w| w.size[axis] = huge);
            add("stride", &|w| w.stride[axis] = huge);
            add("dilation", &|w| w.dilation[axis] = huge);
            add("padding_before", &|w| w.padding_before[axis] = huge);
            add("padding_after", &|w| w.padding_after[axis] = huge);
            add("both paddings", &|w| (w.padding_before[axis], w.padding_after[axis]) = (huge, huge.wrapping_neg()));
        }
    }
    all
}

type Images = ([usize; 4], bool);

/// Batch, height, width and channels, and whether no slice can have as many elements.
fn images() -> Vec<Images> {
    let mut all = vec![([HALF, HALF, 4, 4], true), ([4, HALF, HALF, 4], true), ([1, 4, HALF, HALF], true)];
    for huge in HUGE {
        for place in 0..4 {
            let mut sizes = [4; 4];
            sizes[place] = huge;
            all.push((sizes, true));
            // Next to a size of 0.
            for zero in (0..4).filter(|&zero| zero != place) {
                let mut sizes = sizes;
                sizes[zero] = 0;
                all.push((sizes, false));
            }
        }
    }
    all
}

/// Calls a pooling kernel with every combination that is wrong in one place, with empty slices and
/// with short ones.
fn pooling(attacks: &mut Attacks, kernel: impl Fn(&Pool, &PoolShape, &mut [Vec<f32>; 4])) {
    let shape =
        |[batch, height, width, channels]: [usize; 4], window| PoolShape { batch, height, width, channels, window };
    for (sizes, is_impossible) in images() {
        for len in [0, 64] {
            let name = format!("{sizes:?} with {len} floats");
            let attack = |pool: &Pool| {
                none(kernel(pool, &shape(sizes, Window::new([2, 2], [2, 2])), &mut [0; 4].map(|_| vec![1.0; len])))
            };
            if is_impossible { attacks.refused(&name, attack) } else { attacks.harmless(&name, attack) }
        }
    }
    for (what, window) in windows() {
        // 64 elements before and 16 after the pooling of an image of 4 x 4 with 4 channels.
        for lens in [[0; 4], [64, 16, 16, 64], [64, 0, 0, 64], [64, 64, 64, 64]] {
            attacks.harmless(&format!("{what} with {lens:?} floats"), |pool| {
                none(kernel(pool, &shape([1, 4, 4, 4], window), &mut lens.map(|len| vec![1.0; len])))
            });
        }
    }
}

#[test]
fn max_pool() {
    in_child("images::max_pool", |a| pooling(a, |pool, shape, [x, y, ..]| pool2d::max_pool(pool, shape, x, y)));
}

#[test]
fn avg_pool() {
    in_child("images::avg_pool", |a| pooling(a, |pool, shape, [x, y, ..]| pool2d::avg_pool(pool, shape, x, y)));
}

#[test]
fn max_pool_grad() {
    let kernel = |pool: &Pool, shape: &PoolShape, [x, y, dy, dx]: &mut [Vec<f32>; 4]| {
        pool2d::max_pool_grad(pool, shape, x, y, dy, dx);
    };
    in_child("images::max_pool_grad", |a| pooling(a, kernel));
}

#[test]
fn max_pool_which() {
    let kernel = |pool: &Pool, shape: &PoolShape, [x, y, which, _]: &mut [Vec<f32>; 4]| {
        pool2d::max_pool_which(pool, shape, x, y, which);
    };
    in_child("images::max_pool_which", |a| pooling(a, kernel));
}

#[test]
fn max_pool_grad_which() {
    let kernel = |pool: &Pool, shape: &PoolShape, [dx, which, dy, _]: &mut [Vec<f32>; 4]| {
        pool2d::max_pool_grad_which(pool, shape, which, dy, dx);
    };
    in_child("images::max_pool_grad_which", |a| pooling(a, kernel));
}

#[test]
fn avg_pool_grad() {
    let kernel = |pool: &Pool, shape: &PoolShape, [dx, dy, ..]: &mut [Vec<f32>; 4]| {
        pool2d::avg_pool_grad(pool, shape, dy, dx);
    };
    in_child("images::avg_pool_grad", |a| pooling(a, kernel));
}

/// Calls a convolution kernel with operands x, filter and y.
fn convolving(attacks: &mut Attacks, kernel: impl Fn(&Pool, &ConvShape, &mut [Vec<f32>; 3], &mut [f32])) {
    let shape = |[batch, height, width, channels]: [usize; 4], out_channels, window| ConvShape {
        batch,
        height,
        width,
        in_channels: channels,
        out_channels,
        window,
    };
    for (sizes, is_impossible) in images() {
        for len in [0, 64] {
            let attack = |pool: &Pool| {
                let shape = shape(sizes, 2, Window::new([2, 2], [2, 2]));
                none(kernel(pool, &shape, &mut [0; 3].map(|_| vec![1.0; len]), &mut [0.0; 4096]))
            };
            let name = format!("{sizes:?} with {len} floats");
            if is_impossible { attacks.refused(&name, attack) } else { attacks.harmless(&name, attack) }
        }
    }
    for (what, window) in windows() {
        for lens in [[0; 3], [64, 32, 8], [64, 0, 8], [64, 32, 0], [64, 16, 32]] {
            for scratch in [0, 4096] {
                attacks.harmless(&format!("{what} with {lens:?} floats, {scratch} of scratch"), |pool| {
                    let shape = shape([1, 4, 4, 4], 2, window);
                    none(kernel(pool, &shape, &mut lens.map(|len| vec![1.0; len]), &mut vec![0.0; scratch]))
                });
            }
        }
    }
    for out_channels in HUGE {
        attacks.refused(&format!("{out_channels} output channels"), |pool| {
            let shape = shape([1, 4, 4, 4], out_channels, Window::new([2, 2], [2, 2]));
            none(kernel(pool, &shape, &mut [vec![1.0; 64], vec![], vec![]], &mut [0.0; 4096]))
        });
    }
}

#[test]
fn conv2d() {
    in_child("images::conv2d", |a| {
        convolving(a, |pool, shape, [x, filter, y], scratch| {
            conv::conv2d(pool, shape, x, filter, y, Epilogue::default(), scratch);
        });
    });
}

#[test]
fn conv2d_backprop_filter() {
    in_child("images::conv2d_backprop_filter", |a| {
        convolving(a, |pool, shape, [x, filter, y], scratch| {
            conv::conv2d_backprop_filter(pool, shape, x, y, filter, scratch);
        });
    });
}

#[test]
fn conv2d_backprop_input() {
    in_child("images::conv2d_backprop_input", |a| {
        convolving(a, |pool, shape, [x, filter, y], scratch| {
            conv::conv2d_backprop_input(pool, shape, filter, y, x, scratch);
        });
    });
}

/// The pooling that follows is one of the result, of something as large, or of anything.
fn poolings(shape: &ConvShape) -> Vec<PoolShape> {
    let window = Window::new([1, 1], [1, 1]);
    let one = |[batch, height, width, channels]: [usize; 4]| PoolShape { batch, height, width, channels, window };
    vec![
        one([shape.batch, 2, 2, shape.out_channels]),
        one([4, shape.batch, 2, 1]),
        one([1, 1, 1, 8]),
        one([8, 1, 1, 1]),
        one([HALF, HALF, 2, 2]),
        one([0, HALF, HALF, 2]),
    ]
}

#[test]
fn conv2d_max_pooled() {
    in_child("images::conv2d_max_pooled", |a| {
        convolving(a, |pool, shape, [x, filter, y], scratch| {
            for pooling in poolings(shape) {
                let mut which = y.clone();
                let epilogue = Epilogue::default();
                conv::conv2d_max_pooled(pool, shape, x, filter, epilogue, &pooling, y, &mut which, scratch);
            }
        });
    });
}

#[test]
fn conv2d_backprop_filter_pooled() {
    in_child("images::conv2d_backprop_filter_pooled", |a| {
        convolving(a, |pool, shape, [x, filter, y], scratch| {
            for pooling in poolings(shape) {
                // Also with scratch that begins between two doubles.
                for from in [0, 1] {
                    let pooling = Pooling { shape: &pooling, which: y, dy: y };
                    let scratch = scratch.get_mut(from..).unwrap_or_default();
                    conv::conv2d_backprop_filter_pooled(pool, shape, x, pooling, filter, &mut [0.0; 2], scratch)
                        .unwrap();
                }
            }
        });
    });
}

/// As `convolving`, for depthwise kernels with two output channels for each of the input.
fn depthwise(attacks: &mut Attacks, kernel: impl Fn(&Pool, &DepthwiseShape, &mut [Vec<f32>; 3], &mut [f32])) {
    let shape = |[batch, height, width, channels]: [usize; 4], multiplier, window| DepthwiseShape {
        batch,
        height,
        width,
        channels,
        multiplier,
        window,
    };
    for multiplier in [0, 1, 2] {
        for (sizes, is_impossible) in images() {
            let attack = |pool: &Pool| {
                let shape = shape(sizes, multiplier, Window::new([2, 2], [2, 2]));
                none(kernel(pool, &shape, &mut [vec![], vec![], vec![]], &mut [0.0; 4096]))
            };
            let name = format!("{sizes:?} times {multiplier} with empty slices");
            if is_impossible { attacks.refused(&name, attack) } else { attacks.harmless(&name, attack) }
        }
        for (what, window) in windows() {
            for lens in [[0, 0, 0], [64, 16 * multiplier, 16 * multiplier], [64, 0, 16 * multiplier], [64, 16, 64]] {
                attacks.harmless(&format!("{what}, times {multiplier}, with {lens:?} floats"), |pool| {
                    let shape = shape([1, 4, 4, 4], multiplier, window);
                    none(kernel(pool, &shape, &mut lens.map(|len| vec![1.0; len]), &mut [0.0; 4096]))
                });
            }
        }
    }
    for multiplier in HUGE {
        attacks.refused(&format!("times {multiplier}"), |pool| {
            let shape = shape([1, 4, 4, 4], multiplier, Window::new([2, 2], [2, 2]));
            none(kernel(pool, &shape, &mut [vec![1.0; 64], vec![], vec![]], &mut [0.0; 4096]))
        });
    }
}

#[test]
fn depthwise_conv2d() {
    in_child("images::depthwise_conv2d", |a| {
        depthwise(a, |pool, shape, [x, filter, y], scratch| {
            depthwise::depthwise_conv2d(pool, shape, x, filter, y, scratch);
        });
    });
}

#[test]
fn depthwise_conv2d_backprop_input() {
    in_child("images::depthwise_conv2d_backprop_input", |a| {
        depthwise(a, |pool, shape, [x, filter, y], scratch| {
            depthwise::depthwise_conv2d_backprop_input(pool, shape, filter, y, x, scratch);
        });
    });
}

#[test]
fn depthwise_conv2d_backprop_filter() {
    in_child("images::depthwise_conv2d_backprop_filter", |a| {
        depthwise(a, |pool, shape, [x, filter, y], scratch| {
            depthwise::depthwise_conv2d_backprop_filter(pool, shape, x, y, filter, scratch);
        });
    });
}

#[test]
fn resizes() {
    let kernels: [fn(&Pool, &Resize, &mut [f32], &mut [f32]); 4] = [
        |pool, r, x, y| resize::resize_bilinear(pool, r, x, y),
        |pool, r, x, y| resize::resize_nearest(pool, r, x, y),
        |pool, r, x, y| resize::resize_bilinear_grad(pool, r, y, x),
        |pool, r, x, y| resize::resize_nearest_grad(pool, r, y, x),
    ];
    in_child("images::resizes", |attacks| {
        for (number, kernel) in kernels.into_iter().enumerate() {
            for huge in HUGE.into_iter().chain([0]) {
                for place in 0..5 {
                    for align_corners in [false, true] {
                        let mut s = [2; 5];
                        s[place] = huge;
                        let resize = Resize {
                            from: [s[0], s[1]],
                            to: [s[2], s[3]],
                            channels: s[4],
                            align_corners,
                            half_pixel_centers: false,
                        };
                        let name = format!("resize {number}, {resize:?}");
                        for lens in [[0, 0], [8, 8], [8, 0]] {
                            attacks.harmless(&name, |pool| {
                                none(kernel(pool, &resize, &mut vec![1.0; lens[0]], &mut vec![1.0; lens[1]]))
                            });
                        }
                        if huge > 0 {
                            attacks.refused(&name, |pool| none(kernel(pool, &resize, &mut [1.0; 8], &mut [1.0; 8])));
                        }
                    }
                }
            }
        }
    });
}
