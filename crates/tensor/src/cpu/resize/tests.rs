//! Properties that hold for any size. TensorFlow's values are checked in `tests/movement.rs`.

use super::*;
use crate::cpu::testing::{Dice, pools};

fn random_resize(dice: &mut Dice) -> Resize {
    let mut size = || [1 + dice.below(9), 1 + dice.below(9)];
    let (from, to) = (size(), size());
    let option = dice.below(3);
    Resize { from, to, channels: 1 + dice.below(3), align_corners: option == 1, half_pixel_centers: option == 2 }
}

type Kernel = fn(&Pool, &Resize, &[f32], &mut [f32]);

const KINDS: [(Kernel, Kernel); 2] = [(resize_bilinear, resize_bilinear_grad), (resize_nearest, resize_nearest_grad)];

fn apply(kernel: Kernel, pool: &Pool, resize: &Resize, x: &[f32], len: usize) -> Vec<f32> {
    let mut out = vec![9.0; len];
    kernel(pool, resize, x, &mut out);
    out
}

/// A gradient is the transpose of its linear map: <A x, dy> = <x, A' dy>.
#[test]
fn gradients_are_adjoint() {
    let mut dice = Dice::new("resize");
    for _ in 0..100 {
        let resize = random_resize(&mut dice);
        let len = |size| 3 * resize.sizes(size).1;
        let (x, dy) = (dice.floats(len(resize.from)), dice.floats(len(resize.to)));
        for (forward, gradient) in KINDS {
            let pool = &pools()[0];
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let there = dot(&apply(forward, pool, &resize, &x, dy.len()), &dy);
            let back = dot(&x, &apply(gradient, pool, &resize, &dy, x.len()));
            assert!((there - back).abs() < 1e-4, "{resize:?}: {there} {back}");
        }
    }
}

/// A constant image stays constant, an image resized to its own size stays as it is.
#[test]
fn constants_and_identity_are_kept() {
    let mut dice = Dice::new("resize");
    for _ in 0..100 {
        let resize = random_resize(&mut dice);
        let len = |size| resize.sizes(size).1;
        for (forward, _) in KINDS {
            let pool = &pools()[0];
            assert!(
                apply(forward, pool, &resize, &vec![1.5; len(resize.from)], len(resize.to)).iter().all(|v| *v == 1.5)
            );
            let x = dice.floats(len(resize.from));
            assert_eq!(apply(forward, pool, &Resize { to: resize.from, ..resize }, &x, x.len()), x);
        }
    }
}

#[test]
fn an_image_alone_equals_the_image_in_a_batch_on_any_number_of_threads() {
    let mut dice = Dice::new("resize");
    let resize = Resize { from: [20, 30], to: [33, 17], channels: 3, align_corners: false, half_pixel_centers: true };
    let len = |size| resize.sizes(size).1;
    for (forward, gradient) in KINDS {
        for (kernel, from, to) in
            [(forward, len(resize.from), len(resize.to)), (gradient, len(resize.to), len(resize.from))]
        {
            let x = dice.floats(40 * from);
            let [one, three] = pools().map(|pool| apply(kernel, &pool, &resize, &x, 40 * to));
            assert!(one == three);
            let alone = apply(kernel, &pools()[0], &resize, &x[13 * from..14 * from], to);
            assert!(alone == one[13 * to..14 * to]);
        }
    }
}
