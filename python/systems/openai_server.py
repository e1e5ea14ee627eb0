"""Embeddings by an OpenAI-compatible server, with nothing but the standard library."""

import http.client
import json
import os
import urllib.error
import urllib.request

import bench_coord

# Texts of one request.
MOST_TEXTS = 64


class Refused(Exception):
    """What the server said; `status_code` tells whether another try may help."""

    def __init__(self, status_code, message):
        super().__init__(f"{status_code}: {message}")
        self.status_code = status_code


def address(base_url):
    """Where to ask: where calls are metered the meter's address, else that of the setting."""
    return (os.environ.get("BENCH_METER_URL") or base_url).rstrip("/")


class Embeddings:
    """Vectors of texts. The key is the environment's `OPENAI_API_KEY`."""

    def __init__(self, model, base_url):
        self.model, self.url = model, address(base_url) + "/embeddings"

    def __call__(self, texts):
        texts = list(texts)
        return [vector for at in range(0, len(texts), MOST_TEXTS) for vector in self.some(texts[at : at + MOST_TEXTS])]

    def some(self, texts):
        request = urllib.request.Request(
            self.url,
            json.dumps({"model": self.model, "input": texts, "encoding_format": "float"}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=50) as response:
                said = json.load(response)
        except urllib.error.HTTPError as refused:
            raise Refused(refused.code, refused.read(2000).decode("utf-8", "replace")) from None
        except urllib.error.URLError as away:
            raise bench_coord.TryAgain(f"{self.url} is away: {away.reason}") from None
        except (http.client.IncompleteRead, http.client.BadStatusLine, json.JSONDecodeError, UnicodeDecodeError) as broken:
            # cut off in the middle, or a page of whatever stands before the server
            raise bench_coord.TryAgain(f"{self.url} gave a reply that cannot be read: {broken!r}") from None
        found = said["data"]
        return [one["embedding"] for one in sorted(found, key=lambda one: one["index"])]
