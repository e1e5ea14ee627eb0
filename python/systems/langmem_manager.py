"""LangMem's store manager: `pip install langmem langchain-openai`."""

from importlib.metadata import version as installed

from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager
from openai_server import Embeddings, address

import bench_coord


class LangMem(bench_coord.System):
    """LangMem: a model extracts memories of each batch of turns into LangGraph's store, which is searched by
    meaning."""

    name = "langmem"
    version = f"langmem {installed('langmem')}"
    env = ["OPENAI_API_KEY"]
    timeout = "300s"

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        embeddings: str = "text-embedding-3-small",
        dimensions: int = 1536,
        base_url: str = "https://api.openai.com/v1",
    ):
        self.store = InMemoryStore(index={"dims": dimensions, "embed": Embeddings(embeddings, base_url)})
        self.manager = create_memory_store_manager(
            ChatOpenAI(model=model, base_url=address(base_url), temperature=0),
            namespace=("memories", "{bank}"),
            store=self.store,
        )

    def namespace(self, bank):
        # its labels hold no dots
        return ("memories", bank.encode().hex())

    def retain(self, bank, items):
        messages = [{"role": item.role, "content": item.content} for item in items]
        self.manager.invoke({"messages": messages}, config={"configurable": {"bank": self.namespace(bank)[1]}})

    def recall(self, bank, query, k):
        found = self.store.search(self.namespace(bank), query=query, limit=k)
        return [(words(one.value), one.score) for one in found]

    def statistics(self, bank):
        return {"memories": len(self.store.search(self.namespace(bank), limit=10_000_000))}

    def reset(self, bank):
        for one in self.store.search(self.namespace(bank), limit=10_000_000):
            self.store.delete(one.namespace, one.key)


def words(value):
    """The text of a memory."""
    content = value.get("content", value)
    return str(content.get("content", content) if isinstance(content, dict) else content)
