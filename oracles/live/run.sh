#!/usr/bin/env bash
# Checks our programs against a running TensorFlow, one line per check.
#
#   bash oracles/live/run.sh PYTHON [NAME ...]        (PYTHON: what oracles/venv.sh prints; NAME: only these checks)
#
# A check is a Python program that is given one of our example programs and an empty folder to exchange files in. As many run
# at a time as the machine has cores; what a check prints comes when it has ended.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${1:?usage: run.sh PYTHON [NAME ...]}
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= PYTHONDONTWRITEBYTECODE=1

# The name of the check (oracles/live/NAME.py), the crate and its example. Those that take longest come first.
checks='
premade            estimand               premade_exchange
saved_ops          estimand-tf            saved_model_predict
graphdef           estimand-tf            graph_exchange
export             estimand               export_exchange
export_modes       estimand               export_modes_exchange
serve              estimand-serve         serve_exchange
serve_page         estimand-serve         serve_exchange
saved_model        estimand-tf            saved_model_predict
saved_model_v2     estimand-tf            saved_model_predict
ping_pong          estimand               ping_pong
kmeans             estimand               kmeans_exchange
warm_start         estimand               warm_start_exchange
tensorboard_pages  estimand               tensorboard_runs
events             estimand               event_exchange
parquet            estimand-data-parquet  columnar_exchange
hdf5               estimand-hdf5          hdf5_exchange
keras_models       estimand               keras_exchange
keras_files        features               keras_files_exchange
onnx               features               onnx_exchange
onnx_programs      features               program_exchange
layers             estimand-nn            layer_exchange
objects            estimand-nn            object_exchange
records            estimand-data          record_exchange
csv_files          estimand-data          csv_exchange
bundle             estimand-checkpoint    bundle_exchange
'
if [ $# -gt 0 ]; then
    for name in "$@"; do
        grep -q "^$name " <<<"$checks" || { echo "run.sh: there is no check $name" >&2; exit 2; }
    done
    checks=$(grep -E "^($(IFS='|'; echo "$*")) " <<<"$checks")
fi
checks=$(sed '/^$/d' <<<"$checks")

# The decoders of Parquet take minutes to optimise, and the files of the check are small. The server and HDF5 are no default members. What
# needs a feature of `estimand` that is off by default is built with all of them, as the tests in .ci/run are. The other crates are
# built together with the features that they have together.
programs=() decoders=() servers=() featured=()
while read -r _ crate example; do
    if [ "$crate" = estimand-data-parquet ]; then
        decoders+=(-p "$crate" --example "$example")
    elif [ "$crate" = features ]; then
        featured+=(--example "$example")
    elif [ "$crate" = estimand-serve ] || [ "$crate" = estimand-hdf5 ]; then
        servers+=(-p "$crate" --example "$example")
    else
        programs+=(--example "$example")
    fi
done <<<"$checks"
if [ ${#programs[@]} -gt 0 ]; then cargo build --quiet --release "${programs[@]}"; fi
if [ ${#decoders[@]} -gt 0 ]; then cargo build --quiet "${decoders[@]}"; fi
if [ ${#featured[@]} -gt 0 ]; then
    cargo build --quiet -p estimand -p estimand-onnx --features estimand/keras_files,estimand/download,estimand/onnx "${featured[@]}"
fi
if [ ${#servers[@]} -gt 0 ]; then cargo build --quiet --release "${servers[@]}"; fi

# check NAME CRATE EXAMPLE: one check, its output and its time.
check() {
    local name=$1 profile=release example=$3 start=$SECONDS
    if [ "$2" = estimand-data-parquet ] || [ "$2" = features ]; then profile=debug; fi
    mkdir "$scratch/$name"
    if "$python" "oracles/live/$name.py" "${CARGO_TARGET_DIR:-target}/$profile/examples/$example" "$scratch/$name" \
        >"$scratch/$name.log" 2>&1; then
        cat "$scratch/$name.log"
        echo "live: $name ok ($((SECONDS - start)) s)"
    else
        cat "$scratch/$name.log"
        echo "live: $name FAILED"
        return 1
    fi
}
export -f check
export python scratch
xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' check <<<"$checks"
