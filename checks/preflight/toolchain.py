"""Whether modules load and compilers compile: the commands that test it, and their output."""

import re
import shlex
from collections.abc import Mapping

#: A program without dependencies, by language.
_SOURCES = {"C": "empty.c", "Fortran": "empty.f90"}

_NOT_FOUND = 127

# Errors after which the job would continue: by Environment Modules, Lmod, Spack, and a shell that
# has none of these.
_MISSING_MODULES = [
    re.compile(r"(Unable to locate a modulefile for '[^']*')"),
    re.compile(r"(?s)following module\(s\) are unknown:\s*\"?([^\"\n]*)"),
    re.compile(r"==> Error: (Spec '[^']*' matches no installed packages)"),
    re.compile(r"\b((?:module|ml|spack): (?:command )?not found)"),
]

# cron starts a program without the functions and the PATH of a login shell.
_NO_MODULE = (
    "; start it from a login shell, as the line of `iobands schedule` does, or define the command "
    "in prepare_cmds of the partition: docs/howto/run-every-night.md, Modules"
)


def commands(compilers: Mapping[str, str], program: str) -> list[str]:
    """Shell commands that test each named compiler, and build the MPI program."""
    tried = [
        f"try_compiler {language} {_SOURCES[language]} {_words(compiler)}"
        for language, compiler in compilers.items()
        if compiler
    ]
    built = [f"build hello.c {program} {_words(compilers['C'])}"] if compilers["C"] else []
    return ["source ./toolchain.sh || exit 1", *tried, *built]


def _words(compiler: str) -> str:
    # such as `ccache mpicc`
    return shlex.join(shlex.split(compiler))


def problems(said: str) -> list[str]:
    """What is missing, a line each."""
    found = [match[1] for form in _MISSING_MODULES if (match := form.search(said))]
    modules = [
        f"{each}{_NO_MODULE}" if "not found" in each else f"module: {each}" for each in found
    ]
    tried = re.findall(r"^iobands-compiler (\S+) (\d+) (.*?): (.*)$", said, re.MULTILINE)
    broken = [
        f"compiler of {language} not found: {compiler}"
        if int(status) == _NOT_FOUND
        else f"compiler of {language} fails: {compiler}: {words}"
        for language, status, compiler, words in tried
        if int(status)
    ]
    return modules + broken
