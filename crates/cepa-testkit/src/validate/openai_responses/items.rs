//! The input: single items, and what must stand beside them.

use serde_json::Value;

use super::{
    super::shape::{Member, first_repeated, is_word},
    Judge, RULES, brief, list,
    members::{
        ASSISTANT_TEXT, FUNCTION_CALL, FUNCTION_OUTPUT, INPUT_FILE, INPUT_IMAGE, INPUT_MESSAGE, INPUT_TEXT,
        OUTPUT_MESSAGE, OUTPUT_TEXT, REASONING, REFUSAL,
    },
    rules, text, text_of,
};

/// Items of the provider's own tools, which only it can have written.
const HOSTED: &[&str] = &[
    "file_search_call",
    "web_search_call",
    "computer_call",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
    "image_generation_call",
    "code_interpreter_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "custom_tool_call",
    "custom_tool_call_output",
    "compaction",
];

impl Judge {
    pub(super) fn input(&mut self, items: &[Value]) {
        for (index, item) in items.iter().enumerate() {
            self.item(item, &format!("body.input[{index}]"));
        }
        let of = |kind: &str, name: &str| -> Vec<&str> {
            items.iter().filter(|item| text_of(item, "type") == kind).map(|item| text_of(item, name)).collect()
        };
        if let Some(id) = first_repeated(&of("function_call", "call_id")) {
            self.report.add(rules::CALL_IDS_UNIQUE, "body.input", format!("two calls have the id `{id}`"));
        }
        // "Duplicate item found with id rs_…. Remove duplicate items from your input and try again."
        let ids: Vec<&str> = items.iter().map(|item| text_of(item, "id")).filter(|id| !id.is_empty()).collect();
        if let Some(id) = first_repeated(&ids) {
            self.report.add(rules::ITEM_IDS_UNIQUE, "body.input", format!("two items have the id `{id}`"));
        }
        self.pairing(items);
        self.reasoning_is_followed(items);
    }

    fn item(&mut self, item: &Value, at: &str) {
        match text_of(item, "type") {
            "message" | "" => self.message(item, at),
            "function_call" => drop(self.call(item, at)),
            "function_call_output" => {
                RULES.check(&mut self.report, item, at, FUNCTION_OUTPUT, &[]);
                self.parts(item.get("output"), &format!("{at}.output"), &["input_text", "input_image", "input_file"]);
            }
            "reasoning" => self.reasoning(item, at),
            hosted if HOSTED.contains(&hosted) => {}
            other => self.report.add(rules::ITEM_TYPE, at, format!("`{other}` is no type of an item")),
        }
    }

    fn message(&mut self, item: &Value, at: &str) {
        let content_at = format!("{at}.content");
        match text_of(item, "role") {
            "user" | "system" | "developer" => {
                RULES.check(&mut self.report, item, at, INPUT_MESSAGE, &[]);
                self.parts(item.get("content"), &content_at, &["input_text", "input_image", "input_file"]);
            }
            // Servers that judge by the types of OpenAI's package (vLLM) take a list only with id and status.
            "assistant" if item.get("content").is_some_and(Value::is_array) => {
                RULES.check(&mut self.report, item, at, OUTPUT_MESSAGE, &[]);
                // "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
                self.parts(item.get("content"), &content_at, &["output_text", "refusal"]);
            }
            "assistant" => drop(RULES.check(&mut self.report, item, at, ASSISTANT_TEXT, &[])),
            role => self.report.add(rules::ROLE, at, format!("`{role}` is no role")),
        }
    }

