"""The routes of Astrocyte's gateway over the published library, which has no server of its own on PyPI.

Only the standard library and astrocyte. Its model is whatever OPENAI_BASE_URL and OPENAI_API_KEY name; its memories are in
this process, so that killing it loses them.
"""

import asyncio
import json
import os
import sys
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from astrocyte import Astrocyte

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
brain = Astrocyte.from_config_dict(
    {
        "provider_tier": "storage",
        "vector_store": "in_memory",
        "llm_provider": "openai",
        "llm_provider_config": {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]},
    }
)


def call(work):
    return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=100)


def plain(value):
    if hasattr(value, "__dataclass_fields__"):
        value = asdict(value)
    return json.loads(json.dumps(value, default=str))


def retain(body):
    return plain(call(brain.retain(body["content"], body["bank_id"], tags=body.get("tags"), metadata=body.get("metadata"))))


def recall(body):
    return plain(call(brain.recall(body["query"], body["bank_id"], max_results=body.get("max_results", 10))))


def reflect(body):
    return plain(call(brain.reflect(body["query"], body["bank_id"], include_sources=True)))


def forget(body):
    return plain(call(brain.forget(body["bank_id"], scope=body.get("scope"))))


ROUTES = {"/v1/retain": retain, "/v1/recall": recall, "/v1/reflect": reflect, "/v1/forget": forget}


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200 if self.path == "/health" else 404, {"healthy": True, "message": "in-memory vector store"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        route = ROUTES.get(self.path)
        if route is None:
            return self.answer(404, {"detail": "Not Found"})
        try:
            self.answer(200, route(body))
        except Exception as error:  # the gateway answers with a status, it does not end
            print(repr(error), file=sys.stderr)
            self.answer(500, {"detail": str(error)})

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Gateway)
server.daemon_threads = True
server.serve_forever()
