"""Writes oracles/fixtures/keras_layers.jsonl: convolutions, poolings, borders, and activations with parameters of Keras on small
arrays, with their gradients; and merges.

Run as `python oracles/gen/keras_layers.py` in an environment with tensorflow 2.15. `layer_cases.py` explains the keys. Of a
merge: `in:<number>`, `out`, `coef` and the gradients `grad:<number>` of sum(coef * out).
"""

import tensorflow as tf

from layer_cases import L, fixture, floats, keras, layer, put, write

sequences, images = (2, 7, 4), (1, 4, 5, 3)
R = keras.regularizers

layer("conv1d", L.Conv1D(3, 2), floats(*sequences))
layer("conv1d_same", L.Conv1D(3, 4, strides=2, padding="same", activation="relu"), floats(*sequences))
layer("conv1d_causal", L.Conv1D(2, 3, padding="causal", dilation_rate=2, use_bias=False), floats(*sequences))
layer("conv1d_causal_strides", L.Conv1D(2, 3, padding="causal", strides=3), floats(*sequences))
layer("conv1d_dilated", L.Conv1D(2, 3, dilation_rate=3), floats(*sequences))
layer("conv1d_groups", L.Conv1D(6, 3, groups=2, padding="same"), floats(*sequences))
layer("conv2d_groups", L.Conv2D(4, 3, groups=2, strides=2), floats(2, 5, 6, 4))
layer("conv2d_groups_of_one", L.Conv2D(6, (2, 3), groups=3, padding="same"), floats(*images))
layer("depthwise_conv2d", L.DepthwiseConv2D(3), floats(*images))
layer("depthwise_conv2d_multiplied", L.DepthwiseConv2D((2, 3), depth_multiplier=2, padding="same", activation="tanh",
                                                       depthwise_regularizer=R.L2(0.1)), floats(*images))
layer("depthwise_conv2d_strides", L.DepthwiseConv2D(3, strides=2, padding="same", use_bias=False), floats(*images))
layer("depthwise_conv2d_dilated", L.DepthwiseConv2D(2, dilation_rate=2), floats(*images))
layer("separable_conv2d", L.SeparableConv2D(4, 3), floats(*images))
layer("separable_conv2d_options", L.SeparableConv2D(2, (2, 3), strides=2, padding="same", depth_multiplier=2, activation="relu",
                                                    depthwise_regularizer=R.L2(0.1), pointwise_regularizer=R.L1(0.2)),
      floats(*images))
layer("separable_conv2d_dilated", L.SeparableConv2D(2, 2, dilation_rate=2, use_bias=False), floats(*images))
for padding in ["valid", "same"]:
    layer(f"conv2d_transpose_{padding}", L.Conv2DTranspose(4, (3, 2), padding=padding), floats(2, 3, 4, 2))
    layer(f"conv2d_transpose_{padding}_strides", L.Conv2DTranspose(2, 3, strides=(2, 3), padding=padding, activation="relu"),
          floats(2, 3, 4, 2))
    layer(f"conv2d_transpose_{padding}_small", L.Conv2DTranspose(2, (1, 2), strides=3, padding=padding), floats(2, 3, 2, 2))
    layer(f"conv2d_transpose_{padding}_output", L.Conv2DTranspose(2, 3, strides=3, padding=padding, output_padding=(2, 1)),
          floats(2, 3, 2, 2))
    layer(f"conv2d_transpose_{padding}_dilated", L.Conv2DTranspose(2, 2, dilation_rate=2, padding=padding, use_bias=False),
          floats(2, 4, 3, 2))
