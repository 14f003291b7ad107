#!/usr/bin/env bash
# Loading the census export to its first answer, here and in TensorFlow. Usage: export.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-$(bash oracles/venv.sh | tail -n 1)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo bench --quiet -p estimand --bench export -- ${TABLE:+--table} | tee "$log"
"$python" benches/compare/peer_export.py "$(sed -n 's/^# \(.*exports.*\)$/\1/p' "$log" | tail -n 1)"
