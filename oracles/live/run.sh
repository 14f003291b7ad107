#!/usr/bin/env bash
# Checks our programs against a running TensorFlow, one line per check.
#
#   bash oracles/live/run.sh PYTHON        (PYTHON: what oracles/venv.sh prints)
#
# A check is a Python program that is given one of our example programs and an empty folder to exchange files in.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${1:?usage: run.sh PYTHON}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= PYTHONDONTWRITEBYTECODE=1

# check NAME CRATE EXAMPLE: runs oracles/live/NAME.py with the example program of the crate.
check() {
    local name=$1 crate=$2 example=$3
    cargo build --quiet --release -p "$crate" --example "$example"
    mkdir "$scratch/$name"
    "$python" "oracles/live/$name.py" "${CARGO_TARGET_DIR:-target}/release/examples/$example" "$scratch/$name"
    echo "live: $name ok"
}

check bundle estimand-graph bundle_exchange
check graphdef estimand-graph graph_exchange
check saved_model estimand-graph saved_model_predict
check saved_ops estimand-graph saved_model_predict
check csv_files estimand-data csv_exchange
check records estimand-data record_exchange
check parquet estimand-data-parquet columnar_exchange
check events estimand event_exchange
check tensorboard_pages estimand tensorboard_runs
check ping_pong estimand ping_pong
check premade estimand premade_exchange
check warm_start estimand warm_start_exchange
