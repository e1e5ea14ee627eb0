"""LlamaIndex's memory: `pip install llama-index-core`."""

from importlib.metadata import version as installed
from typing import Any, List

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult
from openai_server import Embeddings
from pydantic import PrivateAttr

import bench_coord


class Server(BaseEmbedding):
    """Embeddings of an OpenAI-compatible server."""

    _ask: Any = PrivateAttr()

    def __init__(self, ask):
        super().__init__(model_name=ask.model)
        self._ask = ask

    def _get_text_embeddings(self, texts: List[str]) -> List[List[float]]:
        return self._ask(texts)

    def _get_text_embedding(self, text: str) -> List[float]:
        return self._ask([text])[0]

    def _get_query_embedding(self, query: str) -> List[float]:
        return self._ask([query])[0]

    async def _aget_query_embedding(self, query: str) -> List[float]:
        return self._get_query_embedding(query)


class Texts(BasePydanticVectorStore):
    """LlamaIndex's simple vector store, which does not keep texts, with the texts that a memory block wants of it."""

    stores_text: bool = True
    _vectors: Any = PrivateAttr(default_factory=SimpleVectorStore)
    _nodes: Any = PrivateAttr(default_factory=dict)

    @property
    def client(self) -> Any:
        return None

    def __len__(self):
        return len(self._nodes)

    def add(self, nodes, **kwargs: Any):
        self._nodes.update((node.node_id, node) for node in nodes)
        return self._vectors.add(nodes, **kwargs)

    def delete(self, ref_doc_id: str, **kwargs: Any):
        self._vectors.delete(ref_doc_id, **kwargs)

    def query(self, query, **kwargs: Any):
        found = self._vectors.query(query, **kwargs)
        nodes = [self._nodes[one] for one in found.ids or []]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=found.ids)


class Seen(BaseNodePostprocessor):
    """Notes which messages a block found, before it joins them to one text."""

    _nodes: Any = PrivateAttr(default_factory=list)

    def _postprocess_nodes(self, nodes, query_bundle=None):
        self._nodes = nodes
        return nodes


class LlamaIndexMemory(bench_coord.System):
    """LlamaIndex's VectorMemoryBlock over its simple vector store: one message for each turn."""

    name = "llama-index"
    version = f"llama-index-core {installed('llama-index-core')}"
    env = ["OPENAI_API_KEY"]

    def __init__(self, model: str = "text-embedding-3-small", base_url: str = "https://api.openai.com/v1"):
        self.embeddings = Server(Embeddings(model, base_url))
        self.blocks = {}

    def open(self, bank):
        self.blocks[bank] = VectorMemoryBlock(
            vector_store=Texts(), embed_model=self.embeddings, node_postprocessors=[Seen()], retrieval_context_window=1
        )

    async def retain(self, bank, items):
        for item in items:
            own = {"session_id": item.session_id}
            await self.blocks[bank].aput([ChatMessage(role=item.role, content=item.content, additional_kwargs=own)])

    async def recall(self, bank, query, k):
        block = self.blocks[bank]
        block.similarity_top_k = k
        seen = block.node_postprocessors[0]
        seen._nodes = []
        await block.aget([ChatMessage(role="user", content=query)])
        return [bench_coord.Hit(said(one.node.text), None, one.score, one.node.metadata["session_id"]) for one in seen._nodes]

    def verify(self, bank):
        return len(self.blocks[bank].vector_store)

    def reset(self, bank):
        self.blocks.pop(bank, None)


def said(text):
    """The words of a message, without the tag that a block puts around them."""
    return text.split(">", 1)[1].rsplit("</message>", 1)[0]
