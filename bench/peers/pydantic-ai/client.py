"""pydantic-ai: Agent.run over OpenAIChatModel; its own conversation store in memory; on SQLite rows that we write of its messages."""

import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import work as bench
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

# A conversation carries its usage on, and the default stops it at request 50.
NO_LIMIT = UsageLimits(request_limit=None)


class Client:
    @classmethod
    async def new(cls, work, model):
        self = cls()
        provider = OpenAIProvider(base_url=work.base_url, api_key="x")
        self.agent = Agent(OpenAIChatModel(model, provider=provider), instructions=bench.SYSTEM)
        self.keeps, self.store, self.db = work.scenario in ("long", "idle"), None, None

        @self.agent.tool_plain
        async def add(a: int, b: int) -> int:
            """Adds two integers."""
            return a + b

        if self.keeps:
            from pydantic_ai.conversation_store import InMemoryConversationStore

            self.store = InMemoryConversationStore()
        if work.db:
            self.db = sqlite3.connect(work.db)
            self.db.execute("pragma journal_mode=wal")
            self.db.execute("pragma synchronous=full")
            self.db.execute("create table messages(id integer primary key, conversation text, body text)")
            self.db.execute("create index of_conversation on messages(conversation)")
        return self

    def open(self, id):
        return id

    async def turn(self, id, text):
        if self.db:
            return await self.turn_on_disk(id, text)
        if not self.store:
            return (await self.agent.run(text)).output
        from pydantic_ai.conversation import Conversation

        talk = await self.store.load(id) or Conversation(conversation_id=id)
        result = await self.agent.run(text, conversation=talk, usage_limits=NO_LIMIT)
        await self.store.save(result)
        return result.output

    async def turn_on_disk(self, id, text):
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        history = []
        for (body,) in self.db.execute("select body from messages where conversation=? order by id", (id,)):
            history.extend(ModelMessagesTypeAdapter.validate_json(body))
        result = await self.agent.run(text, message_history=history)
        self.db.execute("insert into messages(conversation, body) values(?, ?)", (id, result.new_messages_json()))
        self.db.commit()
        return result.output

    async def stream(self, id, text):
        chunks = 0
        async with self.agent.run_stream(text) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                chunks += bool(piece)
        return chunks


bench.main(Client)