    fn parts(&mut self, content: Option<&Value>, at: &str, allowed: &[&str]) {
        for (index, part) in content.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let at = format!("{at}[{index}]");
            let kind = text_of(part, "type");
            if !allowed.contains(&kind) {
                self.report.add(rules::PART_TYPE, at, format!("a part of type `{kind}` may not stand here"));
                continue;
            }
            let table: &[Member] = match kind {
                "input_text" => INPUT_TEXT,
                "input_image" => INPUT_IMAGE,
                "input_file" => INPUT_FILE,
                "output_text" => OUTPUT_TEXT,
                _ => REFUSAL,
            };
            let Some(part) = RULES.check(&mut self.report, part, &at, table, &[]) else { continue };
            let given = |names: &[&str]| names.iter().filter(|name| part.contains_key(**name)).count();
            match kind {
                "input_image" if given(&["image_url", "file_id"]) != 1 => {
                    self.report.add(rules::IMAGE, at, "has not exactly one of image_url and file_id");
                }
                "input_file" if given(&["file_data", "file_url", "file_id"]) != 1 => {
                    self.report.add(rules::FILE, at, "has not exactly one of file_data, file_url and file_id");
                }
                // The ending of the name tells the format.
                "input_file" if part.contains_key("file_data") && !part.contains_key("filename") => {
                    self.report.add(rules::FILE_NAME, at, "file_data without a filename");
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, item: &Value, at: &str) -> Option<()> {
        let call = RULES.check(&mut self.report, item, at, FUNCTION_CALL, &[])?;
        let name = text(call, "name");
        if !is_word(name, 64) {
            let what = format!("`{name}` is not a name of 1 to 64 word characters");
            self.report.add(rules::NAMES, format!("{at}.name"), what);
        }
        let arguments = call.get("arguments")?;
        let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if !parsed.is_some_and(|value| value.is_object()) {
            let what = format!("{} is not a text that holds a JSON object", brief(arguments));
            self.report.add(rules::ARGUMENTS, format!("{at}.arguments"), what);
        }
        Some(())
    }

    fn reasoning(&mut self, item: &Value, at: &str) {
        let Some(reasoning) = RULES.check(&mut self.report, item, at, REASONING, &[]) else { return };
        // "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false."
        let is_whole = !text(reasoning, "encrypted_content").is_empty() || !list(reasoning, "content").is_empty();
        if !self.stored && !is_whole {
            self.report.add(rules::STATELESS, at, "holds no reasoning, and nothing is stored");
        }
    }

    /// "No tool output found for function call call_…" and "No tool call found for function call output with call_id …". That
    /// nobody else speaks in between is what servers that render the items one by one want.
    fn pairing(&mut self, items: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = format!("body.input[{index}]");
            match text_of(item, "type") {
                "function_call" => open.push(text_of(item, "call_id")),
                "function_call_output" => {
                    let id = text_of(item, "call_id");
                    match open.iter().position(|call| *call == id) {
                        Some(place) => drop(open.remove(place)),
                        None => self.report.add(rules::ANSWERS, at, format!("the output `{id}` answers no open call")),
                    }
                }
                _ if matches!(text_of(item, "role"), "user" | "system" | "developer") => {
                    self.unanswered(&open, &at);
                    open.clear();
                }
                _ => {}
            }
        }
        self.unanswered(&open, "the end of body.input");
    }

    fn unanswered(&mut self, open: &[&str], at: &str) {
        if !open.is_empty() {
            self.report.add(rules::ANSWERED, at, format!("the calls {open:?} are not answered before it"));
        }
    }

    /// "Item 'rs_…' of type 'reasoning' was provided without its required following item."
    fn reasoning_is_followed(&mut self, items: &[Value]) {
        for (index, item) in items.iter().enumerate().filter(|(_, item)| text_of(item, "type") == "reasoning") {
            let follows = items.get(index + 1).is_some_and(|next| {
                let is_models = matches!(text_of(next, "role"), "" | "assistant");
                // Its own item came from the model with an id.
                let is_easy = text_of(next, "role") == "assistant" && next.get("id").is_none();
                is_models && !is_easy && text_of(next, "type") != "function_call_output"
            });
            if !follows {
                let what = format!("nothing of the same reply follows `{}`", text_of(item, "id"));
                self.report.add(rules::FOLLOWED, format!("body.input[{index}]"), what);
            }
        }
    }
}
