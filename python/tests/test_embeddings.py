"""Embeddings of the library systems, by servers that break off."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import bench_coord

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "systems"))
from openai_server import Embeddings  # noqa: E402

REPLY = b'{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}'
PAGE = b"<html>busy</html>"


@pytest.fixture
def embeddings():
    """An embedder, and the replies of its server: their bytes, and how many it said that there would be."""
    replies = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self):
            body, length = replies.pop(0)
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Embeddings("small", f"http://127.0.0.1:{server.server_port}/v1"), replies
    server.shutdown()


def test_a_reply_that_is_cut_off_or_is_none_is_asked_for_again(embeddings):
    embed, replies = embeddings
    for body, length, why in ((REPLY[:20], len(REPLY), "IncompleteRead"), (PAGE, len(PAGE), "JSONDecodeError"), (b"\xff", 1, "Unicode")):
        replies.append((body, length))
        with pytest.raises(bench_coord.TryAgain, match=f"gave a reply that cannot be read: {why}"):
            embed(["a", "b"])
    replies.append((REPLY, len(REPLY)))
    assert embed(["a", "b"]) == [[1], [2]]
