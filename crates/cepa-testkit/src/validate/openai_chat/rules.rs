//! The rules of Chat Completions (`OC`), and those of servers that follow it more strictly (`SC`).

super::super::rule::rules! {
    SHAPE = "OC-01", "oa.shape",
        "Every object has the members that the schema requires, each of the kind that the schema gives it.",
        "https://github.com/openai/openai-openapi";
    UNKNOWN_MEMBER = "OC-02", "oa.unknown_member",
        "No object has a member that the schema does not know.",
        "https://github.com/coroot/coroot/issues/698 https://github.com/ed-donner/llm_engineering/issues/1130";
    MESSAGES = "OC-03", "oa.shape",
        "There is at least one message.",
        "https://github.com/openai/openai-openapi";
    ROLE = "OC-04", "oa.shape",
        "A message is of the role developer, system, user, assistant or tool.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    SAMPLING = "OC-05", "oa.shape",
        "temperature is from 0 to 2, top_p from 0 to 1, a penalty from -2 to 2.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    LIMIT = "OC-06", "oa.shape",
        "A limit of tokens is a positive integer.",
        "https://github.com/openai/openai-openapi";
    STOP = "OC-07", "oa.shape",
        "stop is a text, or a list of 1 to 4 texts.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    EFFORT = "OC-08", "oa.shape",
        "reasoning_effort is none, minimal, low, medium, high, xhigh or max.",
        "https://github.com/openai/openai-openapi";
    CONTENT = "OC-09", "oa.shape",
        "The content of a message is a text, or a list of parts that is not empty; of an assistant it may be null.",
        "https://github.com/openai/openai-openapi";
    PART_TYPE = "OC-10", "oa.part_type",
        "A part is of a type that its role may send: text, images, sounds and files the user, text and refusals the assistant, text the others.",
        "https://github.com/openai/openai-openapi";
    IMAGE = "OC-11", "oa.shape",
        "An image is an http(s) address or a data URL of an image in base64; its detail is auto, low, high or original.",
        "https://github.com/openai/openai-openapi";
    AUDIO = "OC-12", "oa.shape",
        "A sound is base64, of the format wav or mp3.",
        "https://github.com/openai/openai-openapi";
    FILE_DATA = "OC-13", "oa.file",
        "The data of a file are a data URL in base64, with a filename beside them.",
        "https://github.com/vercel/ai/issues/7266";
    FILE_SOURCE = "OC-14", "oa.file",
        "A file has data or the id of an upload.",
        "https://github.com/openai/openai-openapi";
    STREAM_OPTIONS = "OC-15", "oa.stream_options",
        "stream_options stands beside `stream: true` only.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    ONE_LIMIT = "OC-16", "oa.one_limit",
        "max_tokens and max_completion_tokens are not both set.",
        "https://github.com/langchain-ai/langgraph/issues/5943";
    TOOLS_EMPTY = "OC-17", "oa.no_empty_arrays",
        "Without tools the member is left out: an empty list is refused.",
        "https://github.com/JetBrains/koog/issues/786 https://github.com/runebookai/tome/pull/87";
    WITHOUT_TOOLS = "OC-18", "oa.no_empty_arrays",
        "Without tools there is no tool_choice and no parallel_tool_calls.",
        "https://github.com/Upsonic/Upsonic/issues/323";
    TOOL_COUNT = "OC-19", "oa.tool_count",
        "There are at most 128 tools.",
        "https://platform.openai.com/docs/api-reference/chat/create https://github.com/0x4m4/hexstrike-ai/issues/29";
    NAMES = "OC-20", "oa.names",
        "The name of a function is 1 to 64 letters, digits, underscores and dashes, declared or called.",
        "https://github.com/openai/openai-openapi FR-221";
    TOOL_NAMES_UNIQUE = "OC-21", "oa.tool_names_unique",
        "No two tools have one name.",
        "https://github.com/odysseus-dev/odysseus/issues/6010";
    FUNCTION = "OC-22", "oa.shape",
        "A tool and a call are of the type function.",
        "https://github.com/openai/openai-openapi";
    TOOL_SCHEMA = "OC-23", "oa.tool_schema_object",
        "The parameters of a function are an object schema with properties.",
        "https://github.com/github/copilot-cli/issues/2223 https://github.com/tailcallhq/forgecode/issues/1359";
    TOOL_CHOICE = "OC-24", "oa.tool_choice",
        "tool_choice is none, auto or required, or names a function of the request.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    SAYS_SOMETHING = "OC-25", "oa.assistant_content",
        "An assistant message has content unless it has calls or a refusal.",
        "https://platform.openai.com/docs/api-reference/chat/create";
    CALLS_EMPTY = "OC-26", "oa.no_empty_arrays",
        "Without calls the member is left out: an empty list is refused.",
        "https://github.com/openai/openai-node/pull/1341";
    ARGUMENTS = "OC-27", "oa.args_json_object",
        "The arguments of a call are a text that holds a JSON object.",
        "https://platform.openai.com/docs/guides/function-calling FR-100 FR-103";
    ANSWERED = "OC-28", "oa.pairing",
        "Each call is answered before anybody else speaks.",
        "https://platform.openai.com/docs/guides/function-calling FR-112 FR-158";
    ANSWERS = "OC-29", "oa.pairing",
        "Each result answers a call of the assistant message before it, once.",
        "https://platform.openai.com/docs/guides/function-calling FR-002 FR-049";
    IDS_UNIQUE = "OC-30", "oa.ids_unique",
        "No two calls of a request have one id.",
        "https://github.com/agno-agi/agno/issues/5116 FR-095 FR-096";
    ID_LENGTH = "OC-31", "oa.id_length",
        "The id of a call has at most 40 characters.",
        "https://github.com/microsoft/autogen/issues/6377 https://github.com/vercel/ai/issues/5171";

    SYSTEM_FIRST = "SC-01", "oa.single_leading_system",
        "The only system message is the first message (chat templates of open models).",
        "https://github.com/vllm-project/vllm/issues/41114 https://github.com/ggml-org/llama.cpp/issues/20733 FR-111";
    ALTERNATE = "SC-02", "oa.alternate",
        "The user begins, then user and assistant take turns; calls and results are the assistant's turn (chat templates of open models).",
        "https://github.com/vllm-project/vllm/issues/6862 FR-110";
    ASSISTANT_AFTER_RESULTS = "SC-03", "oa.alternate",
        "Behind results the assistant speaks, not the user (Mistral).",
        "https://github.com/zed-industries/zed/issues/37021";
    RESULT_TEXT = "SC-04", "oa.tool_content_string",
        "The content of a result is a text, not a list of parts (Ollama, MiniMax, DeepSeek, GLM).",
        "https://github.com/BerriAI/litellm/issues/11273 https://github.com/OpenHands/software-agent-sdk/pull/1448";
    NINE = "SC-05", "oa.ids_nine",
        "The id of a call is nine letters and digits (Mistral).",
        "https://github.com/jackmpcollins/magentic/issues/276 FR-098";
    CONTENT_NULL = "SC-06", "oa.content_null",
        "Beside calls the content is a text, not null (Ollama, GLM).",
        "https://github.com/Dicklesworthstone/pi_agent_rust/issues/45 FR-092";
    REASONING_BACK = "SC-07", "oa.reasoning_back",
        "An assistant message with calls has its reasoning as a text, even an empty one (DeepSeek, GLM).",
        "https://api-docs.deepseek.com/guides/thinking_mode https://github.com/deepseek-ai/deepseek-harness/discussions/739 FR-227";
    REFUSED_MEMBER = "SC-08", "oa.refused_member",
        "No member of OpenAI's stands in the body that this server does not know: max_completion_tokens and stream_options (Mistral).",
        "https://github.com/editor-code-assistant/eca/issues/231 https://github.com/voideditor/void/issues/128 https://docs.mistral.ai/api/#tag/chat";
}
