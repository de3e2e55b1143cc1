# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Serves the pages and their data.

The pages show data that is otherwise accessible only through the sockets in a private directory. On loopback, therefore, only programs of the
same user or of root may read them, unless `--allow reading` permits it to other users. On another address, everybody who can reach it may read
them. Changes need `--allow` and a request with the printed token from a page of this server. Requests with another host name (Host), as in DNS
rebinding, are refused. The consoles of guests are readable by programs of the same user; for others they need `--allow consoles` and the token.
"""
import asyncio
import contextlib
import hmac
import ipaddress
import json
import pathlib
import os
import secrets

from aiohttp import web
import consoles
import metrics
import peers
from watching import Control, Gone, Refused

PAGE = pathlib.Path(__file__).resolve().parent / "page"
PAGE_FILES = (".css", ".js", ".svg")
D3 = pathlib.Path("/usr/share/javascript/d3/d3.min.js")
MOST_CONNECTIONS = 64
LONGEST_CONNECTION = 120        # seconds; then the connection is closed after the current request
LONGEST_ENDING = 30             # further seconds, after which it is aborted even during a request
LONGEST_REQUEST = 4096          # bytes of a body
LONGEST_CAPTURE = 60            # seconds
LARGEST_CAPTURE = 64 << 20      # bytes
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_loopback(address):
    return ipaddress.ip_address(address).is_loopback


class Guard:
    """Determines which requests are accepted."""

    def __init__(self, address, port, names, allowed, token):
        self._any = ipaddress.ip_address(address).is_unspecified
        self._names = {"localhost", "127.0.0.1", "::1", address, *names}
        self._port = port
        self.allowed = allowed
        self._token = token
        self._users = {0, os.getuid()} if is_loopback(address) and "reading" not in allowed else None

    def read(self, request):
        """Raises an exception unless the requesting program belongs to this user, if that is required."""
        if self._users is None:
            return
        transport = request.transport
        ends = transport and (transport.get_extra_info("peername"), transport.get_extra_info("sockname"))
        if not ends or not all(ends) or peers.uid_of(*ends) not in self._users:
            raise web.HTTPForbidden(text="this lab belongs to another user, who can permit access by `weft web --allow reading`\n")

    def has_token(self, request):
        return hmac.compare_digest(request.headers.get("X-Weft-Token", "").encode(errors="surrogateescape"), self._token.encode())

    def may_see_consoles(self, request):
        return self._users is not None or ("consoles" in self.allowed and self.has_token(request))

    def host(self, request):
        """Returns the origin of a request if it is for this server, by one of its own names."""
        text = request.headers.get("Host", "")
        name, bracket, port = text.partition("]")
        if bracket:
            name, port = name[1:], port[1:]
        else:
            name, _, port = text.partition(":")
        if port != str(self._port) and not (port == "" and self._port == 80):
            raise web.HTTPForbidden(text="the Host of the request does not name this server\n")
        if name not in self._names:
            with contextlib.suppress(ValueError):
                if self._any and ipaddress.ip_address(name):
                    return f"http://{text}"
            raise web.HTTPForbidden(text="the Host of the request does not name this server: --name NAME adds a name\n")
        return f"http://{text}"

    def write(self, request, what):
        """Raises an exception unless the request may make changes."""
        if what not in self.allowed:
            raise web.HTTPForbidden(text=f"weft web was started without --allow {what}\n")
        if request.headers.get("Origin") != self.host(request):
            raise web.HTTPForbidden(text="the request is from another site\n")
        if not self.has_token(request):
            raise web.HTTPForbidden(text="the token is missing: open the address that weft web printed\n")


async def _body(request, **kinds):
    """Returns the request's object, which must have exactly these keys with these types."""
    try:
        body = await request.json()
    except (ValueError, UnicodeDecodeError, RecursionError):
        raise web.HTTPBadRequest(text="the body is not JSON\n") from None
    # For Python a bool is an int, but here it is not a number.
    if not isinstance(body, dict) or set(body) != set(kinds) or not all(isinstance(body[key], kind) and not isinstance(body[key], bool) for key, kind in kinds.items()):
        raise web.HTTPBadRequest(text=f"the body must be an object of {', '.join(kinds)}\n")
    return body


