"""Who is measured, in which scenarios, at which size, and what of a run is shown."""

import dataclasses
import pathlib

import goals
from goals import Goal, Metric, Row, per, value

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Client:
    """A way of doing the work. `keys` make a variant of it."""

    name: str
    kind: str  # rust, python or js: a slower language gets less work
    program: str  # the binary, or the folder under peers/
    keys: dict[str, str] = dataclasses.field(default_factory=dict)
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    how: str = ""  # what of it is used, and what it cannot do equally


RUST = [
    Client("bare", "rust", "bench-bare"),
    Client("bare-hyper", "rust", "bench-bare-hyper"),
    Client("cepa", "rust", "bench-cepa"),
    Client("cepa, no memory", "rust", "bench-cepa", {"memory": "false"}),
    Client("cepa, 1 MiB hot", "rust", "bench-cepa", {"hot": str(1 << 20)}),
    Client("genai", "rust", "bench-genai", how="its calls of models; the loop over them is written by hand. It has no store"),
    Client("rig", "rust", "bench-rig", how="its agent with rig-memory's store; on disk rig-sqlite's, which commits once a turn"),
    Client("rig, no memory", "rust", "bench-rig", {"memory": "false"}),
]
OTHERS = [
    Client(
        "ai-sdk",
        "js",
        "ai-sdk",
        how="generateText and streamText with stopWhen. It keeps no conversation: the caller holds the messages, on disk as rows that we write",
    ),
    Client(
        "pydantic-ai",
        "python",
        "pydantic-ai",
        how="Agent.run with its conversation store in memory; on disk rows that we write of its messages, one commit a turn",
    ),
    Client(
        "langchain",
        "python",
        "langchain",
        how="create_agent on langgraph with its savers, which keep each step's state; synchronous, but for many at once",
    ),
    Client(
        "openai-agents",
        "python",
        "openai-agents",
        how="Runner.run over chat completions, tracing off, with its SQLiteSession, which is SQLite in memory too",
    ),
    Client(
        "agno",
        "python",
        "agno",
        how="Agent over OpenAILike, telemetry off, with its databases and the whole history; synchronous, but for many at once",
    ),
]
FLOORS = ("bare", "bare-hyper")
CLI_OFFLINE, CLI_MOCK = "cepa run (offline model)", "cepa run (mock server)"
NO_MEMORY = ("cepa, no memory", "rig, no memory")
FEW_HOT = "cepa, 1 MiB hot"  # only where idle conversations are weighed

@dataclasses.dataclass(frozen=True)
class Scenario:
    """`sizes` is (turns, warm-up) for each kind of client; the first metric is the one that is compared."""

    name: str
    what: str
    client_scenario: str
    calls_per_turn: int
    sizes: dict[str, tuple[int, int]]
    metrics: list[Metric]
    keys: dict[str, str] = dataclasses.field(default_factory=dict)
    only: tuple[str, ...] = ()
    leave_out: dict[str, str] = dataclasses.field(default_factory=dict)
    repeats: int | None = None
    counted: bool = False  # also run once with allocations counted
    notes: str = ""
    goals: tuple[Goal, ...] = ()


MB = 1 << 20
ROUND = [
    ("CPU µs / model call", per("cpu_us", "calls"), 1),
    ("CPU µs / turn", per("cpu_us", "turns"), 0),
    ("request bytes / call", per("request_bytes", "calls"), 0),
    ("peak RSS MiB", value("peak_bytes", MB), 1),
]
CPU = ROUND[0][1]
STATELESS = {name: "keeps nothing between turns" for name in NO_MEMORY}
GROWTH: list[Metric] = [
    ("last tenth, CPU µs / turn", value("last_us"), 0),
    ("first tenth", value("first_us"), 0),
    ("last / first", per("last_us", "first_us"), 1),
    ("turns", value("turns"), 0),
    ("peak RSS MiB", value("peak_bytes", MB), 1),
]

