#!/usr/bin/env python3
"""llmock's verdict on our client over one wire: it breaks answers as scripted, and says whether the client took it well.

    drive_llmock.py --cepa BINARY --peers FOLDER openai|openai-responses|anthropic|gemini

A stream that breaks after some of it was shown is not repeated by us: the command fails, and whoever called it says the same
words again. llmock counts that as the retry, so each such step does it. A refusal that llmock calls final is not said again.
"""

import contextlib
import json
import pathlib
import subprocess

import steps
from careless import Careless
from cepa import COMPLETED, FAILED, KEY, Cepa, Unexpected, holds, same
from llmock import FINDINGS, WIRES, Llmock, broken, fail, reply
from servers import free_port, running

# long enough for a fault in its middle, on every wire
TEXT = "An onion has many layers, and 洋葱 has just as many as any other onion on this table."
# so long that a client which stops reading is gone before all of it was sent; whoever takes all counts as content
LONG = " ".join([TEXT] * 100)
UNSCRIPTED = "Mock response from mock-model."
REQUESTS_A_MINUTE = 20
CONTEXT_WINDOW = 4000


def main() -> None:
    wanted = steps.options(*WIRES)
    work = steps.folder(wanted, f"llmock-{wanted.wire}")
    mock = Llmock(wanted.peers / "llmock/bin/llmock", free_port())
    limits = ["--rpm", str(REQUESTS_A_MINUTE), "--context-window", str(CONTEXT_WINDOW)]
    # else it would answer every first prompt with a call of some tool
    command = mock.command("--tool-mode", "off", "--response-style", "static", *limits)
    with running(command, f"{mock.url}/health", work / "llmock.log"):
        trial = Trial(wanted, work, mock)
        try:
            refused(trial)
            broken_streams(trial)
            broken_calls(trial)
            limits_of_use(trial)
            another_program(trial)
        finally:
            trial.keep_requests(work / "sent")
        with steps.step("llmock report: nothing against our client"):
            code, verdict = mock.report()
            same("findings", verdict["findings"], [])
            same("exit code", code, 0)
            said = (verdict["calls"], verdict["attempts"], verdict["faults_injected"])
        print("           calls {}, attempts {}, faults {}".format(*said))
        with steps.step("llmock report: a careless client is found out in everything"):
            mock.forget()
            Careless(mock, trial.wire, f"{KEY}-careless").misbehave()
            code, verdict = mock.report()
            same("findings", {finding["code"] for finding in verdict["findings"]}, FINDINGS)
            same("exit code", code, 1)


class Trial:
    """Our binary and the mock, one scenario after the other."""

    def __init__(self, wanted, work: pathlib.Path, mock: Llmock):
        self.mock, self.name, self.wire = mock, wanted.wire, WIRES[wanted.wire]
        self.cepa = Cepa(wanted.cepa, work, f"{wanted.wire}/mock-model", mock.url + self.wire.base)
        binary = pathlib.Path(wanted.cepa)
        self.patience = binary.parent / "examples" / f"patience{binary.suffix}"
        self.seen = 0

    @contextlib.contextmanager
    def scenario(self, name: str, *behaviors: dict):
        """Everything that is scripted has to happen within the block, and none of it may be held against us."""
        with steps.step(name):
            if behaviors:
                self.mock.script(*behaviors)
            self.seen = len(self.mock.requests())
            yield
            same("scripted and never asked for", self.mock.waiting(), [])
            same("findings", self.mock.findings(), [])

    def served(self) -> list[dict]:
        """What this scenario's requests met."""
        return self.mock.requests()[self.seen :]

    def statuses(self, *expected: int) -> None:
        same("statuses", tuple(request["status"] for request in self.served()), expected)

    def ask(self, words: str, conversation: str | None = None, answer: str = TEXT) -> dict:
        """One turn that is completed with the whole text; what it says about itself."""
        result = self._turn(words, conversation, COMPLETED)
        same("answer", result["text"], answer)
        return result

    def ask_in_vain(self, words: str, kind: str, message: str, conversation: str | None = None) -> dict:
        """One turn that fails with an error of this kind that says this; the error."""
        result = self._turn(words, conversation, FAILED)
        error = result["error"]
        same("kind", error["kind"], kind)
        same("text of a failed turn", result["text"], "")
        holds("message", error["message"], message)
        return error

    def _turn(self, words: str, conversation: str | None, expect: int) -> dict:
        conversation = conversation or words
        # the mock's limits are a key's, so that each conversation has its own
        self.cepa.environment[f"{self.wire.variable}_API_KEY"] = key_of(conversation)
        out = self.cepa.run(words, conversation, "--json", expect=expect)
        return json.loads(out.splitlines()[-1])

    def ask_patience(self, words: str, *more: str) -> tuple[int, str]:
        """The example program, which has shorter time limits and need not stream: its exit code, and what it said."""
        environment = self.cepa.environment | {f"{self.wire.variable}_API_KEY": key_of(words)}
        command = [str(self.patience), f"{self.name}/mock-model", self.mock.url + self.wire.base, words, *more]
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout if done.returncode == 0 else done.stderr).strip()

    def keep_requests(self, folder: pathlib.Path) -> None:
        """Each body once, for the validators."""
        place = folder / self.wire.kept_as
        place.mkdir(parents=True)
        # what the careless client sends is not ours to answer for
        ours = [request for request in self.mock.requests() if request["model"] == "mock-model"]
        for number, body in enumerate({request["fingerprint"]: request["body"] for request in ours}.values(), 1):
            (place / f"{number:03}.json").write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")


