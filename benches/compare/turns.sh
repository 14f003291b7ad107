# Sourced by scripts that compare an estimator of TensorFlow with ours.
#
# turns NAME [PYTHON]: runs `peer_NAME.py tensorflow` and the bench `NAME` in turns, and `peer_NAME.py scikit_learn` if a Python is given
# that has scikit-learn. All print milliseconds. The last line is `ratio PEER=..`: the peer's time over ours, the best of all rounds.
turns() {
    local name=$1 sklearn=${2:-} python scratch
    python=$(bash oracles/venv.sh | tail -n 1)
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # The folder of this call.
    trap "rm -rf '$scratch'" EXIT
    export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
    cargo bench --quiet -p estimand --bench "$name" --no-run
    # Alternating, so that a busy moment of the machine meets all.
    for _ in 1 2; do
        "$python" "benches/compare/peer_$name.py" tensorflow 2>/dev/null | tee -a "$scratch/times"
        cargo bench --quiet -p estimand --bench "$name" | sed "s/^${name}_ms/estimand/" | tee -a "$scratch/times"
        if [ -n "$sklearn" ]; then "$sklearn" "benches/compare/peer_$name.py" scikit_learn | tee -a "$scratch/times"; fi
    done
    awk '
        $2 == "=" { if (!($1 in best) || $3 < best[$1]) best[$1] = $3; if ($1 != "estimand" && !seen[$1]++) peers[++n] = $1 }
        END {
            line = "ratio"
            for (i = 1; i <= n; i++) line = line sprintf(" %s=%.2f", peers[i], best[peers[i]] / best["estimand"])
            print line
        }' "$scratch/times"
}
