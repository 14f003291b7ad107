#!/usr/bin/env bash
# A training step of an LSTM classifier (64 sequences of 26 to 50 tokens, 128 units): TensorFlow's RNNClassifier and ours, in one run, in turns.
# The last line is `ratio tensorflow=..`: TensorFlow's time over ours, the best of all rounds.
# Usage: bash benches/compare/rnn.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cargo bench --quiet -p estimand --bench rnn --no-run
# Alternating, so that a busy moment of the machine meets both.
for round in 1 2; do
    "$python" benches/compare/peer_rnn.py 2>/dev/null | tee -a "$scratch/times"
    cargo bench --quiet -p estimand --bench rnn | sed 's/^rnn_ms/estimand/' | tee -a "$scratch/times"
done
awk '
    $2 == "=" { if (!($1 in best) || $3 < best[$1]) best[$1] = $3 }
    END { printf "ratio tensorflow=%.2f\n", best["tensorflow"] / best["estimand"] }' "$scratch/times"
