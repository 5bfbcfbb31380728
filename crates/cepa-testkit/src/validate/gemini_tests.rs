//! Each rule refuses what it is for, and a full request of every kind passes.

use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "weather?"},
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
                {"fileData": {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}},
            ]},
            {"role": "model", "parts": [{"text": "Which town?"}, {"text": "", "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"text": "Oslo"}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "c2lo"},
                {"functionCall": {"name": "weather", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": "sunny"}, "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}]}},
                {"functionResponse": {"name": "weather", "response": {"error": "no"}}},
                {"text": "hurry"},
            ]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "weather", "description": "d", "parametersJsonSchema": {"type": "object", "properties": {
                "city": {"type": ["string", "null"], "enum": ["Oslo"]}}, "required": ["city"]}},
            {"name": "now"},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        "generationConfig": {
            "maxOutputTokens": 9, "temperature": 1.5, "topP": 0.5, "stopSequences": ["x"],
            "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"},
        },
    })
}

fn rules(body: &Value) -> Vec<&'static str> {
    validate(body).iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_full_request_is_taken() {
    assert_eq!(validate(&good()), vec![]);
}

#[test]
fn each_rule_refuses_what_it_is_for() {
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("ge.shape", |b| b["contents"] = json!([])),
        ("ge.shape", |b| b["contents"][0]["parts"] = json!([])),
        ("ge.shape", |b| b["generationConfig"]["stopSequences"] = json!(["1", "2", "3", "4", "5", "6"])),
        ("ge.shape", |b| b["generationConfig"]["temperature"] = json!(2.1)),
        ("ge.shape", |b| b["contents"][3]["parts"][1]["functionCall"]["args"] = json!("{}")),
        ("ge.shape", |b| b["contents"][3]["parts"][1]["thoughtSignature"] = json!("not base64!")),
        ("ge.shape", |b| b["contents"][4]["parts"][0]["functionResponse"]["response"] = json!("sunny")),
        ("ge.unknown_member", |b| b["nonsense"] = json!(1)),
        ("ge.unknown_member", |b| b["contents"][3]["parts"][1]["functionCall"]["arguments"] = json!("{}")),
        ("ge.no_empty_part", |b| b["contents"][0]["parts"][0] = json!({"text": ""})),
        ("ge.no_empty_part", |b| b["contents"][0]["parts"][0] = json!({})),
        ("ge.no_empty_part", |b| b["systemInstruction"]["parts"][0]["text"] = json!(" ")),
        ("ge.system_text", |b| b["systemInstruction"]["parts"][0] = json!({"fileData": {"fileUri": "https://a"}})),
        ("ge.alternate", |b| b["contents"][1]["role"] = json!("user")),
        ("ge.alternate", |b| drop(b["contents"].as_array_mut().unwrap().remove(0))),
        ("ge.last_user", |b| {
            b["contents"].as_array_mut().unwrap().push(json!({"role": "model", "parts": [{"text": "x"}]}))
        }),
        ("ge.pairing", |b| drop(b["contents"][4]["parts"].as_array_mut().unwrap().remove(1))),
        ("ge.pairing", |b| b["contents"][4]["parts"].as_array_mut().unwrap().swap(0, 1)),
        ("ge.pairing", |b| b["contents"][4]["parts"][0]["functionResponse"]["id"] = json!("c2")),
        ("ge.pairing", |b| b["contents"][2]["parts"][0] = json!({"functionResponse": {"name": "a", "response": {}}})),
        ("ge.responses_first", |b| b["contents"][4]["parts"].as_array_mut().unwrap().swap(1, 2)),
        ("ge.part_role", |b| b["contents"][2]["parts"][0] = json!({"functionCall": {"name": "a"}})),
        ("ge.ids_unique", |b| {
            b["contents"][3]["parts"][2]["functionCall"]["id"] = json!("c1");
            b["contents"][4]["parts"][1]["functionResponse"]["id"] = json!("c1");
        }),
        ("ge.signature", |b| drop(b["contents"][3]["parts"][1].as_object_mut().unwrap().remove("thoughtSignature"))),
        ("ge.signature", |b| b["contents"][3]["parts"][1]["thoughtSignature"] = json!("c2ln")),
        ("ge.names", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("2fa")),
        ("ge.names", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("x".repeat(65))),
        ("ge.tool_names_unique", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("weather")),
        ("ge.tool_choice", |b| b["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] = json!(["gone"])),
        ("ge.tool_choice", |b| b["toolConfig"]["functionCallingConfig"]["mode"] = json!("AUTO")),
        ("ge.tool_choice", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
        ("ge.schema", |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["pattern"] = json!("x")),
        ("ge.schema", |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"] = json!("string")),
        ("ge.schema", |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["required"] = json!(["a"])),
        ("ge.schema", |b| b["tools"][0]["functionDeclarations"][0]["parameters"] = json!({})),
        ("ge.thinking", |b| b["generationConfig"]["thinkingConfig"]["thinkingBudget"] = json!(1)),
        ("ge.media", |b| b["contents"][0]["parts"][1]["inlineData"]["mimeType"] = json!("image/gif")),
        ("ge.media", |b| b["contents"][0]["parts"][2]["fileData"]["fileUri"] = json!("file:///a")),
        ("ge.media_in_response", |b| {
            b["contents"][4]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["mimeType"] = json!("audio/wav");
        }),
    ];
    for (rule, change) in cases {
        let mut body = good();
        change(&mut body);
        assert!(rules(&body).contains(rule), "{rule}: {:?}", validate(&body));
    }
}

#[test]
fn older_models_take_no_levels_and_no_media_in_responses() {
    let found: Vec<&str> = validate_for(&good(), Model::Before3).iter().map(|violation| violation.rule).collect();
    assert_eq!(found, ["ge.thinking", "ge.media_in_response"]);
}
