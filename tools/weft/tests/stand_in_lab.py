# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Replaces a lab's process in tests of consoles: it reports the file that a test chooses as a host's console."""
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
