#!/usr/bin/env bash
# TensorFlow and ours, the same training steps, one run. The last line is `ratio name=..`: the peer's time over ours.
# Usage: bash benches/compare/steps.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo bench --quiet -p estimand --bench steps --no-run
# Alternating, so that a busy moment of the machine meets both.
for round in 1 2; do
    "$python" benches/compare/peer_steps.py | tee -a "$scratch/peer" | sed 's/^/tensorflow  /'
    cargo bench --quiet -p estimand --bench steps | tee -a "$scratch/ours" | sed 's/^/estimand    /'
done
cargo bench --quiet -p estimand --bench memory | sed 's/^/estimand    /'
awk '
    $2 == "=" && FILENAME ~ /peer$/ { if (!($1 in peer) || $3 < peer[$1]) peer[$1] = $3; if (!seen[$1]++) order[++n] = $1 }
    $2 == "=" && FILENAME ~ /ours$/ { if (!($1 in ours) || $3 < ours[$1]) ours[$1] = $3 }
    END {
        line = "ratio"
        for (i = 1; i <= n; i++) { name = order[i]; short = name; sub(/_(us|ms)$/, "", short); line = line sprintf(" %s=%.1f", short, peer[name] / ours[name]) }
        print line
    }' "$scratch/peer" "$scratch/ours"
