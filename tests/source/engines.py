"""Engines for the tests of stores: a directory, an object store with S3's protocol, PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.privileges import lacking

_BUCKET = "iobands-tests"


@contextmanager
def directory() -> Iterator[str]:
    """Yield a directory that does not exist yet."""
    with TemporaryDirectory(prefix="iobands-store-") as place:
        yield f"{place}/a store"


@contextmanager
def s3() -> Iterator[str]:
    """Yield the URL of a bucket on a server with S3's protocol, which ends afterwards."""
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        try:
            subprocess.run(
                ["curl", "-fsS", "-X", "PUT", f"http://{host}:{port}/{_BUCKET}"], check=True
            )
            yield f"s3://{_BUCKET}/some/place"
        finally:
            running.stop()


@contextmanager
def postgres() -> Iterator[str]:
    """Yield a database on a private PostgreSQL server, which ends afterwards."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path("/usr/bin")]
    if not (found[-1] / "initdb").exists():
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql")
    as_user: list[str] = []
    with TemporaryDirectory(prefix="iobands-pg-") as place:
        if os.getuid() == 0:  # it refuses to run as root
            if why := lacking("other users"):
                pytest.skip(why)
            shutil.chown(place, "nobody")
            as_user = ["setpriv", "--reuid", "nobody", "--clear-groups"]
        call = [*as_user, f"{found[-1]}/pg_ctl", "--silent", "-D", f"{place}/data", "-w"]
        init = "--no-sync --auth-local=trust --auth-host=scram-sha-256 -U iobands -E UTF8"
        init += " --lc-messages=C"  # tests expect its messages in English
        server = f"-k {place} -c listen_addresses='' -c fsync=off"
        subprocess.run([*call, "initdb", "-o", init], check=True, stdout=subprocess.DEVNULL)
        log = f"{place}/log"
        try:
            subprocess.run([*call, "start", "-o", server, "-l", log], check=True)
            yield f"postgresql://iobands@/postgres?host={place}"
        finally:
            subprocess.run([*call, "stop", "-m", "immediate"], check=False)


ENGINES = {"directory": directory, "s3": s3, "postgres": postgres}

if __name__ == "__main__":  # make store
    try:
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):  # such as a closed terminal
            signal.signal(each, signal.default_int_handler)
        with suppress(KeyboardInterrupt), postgres() as here:
            print(f"A store to try, gone when this ends with Ctrl-C:\n{here}", flush=True)
            signal.pause()
    except pytest.skip.Exception as why:
        sys.exit(str(why))
