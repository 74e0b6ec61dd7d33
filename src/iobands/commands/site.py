"""The site that the commands show and act on, or a message and the exit status for unknown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from iobands.commands.options import default_path, failure
from iobands.model.schema import FileError
from iobands.site.site import OVERDUE, Site, read_site


@dataclass(frozen=True)
class Places:
    """Where the files of a site are, as the options say; None for the default.

    The defaults are below `root`, or else here or in the repository around.
    """

    perflogs: Path | None = None
    bands: Path | None = None
    alerts: Path | None = None
    system: str | None = None
    root: Path | None = None

    @property
    def perflogs_directory(self) -> Path:
        """The directory of the perflogs."""
        return self._place(self.perflogs, "perflogs")

    @property
    def bands_directory(self) -> Path:
        """The directory of the bands files."""
        return self._place(self.bands, "config/bands")

    @property
    def alerts_directory(self) -> Path:
        """The directory of the logs of what people did about alerts."""
        return self._place(self.alerts, "config/alerts")

    def _place(self, given: Path | None, default: str) -> Path:
        if given:
            return given
        return self.root / default if self.root else default_path(Path(default))


def site_of(
    places: Places,
    *,
    overdue: float = OVERDUE / timedelta(days=1),
    false_alarms: float = 1,
    as_of: datetime | None = None,
) -> Site:
    """Return the site now or `as_of` a time in the past; `overdue` is in days.

    Ends with a message where it cannot be read.
    """
    for given, option in ((places.bands, "--bands"), (places.alerts, "--alerts")):
        if given and not given.is_dir():  # the default need not exist
            raise failure(f"{given}: no such directory; give {option} the directory of the files")
    perflogs = places.perflogs_directory
    try:
        site = read_site(
            perflogs,
            places.bands_directory,
            places.alerts_directory,
            now=as_of or datetime.now(timezone.utc).replace(microsecond=0),
            as_of=as_of is not None,
            system=places.system,
            overdue=timedelta(days=overdue),
            false_alarms=false_alarms,
        )
    except FileNotFoundError:
        raise failure(
            f"{perflogs}: no perflogs there; measure first with `make run` or `iobands run`, "
            "or give --perflogs the directory that has them"
        ) from None
    except OSError as error:
        raise failure(f"{error.filename}: {error.strerror}") from error
    except FileError as error:
        raise failure(str(error)) from error
    if places.system and not (site.series or site.alerts):
        known = ", ".join(sorted(p.name for p in perflogs.iterdir() if p.is_dir())) or "none"
        raise failure(f"{perflogs}: nothing of the system {places.system}; systems there: {known}")
    return site
