"""Who may talk to the app: the browser of the person who started it, and nobody else.

The address that is opened holds a random token, which is exchanged for a cookie that no other site can make the browser
send. Host and origin are checked at every request, so that a name that was rebound to this machine, or a page that is
open in another tab, reaches nothing. Keys live as long as the process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: largest body of a request, and of one that brings a file
MAX_FORM, MAX_FILE = 2 * 2**20, 2 * 2**30
UPLOAD = "/open/upload"
START, STATIC = "/start", "/static/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # not no-referrer: a browser then hides the origin of our own forms too
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
REFUSED = "Open the address that `fedanon app` printed. / Abra o endereço que `fedanon app` mostrou.\n"


@dataclass(frozen=True)
class Session:
    """The keys of one run of the app.

    Parameters
    ----------
    port : where it listens, which a request has to name.
    token : in the address that is opened.
    cookie : what the token is exchanged for.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie_name(self) -> str:
        """Apart from those of other apps on this machine, since cookies do not know ports."""
        return f"fedanon_{self.port}"

    @property
    def address(self) -> str:
        """What is opened."""
        return f"http://127.0.0.1:{self.port}{START}?token={self.token}"

    @property
    def csrf(self) -> str:
        """What every form of ours holds."""
        return hmac.new(self.cookie.encode(), b"csrf", hashlib.sha256).hexdigest()

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a request may call this machine."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def is_token(self, given: str) -> bool:
        """Whether it is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def knows(self, headers: Headers) -> bool:
        """Whether the request has our cookie."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.cookie.encode())


class Guard:
    """Lets only the right requests through, bounds their size, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self.app, self.session = app, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers, path = Headers(scope=scope), str(scope["path"])
        refused = self._refused(str(scope["method"]), path, headers)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    own.setdefault(name, value)
            await send(message)

        if refused:
            await PlainTextResponse(REFUSED, refused)(scope, receive, answer)
            return
        most = MAX_FILE if path == UPLOAD else MAX_FORM
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most or "chunked" in headers.get("transfer-encoding", ""):
            await PlainTextResponse("Too large. / Grande demais.\n", 413)(scope, receive, answer)
            return
        await self.app(scope, receive, answer)

    def _refused(self, method: str, path: str, headers: Headers) -> int:
        """The status of a refusal; 0 if there is none."""
        host = headers.get("host", "")
        if host not in self.session.hosts:
            return 421
        site = headers.get("sec-fetch-site", "none")
        if method not in ("GET", "HEAD"):
            if headers.get("origin") != f"http://{host}" or site not in ("same-origin", "none"):
                return 403
        elif path == START or path.startswith(STATIC):
            return 0
        elif site not in ("same-origin", "none"):
            return 403
        return 0 if self.session.knows(headers) else 403
