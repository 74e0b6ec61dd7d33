"""Judges a run by the site's bands: ReFrame's reference, and a verdict for the perflog."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable

from .package import MATCH_FIELDS, NO_BAND, SITE, Bands, load_bands

BANDS_DIRECTORY = SITE / "config" / "bands"


class BandVerdictMixin(rfm.RegressionTestPlugin):
    """Sets `reference` and `band_verdict` from the site's bands, if there are any."""

    #: The verdict on each variable, as `write_bw=within,read_bw=below`.
    band_verdict = variable(str, type(None), value=None, loggable=True)

    #: The directory of the bands files; without a file for the system there is no verdict.
    bands_directory = variable(str, value=str(BANDS_DIRECTORY))

    def find_bands(self) -> Bands:
        """The bands of the system; called before the run, too, as a broken file ends the check."""
        return load_bands(Path(self.bands_directory), self.current_system.name)

    def judge(self, values: Mapping[str, float]) -> None:
        """Judge `values`, by variable; ReFrame's performance phase then fails on `collapsed`."""
        bands = self.find_bands()
        fields = {
            "system": self.current_system.name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
            **{name: getattr(self, name) for name in MATCH_FIELDS if hasattr(self, name)},
        }
        now = datetime.now().astimezone()
        references, verdicts = {}, []
        for name, value in values.items():
            of_variable = {**fields, "variable": name}
            band = bands.band_for(of_variable, now) or bands.limit_for(of_variable, now)
            if band:
                references[name] = band.reference()
            verdicts.append(f"{name}={band.verdict(value) if band else NO_BAND}")
        self.band_verdict = ",".join(verdicts)
        self.reference = {self.current_partition.fullname: references} if references else {}