SCENARIOS = [
    Scenario(
        "turn10",
        "One turn in a fresh conversation: ten rounds with one call of a tool each, then the answer; eleven model calls.",
        "turn10",
        11,
        {"rust": (500, 50), "python": (40, 8), "js": (150, 60)},
        ROUND,
        goals=(Goal("CPU / bare", goals.ratio(CPU), 1.0), Goal("CPU / rig", goals.ratio(CPU, "rig"), 0.3)),
    ),
    Scenario(
        "turn10c",
        "The same, 64 conversations at once on one thread.",
        "at_once",
        11,
        {"rust": (512, 0), "python": (64, 0), "js": (256, 0)},
        ROUND,
        {"at_once": "64"},
        goals=(Goal("CPU / bare", goals.ratio(CPU), 1.0),),
    ),
    Scenario(
        "par16",
        "One turn in a fresh conversation: one round with sixteen calls of a tool, then the answer.",
        "par16",
        2,
        {"rust": (1000, 50), "python": (60, 8), "js": (200, 60)},
        [ROUND[1], ROUND[2], ROUND[3]],
        goals=(Goal("CPU / bare", goals.ratio(CPU), 1.1),),
    ),
    Scenario(
        "long1000",
        "A thousand turns without tools in one conversation, kept in memory: what a turn costs at the beginning and at the end.",
        "long",
        1,
        {"rust": (1000, 50), "python": (1000, 10), "js": (1000, 100)},
        GROWTH,
        leave_out=STATELESS,
        goals=(
            Goal("last tenth / bare", goals.ratio(GROWTH[0][1]), 0.3),
            Goal("last / first, less what bare-hyper spends on sending", goals.flatness, 1.2),
        ),
        notes="`bare` encodes the whole history for each call, `bare-hyper` keeps it encoded: the bytes that must be copied and sent are all that grows there.",
    ),
    Scenario(
        "longdb",
        "Two hundred turns without tools in one conversation on SQLite; each write waits for the disk (`synchronous` FULL) in write-ahead mode.",
        "longdb",
        1,
        {"rust": (200, 0), "python": (200, 0), "js": (200, 0)},
        [
            *GROWTH[:3],
            ("commits / turn", value("commits"), 1),
            ("file KiB", value("db_bytes", 1024), 0),
            ("file / JSON as sent", per("db_bytes", "plain_bytes"), 1),
            ("file / JSON as stored", per("db_bytes", "stored_bytes"), 1),
        ],
        goals=(
            Goal("last tenth / bare", goals.ratio(GROWTH[0][1]), 1.1),
            Goal("file / JSON as stored", goals.own(per("db_bytes", "stored_bytes")), 2.0),
        ),
        leave_out={**STATELESS, "genai": "has no store"},
        notes="Both floors commit as often as cepa does. `bare` reads the conversation anew each turn, `bare-hyper` holds it and asks whether it is still the newest. "
        "The others commit as often as they do; where that cannot be seen from outside the cell is empty.",
    ),
    Scenario(
        "stream",
        "An answer of 2,000 words streamed, one event a word.",
        "stream",
        1,
        {"rust": (50, 5), "python": (4, 1), "js": (20, 10)},
        [
            ("CPU µs / chunk", per("cpu_us", "chunks"), 2),
            ("allocations / chunk", per("allocations", "chunks"), 2),
            ("chunks / turn", per("chunks", "turns"), 0),
            ("peak RSS MiB", value("peak_bytes", MB), 1),
        ],
        leave_out={name: "the same path as with memory" for name in NO_MEMORY},
        goals=(Goal("CPU / bare", goals.ratio(per("cpu_us", "chunks")), 1.1),),
        counted=True,
        notes="The server sends the events in one piece, so that what is read is the parsing and not the sockets.",
    ),
    Scenario(
        "idle",
        "Conversations of twenty short messages that are kept in memory and not used (10,000 of them; 200 in Python, 500 in JavaScript).",
        "idle",
        1,
        {"rust": (10000, 50), "python": (200, 10), "js": (500, 100)},
        [
            ("RSS bytes / conversation", value("resident_bytes"), 0),
            ("allocated bytes", value("allocated_bytes"), 0),
            ("JSON as sent", value("plain_bytes"), 0),
            ("RSS / JSON as sent", per("resident_bytes", "plain_bytes"), 1),
            ("JSON as stored", value("stored_bytes"), 0),
            ("CPU µs / turn", per("cpu_us", "turns"), 0),
        ],
        leave_out=STATELESS,
        repeats=1,
        counted=True,
        notes="cepa holds the conversations used last ready, up to 16 MiB if nothing else is set: of 10,000 that is a part of each. "
        f"With `{FEW_HOT}` nearly all of them are idle. With few conversations what a collected heap takes in advance is counted too: those of Python and JavaScript are upper bounds.",
        goals=(Goal("(RSS bytes − 256) / JSON as stored", goals.own(goals.above(256), FEW_HOT), 1.3),),
    ),
    Scenario(
        "cold",
        "From the start of the process to the end of its first turn, the whole process; the median of seven starts is one run.",
        "cold",
        1,
        {"rust": (1, 0), "python": (1, 0), "js": (1, 0)},
        [
            ("CPU ms", value("cpu_us", 1000), 2),
            ("wall ms", value("wall_us", 1000), 1),
            ("peak RSS MiB", value("peak_bytes", MB), 1),
        ],
        leave_out={name: "the same start" for name in NO_MEMORY},
        goals=(
            Goal("library, CPU ms", goals.own(value("cpu_us", 1000)), 6),
            Goal("library, peak RSS MB", goals.own(value("peak_bytes", 1e6)), 8),
            Goal("`cepa run` offline, CPU ms", goals.own(value("cpu_us", 1000), CLI_OFFLINE), 20),
            Goal("`cepa run` offline, peak RSS MB", goals.own(value("peak_bytes", 1e6), CLI_OFFLINE), 20),
        ),
        notes="`cepa run` is the command line program: each start a new conversation in a database that is there already. The offline model is in the process and asks for no network.",
    ),
    Scenario(
        "history",
        "What a turn costs as the conversation gets longer, to 10,000 messages, in memory.",
        "long",
        1,
        {"rust": (5001, 50)},
        GROWTH,
        only=(*FLOORS, "cepa"),
    ),
    Scenario(
        "history2k",
        "The same with messages of two kilobytes from the user, to 1,000 messages: what a byte costs.",
        "long",
        1,
        {"rust": (501, 50)},
        GROWTH,
        {"said": "2000"},
        only=(*FLOORS, "cepa"),
    ),
]
for conversations in (1, 10, 100, 1_000, 10_000):
    SCENARIOS.append(
        Scenario(
            f"conversations-{conversations}",
            f"One more turn in a conversation, where {conversations:,} are kept in memory.",
            "many",
            1,
            {"rust": (conversations, 50)},
            [("CPU µs / turn", value("us"), 1)],
            only=(*FLOORS, "cepa"),
        )
    )
for tools in (1, 5, 20, 100, 500):
    SCENARIOS.append(
        Scenario(
            f"tools-{tools}",
            f"A model call of the turn of ten rounds, where {tools:,} tools are offered.",
            "turn10",
            11,
            {"rust": (200, 10)},
            ROUND[:1],
            {"tools": str(tools)},
            only=(*FLOORS, "cepa"),
        )
    )

# What `--scenarios growth` means.
GROWTH_NAMES = [s.name for s in SCENARIOS if s.name in ("history", "history2k") or s.name.startswith(("conversations-", "tools-"))]
