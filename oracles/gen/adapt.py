"""Writes oracles/fixtures/adapt.jsonl: what `adapt` of Keras's preprocessing layers learns.

Run as `python oracles/gen/adapt.py` in an environment with tensorflow 2.15. The weights of terms are those of the mode `tf_idf`.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture, strings

SEED = 31
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L = tf.keras.layers


def put(name, x, max_tokens, layer, weighted=None):
    layer.adapt(x)
    terms = layer.get_vocabulary(include_special_tokens=False)
    fixture.case(name, max_tokens=max_tokens or 0)
    fixture.put("x", x)
    fixture.put("terms", strings([str(t).encode() for t in terms]))
    if weighted is not None:
        # TF: rows with different numbers of distinct terms must be ragged.
        weighted.adapt(tf.data.Dataset.from_tensors(tf.ragged.constant(x.tolist())) if x.ndim > 1 else x)
        lookup = getattr(weighted, "_lookup_layer", weighted)
        # In this mode, padding takes no id of `max_tokens`.
        fixture.put("weighted_terms", strings([t.encode() for t in weighted.get_vocabulary(include_special_tokens=False)]))
        fixture.put("weights", lookup.idf_weights.numpy()[lookup._token_start_index():])


for axis, x in [(-1, random.normal(3, 2, (70, 3))), (0, random.normal(3, 2, (70, 3))), (1, random.normal(3, 2, (40, 3, 2)))]:
    layer = L.Normalization(axis=axis or None)
    layer.adapt(x.astype(np.float32), batch_size=16)
    fixture.case("normalization", axis=axis, max_tokens=0)
    fixture.put("x", x.astype(np.float32))
    fixture.put("mean", np.ravel(layer.mean))
    fixture.put("variance", np.ravel(layer.variance))
words = np.array(["b", "a", "c", "dd", "e", "\u00e4"], object)
for max_tokens in [None, 4]:
    x = random.choice(words, (12, 3))
    put("string_lookup", x, max_tokens, L.StringLookup(max_tokens=max_tokens), L.StringLookup(max_tokens=max_tokens, output_mode="tf_idf"))
put("integer_lookup", random.integers(-3, 6, (20, 2)), None, L.IntegerLookup())
text = np.array(["The cat sat. On, the MAT!", "", "dog's life; cat", "the end", "a cat & a dog"], object)
for max_tokens in [None, 6]:
    put("text_vectorization", text, max_tokens, L.TextVectorization(max_tokens=max_tokens), L.TextVectorization(max_tokens=max_tokens, output_mode="tf_idf"))

fixture.write("adapt", tf, np)
