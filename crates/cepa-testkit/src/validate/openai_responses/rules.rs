//! The rules of Responses (`OR`).

super::super::rule::rules! {
    SHAPE = "OR-01", "or.shape",
        "Every object has the members that the schema requires, each of the kind that the schema gives it.",
        "https://github.com/openai/openai-openapi";
    UNKNOWN_MEMBER = "OR-02", "or.unknown_member",
        "No object has a member that the schema does not know: no stop, no messages.",
        "https://github.com/openai/openai-openapi";
    INPUT = "OR-03", "or.shape",
        "The input is a text that is not blank, or a list of items that is not empty.",
        "https://platform.openai.com/docs/api-reference/responses/create";
    LIMIT = "OR-04", "or.shape",
        "max_output_tokens is at least 16.",
        "https://github.com/vectorize-io/hindsight/issues/58";
    SAMPLING = "OR-05", "or.shape",
        "temperature is from 0 to 2, top_p from 0 to 1.",
        "https://platform.openai.com/docs/api-reference/responses/create";
    EFFORT = "OR-06", "or.shape",
        "The effort of reasoning is none, minimal, low, medium, high, xhigh or max; its summary auto, concise or detailed.",
        "https://github.com/openai/openai-openapi";
    INCLUDE = "OR-07", "or.shape",
        "include lists only what the schema knows.",
        "https://github.com/openai/openai-openapi";
    STREAM_OPTIONS = "OR-08", "or.stream_options",
        "stream_options stands beside `stream: true` only.",
        "https://platform.openai.com/docs/api-reference/responses/create";
    BACKGROUND = "OR-09", "or.background",
        "What runs in the background is stored.",
        "https://platform.openai.com/docs/guides/background";
    ONE_STATE = "OR-10", "or.one_state",
        "previous_response_id and conversation are not both set.",
        "https://platform.openai.com/docs/api-reference/responses/create";
    ITEM_TYPE = "OR-11", "or.item_type",
        "An item is of a type that the schema knows.",
        "https://github.com/openai/openai-openapi";
    ROLE = "OR-12", "or.shape",
        "A message is of the role user, system, developer or assistant: results are items of their own.",
        "https://github.com/openai/openai-openapi";
    CONTENT = "OR-13", "or.shape",
        "The content of a message is a text that is not blank, or a list of parts that is not empty.",
        "https://github.com/openai/openai-openapi";
    OUTPUT_MESSAGE = "OR-14", "or.shape",
        "A message of the assistant with parts has its id and status, each text of it annotations and logprobs.",
        "https://github.com/openai/openai-openapi";
    PART_TYPE = "OR-15", "or.part_type",
        "Input parts stand in messages of users and in results, output parts in those of the assistant.",
        "https://github.com/jeremychone/rust-genai/pull/119";
    IMAGE = "OR-16", "or.image",
        "An image has exactly one of image_url and file_id.",
        "https://github.com/openai/openai-openapi";
    IMAGE_URL = "OR-17", "or.shape",
        "The address of an image is a text: http(s) or a data URL of an image in base64.",
        "https://github.com/openai/openai-openapi";
    FILE = "OR-18", "or.file",
        "A file has exactly one of file_data, file_url and file_id.",
        "https://github.com/openai/openai-openapi";
    FILE_NAME = "OR-19", "or.file",
        "The data of a file stand beside a filename.",
        "https://platform.openai.com/docs/guides/pdf-files";
    FILE_DATA = "OR-20", "or.shape",
        "The data of a file are a data URL in base64.",
        "https://platform.openai.com/docs/guides/pdf-files https://github.com/vercel/ai/issues/7266";
    CALL_ID = "OR-21", "or.shape",
        "A call_id, like the id of an item, is 1 to 64 letters, digits, underscores and dashes.",
        "https://github.com/AnswerDotAI/fastllm/issues/45 FR-216";
    NAMES = "OR-22", "or.names",
        "The name of a function is 1 to 64 letters, digits, underscores and dashes, declared or called.",
        "https://github.com/openai/openai-openapi FR-221";
    ARGUMENTS = "OR-23", "or.args_json_object",
        "The arguments of a call are a text that holds a JSON object.",
        "https://platform.openai.com/docs/guides/function-calling FR-100 FR-103";
    ANSWERED = "OR-24", "or.pairing",
        "Each call has its output before a user or the system speaks.",
        "https://github.com/openai/openai-agents-python/issues/673 https://github.com/deepseek-ai/awesome-deepseek-integration/issues/740 FR-158";
    ANSWERS = "OR-25", "or.pairing",
        "Each output answers a call before it, once.",
        "https://github.com/openai/openai-agents-python/issues/673";
    CALL_IDS_UNIQUE = "OR-26", "or.call_ids_unique",
        "No two calls of a request have one call_id.",
        "https://github.com/openclaw/openclaw/pull/40996 FR-096";
    ITEM_IDS_UNIQUE = "OR-27", "or.item_ids_unique",
        "No two items of a request have one id.",
        "https://github.com/vercel/ai/issues/7883 https://github.com/vercel/ai/issues/13307";
    SUMMARY = "OR-28", "or.shape",
        "Reasoning has a list of summaries, even an empty one.",
        "https://github.com/newo-ether/Agora/issues/141";
    STATELESS = "OR-29", "or.reasoning_stateless",
        "Where nothing is stored, reasoning is sent with what it holds: encrypted, or as texts.",
        "https://github.com/openai/openai-agents-python/issues/919 FR-217";
    FOLLOWED = "OR-30", "or.reasoning_followed",
        "Behind reasoning stands what it led to, of the same reply.",
        "https://github.com/continuedev/continue/issues/8933 FR-117";
    FLAT_TOOL = "OR-31", "or.shape",
        "A function is declared flat: its name beside its type.",
        "https://github.com/microsoft/autogen/issues/6935";
    STRICT_SAID = "OR-32", "or.shape",
        "A function says whether it is strict.",
        "https://github.com/openai/openai-openapi";
    TOOL_SCHEMA = "OR-33", "or.tool_schema_object",
        "The parameters of a function are an object schema with properties.",
        "https://github.com/everruns/everruns/pull/984 https://github.com/inboxapi/cli/issues/106";
    STRICT_KEYWORDS = "OR-34", "or.strict",
        "A strict schema has no keyword that is not supported.",
        "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas";
    STRICT_CLOSED = "OR-35", "or.strict",
        "Each object of a strict schema has additionalProperties false.",
        "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas https://github.com/lastmile-ai/openai-agents-mcp/issues/2";
    STRICT_REQUIRED = "OR-36", "or.strict",
        "Each object of a strict schema requires all its properties.",
        "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas";
    TOOL_NAMES_UNIQUE = "OR-37", "or.tool_names_unique",
        "No two functions have one name.",
        "https://github.com/odysseus-dev/odysseus/issues/6010";
    WITHOUT_TOOLS = "OR-38", "or.tool_choice",
        "Without tools there is no tool_choice.",
        "https://github.com/vllm-project/vllm";
    TOOL_CHOICE = "OR-39", "or.tool_choice",
        "tool_choice is none, auto or required, a tool of the provider, or names a function of the request.",
        "https://platform.openai.com/docs/api-reference/responses/create";
}
