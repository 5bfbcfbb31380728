//! Messages as JSON, by hand through one flat struct: tagged and untagged enums lose raw JSON inside
//! (<https://github.com/serde-rs/json/issues/545>).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::Error as _,
    ser::{Error as _, SerializeMap, SerializeSeq},
};

use crate::{
    Args, AssistantMessage, Content, Extra, FinishReason, Media, Message, Origin, Part, RawJson, Replay, Role, Source,
    SystemMessage, ToolCall, ToolMessage, ToolStatus, Usage, UserMessage,
};

/// The members of an object, taken one by one; what is left is `extra`.
struct Members(Extra);

impl Members {
    fn take<T: for<'a> Deserialize<'a>, E: serde::de::Error>(&mut self, name: &str) -> Result<Option<T>, E> {
        let Some(raw) = self.0.remove(name) else { return Ok(None) };
        raw.read::<Option<T>>().map_err(|error| E::custom(format_args!("{name}: {error}")))
    }

    fn need<T: for<'a> Deserialize<'a>, E: serde::de::Error>(&mut self, name: &'static str) -> Result<T, E> {
        self.take(name)?.ok_or_else(|| E::missing_field(name))
    }
}

fn word<T, E: serde::de::Error>(word: &str, parse: impl Fn(&str) -> Option<T>, what: &str) -> Result<T, E> {
    parse(word).ok_or_else(|| E::custom(format_args!("unknown {what} `{word}`")))
}

fn write_extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", self.role().as_str())?;
        let extra = match self {
            Self::System(SystemMessage { content, extra }) | Self::User(UserMessage { content, extra }) => {
                map.serialize_entry("content", content)?;
                extra
            }
            Self::Assistant(m) => {
                map.serialize_entry("content", &m.content)?;
                if !m.tool_calls.is_empty() {
                    map.serialize_entry("tool_calls", &m.tool_calls)?;
                }
                if let Some(origin) = &m.origin {
                    map.serialize_entry("origin", origin)?;
                }
                if let Some(finish) = m.finish_reason {
                    map.serialize_entry("finish_reason", finish.as_str())?;
                }
                if let Some(usage) = &m.usage {
                    map.serialize_entry("usage", usage)?;
                }
                if !m.replay.is_empty() {
                    map.serialize_entry("replay", &m.replay)?;
                }
                &m.extra
            }
            Self::Tool(m) => {
                map.serialize_entry("tool_call_id", &m.tool_call_id)?;
                map.serialize_entry("name", &m.name)?;
                map.serialize_entry("content", &m.content)?;
                if m.status != ToolStatus::Ok {
                    map.serialize_entry("status", m.status.as_str())?;
                }
                if let Some(writes) = &m.writes {
                    map.serialize_entry("writes", writes)?;
                }
                if let Some(args) = &m.executed_args {
                    map.serialize_entry("executed_args", args)?;
                }
                &m.extra
            }
        };
        write_extra(&mut map, extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Extra::deserialize(deserializer)?);
        let role: String = members.need("role")?;
        Ok(match word(&role, Role::from_word, "role")? {
            Role::System => Self::System(SystemMessage { content: members.need("content")?, extra: members.0 }),
            Role::User => Self::User(UserMessage { content: members.need("content")?, extra: members.0 }),
            Role::Assistant => Self::Assistant(AssistantMessage {
                content: members.take("content")?,
                tool_calls: members.take("tool_calls")?.unwrap_or_default(),
                origin: members.take("origin")?,
                finish_reason: match members.take::<String, _>("finish_reason")? {
                    Some(reason) => Some(word(&reason, FinishReason::from_word, "finish_reason")?),
                    None => None,
                },
                usage: members.take("usage")?,
                replay: members.take("replay")?.unwrap_or_default(),
                extra: members.0,
            }),
            Role::Tool => Self::Tool(ToolMessage {
                tool_call_id: members.need("tool_call_id")?,
                name: members.take("name")?.unwrap_or_default(),
                content: members.need("content")?,
                status: match members.take::<String, _>("status")? {
                    Some(status) => word(&status, ToolStatus::from_word, "status")?,
                    None => ToolStatus::Ok,
                },
                writes: members.take("writes")?,
                executed_args: members.take("executed_args")?,
                extra: members.0,
            }),
        })
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        match &self.args {
            Args::Object(raw) => map.serialize_entry("args", raw)?,
            Args::Invalid { raw, why } => {
                map.serialize_entry("args", &())?;
                map.serialize_entry("raw_args", raw)?;
                map.serialize_entry("why", why)?;
            }
        }
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Extra::deserialize(deserializer)?);
        let id = members.need("id")?;
        let name = members.need("name")?;
        let args: Option<RawJson> = members.take("args")?;
        let args = match (members.take::<String, D::Error>("raw_args")?, args) {
            (Some(raw), _) => Args::Invalid { raw, why: members.take("why")?.unwrap_or_default() },
            (None, Some(args)) => Args::decode_value(Some(&args)),
            // The word of earlier designs and of Anthropic's wire.
            (None, None) => Args::decode_value(members.take("input")?.as_ref()),
        };
        Ok(Self { id, name, args, extra: members.0 })
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => {
                let mut seq = serializer.serialize_seq(Some(parts.len()))?;
                parts.iter().try_for_each(|part| seq.serialize_element(part))?;
                seq.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        if raw.as_str().starts_with('[') {
            raw.read().map(Self::Parts).map_err(D::Error::custom)
        } else {
            raw.read().map(Self::Text).map_err(D::Error::custom)
        }
    }
}

