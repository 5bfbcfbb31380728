"""llama.cpp's server with the small real model, and our binary over each of the three wires that the server speaks."""

import contextlib
import pathlib
import sys

from cepa import Cepa
from servers import HOST, free_port, recording, running

HERE = pathlib.Path(__file__).parent
#: Our name of the wire: the provider, where its addresses begin, and the folder in which its requests are kept.
WIRES = {
    "chat": ("openai", "/v1", "openai_chat"),
    "messages": ("anthropic", "", "anthropic"),
    "responses": ("openai-responses", "/v1", "openai_responses"),
}
#: A small model may say one line again and again, and on one wire we ask for up to 4096 tokens: an answer ends with its first
#: paragraph, or here. Each wire has its own words for that.
LIMIT = {"max_tokens": 64, "max_output_tokens": 64, "stop": ["\n\n"], "stop_sequences": ["\n\n"]}


@contextlib.contextmanager
def serving(log: pathlib.Path, *more: str):
    """Yields the port of the server."""
    port = free_port()
    command = [sys.executable, str(HERE / "serve_llamacpp.py"), "--port", str(port), *more]
    with running(command, f"http://{HOST}:{port}/health", log, seconds=120):
        yield port


@contextlib.contextmanager
def wires(binary: str, work: pathlib.Path, port: int):
    """Yields our binary by wire. All share one folder and one database, and what they send is kept in `work/sent`."""
    with recording(port, work / "sent", **LIMIT) as proxy:
        yield {
            wire: Cepa(binary, work, f"{provider}/smollm2", f"http://{HOST}:{proxy}{base}")
            for wire, (provider, base, _) in WIRES.items()
        }
