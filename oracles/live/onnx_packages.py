"""Makes onnx and onnxruntime importable. Import it before them."""

import os
import pathlib
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("ESTIMAND_CLIENTS", pathlib.Path.home() / ".cache/estimand"))
VERSIONS = ["onnx==1.23.2", "onnxruntime==1.31.1"]
PACKAGES = CACHE / "-".join(version.replace("==", "-") for version in VERSIONS)

if not PACKAGES.is_dir():
    # With dependencies of their own: those of TensorFlow are older. Two checks may do this at a time.
    made = PACKAGES.with_name(f"{PACKAGES.name}.{os.getpid()}")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), *VERSIONS], check=True)
    try:
        made.rename(PACKAGES)
    except OSError:
        if not PACKAGES.is_dir():
            raise
# Before the folder of the checks: one of them is called onnx too.
sys.path.insert(0, str(PACKAGES))
