"""The options of the commands that read a site, and the site that they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import get_type_hints

from iobands.commands.options import (
    AlertsOption,
    AsOfOption,
    BandsOption,
    FalseAlarmsOption,
    PerflogsOption,
    SystemOption,
    default_path,
    failure,
    time_of,
)
from iobands.model.schema import FileError
from iobands.site.site import Site, read_site


@dataclass(frozen=True)
class SiteOptions:
    """Where the files of a site are and how it is judged; the fields with options are options.

    The default paths are below `root`, or else here or in the repository around. `as_of`
    is a time in the past, or None for now.
    """

    perflogs: PerflogsOption = None
    bands: BandsOption = None
    alerts: AlertsOption = None
    system: SystemOption = None
    false_alarms: FalseAlarmsOption = 1
    as_of: str | None = None
    root: Path | None = None

    @property
    def perflogs_directory(self) -> Path:
        """The directory of the perflogs."""
        return self._path(self.perflogs, "perflogs")

    @property
    def bands_directory(self) -> Path:
        """The directory of the bands files."""
        return self._path(self.bands, "config/bands")

    @property
    def alerts_directory(self) -> Path:
        """The directory of the logs of what people did about alerts."""
        return self._path(self.alerts, "config/alerts")

    def _path(self, given: Path | None, default: str) -> Path:
        if given:
            return given
        return self.root / default if self.root else default_path(Path(default))


@dataclass(frozen=True)
class PastSiteOptions(SiteOptions):
    """The same of a site that may also be seen as it was in the past."""

    as_of: AsOfOption = None


def with_site_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the options of the dataclass that is one of its parameters, if any."""
    signature = inspect.signature(command, eval_str=True)
    parameters = dict(signature.parameters)
    taken = next((each for each in parameters.values() if is_dataclass(each.annotation)), None)
    if taken is None:
        return command
    options = taken.annotation
    hints = get_type_hints(options, include_extras=True)
    defaults = {
        each.name: inspect.Parameter.empty if each.default is MISSING else each.default
        for each in fields(options)
        if hasattr(hints[each.name], "__metadata__")
    }
    # the command's own before those of every site
    names = sorted(defaults, key=lambda name: name not in options.__annotations__)

    @wraps(command)
    def call(**given: object) -> None:
        site = options(**{name: given.pop(name) for name in names})
        command(**given, **{taken.name: site})

    del parameters[taken.name]
    for name in names:
        parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=hints[name],
        )
    shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters.values()]
    call.__signature__ = signature.replace(parameters=shown)
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return call


def site_of(options: SiteOptions) -> Site:
    """Return the site that the options name, or end with a message where it cannot be read."""
    for given, option in ((options.bands, "--bands"), (options.alerts, "--alerts")):
        if given and not given.is_dir():  # the default need not exist
            raise failure(f"{given}: no such directory; give {option} the directory of the files")
    perflogs = options.perflogs_directory
    as_of = time_of(options.as_of, "--as-of") if options.as_of else None
    try:
        site = read_site(
            perflogs,
            options.bands_directory,
            options.alerts_directory,
            now=as_of or datetime.now(timezone.utc).replace(microsecond=0),
            as_of=as_of is not None,
            system=options.system,
            false_alarms=options.false_alarms,
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
    if options.system and not (site.series or site.alerts):
        known = ", ".join(sorted(p.name for p in perflogs.iterdir() if p.is_dir())) or "none"
        raise failure(f"{perflogs}: nothing of the system {options.system}; systems there: {known}")
    return site
