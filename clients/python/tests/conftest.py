"""The real server, which ENGINE_URL and ENGINE_API_KEY name, and a tenant for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from durable_workflow_engine import Client


@pytest.fixture(scope="session", autouse=True)
def _server() -> None:
    for name in ("ENGINE_URL", "ENGINE_API_KEY"):
        if name not in os.environ:
            pytest.exit(f"{name} is not set: these tests ask a real server", returncode=2)


@pytest.fixture
def client() -> Iterator[Client]:
    """Of a tenant that no other test works for."""
    with Client(tenant=f"t-{uuid.uuid4()}") as one:
        yield one
