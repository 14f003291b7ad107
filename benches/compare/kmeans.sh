#!/usr/bin/env bash
# k-means over 1 M rows of 64 numbers with 100 clusters, one pass in mini-batches of 1,024: TensorFlow's KMeans, ours, and scikit-learn's
# MiniBatchKMeans if $ESTIMAND_SKLEARN is a Python that has it. In one run, in turns.
# The last line is `ratio tensorflow=.. scikit_learn=..`: the peer's time over ours, the best of all rounds.
# Usage: bash benches/compare/kmeans.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cargo bench --quiet -p estimand --bench kmeans --no-run
# Alternating, so that a busy moment of the machine meets all.
for round in 1 2; do
    "$python" benches/compare/peer_kmeans.py tensorflow 2>/dev/null | tee -a "$scratch/times"
    cargo bench --quiet -p estimand --bench kmeans | sed 's/^kmeans_ms/estimand/' | tee -a "$scratch/times"
    if [ -n "${ESTIMAND_SKLEARN:-}" ]; then "$ESTIMAND_SKLEARN" benches/compare/peer_kmeans.py scikit_learn | tee -a "$scratch/times"; fi
done
awk '
    $2 == "=" { if (!($1 in best) || $3 < best[$1]) best[$1] = $3 }
    END {
        line = "ratio"
        for (i = split("tensorflow scikit_learn", peers); i >= 1; i--) if (peers[i] in best) line = line sprintf(" %s=%.2f", peers[i], best[peers[i]] / best["estimand"])
        print line
    }' "$scratch/times"
