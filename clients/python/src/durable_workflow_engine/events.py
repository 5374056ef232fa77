"""The items of streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from .models import AuditEntry, BlockOutput, Failure, InstanceState, TaskInstance


@dataclass(frozen=True)
class StateChange:
    """The instance is in another state; the current one is sent first."""

    state: InstanceState
    failure: Failure | None = None
    #: When it entered this state or was last changed in it; older servers do not send it.
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Output:
    """A block has produced an output."""

    output: BlockOutput


@dataclass(frozen=True)
class Done:
    """The instance has ended; nothing follows."""

    state: InstanceState
    failure: Failure | None = None


#: The items of `instances.follow`.
InstanceEvent: TypeAlias = StateChange | Output | Done


@dataclass(frozen=True)
class Change:
    """The items of `changes.follow`."""

    #: Where to continue after this change.
    cursor: str
    entry: AuditEntry


@dataclass(frozen=True)
class RunResult:
    """The result of `instances.run`: a completed instance."""

    instance: TaskInstance
    #: The latest output of each block, by block id.
    outputs: dict[str, Any] = field(default_factory=dict)
