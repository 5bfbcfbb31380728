"""A client that does everything wrong that llmock can see. It is judged in the same run, so that a clean verdict means something."""

import contextlib
import http.client
import json
import urllib.parse

from llmock import Llmock, Wire, broken, fail


class Careless:
    def __init__(self, mock: Llmock, wire: Wire, key: str):
        self.place = urllib.parse.urlsplit(mock.url)
        self.mock, self.wire, self.key = mock, wire, key

    def misbehave(self) -> None:
        """One call for each thing to be found."""
        self._meets("retry_after_ignored", fail(429, retry_after=2))
        self._meets("retried_non_retryable", fail(400))
        # these are eleven tries without a pause between them: no_backoff as well
        self._meets("retry_storm", fail(500, times=11))
        self._meets("truncated_stream_accepted", broken("truncate", 3))
        self._meets("malformed_chunk_ignored", broken("malformed", 3))
        self._meets("gave_up", broken("disconnect", 3))
        self._meets("no_read_timeout", broken("stall", 3, stall_seconds=1.2))

    def _meets(self, prompt: str, behavior: dict) -> None:
        self.mock.script(behavior)
        self.ask(prompt)

    def ask(self, prompt: str) -> http.client.HTTPResponse:
        """Tries until the status is a good one, at once and for ever; takes whatever comes then for the whole answer."""
        while True:
            connection = http.client.HTTPConnection(self.place.hostname, self.place.port, timeout=60)
            with contextlib.closing(connection):
                body = json.dumps(self.wire.body(prompt))
                connection.request("POST", self.wire.base + self.wire.chat, body, self.wire.headers(self.key))
                response = connection.getresponse()
                with contextlib.suppress(OSError, http.client.HTTPException):
                    response.read()
                if response.status < 400:
                    return response
