"""A memory server for tests: python3 memory_server.py PORT. It keeps users apart, in this process or in MEMORY_FILE.

While the file MEMORY_FAILS is there, every n-th memory is refused: n is what stands in it. While the file MEMORY_BUSY is there,
everything but its health is answered with 503. MEMORY_STARTS: seconds to start. MEMORY_MODEL: the model at OPENAI_BASE_URL that
sums up each memory before it is kept; with MEMORY_PASSES what it refuses is passed on at once, with its status.
"""
import http.client, json, os, re, sys, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

print("begins", time.monotonic(), flush=True)
users, lock, file = {}, threading.Lock(), os.environ.get("MEMORY_FILE")
added = 0
if file and os.path.exists(file):
    users = json.load(open(file))


def words(text):
    return set(re.findall(r"\w{3,}", text.lower()))


def fails():
    """Whether this memory is one of those that are refused."""
    global added
    added += 1
    try:
        return added % int(open(os.environ["MEMORY_FAILS"]).read()) == 0
    except (KeyError, FileNotFoundError):
        return False


def sum_up(text):
    """Asks the model until it answers, as clients do whose provider or network is away for a while."""
    body = {"model": os.environ["MEMORY_MODEL"], "temperature": 0, "max_tokens": 64,
            "messages": [{"role": "user", "content": "Sum up: " + text}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    for _ in range(600):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["choices"][0]["message"]["content"]
        except (OSError, ValueError, http.client.HTTPException) as error:
            if os.environ.get("MEMORY_PASSES") and isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(0.1)
    raise RuntimeError("no model answers")


def answer(method, path, body):
    user = body.get("user")
    if path == "/health":
        return {"version": os.environ.get("MEMORY_VERSION", "1.2.3")}
    if path == "/add" and fails():
        print("\x1b[31mERROR\x1b[0m no such module: vec0, asked with", os.environ.get("MINE_KEY"), flush=True)
        return {"refused": "internal error"}
    if path == "/add":
        # the same turn again takes the place of itself
        kept = users.setdefault(user, [])
        kept[:] = [m for m in kept if "turn" not in (m.get("meta") or {}) or m["meta"] != body.get("meta")] + [body]
        if file:
            json.dump(users, open(file, "w"))
        return {"ok": True}
    if path == "/count":
        return {"memories": len(users.get(user, [])), "characters": sum(len(m["text"]) for m in users.get(user, []))}
    if path == "/consolidate":
        print("consolidate", user, flush=True)
        return {"usage": {"prompt": 40, "completion": 4}}
    if path == "/search":
        score = lambda memory: len(words(body["query"]) & words(memory["text"]))
        best = sorted(users.get(user, []), key=score, reverse=True)[: body["limit"]]
        return {"results": [{"memory": m["text"], "meta": m["meta"], "score": score(m)} for m in best if score(m)]}
    if method == "DELETE":
        users.pop(path.rsplit("/", 1)[-1], None)
        return {"ok": True}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def reply(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/add":
            time.sleep(float(os.environ.get("MEMORY_TAKES", "0")))
            if os.environ.get("MEMORY_MODEL"):
                try:
                    sum_up(json.loads(body)["text"])
                except urllib.error.HTTPError as error:
                    self.send_response(error.code)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
        busy = os.environ.get("MEMORY_BUSY")
        if busy and os.path.exists(busy) and self.path != "/health":
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        with lock:
            found = answer(self.command, self.path, json.loads(body or "{}"))
        text = json.dumps(found).encode()
        refused = found is not None and "refused" in found
        self.send_response(404 if found is None else 500 if refused else 200)
        if refused:
            self.send_header("retry-after", "0")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = reply

    def log_message(self, *_):
        pass


time.sleep(float(os.environ.get("MEMORY_STARTS", "0")))
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listens", time.monotonic(), flush=True)
server.serve_forever()