layer("max_pool1d", L.MaxPool1D(2), floats(*sequences))
layer("max_pool1d_same", L.MaxPool1D(3, strides=2, padding="same"), floats(*sequences))
layer("avg_pool1d", L.AveragePooling1D(3), floats(*sequences))
layer("avg_pool1d_same", L.AveragePooling1D(3, strides=1, padding="same"), floats(*sequences))
layer("global_max_pool1d", L.GlobalMaxPool1D(), floats(*sequences))
layer("global_avg_pool1d", L.GlobalAveragePooling1D(), floats(*sequences))
layer("global_avg_pool1d_keep", L.GlobalAveragePooling1D(keepdims=True), floats(*sequences))
layer("global_max_pool2d_keep", L.GlobalMaxPool2D(keepdims=True), floats(*images))
layer("permute", L.Permute((2, 1)), floats(*sequences))
layer("permute_image", L.Permute((3, 1, 2)), floats(*images))
layer("repeat_vector", L.RepeatVector(3), floats(4, 2))
layer("zero_padding1d", L.ZeroPadding1D(2), floats(*sequences))
layer("zero_padding1d_sides", L.ZeroPadding1D((0, 3)), floats(*sequences))
layer("zero_padding2d", L.ZeroPadding2D((1, 2)), floats(*images))
layer("zero_padding2d_sides", L.ZeroPadding2D(((0, 1), (2, 0))), floats(*images))
layer("cropping1d", L.Cropping1D(1), floats(*sequences))
layer("cropping1d_sides", L.Cropping1D((4, 0)), floats(*sequences))
layer("cropping2d", L.Cropping2D((1, 2)), floats(*images))
layer("cropping2d_sides", L.Cropping2D(((0, 2), (3, 1))), floats(*images))
layer("up_sampling1d", L.UpSampling1D(3), floats(2, 3, 2))
layer("up_sampling2d", L.UpSampling2D((2, 3)), floats(2, 2, 3, 2))
layer("up_sampling2d_bilinear", L.UpSampling2D((2, 3), interpolation="bilinear"), floats(2, 2, 3, 2))
for name, activation in {
        "leaky_relu": L.LeakyReLU(0.3),
        "elu": L.ELU(),
        "elu_alpha": L.ELU(0.4),
        "thresholded_relu": L.ThresholdedReLU(1.0),
        "relu": L.ReLU(),
        "relu_slope": L.ReLU(negative_slope=0.2),
        "relu_max": L.ReLU(max_value=1.5),
        "relu_six": L.ReLU(max_value=6),
        "relu_threshold": L.ReLU(threshold=0.7),
        "relu_all": L.ReLU(max_value=2.0, negative_slope=0.1, threshold=0.5),
        "softmax": L.Softmax(),
}.items():
    layer(name, activation, 3 * floats(4, 6))
layer("softmax_axis", L.Softmax(axis=1), floats(*images))
layer("prelu", L.PReLU(), floats(3, 5))
layer("prelu_shared", L.PReLU(shared_axes=[1, 2], alpha_regularizer=R.L2(0.3)), floats(*images))
layer("layer_norm_axes", L.LayerNormalization(axis=[1, 2], gamma_regularizer=R.L2(0.3)), floats(*images))
layer("layer_norm_middle", L.LayerNormalization(axis=1, beta_regularizer=R.L1(0.2)), floats(*sequences))
layer("batch_norm_regularized", L.BatchNormalization(beta_regularizer=R.L2(0.2), gamma_regularizer=R.L1(0.1)), floats(4, 3))
# What is random in training hands its input on elsewhere.
layer("alpha_dropout", L.AlphaDropout(0.5), floats(2, 3))
layer("gaussian_dropout", L.GaussianDropout(0.5), floats(2, 3))
layer("gaussian_noise", L.GaussianNoise(0.5), floats(2, 3))
layer("spatial_dropout1d", L.SpatialDropout1D(0.5), floats(2, 3, 2))
layer("spatial_dropout2d", L.SpatialDropout2D(0.5), floats(2, 3, 2, 2))


def merge(name, layer, *shapes, **settings):
    """A merge of arrays of these shapes."""
    inputs = [tf.constant(floats(*shape)) for shape in shapes]
    fixture.case("merge", merge=name, **settings)
    for i, x in enumerate(inputs):
        put(f"in:{i}", x)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = layer(inputs)
        coef = floats(*y.shape)
        total = tf.reduce_sum(coef * y)
    put("out", y)
    put("coef", coef)
    for i, gradient in enumerate(tape.gradient(total, inputs)):
        put(f"grad:{i}", gradient)


MERGES = {"add": L.Add, "subtract": L.Subtract, "multiply": L.Multiply, "average": L.Average, "maximum": L.Maximum, "minimum": L.Minimum}
for name, make in MERGES.items():
    merge(name, make(), (3, 4), (3, 4))
    merge(f"{name} broadcast", make(), (2, 3, 1), (2, 1, 4))
    merge(f"{name} ranks", make(), (2, 4), (2, 3, 4))
    if name != "subtract":
        merge(f"{name} three", make(), (2, 3), (2, 1), (2, 3))
        merge(f"{name} one", make(), (2, 3))
merge("concat", L.Concatenate(), (2, 3), (2, 1), (2, 2))
merge("concat axis", L.Concatenate(axis=1), (2, 3, 2), (2, 1, 2))
merge("concat one", L.Concatenate(), (2, 3))
for normalize in [False, True]:
    merge("dot", L.Dot(axes=1, normalize=normalize), (3, 4), (3, 4), normalize=normalize)
    merge("dot last", L.Dot(axes=-1, normalize=normalize), (2, 3, 4), (2, 5, 4), normalize=normalize)
    merge("dot pair", L.Dot(axes=(2, 1), normalize=normalize), (2, 3, 4), (2, 4, 5), normalize=normalize)
    merge("dot ranks", L.Dot(axes=(1, 2), normalize=normalize), (2, 4), (2, 3, 4), normalize=normalize)
    merge("dot images", L.Dot(axes=(1, 3), normalize=normalize), (2, 4, 3), (2, 2, 3, 4), normalize=normalize)
