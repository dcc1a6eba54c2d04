"""Notices changes of objects without polling, of which an idle API server and its etcd would do most of their work."""

import threading
import time
from collections.abc import Callable
from typing import Any

from kubernetes import client, watch
from urllib3.exceptions import HTTPError

AGAIN_SECONDS = 1.0
"""Pause after an error of a watch, for example while the API server starts."""


def changes(*lists: Callable[..., Any]) -> threading.Event:
    """An event that is set now, and again at every change of the objects that these functions of the client list."""
    changed = threading.Event()
    changed.set()
    for list_all in lists:
        threading.Thread(target=_watch, args=(list_all, changed), daemon=True).start()
    return changed


def _watch(list_all: Callable[..., Any], changed: threading.Event) -> None:
    while True:
        try:
            for _ in watch.Watch().stream(list_all):
                changed.set()
        except (client.ApiException, HTTPError, ValueError):  # ValueError: a line that ended with its connection
            time.sleep(AGAIN_SECONDS)
            changed.set()
