"""Default settings from the environment, with the variables of the command line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from ._request import Settings, base_url
from ._seconds import Seconds, seconds

DEFAULT_URL = "http://127.0.0.1:8080"


class Options(TypedDict, total=False):
    """The options that a derived client may change."""

    api_key: str | None
    tenant: str | None
    namespace: str
    timeout: Seconds
    retries: int


def settings_from(
    url: str | None,
    api_key: str | None,
    tenant: str | None,
    namespace: str,
    timeout: Seconds,
    retries: int,
) -> Settings:
    """The given values, or else those of the environment.

    Raises:
        TypeError: the timeout is not a duration.
        ValueError: the URL is invalid, or the key file is empty.
        OSError: the key file cannot be read.
    """
    return Settings(
        url=base_url(url or _variable("ENGINE_URL") or DEFAULT_URL),
        api_key=api_key or _variable("ENGINE_API_KEY") or _key_in_file(),
        tenant=tenant or _variable("ENGINE_TENANT"),
        namespace=namespace,
        timeout=seconds("timeout", timeout),
        retries=retries,
    )


def changed(settings: Settings, changes: Options) -> Settings:
    """The settings with other options."""
    if "timeout" in changes:
        changes = {**changes, "timeout": seconds("timeout", changes["timeout"])}
    return replace(settings, **changes)  # type: ignore[arg-type]


def _variable(name: str) -> str | None:
    """A blank variable counts as unset."""
    return os.environ.get(name, "").strip() or None


def _key_in_file() -> str | None:
    """From ENGINE_API_KEY_FILE, as secrets are often mounted."""
    file = _variable("ENGINE_API_KEY_FILE")
    if file is None:
        return None
    key = Path(file).read_text().strip()
    if not key:
        raise ValueError(f"ENGINE_API_KEY_FILE: {file} is empty")
    return key
