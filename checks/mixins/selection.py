"""The tags by which the site's sets of checks are run: daily, weekly, smoke and full."""

import reframe as rfm
from reframe.core.builtins import run_after

from .. import selections, site


class SelectionMixin(rfm.RegressionTestPlugin):
    """Tags a check as the partitions would have it on which it can run."""

    # Last, when it is settled where the check can run.
    @run_after("init", always_last=True)
    def tag_by_selections(self) -> None:
        check = {
            "tool": self.tool,
            "pattern": self.pattern,
            "interface": self.interface,
            "file_system": self.file_system,
            "medium": self.medium,
            "stripe_count": self.stripe_count_asked,
            "transport": self.transport,
            "hints": self.hints,
            "scale": self.scale,
        }
        for extras, transport in site.selecting_partitions(self.valid_systems):
            if self.scale in extras["scales"]:
                self.tags = {*self.tags, *selections.tags_of(check, extras, transport)}
