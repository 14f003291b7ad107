"""What a check leaves out, and why: printed, and told to the file that ESTIMAND_SKIPPED names, which `.ci/run` lists at its end."""

import os


def left_out(what, why):
    print(f"  left out: {what}, because {why}")
    path = os.environ.get("ESTIMAND_SKIPPED")
    if path:
        with open(path, "a") as skipped:
            skipped.write(f"{what}: {why}\n")
