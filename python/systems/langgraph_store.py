"""LangGraph's store: `pip install langgraph`."""

from importlib.metadata import version as installed

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from openai_server import Embeddings

import bench_coord


class LangGraphStore(bench_coord.System):
    """LangGraph's InMemoryStore with its semantic search: one item for each turn."""

    name = "langgraph"
    version = f"langgraph {installed('langgraph')}"
    env = ["OPENAI_API_KEY"]
    repeat = True

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        dimensions: int = 1536,
        base_url: str = "https://api.openai.com/v1",
    ):
        embed = Embeddings(model, base_url)
        self.store = InMemoryStore(index={"dims": dimensions, "embed": embed, "fields": ["text"]})

    def namespace(self, bank):
        # its labels hold no dots
        return ("bank", bank.encode().hex())

    def put(self, bank, changes):
        self.store.batch([PutOp(self.namespace(bank), key, value) for key, value in changes])

    def retain(self, bank, items):
        self.put(bank, [(item.id, {"text": item.content, "session": item.session_id}) for item in items])

    def update(self, bank, replaces, item):
        self.forget(bank, replaces)
        self.retain(bank, [item])

    def forget(self, bank, replaces):
        self.put(bank, [(key, None) for key in replaces])

    def recall(self, bank, query, k):
        found = self.store.search(self.namespace(bank), query=query, limit=k)
        return [bench_coord.Hit(one.value["text"], one.key, one.score, one.value["session"]) for one in found]

    def verify(self, bank):
        return len(self.store.search(self.namespace(bank), limit=10_000_000))

    def reset(self, bank):
        found = self.store.search(self.namespace(bank), limit=10_000_000)
        self.forget(bank, [one.key for one in found])
