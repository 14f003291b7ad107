"""Writes oracles/fixtures/images.jsonl: images as TensorFlow resizes, normalises and decodes them.

Run as `python oracles/gen/images.py` in an environment with tensorflow 2.15. A case has an image `x` and
what was made of it, or an encoded `file` and the decoded `y`. `target` is a height and width; 0 `channels` are those of the file.
"""

import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(28)
fixture = Fixture(seed=28)


def pixels(*shape):
    return random.integers(0, 256, shape, dtype=np.uint8)


def smooth(height, width, channels):
    """Slow waves, which JPEG keeps."""
    y, x, c = np.mgrid[:height, :width, :channels]
    return (127.5 + 90 * np.sin(y / 5 + c) * np.cos(x / 7 - c)).astype(np.uint8)


def resizes():
    for source, target in [((3, 4), (6, 8)), ((5, 7), (3, 2)), ((8, 8), (5, 11)), ((1, 1), (3, 2)), ((4, 4), (4, 4)),
                           ((2, 3), (1, 1)), ((9, 6), (28, 28)), ((28, 28), (7, 7)), ((6, 5), (1, 9))]:
        x = pixels(2, *source, 2)
        resized = {method: tf.image.resize(x, target, method=method, antialias=False)
                   for method in ("bilinear", "nearest")}
        fixture.case("resize", target=target, x=x, **resized)


def standardizations():
    for x in [pixels(2, 4, 5, 3), np.stack([np.full((3, 3, 1), 7, np.uint8), pixels(3, 3, 1)])]:
        y = tf.image.per_image_standardization(x)
        fixture.case("standardization", x=x, y=y)
    x = np.arange(256, dtype=np.uint8)
    fixture.case("unit", x=x, y=tf.image.convert_image_dtype(x, tf.float32))


def files():
    for channels in (1, 2, 3, 4):
        x = pixels(5, 6, channels)
        fixture.case("png", channels=0, file=tf.io.encode_png(x).numpy(), y=x)
    wide = random.integers(0, 65536, (4, 3, 3), dtype=np.uint16)
    file = tf.io.encode_png(wide).numpy()
    y = tf.io.decode_png(file).numpy()
    fixture.case("png", channels=0, file=file, y=y)
    # Read with another number of channels than written. TensorFlow's grey of a coloured PNG has weights of its own: not among these.
    for written, read in [(1, 3), (1, 4), (3, 4), (4, 3), (2, 1)]:
        file = tf.io.encode_png(pixels(3, 4, written)).numpy()
        y = tf.io.decode_png(file, channels=read).numpy()
        fixture.case("png", channels=read, file=file, y=y)
    for size, channels, options in [((16, 16), 3, dict(quality=95)), ((17, 23), 3, dict(quality=90)),
                                    ((17, 23), 1, dict(format="grayscale")), ((19, 9), 3, dict(progressive=True)),
                                    ((16, 24), 3, dict(chroma_downsampling=False))]:
        file = tf.io.encode_jpeg(smooth(*size, channels), **options).numpy()
        for read in (0, 1, 3):
            y = tf.io.decode_jpeg(file, channels=read, dct_method="INTEGER_ACCURATE").numpy()
            fixture.case("jpeg", channels=read, file=file, y=y)


resizes()
standardizations()
files()
fixture.write("images", tf, np)
