//! Each rule refuses what it is for and nothing else, and a full request of every kind passes.

use serde_json::{Value, json};

use super::{
    super::trial::{Trials, insert, remove, swap},
    *,
};

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

#[test]
fn a_full_request_is_taken() {
    assert_eq!(validate(&good()), vec![]);
}

fn parts(trials: &mut Trials) {
    trials.refuse("GE-01", |b| b["generationConfig"]["seed"] = json!("x"));
    trials.refuse("GE-01", |b| b["contents"][3]["parts"][0]["thought"] = json!("yes"));
    trials.refuse("GE-02", |b| b["nonsense"] = json!(1));
    trials.refuse("GE-02", |b| b["contents"][3]["parts"][1]["functionCall"]["arguments"] = json!("{}"));
    trials.refuse("GE-03", |b| b["systemInstruction"]["parts"] = json!([]));
    trials.refuse("GE-03", |b| b["contents"][0]["parts"] = json!([]));
    trials.refuse("GE-04", |b| b["generationConfig"]["temperature"] = json!(2.1));
    trials.refuse("GE-04", |b| b["generationConfig"]["maxOutputTokens"] = json!(0));
    trials.refuse("GE-05", |b| b["generationConfig"]["stopSequences"] = json!(["1", "2", "3", "4", "5", "6"]));
    trials.refuse("GE-05", |b| b["generationConfig"]["stopSequences"] = json!([""]));
    trials.refuse("GE-06", |b| b["contents"][3]["parts"][1]["thoughtSignature"] = json!("not base64!"));
    trials.refuse("GE-06", |b| b["contents"][0]["parts"][1]["inlineData"]["data"] = json!("%"));
    trials.refuse("GE-07", |b| b["contents"][3]["parts"][1]["functionCall"]["args"] = json!("{}"));
    trials.refuse("GE-07", |b| b["contents"][4]["parts"][0]["functionResponse"]["response"] = json!("sunny"));
    trials.refuse("GE-08", |b| b["contents"][0]["parts"][0] = json!({}));
    trials.refuse("GE-08", |b| b["contents"][0]["parts"][1]["text"] = json!("look"));
    trials.refuse("GE-09", |b| b["contents"][0]["parts"][0] = json!({"text": ""}));
    trials.refuse("GE-09", |b| b["systemInstruction"]["parts"][0]["text"] = json!(" "));
    trials.refuse("GE-10", |b| b["systemInstruction"]["parts"][0] = json!({"fileData": {"fileUri": "https://a"}}));
    trials.refuse("GE-33", |b| b["contents"][0]["parts"][1]["inlineData"]["mimeType"] = json!("image/gif"));
    trials.refuse("GE-34", |b| b["contents"][0]["parts"][2]["fileData"]["fileUri"] = json!("file:///a"));
    trials.under(older, "GE-35", as_before_3, |b| {
        let image = b["contents"][0]["parts"][1].clone();
        b["contents"][4]["parts"][0]["functionResponse"]["parts"] = json!([image]);
    });
    trials.refuse("GE-36", |b| {
        b["contents"][4]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["mimeType"] = json!("audio/wav");
    });
}

fn turns(trials: &mut Trials) {
    trials.refuse("GE-11", |b| remove(b, "/contents/1"));
    trials.refuse("GE-11", |b| remove(b, "/contents/0"));
    trials.refuse("GE-12", |b| insert(b, "/contents/-", json!({"role": "model", "parts": [{"text": "x"}]})));
    trials.refuse("GE-13", |b| {
        b["contents"][2]["parts"][0] = json!({"functionCall": {"name": "a"}, "thoughtSignature": "YWFh"});
        b["contents"][3]["parts"] = json!([{"functionResponse": {"name": "a", "response": {}}}]);
        b["contents"][4]["parts"] = json!([{"text": "x"}]);
    });
    trials.refuse("GE-14", |b| remove(b, "/contents/4/parts/1"));
    trials
        .refuse("GE-14", |b| b["contents"][2]["parts"][0] = json!({"functionResponse": {"name": "a", "response": {}}}));
    trials.refuse("GE-15", |b| swap(b, "/contents/4/parts/0"));
    trials.refuse("GE-15", |b| b["contents"][4]["parts"][0]["functionResponse"]["id"] = json!("c2"));
    trials.refuse("GE-15", |b| b["contents"][4]["parts"][0]["functionResponse"]["name"] = json!("now"));
    trials.refuse("GE-16", |b| swap(b, "/contents/4/parts/1"));
    trials.refuse("GE-17", |b| {
        b["contents"][3]["parts"][2]["functionCall"]["id"] = json!("c1");
        b["contents"][4]["parts"][1]["functionResponse"]["id"] = json!("c1");
    });
    trials.refuse("GE-18", |b| remove(b, "/contents/3/parts/1/thoughtSignature"));
    trials.refuse("GE-19", |b| b["contents"][3]["parts"][1]["thoughtSignature"] = json!("c2ln"));
}

fn tools(trials: &mut Trials) {
    trials.refuse("GE-20", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("2fa"));
    trials.refuse("GE-20", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("x".repeat(65)));
    trials.refuse("GE-21", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("weather"));
    trials.refuse("GE-22", |b| b["tools"][0]["functionDeclarations"][0]["parameters"] = json!({}));
    trials.beside("GE-23", |b| schema(b, json!({"type": "object"})), |b| schema(b, json!({"type": "string"})));
    trials
        .refuse("GE-24", |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["pattern"] = json!("x"));
    trials.beside("GE-25", |b| one_of(b, json!(["Oslo", 1])), |b| one_of(b, json!([true])));
    trials.refuse("GE-26", |b| {
        b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["required"] = json!(["a"])
    });
    trials.beside(
        "GE-27",
        |b| city(b, json!({"$ref": "#/$defs/city", "description": "d"})),
        |b| city(b, json!({"$ref": "#/$defs/city", "title": "t"})),
    );
    trials.beside("GE-28", |b| choice(b, json!({"mode": "NONE"})), |b| choice(b, json!({"mode": "MUST"})));
    trials.beside("GE-29", |b| choice(b, json!({"mode": "AUTO"})), |b| remove(b, "/tools"));
    trials.refuse("GE-30", |b| b["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] = json!(["gone"]));
    trials.refuse("GE-30", |b| b["toolConfig"]["functionCallingConfig"]["mode"] = json!("AUTO"));
    trials.refuse("GE-31", |b| b["generationConfig"]["thinkingConfig"]["thinkingBudget"] = json!(1));
    trials.under(older, "GE-32", as_before_3, |b| {
        b["generationConfig"]["thinkingConfig"] = json!({"thinkingLevel": "low"});
    });
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let mut trials = Trials::new(good(), validate);
    parts(&mut trials);
    turns(&mut trials);
    tools(&mut trials);
    trials.complete(rules::ALL);
}

fn older(body: &Value) -> Vec<Violation> {
    validate_for(body, Model::Before3)
}

fn as_before_3(body: &mut Value) {
    remove(body, "/contents/4/parts/0/functionResponse/parts");
    body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": 512});
}

fn schema(body: &mut Value, schema: Value) {
    body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] = schema;
}

fn city(body: &mut Value, city: Value) {
    body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["properties"]["city"] = city;
}

fn one_of(body: &mut Value, values: Value) {
    city(body, json!({"enum": values}));
}

fn choice(body: &mut Value, choice: Value) {
    body["toolConfig"]["functionCallingConfig"] = choice;
}
