"""Sessions of OpenAI's Agents SDK: `pip install openai-agents`."""

from importlib.metadata import version as installed

from agents import SQLiteSession

import bench_coord


class OpenAIAgentsSession(bench_coord.System):
    """A session of the OpenAI Agents SDK: its last items, whatever is asked; it does not search."""

    name = "openai-agents"
    version = f"openai-agents {installed('openai-agents')}"

    def __init__(self):
        self.sessions = {}

    async def open(self, bank):
        self.sessions[bank] = SQLiteSession(bank)

    async def retain(self, bank, items):
        await self.sessions[bank].add_items([{"role": item.role, "content": item.content} for item in items])

    async def recall(self, bank, query, k):
        latest = await self.sessions[bank].get_items(limit=k)
        return [one["content"] for one in reversed(latest)]

    async def verify(self, bank):
        return len(await self.sessions[bank].get_items())

    async def reset(self, bank):
        session = self.sessions.pop(bank, None)
        if session is not None:
            await session.clear_session()
            session.close()
