//! The windows that convolutions and poolings are tested with.

use estimand_tensor::cpu::window::Window;

/// A window by its five properties.
pub fn window(
    size: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    before: [usize; 2],
    after: [usize; 2],
) -> Window {
    Window { size, stride, dilation, padding_before: before, padding_after: after }
}

/// Calls `pair(output row, output column, tap row, tap column, input row, input column)` for all
/// that lie inside.
pub fn for_each_tap(w: &Window, height: usize, width: usize, mut pair: impl FnMut([usize; 2], [usize; 2], [usize; 2])) {
    let (out_height, out_width) = (w.positions(0, height), w.positions(1, width));
    for (oy, ox) in (0..out_height).flat_map(|oy| (0..out_width).map(move |ox| (oy, ox))) {
        for (ky, kx) in (0..w.size[0]).flat_map(|ky| (0..w.size[1]).map(move |kx| (ky, kx))) {
            let at = |axis: usize, o: usize, k: usize| {
                (o * w.stride[axis] + k * w.dilation[axis]).checked_sub(w.padding_before[axis])
            };
            if let (Some(y), Some(x)) = (at(0, oy, ky), at(1, ox, kx))
                && y < height
                && x < width
            {
                pair([oy, ox], [ky, kx], [y, x]);
            }
        }
    }
}
