//! Convolutions and pooling of images with channels first.

use estimand_tensor::cpu::matmul::Product;
use estimand_tensor::{Array, DType, Error, ErrorKind, Result};

use super::call::Call;
use super::product::Entry;
use super::values::{Numbers, sizes};

/// What the error of a window says that an image has no place for.
const TOO_LARGE: &str = "does not fit an image of";

/// Whether a run failed because an image is smaller than a window.
pub(super) fn is_too_small(error: &Error) -> bool {
    *error.kind() == ErrorKind::Shape && error.message().contains(TOO_LARGE)
}

/// A window along one axis of images.
struct Window {
    /// The size of the axis.
    size: usize,
    taps: usize,
    stride: usize,
    dilation: usize,
    /// The border before the axis.
    before: usize,
    /// The number of places of the window.
    n: usize,
}

impl Window {
    /// The element under a tap at a place, unless it is in a border.
    fn element(&self, place: usize, tap: usize) -> Option<usize> {
        (place * self.stride + tap * self.dilation).checked_sub(self.before).filter(|&i| i < self.size)
    }
}

/// Two numbers of an attribute, or a default of both.
fn pair(call: &Call<'_>, name: &str, default: usize) -> Result<[usize; 2]> {
    let Some(numbers) = call.ints(name)? else { return Ok([default; 2]) };
    let found = sizes(numbers)?;
    found.try_into().map_err(|_| Error::config(format!("`{name}` is {numbers:?}; expected two numbers")))
}

/// The borders of `pads`: before both axes, after both axes.
fn pads(call: &Call<'_>) -> Result<[usize; 4]> {
    let Some(numbers) = call.ints("pads")? else { return Ok([0; 4]) };
    sizes(numbers)?.try_into().map_err(|_| Error::config(format!("`pads` is {numbers:?}; expected four numbers")))
}

/// The windows along height and width.
fn windows(call: &Call<'_>, image: [usize; 2], taps: [usize; 2], dilations: [usize; 2]) -> Result<[Window; 2]> {
    let (strides, pads) = (pair(call, "strides", 1)?, pads(call)?);
    let auto = call.word("auto_pad", "NOTSET")?;
    let one = |axis: usize| -> Result<Window> {
        let (size, stride, dilation) = (image[axis], strides[axis].max(1), dilations[axis].max(1));
        let span = taps[axis].saturating_sub(1) * dilation + 1;
        let (before, after) = match auto {
            "NOTSET" => (pads[axis], pads[axis + 2]),
            "VALID" => (0, 0),
            // An odd border is longer at the end.
            "SAME_UPPER" => {
                let reached = size.div_ceil(stride).saturating_sub(1) * stride + span;
                // Windows that are smaller than their strides may end before the image does.
                let all = reached.checked_sub(size).ok_or_else(|| {
                    Error::shape(format!("the windows reach {reached} of {size} elements; runtimes differ there"))
                })?;
                (all / 2, all - all / 2)
            }
            other => return call.unknown_word("auto_pad", other),
        };
        let room = (size + before + after).checked_sub(span);
        let n = room.map(|room| room / stride + 1);
        let n = n.ok_or_else(|| Error::shape(format!("a window of {span} {TOO_LARGE} {size}")))?;
        Ok(Window { size, taps: taps[axis], stride, dilation, before, n })
    };
    Ok([one(0)?, one(1)?])
}

fn four(array: &Array) -> Result<[usize; 4]> {
    array.dims().try_into().map_err(|_| Error::shape(format!("{:?} are no images", array.dims())))
}

/// The taps of `kernel_shape`, which must be those of the filter.
fn filter_taps(call: &Call<'_>, taps: [usize; 2]) -> Result<()> {
    match call.ints("kernel_shape")?.map(sizes).transpose()? {
        Some(told) if told != taps => Err(Error::shape(format!("`kernel_shape` is {told:?}, the filter has {taps:?}"))),
        _ => Ok(()),
    }
}

/// The convolution of groups of channels.
pub(super) fn conv(call: &Call<'_>) -> Result<Array> {
    match call.x(0)?.dtype() {
        DType::F32 => conv_of::<f32>(call),
        DType::F64 => conv_of::<f64>(call),
        dtype => Err(Error::dtype(Some(DType::F32), dtype, "the operator takes floats")),
    }
}

fn conv_of<T: Entry>(call: &Call<'_>) -> Result<Array> {
    let (x, filter) = (call.x(0)?, call.x(1)?);
    let ([batch, channels, height, width], [filters, seen, taps_y, taps_x]) = (four(x)?, four(filter)?);
    filter_taps(call, [taps_y, taps_x])?;
    let groups = usize::try_from(call.int("group", 1)?).unwrap_or(0).max(1);
    if channels != seen * groups || !filters.is_multiple_of(groups) {
        let text =
            format!("{filters} filters of {seen} channels in {groups} groups, for images of {channels} channels");
        return Err(Error::shape(text));
    }
    let [down, across] = windows(call, [height, width], [taps_y, taps_x], pair(call, "dilations", 1)?)?;
    let (places, terms, own) = (down.n * across.n, seen * taps_y * taps_x, filters / groups);
    let (pixels, weights) = (x.as_slice::<T>()?, filter.as_slice::<T>()?);
    let mut result = Vec::with_capacity(batch * filters * places);
    // A row for each term of a sum, a column for each place of the window.
    let mut terms_of_places = vec![T::default(); terms * places];
    for first in (0..batch * groups).map(|group| group * seen * height * width) {
        for (term, row) in terms_of_places.chunks_exact_mut(places.max(1)).enumerate() {
            let (channel, i, j) = (term / (taps_y * taps_x), term / taps_x % taps_y, term % taps_x);
            for (y, line) in row.chunks_exact_mut(across.n).enumerate() {
                let from = down.element(y, i).map(|line| first + (channel * height + line) * width);
                for (x, to) in line.iter_mut().enumerate() {
                    *to = match (from, across.element(x, j)) {
                        (Some(from), Some(x)) => pixels[from + x],
                        _ => T::default(),
                    };
                }
            }
        }
        let group = first / (seen * height * width).max(1) % groups;
        let weights = &weights[group * own * terms..(group + 1) * own * terms];
        result.extend(T::product(&Product::new(own, places, terms), weights, &terms_of_places));
    }
    Array::from_vec([batch, filters, down.n, across.n], result)
}

