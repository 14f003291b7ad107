#!/usr/bin/env bash
# LinearSDCA on 100,000 rows of 20 numbers and 4 hashed categories, 5 epochs in batches of 1,000: TensorFlow's and ours, in one run, in turns.
# Usage: bash benches/compare/sdca.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
source benches/compare/turns.sh
turns sdca
