#!/usr/bin/env bash
# k-means over 1 M rows of 64 numbers with 100 clusters, one pass in mini-batches of 1,024: TensorFlow's KMeans, ours, and scikit-learn's
# MiniBatchKMeans if $ESTIMAND_SKLEARN is a Python that has it. In one run, in turns.
# Usage: bash benches/compare/kmeans.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
source benches/compare/turns.sh
turns kmeans "${ESTIMAND_SKLEARN:-}"
