"""The commands of `iobands`; `main.COMMANDS` lists them with their modules."""
