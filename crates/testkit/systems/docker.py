#!/usr/bin/env python3
"""Stands for the docker client in tests: it notes its arguments in $DOCKER_NOTES, and a container is the memory server as a
process, on the host's side of the published port. `rm -f` ends it."""
import json, os, signal, sys

arguments, notes = sys.argv[1:], os.environ["DOCKER_NOTES"]
with open(os.path.join(notes, "calls"), "a") as calls:
    print(json.dumps(arguments), file=calls)
if arguments[:2] == ["rm", "-f"]:
    try:
        with open(os.path.join(notes, arguments[2])) as record:
            os.kill(int(record.read()), signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass
    sys.exit(0)
name = arguments[arguments.index("--name") + 1]
host, port, _inside = arguments[arguments.index("-p") + 1].split(":")
assert host == "127.0.0.1", "a port is published on loopback only"
with open(os.path.join(notes, name), "w") as record:
    record.write(str(os.getpid()))
server = os.path.join(os.path.dirname(os.path.realpath(__file__)), "memory_server.py")
os.execvp("python3", ["python3", server, port])
