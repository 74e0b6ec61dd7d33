"""A made-up site with Slurm; its expected scripts are in ../golden."""

import runpy
from pathlib import Path

_batch = runpy.run_path(str(Path(__file__).with_name("_batch.py")))

system = _batch["batch_system"](
    "slurmsite",
    scheduler="slurm",
    launcher="srun",
    access=["--partition=batch"],
    sched_options={"use_nodes_option": True},
)
environments = _batch["environments"]