def key_of(conversation: str) -> str:
    return f"{KEY}-{conversation.replace(' ', '-')}"


def waited(requests: list[dict]) -> float:
    """From the end of the first answer to the second request."""
    return requests[1]["started_at"] - requests[0]["ended_at"]


def refused(trial: Trial) -> None:
    with trial.scenario("429 with Retry-After: waits as long", fail(429, retry_after=1.5), reply(TEXT)):
        trial.ask("limit")
        trial.statuses(429, 200)
        same("waited", waited(trial.served()) >= 1.5, True)

    with trial.scenario("429 three times: gives up after three tries", fail(429, retry_after=0.4, times=3)):
        error = trial.ask_in_vain("stubborn", "rate_limit", "Rate limit exceeded.")
        same("told", (error["status"], error["retryable"], error["retry_after"]), (429, True, 0.4))
        trial.statuses(429, 429, 429)

    # Two of 500 in a row would be two random waits, of which the second is now and then the shorter one: to llmock that is
    # no back-off.
    with trial.scenario("500, then 503: tried again", fail(500), fail(503, retry_after=0.4), reply(TEXT)):
        trial.ask("unwell")
        trial.statuses(500, 503, 200)

    with trial.scenario("529, overloaded: tried again", fail(529, retry_after=0.4), reply(TEXT)):
        trial.ask("overloaded")
        trial.statuses(529, 200)

    with trial.scenario("400: said at once, and not asked again", fail(400, message="no such thing")):
        error = trial.ask_in_vain("wrong", "invalid_request", "no such thing")
        same("told", (error["status"], error["retryable"]), (400, False))
        trial.statuses(400)

    with trial.scenario("401: a wrong key is not tried twice", fail(401)):
        error = trial.ask_in_vain("key", "auth", "check the API key for")
        same("told", (error["status"], error["retryable"]), (401, False))
        trial.statuses(401)

    # one vendor says it with a code behind 429, the others with a status of its own
    openai = trial.name.startswith("openai")
    spent = fail(429, code="insufficient_quota", retry_after=0) if openai else fail(402)
    with trial.scenario("a spent quota: not tried again, until it is paid for", spent, reply(TEXT)):
        error = trial.ask_in_vain("spent", "quota", "check plan and billing")
        same("told", (error["status"], error["retryable"]), (spent["status"], False))
        trial.statuses(spent["status"])
        trial.ask("spent")


