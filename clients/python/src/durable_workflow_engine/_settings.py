"""Where a client finds what it was not told: the environment, as the command line of the engine."""

from __future__ import annotations

import os

from ._request import Settings, base_url

DEFAULT_URL = "http://127.0.0.1:8080"


def settings_from(
    url: str | None,
    api_key: str | None,
    tenant: str | None,
    namespace: str,
    timeout: float,
    retries: int,
) -> Settings:
    """What was given, else what the environment says.

    Raises:
        ValueError: the address is none.
    """
    return Settings(
        url=base_url(url or os.environ.get("ENGINE_URL") or DEFAULT_URL),
        api_key=api_key or os.environ.get("ENGINE_API_KEY"),
        tenant=tenant or os.environ.get("ENGINE_TENANT"),
        namespace=namespace,
        timeout=timeout,
        retries=retries,
    )
