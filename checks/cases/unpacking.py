"""The base of the case that unpacks an archive: tar with large blocks against its default."""

import math
from dataclasses import replace

from . import shapes
from .compared import ComparedCase, Setting
from .scripted import SCRIPTS, ScriptedCase

MIB_PER_FILE = 64


class UnpackingCase(ScriptedCase):
    """tar -x with -b 2048 against the default of 20: 1 MiB against 10 KiB at a time."""

    layer = "untar"
    tool = "tar"
    scripts = (*ComparedCase.scripts, SCRIPTS / "archive.sh")
    copies = 3  # the archive as well
    argument = '"$run_directory/archive.tar"'

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        files = math.ceil(volume.mib / MIB_PER_FILE)
        each = int(volume.mib / files)
        return shapes.Shape((1, 1, each), "local", files * each * shapes.BYTES_PER_MIB, files=files)

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), replace(self.plain(), options=("--blocking-factor=2048",))

    def before_program(self) -> list[str]:
        _, _, mib = self.shape.sizes
        return [*super().before_program(), f"make_archive {self.shape.files} {mib}"]
