"""Writes oracles/fixtures/keras_callbacks.jsonl: the calls that callbacks of tf.keras get, and what Keras' own callbacks do.

Run as `python oracles/gen/keras_callbacks.py` in an environment with tensorflow 2.15. The model is one weight, `y = w x`, which begins
with 1, trained by SGD without shuffling. Cases:

    data        `x`, `y`, and those of the validation
    calls       a `run` of the model, and the `calls` of a callback: the event, its number if it has one, and its logs
    callback    a `callback` with its `settings`, the `history` of a fit with it, the weight `w` after it, and the `csv` it wrote
    optimizer   an optimizer with an average or decay of weights: the weight `w` after a fit
"""

import json
import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from fixture import Fixture

keras = tf.keras
SEED = 5
rng = np.random.default_rng(SEED)
X = rng.uniform(0.5, 1.5, (6, 1)).astype(np.float32)
Y = (2 * X + rng.normal(0, 0.1, X.shape)).astype(np.float32)
VAL_X = rng.uniform(0.5, 1.5, (5, 1)).astype(np.float32)
VAL_Y = (1.8 * VAL_X).astype(np.float32)


def made(optimizer=None):
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False, input_shape=(1,))])
    model.set_weights([np.ones((1, 1), np.float32)])
    # In a compiled step, Nadam of tf.keras 2.15 gives NaN: its counter of products is a number of Python, which stays what it was.
    eagerly = isinstance(optimizer, keras.optimizers.Nadam)
    model.compile(optimizer or keras.optimizers.SGD(0.1), "mse", metrics=["mae"], run_eagerly=eagerly)
    return model


class Recorder(keras.callbacks.Callback):
    def __init__(self, stop_at=None):
        super().__init__()
        self.calls, self.stop_at, self.epoch = [], stop_at, None

    def note(self, event, number=None, logs=None):
        logs = {key: float(value) for key, value in (logs or {}).items() if key != "outputs"}
        self.calls.append([event, number, logs])

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        self.note("on_epoch_begin", epoch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.note("on_train_batch_end", batch, logs)
        if self.stop_at == [self.epoch, batch]:
            self.model.stop_training = True


for name in ["on_train_begin", "on_train_end", "on_test_begin", "on_test_end", "on_predict_begin", "on_predict_end"]:
    setattr(Recorder, name, lambda self, logs=None, name=name: self.note(name, None, logs))
for name in ["on_epoch_end", "on_train_batch_begin", "on_test_batch_begin", "on_test_batch_end", "on_predict_batch_begin", "on_predict_batch_end"]:
    setattr(Recorder, name, lambda self, number, logs=None, name=name: self.note(name, number, logs))


def fit(model, callbacks, **options):
    return model.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=callbacks, **options)


def callback(fixture, name, made_callback, settings, epochs, validates=True):
    model = made()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log.csv"
        callbacks = [made_callback]
        if name == "EarlyStopping":
            callbacks.append(keras.callbacks.CSVLogger(path))
        history = fit(model, callbacks, epochs=epochs, **({"validation_data": (VAL_X, VAL_Y)} if validates else {}))
        csv = path.read_text() if path.exists() else ""
    history = {key: [float(v) for v in values] for key, values in history.history.items()}
    fixture.case("callback", callback=name, settings=json.dumps(settings), epochs=epochs, history=json.dumps(history), csv=csv,
                 w=model.get_weights()[0])


def main():
    fixture = Fixture(SEED)
    fixture.case("data", x=X, y=Y, val_x=VAL_X, val_y=VAL_Y)
    val = {"validation_data": (VAL_X, VAL_Y)}
    for run, stop_at, options in [("fit", None, dict(epochs=2, **val)), ("stopped", [1, 0], dict(epochs=4, **val)),
                                  ("later", None, dict(epochs=4, initial_epoch=1, validation_freq=2, **val))]:
        recorder = Recorder(stop_at)
        fit(made(), [recorder], **options)
        fixture.case("calls", run=run, calls=json.dumps(recorder.calls))
    recorder = Recorder()
    made().evaluate(VAL_X, VAL_Y, batch_size=2, verbose=0, callbacks=[recorder])
    fixture.case("calls", run="evaluate", calls=json.dumps(recorder.calls))
    recorder = Recorder()
    made().predict(VAL_X, batch_size=2, verbose=0, callbacks=[recorder])
    fixture.case("calls", run="predict", calls=json.dumps(recorder.calls))

    C = keras.callbacks
    for patience, restore in [(1, False), (1, True), (3, True)]:
        settings = {"patience": patience, "restore": restore, "min_delta": 0.0}
        callback(fixture, "EarlyStopping", C.EarlyStopping("val_loss", patience=patience, restore_best_weights=restore), settings, 20)
    settings = {"patience": 2, "restore": False, "min_delta": 0.01}
    callback(fixture, "EarlyStopping", C.EarlyStopping("val_loss", patience=2, min_delta=0.01), settings, 20)
    for patience, cooldown, min_lr in [(1, 0, 0.0), (2, 2, 0.03)]:
        settings = {"factor": 0.5, "patience": patience, "cooldown": cooldown, "min_lr": min_lr, "min_delta": 1e-3}
        callback(fixture, "ReduceLROnPlateau", C.ReduceLROnPlateau("val_loss", **settings), settings, 12)
    callback(fixture, "LearningRateScheduler", C.LearningRateScheduler(lambda epoch, rate: rate * 0.5 if epoch else rate), {}, 4, False)

    O = keras.optimizers
    for optimizer in [O.SGD(0.1, use_ema=True, ema_momentum=0.5), O.SGD(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=2),
                      O.SGD(0.1, weight_decay=0.05), O.RMSprop(0.01), O.Adagrad(0.1), O.Nadam(0.05), O.Lion(0.01), O.Adam(0.05, clipnorm=0.1),
                      O.SGD(0.1, global_clipnorm=0.2), O.SGD(0.1, clipvalue=0.3), O.Ftrl(0.1), O.Adadelta(0.5), O.Adamax(0.05),
                      O.Adafactor(0.1), O.Adafactor(0.1, use_ema=True, ema_momentum=0.8)]:
        model = made(optimizer)
        document = json.dumps(O.serialize(optimizer))
        fit(model, [], epochs=3)
        fixture.case("optimizer", json=document, w=model.get_weights()[0])
    fixture.write("keras_callbacks", tf, np)


if __name__ == "__main__":
    main()
