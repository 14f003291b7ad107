#!/usr/bin/env bash
# TensorFlow's Estimator 2.15 and ours: the same programs on the same data, in one run, in turns. Writes docs/benchmarks.md.
# Usage: bash benches/compare/run.sh [ROUNDS]
# The last line is `ratio iris=.. cnn=.. census=.. ctr=.. start=..`: the peer's time over ours, medians of the rounds.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-3}
python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
program=$(cargo bench --quiet -p estimand --bench programs --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*programs[^"]*\)".*/\1/p' | tail -n 1)

"$program" files "$scratch"
"$python" benches/compare/peer_programs.py files "$scratch" 2>/dev/null
for round in $(seq "$rounds"); do
    for workload in iris cnn census ctr start; do
        "$python" benches/compare/peer_programs.py "$workload" "$scratch" 2>/dev/null | grep ' = ' | sed 's/^/peer /' | tee -a "$scratch/times" | sed "s/^/round $round: /"
        rm -rf "$scratch"/tmp*
        "$program" "$workload" "$scratch" | sed 's/^/ours /' | tee -a "$scratch/times" | sed "s/^/round $round: /"
    done
done
"$python" benches/compare/table.py "$scratch/times" docs/benchmarks.md
