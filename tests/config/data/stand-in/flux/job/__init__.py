"""The names of flux.job that a dry run touches, with the signatures of flux-core 0.88."""


class FluxExecutor:
    """Submits nothing."""


class JobspecV1:
    """A job that is only described."""

    def __init__(self, arguments):
        self.arguments, self.attributes = arguments, {}

    @classmethod
    def from_command(cls, command, num_tasks=1, cores_per_task=1):
        return cls({"command": command, "num_tasks": num_tasks, "cores_per_task": cores_per_task})

    @classmethod
    def from_nest_command(cls, command, num_slots=1, num_nodes=None, exclusive=False):
        return cls(
            {
                "command": command,
                "num_slots": num_slots,
                "num_nodes": num_nodes,
                "exclusive": exclusive,
            }
        )

    def setattr(self, key, value):
        self.attributes[key] = value

    def setattr_shell_option(self, key, value):
        self.attributes[f"system.shell.options.{key}"] = value
