#!/usr/bin/env bash
# A training step of an LSTM classifier (64 sequences of 26 to 50 tokens, 128 units): TensorFlow's RNNClassifier and ours, in one run, in turns.
# Usage: bash benches/compare/rnn.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
source benches/compare/turns.sh
turns rnn
