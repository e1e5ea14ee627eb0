"""What the package wandb asks of its servers while it logs a run: no server of Weights & Biases can be run by a test.

Arguments: a port, a file that gets a line of JSON for each request, and what is refused: `nothing`, `everybody`, or `streams`, the way
of the figures. It keeps what it is sent, and says what it has kept when the package asks.
"""

import gzip
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, FOUND, REFUSED = int(sys.argv[1]), open(sys.argv[2], "a"), sys.argv[3]
RUNS = {}


def upload(name):
    return {"id": "f", "name": name, "displayName": name, "uploadUrl": f"http://127.0.0.1:{PORT}/up/{name}", "uploadHeaders": []}


def run_of(name):
    return RUNS.setdefault(name, {"summary": "{}", "state": "running", "made": False})


def upsert(given):
    run = run_of(given["name"])
    run["made"] = True
    project = {"id": "p", "name": given.get("project"), "entity": {"id": "e", "name": "us"}}
    bucket = {"id": "r", "name": given["name"], "displayName": given.get("displayName"), "description": "", "config": "{}"}
    bucket.update(sweepName=None, historyLineCount=0, project=project)
    return {"upsertBucket": {"bucket": bucket, "inserted": True}}


def resume(given):
    run = run_of(given["name"])
    kept = {"id": "r", "name": given["name"], "summaryMetrics": run["summary"], "displayName": "", "logLineCount": 0}
    kept.update(historyLineCount=1, eventsLineCount=0, historyTail='["{\\"_step\\":0}"]', eventsTail="[]", config="{}", tags=[])
    bucket = dict(kept, wandbConfig="{}") if run["made"] else None
    return {"model": {"id": "m", "name": given["project"], "entity": {"id": "e", "name": "us"}, "bucket": bucket}}


def told(given):
    run = run_of(given["name"])
    kept = {"projectId": "1", "id": "r", "name": given["name"], "state": run["state"], "summaryMetrics": run["summary"]}
    kept.update(displayName="x", config="{}", createdAt="2026-01-01T00:00:00", heartbeatAt="2026-01-01T00:00:00", tags=[])
    kept.update(systemMetrics="{}", historyLineCount=1, readOnly=False, user={"name": "us", "username": "us"})
    return {"project": {"run": dict.fromkeys(["group", "jobType", "commit", "description", "notes", "sweepName", "historyKeys"]) | kept}}


def artifact_files(given):
    files = given["input"]["artifactFiles"]
    more = {"storagePath": "x", "uploadMultipartUrls": None, "artifact": {"id": "a"}}
    return {"createArtifactFiles": {"files": {"edges": [{"node": dict(upload(file["name"]), **more)} for file in files]}}}


def artifact(_):
    made = {"id": "a", "state": "PENDING", "artifactSequence": {"id": "s", "latestArtifact": None}}
    return {"createArtifact": {"artifact": made}}


VIEWER = {"viewer": {"id": "u", "entity": "us", "username": "us", "flags": "{}", "teams": {"edges": []}}}
ANSWERS = {
    "RunResumeStatus": resume,
    "UpsertBucket": upsert,
    "Run": told,
    "Viewer": lambda _: VIEWER,
    "GetDefaultEntity": lambda _: VIEWER,
    "ServerFeaturesQuery": lambda _: {"serverInfo": {"features": []}},
    "ArtifactType": lambda _: {"project": {"artifact": None}},
    "CreateArtifact": artifact,
    "CreateArtifactManifest": lambda _: {"createArtifactManifest": {"artifactManifest": {"id": "m", "file": upload("manifest")}}},
    "CreateArtifactFiles": artifact_files,
    "CommitArtifact": lambda _: {"commitArtifact": {"artifact": {"id": "a", "digest": "d"}}},
    "CreateRunFiles": lambda given: {
        "createRunFiles": {"runID": "r", "uploadHeaders": [], "files": [upload(name) for name in given["files"]]}
    },
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, what):
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        text = body.decode(errors="replace")
        heard = {"path": self.path, "authorization": self.headers.get("authorization"), "body": text}
        FOUND.write(json.dumps(heard) + "\n")
        FOUND.flush()
        is_stream = "file_stream" in self.path
        if REFUSED == "everybody" or (REFUSED == "streams" and is_stream):
            return self.answer(401, {"errors": [{"message": "user is not logged in"}]})
        if is_stream:
            return self.stream(json.loads(text))
        if self.path != "/graphql":
            return self.answer(200, {})
        asked = json.loads(text)
        name = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"]).group(1)
        return self.answer(200, {"data": ANSWERS[name](asked.get("variables") or {})})

    do_PUT = do_POST

    def stream(self, sent):
        run = run_of(self.path.split("/")[4])
        summary = sent.get("files", {}).get("wandb-summary.json")
        if summary:
            run["summary"] = summary["content"][-1]
        if sent.get("complete"):
            run["state"] = "finished" if sent.get("exitcode") == 0 else "failed"
        return self.answer(200, {})

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
