#!/usr/bin/env bash
# `fit` of Keras models in tf.keras 2.15 and here, in one run, in turns; and a loop of PyTorch, if $ESTIMAND_TORCH is a Python that has it.
# The last line is `ratio name=..`: the time of tf.keras over ours.
# Usage: bash benches/compare/keras.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cargo bench --quiet -p estimand --bench keras --no-run
# Alternating, so that a busy moment of the machine meets all.
for round in 1 2; do
    "$python" benches/compare/peer_keras.py keras 2>/dev/null | tee -a "$scratch/peer" | sed 's/^/tf.keras    /'
    cargo bench --quiet -p estimand --bench keras | tee -a "$scratch/ours" | sed 's/^/estimand    /'
    if [ -n "${ESTIMAND_TORCH:-}" ]; then "$ESTIMAND_TORCH" benches/compare/peer_keras.py torch | sed 's/^/pytorch     /'; fi
done
awk '
    $2 == "=" && FILENAME ~ /peer$/ { if (!($1 in peer) || $3 < peer[$1]) peer[$1] = $3; if (!seen[$1]++) order[++n] = $1 }
    $2 == "=" && FILENAME ~ /ours$/ { if (!($1 in ours) || $3 < ours[$1]) ours[$1] = $3 }
    END {
        line = "ratio"
        for (i = 1; i <= n; i++) { name = order[i]; short = name; sub(/_ms$/, "", short); line = line sprintf(" %s=%.1f", short, peer[name] / ours[name]) }
        print line
    }' "$scratch/peer" "$scratch/ours"
