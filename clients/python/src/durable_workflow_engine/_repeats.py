"""After which responses a request is retried. Written by `npm run generate`."""

from typing import Final

#: Nothing was done. After 421 the map of a proxy is updated soon.
UNDONE_STATUSES: Final = frozenset({408, 421, 429})
#: The request may have been executed, except after a 503 of the engine.
GATEWAY_STATUSES: Final = frozenset({502, 503, 504})
#: A retry fails in the same way.
LASTING_CODES: Final = frozenset({"ENG_DELIVERY_FAILED", "ENG_NO_KEYS", "ENG_SLOW_READ"})
#: After a 503 with these, the request may have been executed.
UNKNOWN_CODES: Final = frozenset({"ENG_SHARD_RESTARTING"})
#: The same after a 503 whose message has these words.
UNKNOWN_WORDS: Final = "outcome is unknown"
