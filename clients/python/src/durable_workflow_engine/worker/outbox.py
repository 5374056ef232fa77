"""Reports that wait for the server, and how many of them go into one request. One that may be to
blame for the failure of its request is set aside, and goes apart from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

#: Of one exchange, as the server takes them.
RESULTS_MAX = 1_000


@dataclass(frozen=True)
class Outcome:
    """What became of a result."""

    #: That of the request for one task; 0: nobody answered, and it is not said again.
    status: int
    #: It was said before, and may have arrived: a 409 then says nothing about the claim.
    is_repeated: bool
    error: str = ""
    #: Of a refusal.
    code: str = ""
    #: Of a heartbeat.
    checkpoint_seq: int | None = None


@dataclass(eq=False)
class Report:
    """A result that waits for its outcome."""

    #: As it is sent: made once, however often it is.
    text: bytes
    #: Not said again when nobody answers: the next one says the same.
    is_fleeting: bool
    outcome: asyncio.Future[Outcome]
    is_repeated: bool = False
    #: How often it was set aside since it failed alone.
    failed_alone: int = 0

    def settle(
        self, status: int, error: str = "", code: str = "", checkpoint_seq: int | None = None
    ) -> None:
        # Whoever waited may have gone.
        if not self.outcome.done():
            told = Outcome(status, self.is_repeated, error, code, checkpoint_seq)
            self.outcome.set_result(told)


class Outbox:
    """In the order of sending."""

    def __init__(self) -> None:
        self._reports: list[Report] = []
        self._aside: list[Report] = []
        #: How many of those that are set aside go together: one after a failure, twice as many
        #: after a success.
        self._aside_max = 1

    @property
    def is_empty(self) -> bool:
        return not self._reports and not self._aside

    @property
    def has_next(self) -> bool:
        return bool(self._reports)

    def has_aside(self, *, is_paused: bool) -> bool:
        """
        Args:
            is_paused: Those that have failed alone are not to be sent yet.
        """
        return bool(self._aside) and (self._aside[0].failed_alone == 0 or not is_paused)

    def add(self, report: Report) -> None:
        self._reports.append(report)

    def put_back(self, reports: Sequence[Report]) -> None:
        """They were not received, and go first."""
        self._reports[:0] = reports

    def set_aside(self, reports: Sequence[Report], *, is_alone: bool) -> None:
        """One of them may be to blame for the failure of their request; the only one of it is."""
        self._aside_max = 1
        for report in reports:
            report.failed_alone += is_alone
        self._aside += reports
        # The smallest are the least likely to fail, and one that failed alone holds none of the
        # others back.
        self._aside.sort(key=lambda it: (it.failed_alone, len(it.text)))

    def take(self, bytes_max: int) -> list[Report]:
        """What one request takes, in its order; at least one unless it is empty."""
        return _first(self._reports, RESULTS_MAX, bytes_max)

    def take_aside(self, bytes_max: int) -> list[Report]:
        """One that has failed alone goes alone."""
        others = sum(it.failed_alone == 0 for it in self._aside)
        return _first(self._aside, max(1, min(others, self._aside_max)), bytes_max)

    def received(self) -> None:
        """Those that were set aside are received again."""
        self._aside_max = min(RESULTS_MAX, 2 * self._aside_max)

    def empty(self) -> list[Report]:
        """All of them, which nobody sends any more."""
        left = self._reports + self._aside
        self._reports, self._aside = [], []
        return left


def _first(reports: list[Report], count_max: int, bytes_max: int) -> list[Report]:
    """Takes them out of the list."""
    total = count = 0
    for report in reports:
        total += len(report.text) + 1
        if count > 0 and (count == count_max or total > bytes_max):
            break
        count += 1
    taken = reports[:count]
    del reports[:count]
    return taken
