//! The rules of Gemini's generateContent (`GE`).

super::super::rule::rules! {
    SHAPE = "GE-01", "ge.shape",
        "Every object has the members that the reference requires, each of the kind that it gives.",
        "https://ai.google.dev/api/generate-content https://ai.google.dev/api/caching";
    UNKNOWN_MEMBER = "GE-02", "ge.unknown_member",
        "No object has a member that the reference does not know.",
        "https://ai.google.dev/api/generate-content https://ai.google.dev/api/caching";
    CONTENTS = "GE-03", "ge.shape",
        "There is at least one content, and each has at least one part.",
        "https://ai.google.dev/api/caching";
    RANGES = "GE-04", "ge.shape",
        "temperature is from 0 to 2, topP from 0 to 1, topK and maxOutputTokens are positive.",
        "https://ai.google.dev/api/generate-content";
    STOPS = "GE-05", "ge.shape",
        "There are 1 to 5 stop sequences, none of them empty.",
        "https://ai.google.dev/api/generate-content";
    BYTES = "GE-06", "ge.shape",
        "Media and thought signatures are base64.",
        "https://protobuf.dev/programming-guides/json/";
    ARGS = "GE-07", "ge.shape",
        "The arguments of a call and the response of a function are objects.",
        "https://ai.google.dev/api/caching FR-105";
    ONE_DATUM = "GE-08", "ge.no_empty_part",
        "A part holds exactly one of text, media, a call, a response and what else may stand in its data.",
        "https://ai.google.dev/api/caching https://github.com/router-for-me/CLIProxyAPI/issues/1292";
    EMPTY_TEXT = "GE-09", "ge.no_empty_part",
        "A text is not empty unless it carries a signature; the system instruction is not blank.",
        "https://github.com/router-for-me/CLIProxyAPI/issues/1292 https://github.com/songquanpeng/one-api/issues/2243 https://ai.google.dev/gemini-api/docs/thought-signatures";
    SYSTEM_TEXT = "GE-10", "ge.system_text",
        "The system instruction is text only.",
        "https://ai.google.dev/api/generate-content";
    ALTERNATE = "GE-11", "ge.alternate",
        "The user begins, then user and model take turns.",
        "https://github.com/google-gemini/gemini-cli/issues/11814 https://github.com/diegosouzapw/OmniRoute/pull/13573";
    LAST_USER = "GE-12", "ge.last_user",
        "The last content is the user's.",
        "https://github.com/crewAIInc/crewAI/pull/6973";
    PART_ROLE = "GE-13", "ge.part_role",
        "Calls are the model's, responses the user's.",
        "https://ai.google.dev/gemini-api/docs/function-calling";
    COUNT = "GE-14", "ge.pairing",
        "Behind a content with calls stand as many responses, and nowhere else.",
        "https://ai.google.dev/gemini-api/docs/function-calling https://github.com/google-gemini/gemini-cli/issues/4217 FR-223";
    SAME = "GE-15", "ge.pairing",
        "Responses have names and ids of the calls, in their order.",
        "https://ai.google.dev/gemini-api/docs/function-calling FR-224";
    RESPONSES_FIRST = "GE-16", "ge.responses_first",
        "Responses come before other parts.",
        "https://github.com/langchain-ai/langchain/issues/27799";
    IDS_UNIQUE = "GE-17", "ge.ids_unique",
        "No two calls of a request have one id.",
        "https://ai.google.dev/gemini-api/docs/function-calling FR-094";
    SIGNED = "GE-18", "ge.signature",
        "From Gemini 3 on the first call of each content has a thought signature.",
        "https://ai.google.dev/gemini-api/docs/thought-signatures";
    OWN_SIGNATURE = "GE-19", "ge.signature",
        "A signature stands on the one part that it came with.",
        "https://ai.google.dev/gemini-api/docs/thought-signatures FR-116 FR-225";
    NAMES = "GE-20", "ge.names",
        "The name of a function begins with a letter or underscore and has 1 to 64 letters, digits, underscores, dots, colons and dashes.",
        "https://github.com/kaitranntt/ccs/issues/25 https://github.com/maximhq/bifrost/issues/1979";
    TOOL_NAMES_UNIQUE = "GE-21", "ge.tool_names_unique",
        "No two functions have one name.",
        "https://github.com/google-gemini/gemini-cli/issues/2654";
    ONE_SCHEMA = "GE-22", "ge.schema",
        "A function has parameters or parametersJsonSchema, not both.",
        "https://ai.google.dev/api/caching";
    SCHEMA_OBJECT = "GE-23", "ge.schema",
        "The schema of a function is of the type object.",
        "https://ai.google.dev/api/caching";
    KEYWORDS = "GE-24", "ge.schema",
        "A schema has no keyword beside those that are listed.",
        "https://ai.google.dev/gemini-api/docs/structured-output FR-175";
    ENUM = "GE-25", "ge.schema",
        "The values of an enum are texts and numbers.",
        "https://ai.google.dev/gemini-api/docs/structured-output";
    REQUIRED = "GE-26", "ge.schema",
        "What is required is a property.",
        "https://github.com/vercel/ai/pull/11319";
    REFERENCE = "GE-27", "ge.schema",
        "A reference stands alone, but for a description.",
        "https://github.com/su-kaka/gcli2api/pull/374";
    MODE = "GE-28", "ge.tool_choice",
        "The mode of calling is AUTO, ANY, NONE or VALIDATED.",
        "https://ai.google.dev/api/caching#FunctionCallingConfig";
    WITHOUT_TOOLS = "GE-29", "ge.tool_choice",
        "Without functions there is no mode of calling them.",
        "https://ai.google.dev/api/caching#FunctionCallingConfig";
    ALLOWED = "GE-30", "ge.tool_choice",
        "Allowed names stand beside ANY and VALIDATED only, and each is a function of the request.",
        "https://ai.google.dev/api/caching#FunctionCallingConfig https://hexdocs.pm/geminix/Geminix.V1beta.FunctionCallingConfig.html";
    LEVEL_OR_BUDGET = "GE-31", "ge.thinking",
        "Thinking has a level or a budget, not both.",
        "https://ai.google.dev/gemini-api/docs/gemini-3";
    LEVELS = "GE-32", "ge.thinking",
        "Before Gemini 3 there are no levels of thinking.",
        "https://ai.google.dev/gemini-api/docs/gemini-3";
    MEDIA = "GE-33", "ge.media",
        "Media are of a type that the guides on images, sounds, videos and documents name.",
        "https://ai.google.dev/gemini-api/docs/image-understanding https://ai.google.dev/gemini-api/docs/audio https://ai.google.dev/gemini-api/docs/video-understanding https://ai.google.dev/gemini-api/docs/document-processing";
    ADDRESS = "GE-34", "ge.media",
        "The address of a file is one of http(s) or of Google's storage.",
        "https://ai.google.dev/gemini-api/docs/file-input-methods";
    RESPONSE_MEDIA_MODEL = "GE-35", "ge.media_in_response",
        "Before Gemini 3 there are no media in a response.",
        "https://ai.google.dev/gemini-api/docs/function-calling";
    RESPONSE_MEDIA = "GE-36", "ge.media_in_response",
        "Media in a response are PNG, JPEG, WebP, PDF or plain text.",
        "https://ai.google.dev/gemini-api/docs/function-calling";
}
