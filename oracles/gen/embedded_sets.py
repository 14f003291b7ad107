"""Writes the data sets that are part of the library, crates/data/src/datasets/embedded/*.npz, from the files they come from.

Run as `python oracles/gen/embedded_sets.py FOLDER` in an environment with numpy 1.26 and pandas. FOLDER holds classic/iris.csv and
classic/digits.csv.gz (as in scikit-learn) and adult/adult_{train,test}.csv.gz (UCI's split, with a header).
"""

import io
import pathlib
import sys
import zipfile

import numpy as np
import pandas as pd

FOLDER = pathlib.Path(sys.argv[1])
OUT = pathlib.Path(__file__).parent.parent.parent / "crates/data/src/datasets/embedded"


def write(name, **arrays):
    """An NPZ without the times of its members, so that it is the same every time."""
    with zipfile.ZipFile(OUT / f"{name}.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for key, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), stream.getvalue(), zipfile.ZIP_DEFLATED, 9)
    print(name, {key: (array.dtype.str, array.shape) for key, array in arrays.items()})


def iris():
    table = np.loadtxt(FOLDER / "classic/iris.csv", delimiter=",", skiprows=1)
    names = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth"]
    columns = {name: table[:, i].astype(np.float32) for i, name in enumerate(names)}
    write("iris", **columns, Species=table[:, 4].astype(np.int64))


def digits():
    table = np.loadtxt(FOLDER / "classic/digits.csv.gz", delimiter=",")
    write("digits", image=table[:, :64].astype(np.uint8).reshape(-1, 8, 8, 1), label=table[:, 64].astype(np.int64))


def adult(split):
    table = pd.read_csv(FOLDER / f"adult/adult_{split}.csv.gz", na_filter=False)
    columns = {}
    for name in table.columns:
        values = table[name]
        if name == "income":
            assert set(values) == {"<=50K", ">50K"}
            columns[name] = (values == ">50K").to_numpy(np.int64)
        elif values.dtype == np.int64:
            assert values.between(-2**31, 2**31 - 1).all()
            columns[name] = values.to_numpy(np.int32)
        else:
            columns[name] = values.to_numpy("S")
    write(f"adult_{split}", **columns)


iris()
digits()
adult("train")
adult("test")
