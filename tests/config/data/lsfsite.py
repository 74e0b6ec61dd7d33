"""A site that exists nowhere, with LSF: what its scripts would be is stored in ../golden."""

import runpy
from pathlib import Path

_batch = runpy.run_path(str(Path(__file__).with_name("_batch.py")))

system = _batch["batch_system"]("lsfsite", scheduler="lsf", launcher="mpirun", access=["-q batch"])
environments = _batch["environments"]
