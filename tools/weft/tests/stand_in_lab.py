# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a stub of the process of a lab (`weft lab up`), for tests of consoles. As the console output of a host, it reports a file that the test
chooses."""
import contextlib
import json
import socket
import threading


@contextlib.contextmanager
def lab(directory, paths):
    """Serves the directory's lab.sock; `paths` are the files of hosts by name."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "lab.sock"))
        listener.listen()

        def serve():
            while True:
                client, _ = listener.accept()
                with client:
                    path = paths.get(json.loads(client.makefile("rb").readline()).get("log"))
                    client.sendall(json.dumps({"status": 0, "path": str(path)} if path else {"error": "there is no such host"}).encode() + b"\n")

        def until_closed():
            with contextlib.suppress(OSError):
                serve()

        thread = threading.Thread(target=until_closed)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            (directory / "lab.sock").unlink()