layer("group_norm", L.GroupNormalization(2, epsilon=0.01), floats(2, 3, 2, 4))
layer("group_norm_axis", L.GroupNormalization(-1, axis=1, gamma_regularizer=R.L2(0.3)), floats(*sequences))
layer("unit_norm", L.UnitNormalization(), floats(*sequences))
layer("unit_norm_axes", L.UnitNormalization(axis=[1, 2]), floats(*sequences))
volumes = (2, 3, 4, 3, 2)
layer("conv3d", L.Conv3D(3, 2), floats(*volumes))
layer("conv3d_same", L.Conv3D(2, (3, 2, 1), strides=(2, 1, 2), padding="same", activation="relu"), floats(*volumes))
layer("conv3d_dilated", L.Conv3D(2, 2, dilation_rate=2, use_bias=False), floats(*volumes))
layer("max_pool3d", L.MaxPool3D(2), floats(*volumes))
layer("max_pool3d_same", L.MaxPool3D((3, 2, 2), strides=(2, 1, 1), padding="same"), floats(*volumes))
layer("avg_pool3d", L.AveragePooling3D(2), floats(*volumes))
layer("avg_pool3d_same", L.AveragePooling3D((3, 2, 2), strides=(2, 1, 1), padding="same"), floats(*volumes))
layer("global_max_pool3d", L.GlobalMaxPool3D(), floats(*volumes))
layer("global_avg_pool3d", L.GlobalAveragePooling3D(keepdims=True), floats(*volumes))
layer("cropping3d", L.Cropping3D((1, 1, 0)), floats(*volumes))
layer("zero_padding3d", L.ZeroPadding3D(((0, 1), (2, 0), (1, 1))), floats(*volumes))
layer("up_sampling3d", L.UpSampling3D((1, 2, 3)), floats(*volumes))
layer("spatial_dropout3d", L.SpatialDropout3D(0.5), floats(*volumes))
for padding in ["valid", "same"]:
    layer(f"conv3d_transpose_{padding}", L.Conv3DTranspose(3, (2, 3, 1), padding=padding), floats(1, 2, 3, 2, 2))
    layer(f"conv3d_transpose_{padding}_strides", L.Conv3DTranspose(2, (3, 2, 3), strides=(2, 1, 3), padding=padding, activation="relu"),
          floats(1, 2, 3, 2, 2))
    layer(f"conv3d_transpose_{padding}_small", L.Conv3DTranspose(2, (1, 2, 1), strides=(3, 2, 2), padding=padding, use_bias=False), floats(1, 2, 3, 2, 2))
    layer(f"conv3d_transpose_{padding}_output", L.Conv3DTranspose(2, 3, strides=3, padding=padding, output_padding=(2, 1, 0)),
          floats(1, 2, 3, 2, 2))
layer("depthwise_conv1d", L.DepthwiseConv1D(3), floats(*sequences))
layer("depthwise_conv1d_multiplied", L.DepthwiseConv1D(2, depth_multiplier=3, padding="same", activation="tanh", depthwise_regularizer=R.L2(0.1)),
      floats(*sequences))
layer("depthwise_conv1d_strides", L.DepthwiseConv1D(3, strides=2, padding="same", use_bias=False), floats(*sequences))
layer("depthwise_conv1d_dilated", L.DepthwiseConv1D(2, dilation_rate=3), floats(*sequences))
layer("separable_conv1d", L.SeparableConv1D(5, 3), floats(*sequences))
layer("separable_conv1d_options", L.SeparableConv1D(2, 3, strides=2, padding="same", depth_multiplier=2, activation="relu",
                                                    depthwise_regularizer=R.L2(0.1), pointwise_regularizer=R.L1(0.2)),
      floats(*sequences))
layer("separable_conv1d_dilated", L.SeparableConv1D(2, 2, dilation_rate=2, use_bias=False), floats(*sequences))
layer("separable_conv1d_causal", L.SeparableConv1D(2, 3, padding="causal", dilation_rate=2), floats(*sequences))
layer("separable_conv1d_causal_strides", L.SeparableConv1D(2, 3, padding="causal", strides=3), floats(*sequences))
for padding in ["valid", "same"]:
    layer(f"conv1d_transpose_{padding}", L.Conv1DTranspose(4, 3, padding=padding), floats(2, 3, 2))
    layer(f"conv1d_transpose_{padding}_strides", L.Conv1DTranspose(2, 3, strides=2, padding=padding, activation="relu"), floats(2, 4, 2))
    layer(f"conv1d_transpose_{padding}_small", L.Conv1DTranspose(2, 2, strides=3, padding=padding, use_bias=False), floats(2, 3, 2))
    layer(f"conv1d_transpose_{padding}_output", L.Conv1DTranspose(2, 3, strides=3, padding=padding, output_padding=1), floats(2, 3, 2))
    layer(f"conv1d_transpose_{padding}_dilated", L.Conv1DTranspose(2, 2, dilation_rate=2, padding=padding), floats(2, 4, 3))

write("keras_layers")
