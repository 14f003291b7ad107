#!/usr/bin/env bash
# Our server and others, the same model and the same generator, one run on the same cores. The last line is `ratio name=..`: our
# requests per second over the peer's. The peers are TensorFlow and onnxruntime, each behind FastAPI; what they need is installed beside
# TensorFlow, outside of the repository, if it can be.
# Usage: bash benches/compare/serve.sh [PYTHON] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${1:-$(bash oracles/venv.sh | tail -n 1)}
seconds=${2:-5}
packages=${ESTIMAND_CLIENTS:-$HOME/.cache/estimand}/fastapi
scratch=$(mktemp -d)
served=()
trap 'for process in "${served[@]}"; do kill "$process" 2>/dev/null || true; done; rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=

cargo build --quiet --profile dist -p estimand-serve --example load --bin estimand-serve
target=${CARGO_TARGET_DIR:-target}/dist
load=$target/examples/load
"$load" export "$scratch"
export_folder=$(find "$scratch/export" -mindepth 1 -maxdepth 1 -name '[0-9]*')

# free_port: a port that nobody uses now.
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# wait_for PORT PATH: until a server answers.
wait_for() { for _ in $(seq 600); do curl --silent --output /dev/null "http://127.0.0.1:$1$2" && return; sleep 0.1; done; echo "no answer at $1" >&2; exit 1; }
# ask NAME PORT PATH: one client, then eight.
ask() {
    for clients in 1 8; do
        "$load" ask "127.0.0.1:$2" "$3" "$seconds" "$clients" | sed "s/^/$1_${clients}_clients_/" | tee -a "$scratch/lines"
    done
}

"$python" benches/compare/peer_serve.py "$export_folder" | tee -a "$scratch/lines"
port=$(free_port)
"$target/estimand-serve" --model_name=m --model_base_path="$scratch/export" --rest_api_port="$port" --port=0 2>/dev/null &
served+=($!)
wait_for "$port" /healthz
ask estimand "$port" /v1/models/m:predict
kill "${served[-1]}"

if [ ! -d "$packages" ]; then
    "$python" -m pip install --quiet --target "$packages" fastapi==0.115.6 uvicorn==0.34.0 2>/dev/null || rm -rf "$packages"
fi
if [ -d "$packages" ]; then
    port=$(free_port)
    "$python" benches/compare/peer_serve.py "$export_folder" "$port" "$packages" &
    served+=($!)
    wait_for "$port" /docs
    ask fastapi "$port" /predict
    kill "${served[-1]}"
    port=$(free_port)
    "$python" benches/compare/peer_onnx.py "$(find "$scratch/onnx" -name model.onnx)" "$port" "$packages" &
    served+=($!)
    wait_for "$port" /docs
    ask onnxruntime "$port" /predict
else
    echo "# FastAPI cannot be installed here"
fi
awk '$1 ~ /requests_per_s$/ { rate[$1] = $3 }
    END {
        printf "ratio"
        n_peers = split("fastapi onnxruntime", peers)
        for (p = 1; p <= n_peers; p++) for (n = 1; n <= 8; n += 7)
            if ((name = peers[p] "_" n "_clients_requests_per_s") in rate)
                printf " %s_%d_clients=%.1f", peers[p], n, rate["estimand_" n "_clients_requests_per_s"] / rate[name]
        print ""
    }' "$scratch/lines"
