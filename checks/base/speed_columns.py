"""The columns with the speeds of a run's targets and nodes."""

import csv
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.logging import getlogger

from ..filesystems.layout import LAYOUT_FILE
from .package import SPEEDS
from .speeds import RankTime, node_speeds, speeds_text, target_bandwidths, targets_text
from .stage import read_output


class SpeedsMixin(rfm.RegressionTestPlugin):
    """Gives a check the columns with the speeds of targets and nodes."""

    for _name in SPEEDS:
        locals()[_name] = variable(str, type(None), value=None, loggable=True)

    def rank_times(self, stage: Path) -> dict[str, list[RankTime]]:
        """The times of the ranks by variable, if each has its own file."""
        return {}

    def record_speeds(self, stage: Path) -> None:
        """Set the columns; if a file cannot be read they stay null, as they prove nothing."""
        try:
            targets = self.striping.targets_of_files(read_output(stage / LAYOUT_FILE))
            self.targets = targets_text(targets)
            self.count_stripes(targets)
            times = self.rank_times(stage)
        except (OSError, ValueError, KeyError, csv.Error) as error:
            getlogger().warning(f"{self.name}: targets and nodes cannot be compared: {error}")
            return
        without = sum(each.file not in targets for every in times.values() for each in every)
        if targets and without:
            getlogger().warning(f"{self.name}: {without} times of ranks without a known layout")
        of_targets = {name: target_bandwidths(each, targets) for name, each in times.items()}
        of_nodes = {name: node_speeds(each, targets) for name, each in times.items()}
        self.target_bandwidths = speeds_text(of_targets)
        self.node_speeds = speeds_text(of_nodes)
