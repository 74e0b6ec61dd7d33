"""The base of the cases that a script in `scripts/` measures in one process, without benchio."""

from pathlib import Path

from .compared import ComparedCase

SCRIPTS = Path(__file__).parent / "scripts"


class ScriptedCase(ComparedCase):
    """Runs the script that is named after its layer, with an additional first argument."""

    sourcesdir = str(SCRIPTS)
    operations = ("write",)

    @property
    def argument(self) -> str:
        """The first argument of the script, as a word of the shell."""
        raise NotImplementedError(f"define the property argument in {type(self).__name__}")

    def write_command(self) -> None:
        super().write_command()
        self.program_path = f"./{self.layer}.sh"
        self.executable_opts = [self.argument]

    def transport_problems(self, stage: Path) -> list[str]:
        # One process sends no messages.
        return []
