"""The place of a check's I/O: one point for each file system, stripe count and transport."""

import reframe as rfm
from reframe.core.builtins import parameter, variable

from ..filesystems import BACKENDS, Asked, Striping
from . import site


def stripe_counts(*others: int) -> parameter:
    """The parameter over the site's stripe counts, and over `others`."""
    counts = dict.fromkeys([*site.stripe_counts(), *others])
    return parameter(counts, fmt=lambda each: "null" if each is None else str(each), loggable=True)


class FileSystemMixin(rfm.RegressionTestPlugin):
    """Parametrises a check over the site's file systems; each point runs only where it exists."""

    #: The file system, by its name in the site configuration.
    file_system = parameter(site.file_systems(), loggable=True)

    #: The requested stripe count: −1 is all targets, None a file system without stripes.
    stripe_count_asked = stripe_counts()

    #: The MPI transport, which is a feature of the programming environment.
    transport = parameter(site.transports(), loggable=True)

    #: The name of the hint preset; a check that uses MPI-IO takes all presets of the site.
    hints = parameter([site.DEFAULT_HINTS], loggable=True)

    #: The check's own hint presets by name, in addition to the site configuration's.
    own_presets = variable(dict, value={})

    #: The medium of the file system, as the site configuration says.
    medium = variable(str, type(None), value=None, loggable=True)

    #: The type of the file system, which selects the striping backend.
    file_system_type = variable(str, type(None), value=None, loggable=True)

    def bind_to_site(self) -> None:
        """Set the partitions and environments that have this point; without any, it is dropped."""
        self.valid_systems = site.partitions_for(
            self.file_system, self.stripe_count_asked, self.hints, self.own_presets
        )
        self.valid_prog_environs = site.environments_for(
            self.transport, self.hints, self.own_presets
        )
        # Before there is a partition, so that `-E` can select by both.
        self.medium, self.file_system_type = site.medium_and_type(self.file_system)

    @property
    def file_system_settings(self) -> dict:
        """The entry of the file system in the site configuration, from the phase setup on."""
        return self.current_partition.extras["filesystems"][self.file_system]

    @property
    def striping(self) -> Striping:
        """The striping backend of the file system, from the phase setup on."""
        return BACKENDS[self.file_system_type]

    @property
    def asked_striping(self) -> Asked:
        """This point's stripe count, and the striping of the site configuration."""
        settings = self.file_system_settings
        tolerated = settings.get("max_inactive_targets", 0)
        return Asked(self.stripe_count_asked, **settings.get("striping", {}), tolerated=tolerated)
