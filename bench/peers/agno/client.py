"""agno: Agent over OpenAILike, telemetry off; its databases in memory and on SQLite, the whole history in context."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import work as bench
from agno.agent import Agent
from agno.models.openai.like import OpenAILike


def add(a: int, b: int) -> int:
    """Adds two integers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Adds two integers."""
    return a + b


class Client:
    @classmethod
    async def new(cls, work, model):
        self = cls()
        self.is_async, kept = work.is_async, {}
        if work.scenario in ("long", "idle"):
            from agno.db.in_memory import InMemoryDb

            kept = {"db": InMemoryDb()}
        elif work.db:
            from agno.db.sqlite import SqliteDb

            kept = {"db": SqliteDb(db_file=work.db)}
        if kept:
            kept |= {"add_history_to_context": True, "num_history_runs": 1_000_000}
        tool = add_async if self.is_async else add
        tool.__name__ = "add"
        llm = OpenAILike(id=model, base_url=work.base_url, api_key="x")
        self.agent = Agent(model=llm, tools=[tool], system_message=bench.SYSTEM, telemetry=False, **kept)
        return self

    def open(self, id):
        return id

    async def turn(self, id, text):
        run = await self.agent.arun(text, session_id=id) if self.is_async else self.agent.run(text, session_id=id)
        return run.content

    async def stream(self, id, text):
        events = self.agent.run(text, session_id=id, stream=True)
        return sum(event.event == "RunContent" and bool(getattr(event, "content", None)) for event in events)


bench.main(Client)
