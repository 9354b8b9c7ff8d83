"""A PostgreSQL server for a gradebook, for as long as it is needed."""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time


def program(name):
    """A server program, or None; Debian and Ubuntu keep them off the PATH."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


@contextlib.contextmanager
def postgresql(*options):
    """Start a server with these options; gives the part of its URL after `postgresql://`."""
    user = {"user": "postgres"} if os.geteuid() == 0 else {}  # it refuses to run as root
    folder = tempfile.mkdtemp(prefix="postgres-")
    if user:
        shutil.chown(folder, "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
    command = [program("initdb"), "-D", f"{folder}/data", "-U", "teacher", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(command, check=True, **quiet)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program("postgres"), "-D", f"{folder}/data", "-h", "127.0.0.1", "-p", str(port), "-k", "", *options]
    process = subprocess.Popen(command, **quiet)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, "PostgreSQL does not start"
                time.sleep(0.1)
        yield f"teacher@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
