"""The routes of Mem0's own server that an adapter asks, over the published library: the server is no package of PyPI.

They are those of `server/main.py` in Mem0's repository, as are the configuration (PostgreSQL with pgvector, models of OpenAI), the
names of the variables and the statuses of errors. Left out are accounts and keys, the log of requests, its dashboard, and
`/configure`.
"""

import os
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from mem0 import Memory

memory = Memory.from_config(
    {
        "version": "v1.1",
        "vector_store": {
            "provider": "pgvector",
            "config": {"connection_string": os.environ["MEM0_DATABASE_URL"], "collection_name": "memories"},
        },
        "llm": {"provider": "openai", "config": {"temperature": 0.2, "model": "gpt-4o-mini"}},
        "embedder": {"provider": "openai", "config": {"model": "text-embedding-3-small"}},
        "history_db_path": os.environ["HISTORY_DB_PATH"],
    }
)
app = FastAPI(title="Mem0 REST APIs", version="1.0.0")


class Message(BaseModel):
    role: str
    content: str


class MemoryCreate(BaseModel):
    messages: list[Message]
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    metadata: dict[str, Any] | None = None
    infer: bool | None = None
    prompt: str | None = None


class SearchRequest(BaseModel):
    query: str
    filters: dict[str, Any] | None = None
    top_k: int | None = None
    threshold: float | None = None


def answered(work):
    try:
        return work()
    except ValueError as error:
        raise HTTPException(status_code=400, detail=str(error)) from error
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        raise HTTPException(status_code=502, detail="Upstream provider error.") from error


@app.post("/memories")
def add_memory(create: MemoryCreate):
    if not any([create.user_id, create.agent_id, create.run_id]):
        raise HTTPException(status_code=400, detail="At least one identifier (user_id, agent_id, run_id) is required.")
    given = {name: value for name, value in create.model_dump().items() if value is not None and name != "messages"}
    return answered(lambda: memory.add(messages=[message.model_dump() for message in create.messages], **given))


@app.get("/memories")
def get_all_memories(user_id: str | None = None, top_k: int = 100):
    return answered(lambda: memory.get_all(filters={"user_id": user_id}, top_k=top_k))


@app.post("/search")
def search_memories(request: SearchRequest):
    given = {name: getattr(request, name) for name in ("top_k", "threshold") if getattr(request, name) is not None}
    return answered(lambda: memory.search(query=request.query, filters=request.filters or {}, **given))


@app.delete("/memories")
def delete_all_memories(user_id: str | None = None, run_id: str | None = None, agent_id: str | None = None):
    named = {"user_id": user_id, "run_id": run_id, "agent_id": agent_id}
    named = {name: value for name, value in named.items() if value}
    if not named:
        raise HTTPException(status_code=400, detail="At least one identifier is required.")
    answered(lambda: memory.delete_all(**named))
    return {"message": "All relevant memories deleted"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]))
