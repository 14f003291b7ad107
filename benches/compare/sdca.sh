#!/usr/bin/env bash
# LinearSDCA on 100,000 rows of 20 numbers and 4 hashed categories, 5 epochs in batches of 1,000: TensorFlow's and ours, in one run, in turns.
# The last line is `ratio sdca=..`: TensorFlow's time over ours, the best of all rounds.
# Usage: bash benches/compare/sdca.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cargo bench --quiet -p estimand --bench sdca --no-run
# Alternating, so that a busy moment of the machine meets both.
for round in 1 2; do
    "$python" benches/compare/peer_sdca.py 2>/dev/null | tee -a "$scratch/times"
    cargo bench --quiet -p estimand --bench sdca | sed 's/^sdca_ms/estimand/' | tee -a "$scratch/times"
done
awk '
    $2 == "=" { if (!($1 in best) || $3 < best[$1]) best[$1] = $3 }
    END { printf "ratio sdca=%.2f\n", best["tensorflow"] / best["estimand"] }' "$scratch/times"