def broken_streams(trial: Trial) -> None:
    # Gemini's first event has text in it already
    early = 0 if trial.name == "gemini" else 1
    for kind in ("truncate", "disconnect"):
        with trial.scenario(f"{kind} before any text: tried again unseen", broken(kind, early), reply(TEXT, 2)):
            trial.ask(f"early {kind}")
            same("faults", [bool(request["fault"]) for request in trial.served()], [True, False])

    ways = [
        ("truncate", "truncated", "ended before the reply", TEXT),
        ("disconnect", "network", "broke in the middle of the answer", TEXT),
        ("malformed", "decode", "EOF while parsing", LONG),
    ]
    for fault, kind, message, text in ways:
        name = f"{fault} in the middle of the text: an error, never half an answer; said again, it is whole"
        with trial.scenario(name, broken(fault, 6), reply(text, 2)):
            trial.ask_in_vain(f"middle {fault}", kind, message)
            same("requests", len(trial.served()), 1)
            trial.ask(f"middle {fault}", answer=text)

    with trial.scenario("a slow first token is waited for", {"type": "slow_first_token", "seconds": 2}, reply(TEXT)):
        trial.ask("slow")
        trial.statuses(200)


def broken_calls(trial: Trial) -> None:
    def fault(kind: str) -> list[dict]:
        return [{"type": "tool_fault", "kind": kind}, reply(TEXT, 2)]

    ways = [("malformed_arguments", "did not run"), ("unknown_tool", "There is no tool `llmock_unknown_tool`")]
    for kind, told in ways:
        with trial.scenario(f"{kind}: nothing runs, the model is told, the turn goes on", *fault(kind)):
            (record,) = trial.ask(f"read {kind}")["records"]
            same("outcome", record["outcome"], "error")
            holds("result", record["result"], told)
            trial.statuses(200, 200)
            holds("second request", json.dumps(trial.served()[1]["body"]), told)


def limits_of_use(trial: Trial) -> None:
    with trial.scenario(f"{REQUESTS_A_MINUTE} requests a minute, used up by others: waits for its turn"):
        crowd = Careless(trial.mock, trial.wire, key_of("crowd"))
        for number in range(REQUESTS_A_MINUTE):
            crowd.ask(f"crowd {number}")
        trial.seen += REQUESTS_A_MINUTE
        # on a slow machine the first one or two may still find a place
        for number in range(5):
            # a refused request uses up what is scripted for it
            trial.ask(f"turn {number}", "crowd", UNSCRIPTED)
            if refusals := [request for request in trial.served() if request["fault"] == "ratelimit:requests"]:
                break
        else:
            raise Unexpected("no request met the limit")
        last = trial.served()[-2:]
        same("statuses", [request["status"] for request in last], [429, 200])
        same("waited", waited(last) >= refusals[0]["retry_after"], True)

    with trial.scenario("a prompt over the context window: said as that, and not asked again"):
        error = trial.ask_in_vain("onion " * CONTEXT_WINDOW, "context_length", str(CONTEXT_WINDOW), "long")
        same("told", (error["status"], error["retryable"]), (400, False))
        trial.statuses(400)


def another_program(trial: Trial) -> None:
    """What our binary does not do: short time limits, and an answer in one piece."""
    with trial.scenario("a stall: given up after a second", broken("stall", 6, stall_seconds=8), reply(TEXT, 2)):
        code, said = trial.ask_patience("stall")
        same("exit code", code, FAILED)
        holds("message", said, "timeout: ")
        holds("message", said, "sent nothing for 1s: raise the idle timeout")
        (request,) = trial.served()
        same("sat through", request["stall_waited"] < 4, True)
        same("said again", trial.ask_patience("stall"), (COMPLETED, TEXT))

    with trial.scenario("in one piece: waits as asked", fail(429, retry_after=1.5), fail(500), reply(TEXT)):
        same("answer", trial.ask_patience("piece", "whole"), (COMPLETED, TEXT))
        trial.statuses(429, 500, 200)
        same("waited", waited(trial.served()) >= 1.5, True)
        same("streams", [request["stream"] for request in trial.served()], [False] * 3)

    with trial.scenario("in one piece: 400 is not asked again", fail(400, message="no such thing")):
        same("answer", trial.ask_patience("wrong piece", "whole"), (FAILED, "invalid_request: no such thing"))
        trial.statuses(400)


if __name__ == "__main__":
    main()
