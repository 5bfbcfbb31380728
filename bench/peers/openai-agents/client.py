"""openai-agents: Runner.run over OpenAIChatCompletionsModel, tracing off; its SQLiteSession, in memory and on a file."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import work as bench
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
SETTINGS = {"max_turns": 20, "run_config": RunConfig(tracing_disabled=True)}


@function_tool
async def add(a: int, b: int) -> int:
    """Adds two integers."""
    return a + b


class Client:
    @classmethod
    async def new(cls, work, model):
        self = cls()
        llm = OpenAIChatCompletionsModel(model=model, openai_client=AsyncOpenAI(base_url=work.base_url, api_key="x"))
        self.agent = Agent(name="a", instructions=bench.SYSTEM, tools=[add], model=llm)
        self.keeps, self.path = work.scenario in ("long", "longdb", "idle"), work.db or ":memory:"
        return self

    def open(self, id):
        return SQLiteSession(id, self.path) if self.keeps else None

    async def turn(self, session, text):
        return (await Runner.run(self.agent, text, session=session, **SETTINGS)).final_output

    async def stream(self, session, text):
        chunks, result = 0, Runner.run_streamed(self.agent, text, **SETTINGS)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                chunks += bool(event.data.delta)
        return chunks


bench.main(Client)
