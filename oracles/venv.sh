#!/usr/bin/env bash
# Makes a Python environment that fixtures and live checks are made with: of TensorFlow 2.15, whose Keras is Keras 2, or of Keras 3.
#
#   bash oracles/venv.sh [--keras3] [FOLDER]
#
# FOLDER defaults to $ESTIMAND_VENV, or ~/.cache/estimand/tf-2.15; with --keras3 to $ESTIMAND_VENV-keras3, or
# ~/.cache/estimand/keras-3. It must not be in the repository. Returns at once if it already works. The last line printed is the
# path of its python.
set -euo pipefail

if [ "${1:-}" = --keras3 ]; then
    shift
    name="Keras 3" folder=${1:-${ESTIMAND_VENV:+$ESTIMAND_VENV-keras3}}
    folder=${folder:-$HOME/.cache/estimand/keras-3}
    packages=(tensorflow-cpu==2.21.0 keras==3.15.1)
else
    name="TensorFlow 2.15" folder=${1:-${ESTIMAND_VENV:-$HOME/.cache/estimand/tf-2.15}}
    # The versions of pandas and pyarrow take the numpy of this TensorFlow.
    packages=(tensorflow-cpu==2.15.1 'numpy<2' pandas==2.2.3 pyarrow==17.0.0)
fi
python=$folder/bin/python

works() {
    [ -x "$python" ] && TF_CPP_MIN_LOG_LEVEL=3 "$python" - "${packages[@]}" 2>/dev/null <<'PYTHON'
import importlib
import sys

for package in sys.argv[1:]:
    name, _, version = package.partition("==")
    if version and importlib.import_module({"tensorflow-cpu": "tensorflow"}.get(name, name)).__version__ != version:
        sys.exit(f"{name} is not {version}")
PYTHON
}

# TensorFlow 2.15 has no packages for Python 3.12 and later.
find_python() {
    local candidate
    for candidate in python3.11 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "oracles/venv.sh: Python 3.11 is needed for $name; found neither python3.11 nor a python3 of that version" >&2
    return 1
}

if ! works; then
    base=$(find_python)
    echo "making $folder with $name (about a minute, 2 GB)" >&2
    # --clear: whatever is there does not work.
    "$base" -m venv --clear "$folder"
    "$python" -m pip install --quiet "${packages[@]}"
    works || { echo "oracles/venv.sh: $name was installed in $folder but cannot be imported" >&2; exit 1; }
fi
echo "$python"
