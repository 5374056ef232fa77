"""After which answers a request is sent again. Written by `npm run generate`."""

from typing import Final

#: Nothing was done. After 421 the map of a proxy is about to follow.
UNDONE_STATUSES: Final = frozenset({408, 421, 429})
#: What was asked may have been done, but for a 503 of the engine.
GATEWAY_STATUSES: Final = frozenset({502, 503, 504})
#: Another try does not change it.
LASTING_CODES: Final = frozenset({"ENG_DELIVERY_FAILED", "ENG_NO_KEYS", "ENG_SLOW_READ"})
#: With these a 503 may have been done.
UNKNOWN_CODES: Final = frozenset({"ENG_SHARD_RESTARTING"})
#: With these words in its message, too.
UNKNOWN_WORDS: Final = "outcome is unknown"
