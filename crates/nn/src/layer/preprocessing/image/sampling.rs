//! Images whose pixels come from other places: what TensorFlow's `ImageProjectiveTransformV3` does.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Dim, Shape};

use crate::config::Fields;

/// What is outside of an image.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FillMode {
    /// The image, mirrored at its border: `d c b a | a b c d | d c b a`.
    #[default]
    Reflect,
    /// One value: `k k k k | a b c d | k k k k`.
    Constant,
    /// The image again: `a b c d | a b c d | a b c d`.
    Wrap,
    /// The nearest pixel: `a a a a | a b c d | d d d d`.
    Nearest,
}

/// How pixels are read at places between them, and outside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sampling {
    pub fill_mode: FillMode,
    pub fill_value: f64,
    pub nearest: bool,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { fill_mode: FillMode::Reflect, fill_value: 0.0, nearest: false }
    }
}

/// The row of a place, or its column, before and after the move: `a * x + b * y + c`, each
/// `[batch, 1, 1]`.
pub(super) type Line = [Tensor; 3];

impl Sampling {
    pub fn fields(self, fields: &mut Fields<'_>) -> Sampling {
        let modes = [
            ("reflect", FillMode::Reflect),
            ("constant", FillMode::Constant),
            ("wrap", FillMode::Wrap),
            ("nearest", FillMode::Nearest),
        ];
        fields.only_read("data_format", &["channels_last".into()]);
        Sampling {
            fill_mode: fields.choice("fill_mode", &self.fill_mode, &modes),
            fill_value: fields.value("fill_value", &self.fill_value),
            nearest: fields.choice("interpolation", &self.nearest, &[("bilinear", false), ("nearest", true)]),
        }
    }

    /// The pixel at each place (x, y) of the result is the one of `images` at
    /// (`column` of (x, y), `row` of (x, y)).
    #[track_caller]
    pub fn of(self, images: &Tensor, (height, width): (usize, usize), column: &Line, row: &Line) -> Tensor {
        let g = images.graph();
        let x = g.range(width, DType::F32);
        let y = g.range(height, DType::F32).reshape_as([height, 1]);
        let place = |[a, b, c]: &Line| a * &x + b * &y + c;
        let column = self.mapped(&place(column), width as f64);
        let row = self.mapped(&place(row), height as f64);
        let read = |row: &Tensor, column: &Tensor| self.read(images, (height, width), row, column);
        if self.nearest {
            return read(&half_up(&row), &half_up(&column));
        }
        let (top, left) = (row.floor(), column.floor());
        let (down, right) = (&row - &top, &column - &left);
        let part = |t: &Tensor| t.expand_dims(-1);
        let mixed = |row: &Tensor| {
            let (a, b) = (read(row, &left), read(row, &(&left + 1.0)));
            a * part(&(1.0 - &right)) + b * part(&right)
        };
        mixed(&top) * part(&(1.0 - &down)) + mixed(&(&top + 1.0)) * part(&down)
    }

    /// A place outside of the image as one inside.
    #[track_caller]
    fn mapped(self, place: &Tensor, n: f64) -> Tensor {
        // Places only decide which pixels are read; nothing is learnt through them.
        let place = place.stop_gradient();
        let inside = |place: &Tensor| place.clip(0.0, n - 1.0);
        match self.fill_mode {
            FillMode::Constant => place,
            FillMode::Nearest => inside(&place),
            _ if n <= 1.0 => place.zeros_like(),
            FillMode::Reflect => {
                let twice = 2.0 * n;
                let below = (-&place / twice).floor() * twice + &place;
                let below = below.less(-n).select(&below + twice, -&below - 1.0);
                let above = &place - (&place / twice).floor() * twice;
                let above = above.greater_equal(n).select(twice - 1.0 - &above, &above);
                let above = place.greater(n - 1.0).select(&above, &place);
                inside(&place.less(0.0).select(below, above))
            }
            FillMode::Wrap => {
                let below = &place + ((-&place / (n - 1.0)).floor() + 1.0) * n;
                let above = &place - (&place / (n - 1.0)).floor() * n;
                let above = place.greater(n - 1.0).select(&above, &place);
                inside(&place.less(0.0).select(below, above))
            }
        }
    }

    /// The pixels at whole places; outside of the image, the fill value.
    #[track_caller]
    fn read(self, images: &Tensor, (height, width): (usize, usize), row: &Tensor, column: &Tensor) -> Tensor {
        let within = |place: &Tensor, n: usize| place.greater_equal(0.0).logical_and(place.less(n as f64));
        let is_inside = within(row, height).logical_and(within(column, width));
        let limited = |place: &Tensor, n: usize| place.clip(0.0, n as f64 - 1.0).cast(DType::I64);
        let place = limited(row, height) * width as i64 + limited(column, width);
        let dims = images.shape().dims();
        let flat: Shape = [dims[0], Dim::Known(height * width), dims[3]].into_iter().collect();
        let pixels = images.reshape_as(flat).gather_axis(&place, 1, 1);
        match self.fill_mode {
            FillMode::Constant => is_inside.expand_dims(-1).select(pixels, self.fill_value),
            // Only a place just beyond the last pixel is outside, with a weight of 0.
            FillMode::Reflect | FillMode::Wrap | FillMode::Nearest => pixels,
        }
    }
}

/// The nearest whole number, halves away from 0, as C's `round`.
#[track_caller]
fn half_up(x: &Tensor) -> Tensor {
    x.sign() * (x.abs() + 0.5).floor()
}