def _number(request, key):
    text = request.query.get(key, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise web.HTTPBadRequest(text=f"'{key}' must be a number\n")
    return int(text)


def _name(request, key, known):
    if (name := request.query.get(key)) not in known:
        raise web.HTTPBadRequest(text=f"there is no such {key}\n")
    return name


class Pages:
    """The request handlers. `weft` is the program that creates the pictures."""

    def __init__(self, watch, directory, weft, version):
        self._watch = watch
        self._version = version
        self._consoles = consoles.Consoles(directory)
        self._guard = None
        self._directory = directory
        self._weft = weft
        self._live = self._metrics = (None, b"")
        self._drawing = (-1, b"")
        self._drawing_lock = asyncio.Lock()
        self._capturing = asyncio.Lock()

    def set_guard(self, guard):
        """Must be called before the first request."""
        self._guard = guard

    def application(self):
        app = web.Application(middlewares=[self._around], client_max_size=LONGEST_REQUEST)
        for path, file in (("/", PAGE / "index.html"), ("/d3.js", D3), ("/favicon.ico", PAGE / "favicon.svg"),
                           *((f"/{file.name}", file) for file in PAGE.iterdir() if file.suffix in PAGE_FILES)):
            app.router.add_get(path, self._file(file))
        for handler in (self.live, self.fabric, self.drawing, self.history, self.log, self.ports, self.subnet, self.console):
            app.router.add_get(f"/api/{handler.__name__}", handler)
        app.router.add_get("/metrics", self.metrics)
        for path, handler in (("/api/link", self.link), ("/api/card", self.card), ("/api/capture", self.capture)):
            app.router.add_post(path, handler)
        return app

    @web.middleware
    async def _around(self, request, handler):
        try:
            self._guard.host(request)
            self._guard.read(request)
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        except consoles.NoConsole as error:
            response = web.Response(status=404, text=f"{error}\n")
        except Refused as error:
            response = web.Response(status=400, text=f"{error}\n")
        except Gone as error:
            response = web.Response(status=503, text=f"{error}\n")
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    @staticmethod
    def _file(path):
        async def send(_):
            return web.FileResponse(path)
        return send

    def _there(self):
        if not self._watch.there:
            raise Gone("weftd does not answer")

    @staticmethod
    def _json(body):
        return web.Response(body=body if isinstance(body, bytes) else json.dumps(body).encode(), content_type="application/json")

    async def live(self, _):
        watch = self._watch
        if self._live[0] != watch.number:
            sample = watch.sample or {}
            # Readers detect by the number whether there is new data.
            state = {"there": watch.there, "number": watch.number, "version": watch.version, "interval": watch.interval, "moment": watch.moment}
            if watch.there:
                state |= {name: sample[name] for name in ("guests", "subnet_manager")}
                state |= {"missing": sample.get("missing", [])}
                state |= {"down": watch.down(), "rates": watch.rates, "faulty": watch.faulty}
            self._live = (watch.number, json.dumps(state).encode())
        return self._json(self._live[1])

    async def fabric(self, request):
        self._there()
        may = sorted(self._guard.allowed - {"reading"})
        # Without the token, a page hides everything that would fail, and shows the reason.
        allowed = may if self._guard.has_token(request) else []
        return self._json({**await self._watch.describe(), "allowed": allowed, "locked": bool(may) and not allowed, "cards": self._watch.cards,
                           "consoles": self._consoles.there() and self._guard.may_see_consoles(request)})

    async def drawing(self, _):
        self._there()
        async with self._drawing_lock:
            version = self._watch.version
            if self._drawing[0] != version:
                process = await asyncio.create_subprocess_exec(self._weft, "--socket-dir", str(self._directory), "fabric", "show", "--svg", "-",
                                                               stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE)
                drawn, _ = await process.communicate()
                if process.returncode:
                    raise Gone("the fabric could not be drawn")
                self._drawing = (version, drawn)
        return web.Response(body=self._drawing[1], content_type="image/svg+xml")

    async def history(self, request):
        self._there()
        watch = self._watch
        if "host" in request.query:
            host = _name(request, "host", watch.hosts.place)
            return self._json({"columns": watch.card_columns, "samples": watch.hosts.of(host)})
        return self._json({"columns": ["bits", "bits back", "packets", "packets back", "errors"],
                           "samples": watch.links.of(_name(request, "link", watch.links.place))})

    async def log(self, request):
        after, part = _number(request, "after"), request.query.get("part")
        return self._json([line for line in self._watch.log if line["number"] > after and part in (None, line["part"])])

    async def ports(self, request):
        """Returns the counters of the ports of a node or an Ethernet segment, or of a link's ends."""
        self._there()
        watch = self._watch
        if "segment" in request.query:
            segment = _name(request, "segment", watch.segment_names())
            return self._json(watch.counters(lambda port: port.rpartition("/")[0] == segment, ethernet=True))
        if "node" in request.query:
            node = _name(request, "node", watch.node_names())
            return self._json(watch.counters(lambda port: port.rpartition("/")[0] == node))
        link = _name(request, "link", watch.links.place)
        ends = next(each["ends"] for each in watch.all_links() if each["name"] == link)
        return self._json(watch.counters(ends.__contains__, ethernet=link in watch.sample["ethernet"]["links"]))

    async def subnet(self, request):
        self._there()
        return self._json(await self._watch.subnet(_name(request, "node", self._watch.node_names())))

    async def console(self, request):
        if not self._guard.may_see_consoles(request):
            raise web.HTTPForbidden(text="consoles are for programs of the lab's user; others need --allow consoles and the printed address\n")
        self._there()
        host = _name(request, "host", self._watch.hosts.place)
        return self._json(await self._consoles.read(host, _number(request, "after")))

    async def metrics(self, _):
        state = (self._watch.there, self._watch.content)
        if self._metrics[0] != state:
            self._metrics = (state, metrics.text(self._watch, self._version))
        return web.Response(body=self._metrics[1], headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def link(self, request):
        self._guard.write(request, "faults")
        body = await _body(request, link=str, settings=dict)
        link = await self._watch.control.ask("link.set", link=body["link"], settings=body["settings"])
        await self._watch.describe(0)
        return self._json(link)

    async def card(self, request):
        self._guard.write(request, "faults")
        body = await _body(request, host=str, fault=str, count=int)
        return self._json(await self._watch.control.ask("card.fault", **body))

    async def capture(self, request):
        self._guard.write(request, "captures")
        body = await _body(request, link=str, seconds=(int, float))
        if not 0 < body["seconds"] <= LONGEST_CAPTURE:
            raise web.HTTPBadRequest(text=f"a capture lasts up to {LONGEST_CAPTURE} seconds\n")
        if self._capturing.locked():
            raise web.HTTPConflict(text="there is a capture already\n")
        async with self._capturing:
            # weftd writes the file in a directory to which only weftd and this process have access.
            file = self._directory / f"web-{secrets.token_hex(8)}.pcap"
            control = Control(self._directory)
            try:
                await control.ask("capture.start", link=body["link"], file=str(file), most_bytes=LARGEST_CAPTURE)
                await asyncio.sleep(body["seconds"])
                await control.ask("capture.stop")
                return web.Response(body=file.read_bytes(), content_type="application/vnd.tcpdump.pcap",
                                    headers={"Content-Disposition": 'attachment; filename="weft.pcap"'})
            finally:
                control.close()
                file.unlink(missing_ok=True)


class _Turned(asyncio.Protocol):
    """There are too many clients."""

    def connection_made(self, transport):
        transport.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        transport.close()


class Door:
    """Limits the number of connections, and the duration of each."""

    def __init__(self, server):
        self._server = server
        self._born = {}

    def __call__(self):
        return self._server() if len(self._server.connections) < MOST_CONNECTIONS else _Turned()

    async def sweep(self):
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(5)
            now = loop.time()
            self._born = {connection: self._born.get(connection, now) for connection in self._server.connections}
            for connection, born in self._born.items():
                if now - born > LONGEST_CONNECTION + LONGEST_ENDING and connection.transport:
                    connection.transport.abort()
                elif now - born > LONGEST_CONNECTION:
                    connection.close()
