"""A server for a built site, and the browser that visits it: for the tests and for benchmarks/site.py."""

import contextlib
import functools
import gzip
import http.server
import os
import shutil
import threading
from pathlib import Path

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@functools.cache
def compressed(path, changed):
    return gzip.compress(Path(path).read_bytes(), 6)


class Handler(http.server.SimpleHTTPRequestHandler):
    """The server behind `make serve`, without its log; text is compressed, as GitHub Pages does."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if path.suffix not in (".html", ".css", ".js", ".mjs", ".json", ".svg", ".ipynb") or not path.is_file():
            return super().do_GET()
        body = compressed(path, path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def copyfile(self, source, outputfile):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the page was left
            super().copyfile(source, outputfile)


@contextlib.contextmanager
def served(folder):
    """Serve a folder; yields its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
