"""A made-up site with PBS Pro; its expected scripts are in ../golden."""

import runpy
from pathlib import Path

_batch = runpy.run_path(str(Path(__file__).with_name("_batch.py")))

system = _batch["batch_system"](
    "pbsprosite", scheduler="pbspro", launcher="mpiexec", access=["-q batch"]
)
environments = _batch["environments"]
