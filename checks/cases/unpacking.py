"""The base of the case that unpacks an archive: tar with large blocks against its default."""

import math
from pathlib import Path

from reframe.core.builtins import run_before

from .. import benchio_result as result
from . import shapes
from .compared import ComparedCase
from .comparison import Setting

MIB_PER_FILE = 64


class UnpackingCase(ComparedCase):
    """tar -x with -b 2048 against the default of 20: 1 MiB against 10 KiB at a time."""

    layer = "untar"
    tool = "tar"
    sourcesdir = str(Path(__file__).parent / "untar")
    operations = ("write",)
    copies = 3  # the archive as well

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        files = math.ceil(volume.mib / MIB_PER_FILE)
        each = int(volume.mib / files)
        return shapes.Shape((1, 1, each), "local", files * each * shapes.BYTES_PER_MIB, files=files)

    def with_setting(self) -> Setting:
        return Setting(self.layer, options=("--blocking-factor=2048",), asked=self.asked_striping)

    @run_before("run")
    def write_commands(self) -> None:
        super().write_commands()
        self.executable = "./untar.sh"
        self.executable_opts = ['"$run_directory/archive.tar"']
        self.prerun_cmds += [
            'mkdir "$run_directory/packed" || exit 1',
            f"for number in $(seq {self.shape.files}); do",
            f"head -c {self.shape.sizes[2]}M /dev/urandom"
            ' > "$run_directory/packed/file$number" || exit 1',
            "done",
            # The files alone: a directory may yet change, on CephFS, when it is archived.
            '(cd "$run_directory/packed" && tar -c -f ../archive.tar file*) || exit 1',
            'rm -r -- "$run_directory/packed" && sync "$run_directory/archive.tar"',
        ]

    def transport_problems(self, stage: Path) -> list[str]:
        # One process sends no messages.
        return []

    def expectation_of(self, layer: str, repeats: int) -> result.Expectation:
        return result.Expectation(
            layer=layer,
            pattern="untar",
            interface="posix",
            repeats=repeats,
            nodes=1,
            processes=1,
            bytes=self.shape.bytes,
            files=self.shape.files,
            fsync=True,
            operations=self.operations,
        )
