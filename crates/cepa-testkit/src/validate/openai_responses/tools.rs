//! The tools, and the choice among them.

use serde_json::{Map, Value};

use super::{
    super::shape::{first_repeated, is_word},
    Judge, RULES, brief, list,
    members::FUNCTION_TOOL,
    rules, text, text_of,
};

impl Judge {
    pub(super) fn tools(&mut self, body: &Map<String, Value>) {
        let tools = list(body, "tools");
        let mut names = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            names.extend(self.tool(tool, &format!("body.tools[{index}]")));
        }
        if let Some(name) = first_repeated(&names) {
            self.report.add(rules::TOOL_NAMES_UNIQUE, "body.tools", format!("two tools are named `{name}`"));
        }
        match body.get("tool_choice") {
            // "Tool choice 'required' must be specified with 'tools' parameter."
            Some(_) if tools.is_empty() => {
                self.report.add(rules::WITHOUT_TOOLS, "body.tool_choice", "stands without tools")
            }
            Some(choice) => self.choice(choice, &names),
            None => {}
        }
    }

    fn tool<'v>(&mut self, tool: &'v Value, at: &str) -> Option<&'v str> {
        // A function in the shape of chat completions has its name one level too deep: "Missing required parameter:
        // 'tools[0].name'".
        if tool.get("function").is_some() || text_of(tool, "type").is_empty() {
            self.report.add(rules::FLAT_TOOL, at, format!("{} is no tool", brief(tool)));
            return None;
        }
        // The provider's own tools have no name that a call could bear.
        if text_of(tool, "type") != "function" {
            return None;
        }
        let tool = RULES.check(&mut self.report, tool, at, FUNCTION_TOOL, &[])?;
        let name = text(tool, "name");
        if !is_word(name, 64) {
            let what = format!("`{name}` is not a name of 1 to 64 word characters");
            self.report.add(rules::NAMES, format!("{at}.name"), what);
        }
        let parameters = tool.get("parameters").unwrap_or(&Value::Null);
        let at = format!("{at}.parameters");
        if text_of(parameters, "type") != "object" || !parameters.get("properties").is_some_and(Value::is_object) {
            let what = format!("{} is not an object schema with properties", brief(parameters));
            self.report.add(rules::TOOL_SCHEMA, &at, what);
        }
        if tool.get("strict") == Some(&Value::Bool(true)) {
            self.strict(parameters, &at);
        }
        Some(name)
    }

    /// "'additionalProperties' is required to be supplied and to be false"; "'required' is required to be supplied and to be
    /// an array including every key in properties"; "'…' is not permitted".
    fn strict(&mut self, schema: &Value, at: &str) {
        let Some(members) = schema.as_object() else {
            return self.report.add(rules::STRICT_CLOSED, at, format!("{} is no schema of an object", brief(schema)));
        };
        const REFUSED: [&str; 14] = [
            "allOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "prefixItems",
            "default",
            "minLength",
            "maxLength",
            "uniqueItems",
        ];
        for name in REFUSED.into_iter().filter(|name| members.contains_key(*name)) {
            self.report.add(rules::STRICT_KEYWORDS, at, format!("`{name}` is not permitted"));
        }
        let is_object =
            |kind: &Value| kind == "object" || kind.as_array().is_some_and(|all| all.contains(&"object".into()));
        if members.get("type").is_some_and(is_object) {
            let properties = members.get("properties").and_then(Value::as_object);
            let required = list(members, "required");
            if members.get("additionalProperties") != Some(&Value::Bool(false)) {
                self.report.add(rules::STRICT_CLOSED, at, "additionalProperties is not false");
            }
            for name in
                properties.into_iter().flat_map(Map::keys).filter(|name| !required.contains(&(**name).clone().into()))
            {
                self.report.add(rules::STRICT_REQUIRED, at, format!("`{name}` is not required"));
            }
        }
        for inside in ["properties", "$defs", "definitions"] {
            for (name, schema) in members.get(inside).and_then(Value::as_object).into_iter().flatten() {
                self.strict(schema, &format!("{at}.{inside}.{name}"));
            }
        }
        for schema in members.get("items").into_iter().chain(list(members, "anyOf")) {
            self.strict(schema, &format!("{at}[]"));
        }
    }

    fn choice(&mut self, choice: &Value, names: &[&str]) {
        let is_choice = match choice {
            Value::String(word) => matches!(word.as_str(), "none" | "auto" | "required"),
            Value::Object(object) if text(object, "type") == "function" => names.contains(&text(object, "name")),
            Value::Object(object) => !text(object, "type").is_empty(),
            _ => false,
        };
        if !is_choice {
            let what = format!("{} is no choice among {names:?}", brief(choice));
            self.report.add(rules::TOOL_CHOICE, "body.tool_choice", what);
        }
    }
}