/// The transposed convolution: every pixel adds its filters to a larger image.
pub(super) fn conv_transpose(call: &Call<'_>) -> Result<Array> {
    match call.x(0)?.dtype() {
        DType::F32 => transposed::<f32>(call, |sum, term| *sum += term),
        DType::F64 => transposed::<f64>(call, |sum, term| *sum += term),
        dtype => Err(Error::dtype(Some(DType::F32), dtype, "the operator takes floats")),
    }
}

fn transposed<T: Entry>(call: &Call<'_>, add: impl Fn(&mut T, T)) -> Result<Array> {
    let (x, filter) = (call.x(0)?, call.x(1)?);
    let ([batch, channels, height, width], [seen, filters, taps_y, taps_x]) = (four(x)?, four(filter)?);
    filter_taps(call, [taps_y, taps_x])?;
    if channels != seen {
        return Err(Error::shape(format!("filters of {seen} channels for images of {channels}")));
    }
    let (strides, dilations) = (pair(call, "strides", 1)?, pair(call, "dilations", 1)?);
    let (pads, beyond) = (pads(call)?, pair(call, "output_padding", 0)?);
    let window = |axis: usize| -> Result<Window> {
        let (n, taps) = ([height, width][axis], [taps_y, taps_x][axis]);
        let (stride, dilation) = (strides[axis], dilations[axis]);
        let whole = n.saturating_sub(1) * stride + beyond[axis] + taps.saturating_sub(1) * dilation + 1;
        let size = whole.checked_sub(pads[axis] + pads[axis + 2]);
        let size = size.ok_or_else(|| Error::shape("the borders are larger than the image"))?;
        Ok(Window { size, taps, stride, dilation, before: pads[axis], n })
    };
    let [down, across] = [window(0)?, window(1)?];
    let (terms, places) = (filters * taps_y * taps_x, height * width);
    let mut result = vec![T::default(); batch * filters * down.size * across.size];
    let sizes = Product { m: terms, n: places, k: channels, transpose_a: true, transpose_b: false };
    for image in 0..batch {
        let pixels = &x.as_slice::<T>()?[image * channels * places..(image + 1) * channels * places];
        let added = T::product(&sizes, filter.as_slice::<T>()?, pixels);
        for (i, term) in added.into_iter().enumerate() {
            let (place, term_of) = (i % places, i / places);
            let (filter, tap_y, tap_x) = (term_of / (taps_y * taps_x), term_of / taps_x % taps_y, term_of % taps_x);
            let (y, x) = (down.element(place / width, tap_y), across.element(place % width, tap_x));
            if let (Some(y), Some(x)) = (y, x) {
                add(&mut result[((image * filters + filter) * down.size + y) * across.size + x], term);
            }
        }
    }
    Array::from_vec([batch, filters, down.size, across.size], result)
}

/// The largest or the mean element under a window. Borders count for neither.
pub(super) fn pool(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let [batch, channels, height, width] = four(x)?;
    let is_max = call.op() == "MaxPool";
    if !is_max && call.flag("count_include_pad", false)? {
        return call.unknown_word("count_include_pad", "1");
    }
    let [down, across] = windows(call, [height, width], pair(call, "kernel_shape", 1)?, [1, 1])?;
    let Numbers::Floats(pixels) = Numbers::of(x)? else {
        return Err(Error::dtype(Some(DType::F32), x.dtype(), "the operator takes floats"));
    };
    let mut result = Vec::with_capacity(batch * channels * down.n * across.n);
    for first in (0..batch * channels).map(|image| image * height * width) {
        for (y, x) in (0..down.n).flat_map(|y| (0..across.n).map(move |x| (y, x))) {
            let lines = (0..down.taps).filter_map(|tap| down.element(y, tap));
            let under = lines.flat_map(|line| {
                (0..across.taps).filter_map(|tap| across.element(x, tap)).map(move |x| first + line * width + x)
            });
            let (mut count, mut sum, mut largest) = (0, 0.0, f64::NEG_INFINITY);
            for i in under {
                (count, sum) = (count + 1, sum + pixels[i]);
                largest = if largest.is_nan() || largest > pixels[i] { largest } else { pixels[i] };
            }
            result.push(if is_max { largest } else { sum / f64::from(count) });
        }
    }
    Numbers::Floats(result).array(x.dtype(), &[batch, channels, down.n, across.n])
}
