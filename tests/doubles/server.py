"""The real ASGI application on a free loopback port, in a thread of the tests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def running() -> Iterator[str]:
    """Serve the portal and give its address; needs a test with real transactions."""
    from portal.asgi import application

    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        thread.join(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
