#!/usr/bin/env bash
# Makes the Python environment with the TensorFlow that fixtures and live checks are made with.
#
#   bash oracles/venv.sh [FOLDER]
#
# FOLDER defaults to $ESTIMAND_VENV, or ~/.cache/estimand/tf-2.15; it must not be in the repository. Returns at once if
# it already works. The last line printed is the path of its python.
set -euo pipefail

VERSION=2.15.1
# Versions that take the numpy of this TensorFlow.
PANDAS=2.2.3
PYARROW=17.0.0
folder=${1:-${ESTIMAND_VENV:-$HOME/.cache/estimand/tf-2.15}}
python=$folder/bin/python

works() {
    [ -x "$python" ] && TF_CPP_MIN_LOG_LEVEL=3 "$python" - "$VERSION" "$PANDAS" "$PYARROW" 2>/dev/null <<'PYTHON'
import sys
import pandas
import pyarrow
import tensorflow as tf
sys.exit([tf.__version__, pandas.__version__, pyarrow.__version__] != sys.argv[1:])
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
    echo "oracles/venv.sh: Python 3.11 is needed for TensorFlow $VERSION; found neither python3.11 nor a python3 of that version" >&2
    return 1
}

if ! works; then
    base=$(find_python)
    echo "making $folder with TensorFlow $VERSION (about a minute, 2 GB)" >&2
    # --clear: whatever is there does not work.
    "$base" -m venv --clear "$folder"
    "$python" -m pip install --quiet "tensorflow-cpu==$VERSION" 'numpy<2' "pandas==$PANDAS" "pyarrow==$PYARROW"
    works || { echo "oracles/venv.sh: TensorFlow $VERSION was installed in $folder but cannot be imported" >&2; exit 1; }
fi
echo "$python"
