#!/usr/bin/env bash
# Networks of keras.applications in tf.keras 2.15 and here, in one run, in turns; and in PyTorch, if $ESTIMAND_TORCH is a Python that
# has it with torchvision. Each network runs in a process of its own: milliseconds of a forward pass and of a training step over 8 images
# of 224 x 224 pixels, and the most memory so far. The last lines are `ratio PEER name=..`: the peer's number over ours.
# Usage: bash benches/compare/applications.sh [ROUNDS [NETWORK ...]]
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-5}
if [ $# -gt 1 ]; then networks=("${@:2}"); else networks=(resnet50 mobile_net_v2 inception_v3); fi
python=$(bash oracles/venv.sh | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cargo bench --quiet -p estimand --bench applications --no-run
for network in "${networks[@]}"; do
    # Alternating, so that a busy moment of the machine meets all.
    for _ in 1 2; do
        "$python" benches/compare/peer_applications.py keras "$network" "$rounds" 2>/dev/null | tee -a "$scratch/tf.keras" | sed 's/^/tf.keras    /'
        cargo bench --quiet -p estimand --bench applications -- "$network" "$rounds" | tee -a "$scratch/ours" | sed 's/^/estimand    /'
        if [ -n "${ESTIMAND_TORCH:-}" ]; then
            "$ESTIMAND_TORCH" benches/compare/peer_applications.py torch "$network" "$rounds" | tee -a "$scratch/pytorch" | sed 's/^/pytorch     /'
        fi
    done
done
for peer in tf.keras pytorch; do
    if [ ! -s "$scratch/$peer" ]; then continue; fi
    awk -v peer="$peer" '
        $2 == "=" && FILENAME !~ /ours$/ { if (!($1 in theirs) || $3 < theirs[$1]) theirs[$1] = $3; if (!seen[$1]++) order[++n] = $1 }
        $2 == "=" && FILENAME ~ /ours$/ { if (!($1 in ours) || $3 < ours[$1]) ours[$1] = $3 }
        END {
            line = "ratio " peer
            for (i = 1; i <= n; i++) if (ours[order[i]] > 0) line = line sprintf(" %s=%.2f", order[i], theirs[order[i]] / ours[order[i]])
            print line
        }' "$scratch/$peer" "$scratch/ours"
done
