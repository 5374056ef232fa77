"""What streams tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from .models import AuditEntry, BlockOutput, Failure, InstanceState, TaskInstance


@dataclass(frozen=True)
class StateChange:
    """The instance is in another state; the first one comes at once."""

    state: InstanceState
    failure: Failure | None = None
    #: When it came into it, or was changed in it last; an older server does not say.
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Output:
    """A block left an output."""

    output: BlockOutput


@dataclass(frozen=True)
class Done:
    """The instance has ended; nothing follows."""

    state: InstanceState
    failure: Failure | None = None


#: What `instances.follow` gives.
InstanceEvent: TypeAlias = StateChange | Output | Done


@dataclass(frozen=True)
class Change:
    """What `changes.follow` gives."""

    #: Where to go on behind this one.
    cursor: str
    entry: AuditEntry


@dataclass(frozen=True)
class RunResult:
    """What `instances.run` gives: an instance that is completed."""

    instance: TaskInstance
    #: The latest output of each block, by its id.
    outputs: dict[str, Any] = field(default_factory=dict)
