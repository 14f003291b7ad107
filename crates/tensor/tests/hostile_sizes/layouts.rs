//! Elements rearranged: views, frames, joins, codes.

use estimand_tensor::cpu::layout::{self, Mirror, View};

use crate::attack::{HALF, HUGE, in_child, none};

/// Sizes of two or three axes; as usize they multiply to something small.
fn dims() -> Vec<Vec<usize>> {
    let mut all = vec![vec![HALF, HALF], vec![4, HALF, 1 << 30], vec![usize::MAX, usize::MAX], vec![(1 << 63) + 1, 2]];
    for huge in HUGE {
        all.extend([vec![huge], vec![huge, 4], vec![4, huge], vec![huge, 0], vec![0, huge], vec![huge, 0, huge]]);
    }
    all
}

/// Lengths of slices that some of these multiply to.
const LENS: [usize; 5] = [0, 1, 2, 8, 64];

#[test]
fn views() {
    in_child("layouts::views", |attacks| {
        for dims in dims() {
            let rank = dims.len();
            let (ones, zeros, perm) = (vec![1; rank], vec![0; rank], (0..rank).rev().collect::<Vec<_>>());
            for (size, len) in [1, 4, 8].into_iter().flat_map(|size| LENS.map(|len| (size, len * size))) {
                let x = vec![1; len];
                let name = format!("{dims:?}, {len} bytes of {size}");
                let mut each = |kernel: &str, call: &dyn Fn(&estimand_tensor::parallel::Pool, &[u8], &mut [u8])| {
                    attacks.harmless(&format!("{kernel}: {name}"), |pool| none(call(pool, &x, &mut x.clone())));
                };
                each("transpose", &|p, x, y| layout::transpose(p, &dims, &perm, size, x, y));
                each("transpose twice", &|p, x, y| layout::transpose(p, &dims, &zeros, size, x, y));
                each("slice", &|p, x, y| layout::slice(p, &dims, &zeros, &dims, size, x, y));
                each("slice after", &|p, x, y| layout::slice(p, &dims, &dims, &ones, size, x, y));
                each("slice from", &|p, x, y| layout::slice(p, &ones, &dims, &dims, size, x, y));
                for step in [isize::MIN, -4, 0, 4, isize::MAX] {
                    let strides = vec![step; rank];
                    each("strided", &|p, x, y| layout::strided_slice(p, &dims, &ones, &strides, &dims, size, x, y));
                    each("grad", &|p, x, y| layout::strided_slice_grad(p, &dims, &ones, &strides, &dims, size, x, y));
                    each("grad", &|p, x, y| layout::strided_slice_grad(p, &ones, &zeros, &strides, &dims, size, x, y));
                }
                each("reverse", &|p, x, y| layout::reverse(p, &dims, &[0], size, x, y));
                each("reverse after", &|p, x, y| layout::reverse(p, &dims, &[rank], size, x, y));
                let matrix = [dims[0], dims[rank - 1]];
                each("band", &|p, x, y| layout::band_part(p, matrix, 0, usize::MAX, size, x, y));
                each("broadcast", &|p, x, y| layout::broadcast_to(p, &ones, &dims, size, x, y));
                each("broadcast back", &|p, x, y| layout::broadcast_to(p, &dims, &ones, size, x, y));
                each("broadcast down", &|p, x, y| layout::broadcast_to(p, &dims, &[4], size, x, y));
                each("tile", &|p, x, y| layout::tile(p, &ones, &dims, size, x, y));
                each("tile more", &|p, x, y| layout::tile(p, &dims, &dims, size, x, y));
                each("write", &|p, x, y| View::dense(&dims).write(p, size, x, y));
                each("write twice", &|p, x, y| View::dense(&dims).tile(&ones).write(p, size, x, y));
                let paddings: Vec<_> = dims.iter().map(|&d| (d, d.wrapping_neg())).collect();
                each("pad", &|p, x, y| layout::pad(p, &ones, &paddings, &vec![7; size], x, y));
                each("pad more", &|p, x, y| layout::pad(p, &dims, &paddings, &vec![7; size], x, y));
                each("mirror", &|p, x, y| layout::mirror_pad(p, &ones, &paddings, Mirror::Symmetric, size, x, y));
                each("mirror", &|p, x, y| layout::mirror_pad(p, &dims, &paddings, Mirror::Reflect, size, x, y));
            }
        }
    });
}

