#!/usr/bin/env bash
# tf.data and ours, the same files to the same batches, one run. The last line is `ratio name=..`: our rate over the peer's.
# Usage: bash benches/compare/input.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo bench --quiet -p estimand-data --bench reading --bench images --no-run
# Alternating, so that a busy moment of the machine meets both.
for round in 1 2; do
    ESTIMAND_BENCH_FOLDER=$scratch cargo bench --quiet -p estimand-data --bench reading --bench images | tee -a "$scratch/ours" | sed 's/^/estimand    /'
    "$python" benches/compare/peer_input.py "$scratch" | tee -a "$scratch/peer" | sed 's/^/tf.data     /'
done
awk '
    $2 == "=" && FILENAME ~ /peer$/ { if ($3 > peer[$1]) peer[$1] = $3; if (!seen[$1]++) order[++n] = $1 }
    $2 == "=" && FILENAME ~ /ours$/ { if ($3 > ours[$1]) ours[$1] = $3 }
    END {
        line = "ratio"
        for (i = 1; i <= n; i++) { name = order[i]; short = name; sub(/_rows_s$/, "", short); line = line sprintf(" %s=%.1f", short, ours[name] / peer[name]) }
        print line
    }' "$scratch/peer" "$scratch/ours"
