"""``rblspi serve`` in a process of its own, and programs that ask it."""

import http.client
import json
import re

from tests.support.process import Running

#: a warning is an error
STRICT = "import warnings as w; w.simplefilter('error')"


class Service(Running):
    """The service as a process; it listens on a free port, or on one that is given."""

    def __init__(self, policy, log=None, port=0):
        arguments = ("serve", policy, "--port", port, *(() if log is None else ("--log", log)))
        super().__init__(policy.parent, *arguments, prelude=STRICT)
        self.until(lambda: "\n" in self.out)
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.out)
        if found is None:
            raise RuntimeError(self.out + self.wait().err)
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()


class Client:
    """Asks a service over one connection, which it opens again if it was lost."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def send(self, path, body, kind="application/json"):
        """Send any bytes; returns the status and the answer."""
        method = "GET" if body is None else "POST"
        headers = {} if body is None else {"content-type": kind}
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        return response.status, answer

    def ask(self, path, question=None):
        """Send plain data, and return the answer; a refused question is an error."""
        body = None if question is None else json.dumps(question).encode()
        status, answer = self.send(path, body)
        if status != 200:
            raise ValueError(f"{status}: {answer.decode()}")
        return json.loads(answer) if answer.startswith(b"{") else answer.decode()

    def close(self):
        self._connection.close()
