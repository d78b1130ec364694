"""`python -m config.stack.web FD`: one web process on a listening socket that the supervisor opened.

The supervisor holds the socket, so connections wait instead of being refused while a web process is started
again, and several processes may share it.
"""

import socket
import sys

import uvicorn

SHUTDOWN_SECONDS = 10
KEEP_ALIVE_SECONDS = 30


def main() -> None:
    """Serves until SIGTERM; requests under way may take ten more seconds."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    server = uvicorn.Server(
        uvicorn.Config(
            "config.asgi:application",
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            access_log=True,
        )
    )
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
