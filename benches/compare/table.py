"""Times of both sides to a table with medians, spread and ratio. usage: table.py TIMES PAGE

TIMES has lines `peer|ours WORKLOAD = SECONDS`. The section of the page between its markers is written, and the table and the line of ratios are printed.
"""

import os
import platform
import statistics
import sys
from datetime import date

TIMES, PAGE = sys.argv[1:]

# What is measured, the target for the ratio, and the physical bound where it is known.
WORKLOADS = {
    "iris": ("a step of DNN [10, 10], batch 32, from memory", 30, ""),
    "cnn": ("a step of the MNIST network (conv 5x5x20, pool, conv 5x5x40, pool, 256, 256, 10), batch 128, from memory", 2, "4.3 ms: 1.31 GFLOP at the peak of 2 such cores"),
    "census": ("a step of wide & deep, batch 256, read from CSV", 12, ""),
    "ctr": ("a step of DNN [256, 128] on 8 fields x 1,000,000 buckets x 32, batch 512, from memory", 20, ""),
    "start": ("a process with one step of training, from start to end", 40, ""),
}

times = {}
for line in open(TIMES):
    side, workload, _, seconds = line.split()
    times.setdefault(workload, {}).setdefault(side, []).append(float(seconds))


def shown(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us"


def cell(values):
    return f"{shown(statistics.median(values))} ({shown(min(values))} - {shown(max(values))})"


def cpu():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return names[0] if names else platform.processor()


rows, ratios = [], []
for workload, (what, target, bound) in WORKLOADS.items():
    if workload not in times:
        continue
    peer, ours = times[workload]["peer"], times[workload]["ours"]
    ratio = statistics.median(peer) / statistics.median(ours)
    ratios.append(f"{workload}={ratio:.1f}")
    rows.append(f"| `{workload}`: {what} | {cell(peer)} | {cell(ours)} | **{ratio:.1f}** | {target} | {bound} |")

n_rounds = len(next(iter(times.values()))["ours"])
table = "\n".join(["| program | TensorFlow Estimator 2.15.1 | Estimand | ratio | target | bound |", "|---|---|---|---|---|---|", *rows])
BEGIN, END = "<!-- begin: run.sh -->", "<!-- end: run.sh -->"
section = f"""{table}

A time is the median of {n_rounds} rounds, with the fastest and the slowest in brackets. The ratio is TensorFlow's median over ours. The time of a step is the mean over all steps after the first 50, through `Estimator.train` on both
sides, with input, hooks and event files. TensorFlow's programs are in `benches/compare/peer_programs.py`, ours in `crates/estimand/benches/programs.rs`.

Machine: {cpu()}, {os.cpu_count()} cores, {platform.system()}; {date.today().isoformat()}.
"""
with open(PAGE) as page:
    before, _, rest = page.read().partition(BEGIN)
after = rest.partition(END)[2]
if not after:
    sys.exit(f"{PAGE} has no section between {BEGIN} and {END}")
with open(PAGE, "w") as page:
    page.write(f"{before}{BEGIN}\n{section}{END}{after}")
print(table)
print("ratio " + " ".join(ratios))
