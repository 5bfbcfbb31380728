"""langchain's create_agent on langgraph over ChatOpenAI; its savers in memory and on SQLite; synchronous, but for many at once."""

import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import work as bench
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI


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
        self.is_async, saver = work.is_async, None
        if work.scenario in ("long", "idle"):
            from langgraph.checkpoint.memory import InMemorySaver

            saver = InMemorySaver()
        elif work.db:
            from langgraph.checkpoint.sqlite import SqliteSaver

            saver = SqliteSaver(sqlite3.connect(work.db, check_same_thread=False))
        tool = add_async if self.is_async else add
        tool.__name__ = "add"
        streams = {"streaming": True} if work.scenario == "stream" else {}
        llm = ChatOpenAI(model=model, base_url=work.base_url, api_key="x", use_responses_api=False, **streams)
        self.agent = create_agent(llm, [tool], system_prompt=bench.SYSTEM, checkpointer=saver)
        return self

    def open(self, id):
        return {"configurable": {"thread_id": id}}

    async def turn(self, talk, text):
        said = {"messages": [{"role": "user", "content": text}]}
        state = await self.agent.ainvoke(said, talk) if self.is_async else self.agent.invoke(said, talk)
        return state["messages"][-1].content

    async def stream(self, talk, text):
        said = {"messages": [{"role": "user", "content": text}]}
        return sum(bool(piece.content) for piece, _ in self.agent.stream(said, talk, stream_mode="messages"))


bench.main(Client)
