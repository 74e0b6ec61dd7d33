"""A made-up site with Flux; its expected scripts are in ../golden."""

import runpy
import sys
from pathlib import Path

# ReFrame loads its backend for Flux only with Flux's Python module; a test puts a stand-in here.
sys.path.append(str(Path(__file__).resolve().parents[2] / "stand-in"))

_batch = runpy.run_path(str(Path(__file__).with_name("_batch.py")))

system = _batch["batch_system"](
    "fluxsite",
    scheduler="flux",
    launcher="local",  # the checks start their program by `flux run`
    access=[],
)
environments = _batch["environments"]