fn write_media<M: SerializeMap>(map: &mut M, media: &Media) -> Result<(), M::Error> {
    if let Some(media_type) = &media.media_type {
        map.serialize_entry("media_type", media_type)?;
    }
    if let Some(name) = &media.name {
        map.serialize_entry("name", name)?;
    }
    match &media.source {
        Source::Bytes(bytes) => map.serialize_entry("data", &STANDARD.encode(bytes)),
        Source::Url(url) => map.serialize_entry("url", url),
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Other(raw) = self {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Self::Reasoning(text) => {
                map.serialize_entry("type", "reasoning")?;
                map.serialize_entry("text", text)?;
            }
            Self::Image(media) => {
                map.serialize_entry("type", "image")?;
                write_media(&mut map, media)?;
            }
            Self::Audio(media) => {
                map.serialize_entry("type", "audio")?;
                write_media(&mut map, media)?;
            }
            Self::Document(media) => {
                map.serialize_entry("type", "document")?;
                write_media(&mut map, media)?;
            }
            Self::Other(_) => return Err(S::Error::custom("a part of unknown type is written as it is")),
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        let mut members = Members(raw.read().map_err(D::Error::custom)?);
        let kind: String = members.need("type")?;
        Ok(match kind.as_str() {
            "text" => Self::Text(members.need("text")?),
            "reasoning" => Self::Reasoning(members.need("text")?),
            "image" => Self::Image(read_media(members)?),
            "audio" => Self::Audio(read_media(members)?),
            "document" => Self::Document(read_media(members)?),
            _ => Self::Other(raw),
        })
    }
}

fn read_media<E: serde::de::Error>(mut members: Members) -> Result<Media, E> {
    let source = match members.take::<String, E>("data")? {
        Some(data) => {
            let bytes = STANDARD.decode(data).map_err(|error| E::custom(format_args!("data: {error}")))?;
            Source::Bytes(bytes.into())
        }
        None => Source::Url(members.need("url")?),
    };
    Ok(Media { source, media_type: members.take("media_type")?, name: members.take("name")? })
}

#[derive(Serialize, Deserialize)]
struct OriginJson<'a> {
    #[serde(borrow)]
    provider: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    model: std::borrow::Cow<'a, str>,
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        OriginJson { provider: (&*self.provider).into(), model: (&*self.model).into() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let OriginJson { provider, model } = OriginJson::deserialize(deserializer)?;
        Ok(Self { provider: Arc::from(&*provider), model: Arc::from(&*model) })
    }
}

/// Counts that are zero are left out: most replies have no cache and no reasoning.
#[derive(Serialize, Deserialize)]
struct UsageJson {
    input: u64,
    output: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_read: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_write: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    reasoning: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { input, output, cache_read, cache_write, reasoning } = *self;
        UsageJson { input, output, cache_read, cache_write, reasoning }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UsageJson { input, output, cache_read, cache_write, reasoning } = UsageJson::deserialize(deserializer)?;
        Ok(Self { input, output, cache_read, cache_write, reasoning })
    }
}

impl Serialize for Replay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("format", &self.format)?;
        map.serialize_entry("provider", &self.provider)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("data", &self.data)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Replay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members(Extra::deserialize(deserializer)?);
        Ok(Self {
            format: members.need("format")?,
            provider: members.need("provider")?,
            model: members.need("model")?,
            data: members.need("data")?,
        })
    }
}

#[cfg(test)]
#[path = "message_json_tests.rs"]
mod tests;
