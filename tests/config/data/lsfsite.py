"""A made-up site with LSF; its expected scripts are in ../golden."""

import runpy
from pathlib import Path

_batch = runpy.run_path(str(Path(__file__).with_name("_batch.py")))

system = _batch["batch_system"]("lsfsite", scheduler="lsf", launcher="mpirun", access=["-q batch"])
environments = _batch["environments"]
