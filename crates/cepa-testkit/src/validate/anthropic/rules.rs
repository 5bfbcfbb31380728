//! The rules of Anthropic Messages (`AN`).

super::super::rule::rules! {
    SHAPE = "AN-01", "an.shape",
        "Every object has the members that the reference requires, each of the kind that it gives.",
        "https://platform.claude.com/docs/en/api/messages";
    UNKNOWN_MEMBER = "AN-02", "an.unknown_member",
        "No object has a member that the reference does not know.",
        "https://platform.claude.com/docs/en/api/messages";
    MAX_TOKENS = "AN-03", "an.max_tokens",
        "max_tokens is there and positive.",
        "https://platform.claude.com/docs/en/api/messages";
    RANGES = "AN-04", "an.shape",
        "temperature and top_p are from 0 to 1.",
        "https://platform.claude.com/docs/en/api/messages";
    SAMPLING = "AN-05", "an.sampling",
        "The API version 2026-10-21 has no temperature, top_p and top_k.",
        "https://platform.claude.com/docs/en/api/messages";
    STOP = "AN-06", "an.shape",
        "A stop sequence is not blank.",
        "https://github.com/BerriAI/litellm/issues/3286";
    EFFORT = "AN-07", "an.effort",
        "The effort of output_config is low, medium, high, xhigh or max.",
        "https://platform.claude.com/docs/en/build-with-claude/effort";
    CACHE_MARK = "AN-08", "an.shape",
        "A cache mark is ephemeral, for 5 minutes or an hour.",
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching";
    CACHE_FOUR = "AN-09", "an.cache_max4",
        "There are at most four cache marks.",
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching";
    CACHE_THINKING = "AN-10", "an.unknown_member",
        "No cache mark stands on thinking.",
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching";
    ROLE = "AN-11", "an.no_system_role",
        "A message is the user's or the assistant's.",
        "https://platform.claude.com/docs/en/api/messages";
    MESSAGE_EMPTY = "AN-12", "an.no_empty_text",
        "The content of a message is not blank and not an empty list.",
        "https://github.com/microsoft/autogen/issues/6083";
    TEXT_EMPTY = "AN-13", "an.no_empty_text",
        "A block of text is not blank, nor is the system prompt.",
        "https://github.com/LibreChat-AI/agents/pull/124 https://github.com/anthropics/claude-code/issues/59812 FR-091";
    ERROR_EMPTY = "AN-14", "an.no_empty_text",
        "A result that is an error has content.",
        "https://github.com/bytedance/trae-agent/issues/230";
    BLOCK_ROLE = "AN-15", "an.block_role",
        "A block stands in a message of a role that may send it: uses and thinking the assistant, results and media the user.",
        "https://github.com/microsoft/agent-framework/issues/4328 https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls";
    RESULT_BLOCKS = "AN-16", "an.block_role",
        "A result holds text, images, documents and search results only.",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls";
    BLOCK_TYPE = "AN-17", "an.block_type",
        "A block is of a type that the reference knows.",
        "https://platform.claude.com/docs/en/api/messages";
    USE_NAME = "AN-18", "an.shape",
        "The name of a use has 1 to 200 characters.",
        "https://github.com/anthropics/claude-code/blob/main/CHANGELOG.md";
    INPUT_OBJECT = "AN-19", "an.input_object",
        "The input of a use is an object.",
        "https://platform.claude.com/docs/en/api/messages FR-105";
    IDS_CHARSET = "AN-20", "an.ids_charset",
        "The id of a use consists of letters, digits, underscores and dashes.",
        "https://github.com/RooCodeInc/Roo-Code/pull/10649 https://github.com/HKUDS/nanobot/pull/4356 FR-098";
    SIGNED = "AN-21", "an.shape",
        "Thinking has its signature, redacted thinking its data.",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking FR-114";
    IMAGE = "AN-22", "an.source",
        "An image is JPEG, PNG, GIF or WebP in base64, an address or an upload.",
        "https://platform.claude.com/docs/en/build-with-claude/vision";
    DOCUMENT = "AN-23", "an.source",
        "A document is a PDF in base64, a plain text, blocks, an address or an upload.",
        "https://platform.claude.com/docs/en/build-with-claude/pdf-support";
    TOOL_NAMES = "AN-24", "an.names",
        "The name of a tool is 1 to 128 letters, digits, underscores and dashes.",
        "https://github.com/home-assistant/core/issues/147760 https://github.com/anthropics/claude-code/issues/96152 FR-221";
    TOOL_SCHEMA = "AN-25", "an.tool_schema_object",
        "The schema of a tool is of the type object.",
        "https://platform.claude.com/docs/en/api/messages";
    TOOL_SCHEMA_TOP = "AN-26", "an.tool_schema_object",
        "The schema of a tool has no oneOf, allOf or anyOf at its top.",
        "https://github.com/anthropics/claude-code/issues/5973";
    TOOL_NAMES_UNIQUE = "AN-27", "an.tool_names_unique",
        "No two tools have one name.",
        "https://github.com/anthropics/claude-code/issues/10687";
    WITHOUT_TOOLS = "AN-28", "an.tool_choice",
        "Without tools there is no tool_choice.",
        "https://github.com/microsoft/autogen/blob/main/python/packages/autogen-ext/src/autogen_ext/models/anthropic/_anthropic_client.py";
    TOOL_CHOICE = "AN-29", "an.tool_choice",
        "tool_choice is auto, any or none, or names a tool of the request.",
        "https://platform.claude.com/docs/en/api/messages";
    ONE_AT_A_TIME = "AN-30", "an.tool_choice",
        "disable_parallel_tool_use is true or false and stands in the choices auto, any and tool.",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/parallel-tool-use";
    THINKING_TYPE = "AN-31", "an.thinking",
        "Thinking is enabled with a budget, or adaptive, disabled or between tools without one.",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking";
    BUDGET = "AN-32", "an.thinking",
        "A budget is at least 1024 tokens and less than max_tokens.",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking";
    THINKING_SAMPLING = "AN-33", "an.thinking",
        "With a budget the temperature is 1, top_p at least 0.95, and there is no top_k.",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking";
    THINKING_FORCED = "AN-34", "an.thinking",
        "With a budget no tool is forced.",
        "https://platform.claude.com/docs/en/build-with-claude/extended-thinking https://github.com/mastra-ai/mastra/issues/7507";
    THINKING_FIRST = "AN-35", "an.thinking_first",
        "With a budget the turn in progress, whose results are sent, begins with its thinking.",
        "https://github.com/anomalyco/opencode/issues/3077 FR-115 FR-218";
    ALTERNATE = "AN-36", "an.alternate",
        "The user begins, then user and assistant take turns (Bedrock and gateways join nothing).",
        "https://github.com/anthropics/anthropic-sdk-typescript/issues/565 FR-110";
    ANSWERED = "AN-37", "an.pairing",
        "Each use is answered in the very next message.",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls FR-219";
    ANSWERS = "AN-38", "an.pairing",
        "Each result answers a use of the message before it, once.",
        "https://github.com/anthropics/claude-code/issues/13460 FR-002 FR-097";
    RESULTS_FIRST = "AN-39", "an.results_first",
        "Results come first in their message.",
        "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls FR-107";
    LAST_USER = "AN-40", "an.last_user",
        "The last message is the user's.",
        "https://platform.claude.com/docs/en/api/errors#prefill-not-supported";
    IDS_UNIQUE = "AN-41", "an.ids_unique",
        "No two uses of a request have one id.",
        "https://github.com/trycua/cua/issues/524 FR-097";
}
