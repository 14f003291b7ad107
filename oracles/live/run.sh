#!/usr/bin/env bash
# Checks our programs against a running TensorFlow, one line per check.
#
#   bash oracles/live/run.sh PYTHON [NAME ...]        (PYTHON: what oracles/venv.sh prints; NAME: only these checks)
#   ESTIMAND_KERAS3   a Python that has Keras 3 (what oracles/venv.sh --keras3 prints); without it, the checks NAME@keras3 are left out
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
# TensorFlow uses oneDNN by default only on some processors. Without it, it refuses dilated depthwise and transposed convolutions.
export TF_ENABLE_ONEDNN_OPTS=1

# The name of the check (oracles/live/NAME.py), the crate (`more`: one of .ci/more) and its example. Those that take longest come first.
checks='
keras_models       estimand               keras_exchange
keras_files        more                   keras_files_exchange
premade            estimand               premade_exchange
keras_files@keras3 more                   keras_files_exchange
saved_ops          estimand-tf            saved_model_predict
graphdef           estimand-tf            graph_exchange
keras_graphs       more                   keras_files_exchange
export             estimand               export_exchange
export_modes       estimand               export_modes_exchange
serve              more                   serve_exchange
serve_page         more                   serve_exchange
saved_model        estimand-tf            saved_model_predict
saved_model_v2     estimand-tf            saved_model_predict
ping_pong          estimand               ping_pong
kmeans             estimand               kmeans_exchange
sdca               estimand               sdca_exchange
rnn                estimand               rnn_exchange
warm_start         estimand               warm_start_exchange
tensorboard_pages  estimand               tensorboard_runs
events             estimand               event_exchange
parquet            more                   columnar_exchange
hdf5               more                   hdf5_exchange
keras_graphs@keras3 more                  keras_files_exchange
keras_export@keras3 estimand-tf           saved_model_predict
onnx               more                   onnx_exchange
onnx_programs      more                   program_exchange
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
if [ -z "${ESTIMAND_KERAS3:-}" ] && grep -q '@keras3 ' <<<"$checks"; then
    echo "live checks with Keras 3: ESTIMAND_KERAS3 names no Python that has it" | tee -a "${ESTIMAND_SKIPPED:-/dev/null}"
    checks=$(sed '/@keras3 /d' <<<"$checks")
    if [ -z "$checks" ]; then exit 1; fi
fi

# What .ci/run has built for its tests is taken from there: the files of these checks are small. The other crates are built together, with
# the features that they have together.
source .ci/more
programs=() others=()
while read -r _ crate example; do
    if [ "$crate" = more ]; then others+=(--example "$example"); else programs+=(--example "$example"); fi
done <<<"$checks"
if [ ${#programs[@]} -gt 0 ]; then cargo build --quiet --release "${programs[@]}"; fi
if [ ${#others[@]} -gt 0 ]; then cargo build --quiet "${more[@]}" "${others[@]}"; fi

# check NAME CRATE EXAMPLE: one check, its output and its time.
check() {
    local name=$1 profile=release example=$3 start=$SECONDS python=$python
    if [[ "$name" = *@keras3 ]]; then python=$ESTIMAND_KERAS3; fi
    if [ "$2" = more ]; then profile=debug; fi
    mkdir "$scratch/$name"
    if "$python" "oracles/live/${name%@*}.py" "${CARGO_TARGET_DIR:-target}/$profile/examples/$example" "$scratch/$name" \
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
