"""The survey that the commands show and act on, or a message and the status for unknown.

May know: surveys, what can go wrong with one, and what the command line's modules share.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from iobands.commands.options import default_path, failure
from iobands.readers.adapters import AdapterError
from iobands.status.survey import STATUS_COLUMNS, Survey, take_survey
from iobands.yaml_file import FileError


@dataclass(frozen=True)
class Site:
    """Where what is known of a site lies, as the options say; None for the default.

    The defaults are below `root`, or else here or in the repository around.
    """

    perflogs: Path | None = None
    bands: Path | None = None
    alarms: Path | None = None
    system: str | None = None
    adapter: str | None = None
    root: Path | None = None

    def place(self, given: Path | None, default: str) -> Path:
        """Return the directory that was `given`, or else the default one."""
        if given:
            return given
        return self.root / default if self.root else default_path(Path(default))

    @property
    def alarms_directory(self) -> Path:
        """Where is kept what people did about alarms."""
        return self.place(self.alarms, "config/alarms")


def survey_of(
    site: Site,
    *,
    overdue: float = 3,
    false_alarms: float = 1,
    columns: Collection[str] = STATUS_COLUMNS,  # neither the digest nor the page shows more
) -> Survey:
    """Return the survey, or end with a message and the status for unknown."""
    for given, what in ((site.bands, "--bands"), (site.alarms, "--alarms")):
        if given and not given.is_dir():  # the default need not be there
            raise failure(f"{given}: no such directory; give {what} the directory of the files")
    perflogs = site.place(site.perflogs, "perflogs")
    try:
        survey = take_survey(
            perflogs,
            site.place(site.bands, "config/bands"),
            alarms=site.alarms_directory,
            now=datetime.now(timezone.utc).replace(microsecond=0),
            system=site.system,
            overdue=timedelta(days=overdue),
            adapter=site.adapter,
            columns=columns,
            false_alarms=false_alarms,
        )
    except FileNotFoundError:
        raise failure(
            f"{perflogs}: no perflogs there; measure first with `make run` or `iobands run`, "
            "or give --perflogs the directory that has them"
        ) from None
    except OSError as error:
        raise failure(f"{error.filename}: {error.strerror}") from error
    except (FileError, AdapterError) as error:
        raise failure(str(error)) from error
    if site.system and not (survey.series or survey.findings or survey.obstacles):
        known = ", ".join(sorted(p.name for p in perflogs.iterdir() if p.is_dir())) or "none"
        raise failure(f"{perflogs}: nothing of the system {site.system}; systems there: {known}")
    return survey
