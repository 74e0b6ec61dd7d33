"""The columns that say how fast the targets and the nodes of a run were."""

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
    """Gives a check the columns that say how fast targets and nodes were."""

    for _name in SPEEDS:
        locals()[_name] = variable(str, type(None), value=None, loggable=True)

    def rank_times(self, stage: Path) -> dict[str, list[RankTime]]:
        """The times of the ranks by variable, where each has a file of its own."""
        return {}

    def record_speeds(self, stage: Path) -> None:
        """Set the columns; what cannot be read leaves them null, as they prove nothing."""
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
