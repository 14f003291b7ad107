"""Writes oracles/fixtures/movement.jsonl: what TensorFlow's data-movement ops make of small arrays.

Run as `python oracles/gen/movement.py` in an environment with tensorflow 2.15. A case is an op with its
settings, inputs and outputs; a masked bound of a slice is null.
"""

import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(15)
fixture = Fixture(seed=15)


def case(op, arrays, **settings):
    fixture.case(op, **settings, **arrays)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def resizes(sizes=(((3, 4), (6, 8)), ((5, 7), (3, 2)), ((1, 1), (3, 2)), ((4, 4), (4, 4)), ((2, 3), (1, 1)), ((3, 5), (7, 4)))):
    options = [(False, False), (True, False), (False, True)]
    for source, target in sizes:
        for align_corners, half_pixel_centers in options:
            settings = dict(source=source, target=target, align_corners=align_corners,
                            half_pixel_centers=half_pixel_centers)
            flags = dict(align_corners=align_corners, half_pixel_centers=half_pixel_centers)
            x, dy = floats(2, *source, 2), floats(2, *target, 2)
            y = tf.raw_ops.ResizeBilinear(images=x, size=target, **flags)
            dx = tf.raw_ops.ResizeBilinearGrad(grads=dy, original_image=x, **flags)
            case("bilinear", dict(x=x, y=y, dy=dy, dx=dx), **settings)
            y = tf.raw_ops.ResizeNearestNeighbor(images=x, size=target, **flags)
            dx = tf.raw_ops.ResizeNearestNeighborGrad(grads=dy, size=source, **flags)
            case("nearest", dict(x=x, y=y, dy=dy, dx=dx), **settings)


def top_ks():
    for n, k in [(1, 1), (5, 1), (5, 5), (9, 4), (40, 7), (40, 40)]:
        x = random.integers(-3, 4, (3, n)).astype(np.float32)  # few values, so many ties
        values, indices = tf.math.top_k(x, k)
        case("top_k", dict(x=x, values=values, indices=indices), n=n, k=k)


def segments():
    for reduction in ["sum", "mean", "max", "min", "prod"]:
        for width, ids in [(2, [0, 0, 3]), (1, [2]), (3, [1, 1, 1, 4, 5, 5]), (2, [0, 1, 2])]:
            x = floats(len(ids), width)
            y = getattr(tf.math, f"segment_{reduction}")(x, ids)
            case("segment", dict(x=x, y=y), reduction=reduction, width=width, ids=ids)
        for width, ids, n in [(2, [2, -1, 2], 4), (3, [3, 0, 3, 1, -5, 0], 5), (1, [0], 1), (2, [-1], 2)]:
            x = floats(len(ids), width)
            y = getattr(tf.math, f"unsorted_segment_{reduction}")(x, ids, n)
            case("unsorted_segment", dict(x=x, y=y), reduction=reduction, width=width, ids=ids, n=n)


def pads():
    for dims, before, after in [([4], [2], [3]), ([3, 4], [1, 3], [2, 0]), ([2, 3, 2], [1, 2, 0], [0, 1, 0]),
                                ([2, 2, 3], [0, 1, 0], [1, 0, 2])]:
        x = floats(*dims)
        for mode in ["REFLECT", "SYMMETRIC"]:
            y = tf.pad(x, list(zip(before, after)), mode)
            case("mirror_pad", dict(x=x, y=y), dims=dims, before=before, after=after, mode=mode)
        y = tf.pad(x, list(zip(before, after)), constant_values=7.5)
        case("pad", dict(x=x, y=y), dims=dims, before=before, after=after, value=7.5)


def slices():
    for dims, begin, end, strides in [
        ([7], [1], [6], [2]), ([7], [None], [None], [-1]), ([7], [5], [0], [-2]), ([7], [-3], [100], [1]),
        ([7], [-100], [3], [1]), ([7], [100], [-100], [-3]), ([7], [3], [3], [1]), ([7], [2], [5], [-1]),
        ([7], [6], [None], [-4]), ([7], [None], [-9], [1]), ([1], [None], [None], [-5]),
        ([3, 4, 5], [None, 1, -1], [2, None, None], [1, 2, -2]), ([3, 4, 5], [-1, None, 0], [None, None, 5], [-1, 3, 4]),
    ]:
        x = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
        mask = lambda bounds: sum(1 << k for k, bound in enumerate(bounds) if bound is None)
        plain = lambda bounds: [bound or 0 for bound in bounds]
        y = tf.strided_slice(x, plain(begin), plain(end), strides, begin_mask=mask(begin), end_mask=mask(end))
        case("strided_slice", dict(x=x, y=y), dims=dims, begin=begin, end=end, strides=strides, shape=list(y.shape))


def scans():
    for dims, axis in [([5], 0), ([3, 4], 0), ([3, 4], 1), ([2, 3, 2], 1)]:
        for exclusive in [False, True]:
            for reverse in [False, True]:
                x = floats(*dims)
                settings = dict(dims=dims, axis=axis, exclusive=exclusive, reverse=reverse)
                case("cumsum", dict(x=x, y=tf.cumsum(x, axis, exclusive, reverse)), **settings)
                case("cumprod", dict(x=x, y=tf.math.cumprod(x, axis, exclusive, reverse)), **settings)


def lookups():
    x, ids = floats(2, 3, 4, 2), random.integers(0, 4, (2, 5))
    case("gather", dict(x=x, y=tf.gather(x, ids, axis=2, batch_dims=1)), dims=[2, 3, 4, 5, 2], ids=ids.ravel().tolist())
    x, ids = floats(3, 4, 2), random.integers(0, 3, (6, 2))
    case("gather_nd", dict(x=x, y=tf.gather_nd(x, ids)), dims=[3, 4], inner=2, ids=ids.ravel().tolist())
    updates, ids = floats(6, 2), random.integers(0, 3, (6, 2))
    y = tf.scatter_nd(ids, updates, [3, 4, 2])
    case("scatter_nd", dict(x=updates, y=y), dims=[3, 4], inner=2, ids=ids.ravel().tolist())
    ids = [[2, -1], [0, 5]]
    for axis, dims in [(-1, [4, 3, 1]), (1, [2, 3, 2]), (0, [1, 3, 4])]:
        y = tf.one_hot(ids, 3, on_value=2.5, off_value=-1.0, axis=axis)
        case("one_hot", dict(y=y), dims=dims, ids=np.ravel(ids).tolist(), on=2.5, off=-1.0)


for write in [resizes, top_ks, segments, pads, slices, scans, lookups, lambda: resizes([((1, 160), (2, 48)), ((1, 160), (1, 299))])]:
    write()
fixture.write("movement", tf, np)
