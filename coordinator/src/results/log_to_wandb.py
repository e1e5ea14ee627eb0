"""Logs one result to Weights & Biases, by the package of whoever runs it.

Facts come as JSON on standard input; what became of them goes out as one line of JSON. What the package prints is its log.
"""

import json
import os
import re
import sys
import threading
import time

REPLY = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

# what the package finds out by itself says nothing of a result, and something of whoever runs it
QUIET = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "host": "",
    "program": "bench-coord",
    "silent": True,
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}
# seconds in which the server is to have what it was sent
PATIENCE = 20
REFUSED_LOGIN = re.compile(r"api.?key|log in|logged in|login|permission|error 40[13]|HTTP 40[13]", re.IGNORECASE)
AWAY = re.compile(r"deadline|timed out|timeout|dial |connect|no such host|unreachable|HTTP 5\d\d|error 5\d\d", re.IGNORECASE)


def end(**reply):
    """Says what became of the result, and ends at once: what the package would still do at its end is nobody's."""
    json.dump(reply, REPLY)
    REPLY.write("\n")
    REPLY.flush()
    os._exit(0)


def end_with_runner(runner):
    while os.getppid() == runner:
        time.sleep(0.5)
    os._exit(1)


def package():
    try:
        import wandb
    except ImportError as error:
        end(reply="no_package", why=str(error))
    fields = getattr(getattr(wandb, "Settings", None), "model_fields", None)
    if fields is None:
        end(reply="too_old", version=str(getattr(wandb, "__version__", "unknown")))
    return wandb, fields


def settings(wandb, fields):
    wanted = dict(QUIET)
    # whoever has not said how long waits for a server that does not answer, but not for long
    if "WANDB_INIT_TIMEOUT" not in os.environ:
        wanted["init_timeout"] = 30
    return wandb.Settings(**{name: value for name, value in wanted.items() if name in fields})


def log(wandb, facts, own):
    """Where the result is now: its page and its place on the server, or its folder."""
    mode = wandb.setup(own).settings.mode
    if mode not in (None, "online", "run", "shared", "offline", "dryrun"):
        end(reply="disabled", mode=mode)
    is_offline = mode in ("offline", "dryrun")
    run = wandb.init(
        entity=facts["entity"],
        project=facts["project"],
        id=facts["id"],
        name=facts["name"],
        notes=facts["notes"],
        group=facts["group"],
        job_type=facts["job_type"],
        tags=facts["tags"],
        config=facts["config"],
        # sent twice it is there once
        resume="allow",
        # what is sent leaves nothing here; the working folder is a new one, whose settings are nobody's
        dir=facts["folder"] if is_offline else os.getcwd(),
        settings=own,
    )
    table = facts["questions"]
    # a step of its number: what was logged before is not logged again
    run.log({"questions": wandb.Table(columns=table["columns"], data=table["rows"])}, step=0)
    run.summary.update(facts["summary"])
    page, place, folder = run.url, run.path, os.path.dirname(run.dir)
    run.finish(exit_code=0 if facts["valid"] else 1)
    return (None, None, folder) if is_offline else (page, place, None)


def is_kept(wandb, place, digest):
    """Whether the server has the result: the package does not say when the server has refused a part."""
    until = time.monotonic() + PATIENCE
    while True:
        kept = wandb.Api(timeout=PATIENCE).run(place)
        if kept.summary.get("result_digest") == digest and kept.state != "running":
            return True
        if time.monotonic() > until:
            return False
        time.sleep(1)


def main():
    os.umask(0o077)
    threading.Thread(target=end_with_runner, args=(int(sys.argv[1]),), daemon=True).start()
    facts = json.load(sys.stdin)
    wandb, fields = package()
    page = None
    try:
        page, place, folder = log(wandb, facts, settings(wandb, fields))
        if place and not is_kept(wandb, place, facts["summary"]["result_digest"]):
            end(reply="unconfirmed", page=page, why=None)
    except Exception as error:
        why = " ".join(str(error).split())
        if page:
            end(reply="unconfirmed", page=page, why=why)
        kind = "no_login" if REFUSED_LOGIN.search(why) else "away" if AWAY.search(why) else "refused"
        end(reply=kind, why=why)
    end(reply="logged", page=page, folder=folder)


main()