/// Whole sizes that no view may have, with slices that agree with them once they have wrapped
/// around.
#[test]
fn impossible_views() {
    in_child("layouts::impossible_views", |attacks| {
        let square = [HALF, HALF];
        attacks.refused("transpose", |p| none(layout::transpose(p, &square, &[1, 0], 4, &[], &mut [])));
        attacks.refused("tile", |p| none(layout::tile(p, &[1, 1], &square, 4, &[1; 4], &mut [])));
        attacks.refused("broadcast", |p| none(layout::broadcast_to(p, &[1], &square, 4, &[1; 4], &mut [])));
        attacks
            .refused("one hot", |p| none(layout::one_hot::<i32>(p, [HALF, 4, HALF], &[], &[1; 4], &[0; 4], &mut [])));
        attacks.refused("pad", |p| none(layout::pad(p, &[1], &[(usize::MAX, 1)], &[7; 4], &[1; 4], &mut [1; 4])));
        // Elements 0 and 1 along both axes: two positions of the view are one element, and tasks
        // would share it.
        attacks.refused("an axis twice", |p| {
            let n = 1000;
            none(View::dense(&[2 * n]).transpose(&[0, 0]).write(p, 4, &vec![1; 4 * 4 * n * n], &mut vec![0; 8 * n]))
        });
        attacks.refused("a stretched axis is written", |p| {
            none(View::dense(&[1]).broadcast_to(&[100_000]).write(p, 4, &vec![1; 400_000], &mut [0; 4]))
        });
        attacks.refused("fewer axes", |p| none(layout::slice(p, &[2, 2], &[0], &[1], 4, &[1; 16], &mut [1; 4])));
        attacks.refused("an axis that does not stretch", |p| {
            none(layout::broadcast_to(p, &[2], &[3], 4, &[1; 8], &mut [1; 12]))
        });
    });
}

#[test]
fn joins_and_codes() {
    in_child("layouts::joins_and_codes", |attacks| {
        for outer in HUGE.into_iter().chain([0, 1, 3]) {
            for len in LENS {
                let x = vec![1; len];
                attacks.harmless(&format!("concat {outer}, {len}"), |p| {
                    none(layout::concat(p, outer, &[&x], &mut x.clone()))
                });
                attacks.harmless(&format!("concat of 2, {outer}, {len}"), |p| {
                    none(layout::concat(p, outer, &[&x, &x], &mut vec![0; 2 * len]))
                });
                attacks.refused(&format!("concat, short, {outer}, {len}"), |p| {
                    none(layout::concat(p, outer, &[&x, &[1; 12]], &mut x.clone()))
                });
                for sizes in [[outer, 4, 4], [4, outer, 4], [4, 4, outer], [outer, HALF, 1], [0, outer, outer]] {
                    attacks.harmless(&format!("one hot {sizes:?}, {len}"), |p| {
                        none(layout::one_hot(p, sizes, &vec![1_i32; len], &[1; 4], &[0; 4], &mut vec![0; len]))
                    });
                }
            }
        }
        attacks.refused("values of two sizes", |p| {
            none(layout::one_hot(p, [1, 4, 1], &[1_i32], &[1; 4], &[0; 8], &mut [0; 16]))
        });
        attacks.refused("values of three bytes", |p| none(layout::fill(p, &[0; 3], &mut [0; 9])));
        attacks.refused("elements of 16 bytes", |p| none(layout::transpose(p, &[1], &[0], 16, &[0; 16], &mut [0; 16])));
    });
}

#[test]
fn ranges() {
    in_child("layouts::ranges", |attacks| {
        for len in HUGE.into_iter().chain([0, 1]) {
            for begin in [None, Some(i64::MIN), Some(-1), Some(i64::MAX)] {
                for stride in [i64::MIN, -1, 0, 1, i64::MAX] {
                    attacks.harmless(&format!("{begin:?} {stride} {len}"), |_| {
                        none(layout::resolve_range(begin, begin.map(|b| !b), stride, len))
                    });
                }
            }
        }
    });
}
