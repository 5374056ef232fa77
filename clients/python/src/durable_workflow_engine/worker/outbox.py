"""Reports that wait to be sent, and how many of them go into one request.

A report that may have caused the failure of its request is set aside and sent apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

#: The server's limit per exchange.
RESULTS_MAX = 1_000


@dataclass(frozen=True)
class Outcome:
    """The outcome of a report."""

    #: The status, as of a request for one task; 0 if there was no response and it is not resent.
    status: int
    #: It was sent before and may have arrived: a 409 then does not mean that the claim is lost.
    is_repeated: bool
    error: str = ""
    #: Set for a rejection.
    code: str = ""
    #: Set for a heartbeat.
    checkpoint_seq: int | None = None


@dataclass(eq=False)
class Report:
    """A report that waits for its outcome."""

    #: Serialized once, however often it is sent.
    text: bytes
    #: Not resent without a response: the next one replaces it.
    is_fleeting: bool
    outcome: asyncio.Future[Outcome]
    is_repeated: bool = False
    #: How often it was set aside after failing alone.
    failed_alone: int = 0

    def settle(
        self, status: int, error: str = "", code: str = "", checkpoint_seq: int | None = None
    ) -> None:
        # The waiter may have been cancelled.
        if not self.outcome.done():
            told = Outcome(status, self.is_repeated, error, code, checkpoint_seq)
            self.outcome.set_result(told)


class Outbox:
    """In the order of sending."""

    def __init__(self) -> None:
        self._reports: list[Report] = []
        self._aside: list[Report] = []
        #: How many reports that were set aside go into one request: one after a failure, twice as
        #: many after each success.
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
            is_paused: Reports that have failed alone are delayed.
        """
        return bool(self._aside) and (self._aside[0].failed_alone == 0 or not is_paused)

    def add(self, report: Report) -> None:
        self._reports.append(report)

    def put_back(self, reports: Sequence[Report]) -> None:
        """They were not received, and are sent first."""
        self._reports[:0] = reports

    def set_aside(self, reports: Sequence[Report], *, is_alone: bool) -> None:
        """One of them may have caused the failure of their request; a single one did."""
        self._aside_max = 1
        for report in reports:
            report.failed_alone += is_alone
        self._aside += reports
        # The smallest are the least likely to fail, and one that failed alone does not block the
        # others.
        self._aside.sort(key=lambda it: (it.failed_alone, len(it.text)))

    def take(self, bytes_max: int) -> list[Report]:
        """The reports of one request, in order; at least one unless it is empty."""
        return _first(self._reports, RESULTS_MAX, bytes_max)

    def take_aside(self, bytes_max: int) -> list[Report]:
        """A report that has failed alone is sent alone."""
        others = sum(it.failed_alone == 0 for it in self._aside)
        return _first(self._aside, max(1, min(others, self._aside_max)), bytes_max)

    def received(self) -> None:
        """A request with reports that were set aside succeeded."""
        self._aside_max = min(RESULTS_MAX, 2 * self._aside_max)

    def empty(self) -> list[Report]:
        """Removes all reports, which will not be sent."""
        left = self._reports + self._aside
        self._reports, self._aside = [], []
        return left


def _first(reports: list[Report], count_max: int, bytes_max: int) -> list[Report]:
    """Removes them from the list."""
    total = count = 0
    for report in reports:
        total += len(report.text) + 1
        if count > 0 and (count == count_max or total > bytes_max):
            break
        count += 1
    taken = reports[:count]
    del reports[:count]
    return taken
