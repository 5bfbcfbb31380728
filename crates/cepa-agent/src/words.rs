//! Core types as words and texts inside derived JSON.

pub(crate) mod status {
    //! A status as its word.
    use cepa_core::ToolStatus;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(status: &ToolStatus, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(status.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolStatus, D::Error> {
        let word = String::deserialize(deserializer)?;
        ToolStatus::from_word(&word).ok_or_else(|| D::Error::custom(format_args!("unknown status `{word}`")))
    }
}

pub(crate) mod args {
    //! Arguments as the text that the model wrote.
    use cepa_core::Args;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(args: &Args, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(args.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Args, D::Error> {
        Ok(Args::decode(&String::deserialize(deserializer)?))
    }
}

pub(crate) mod tool_choice {
    //! A tool choice as its word, or `tool:` and a name.
    use cepa_core::ToolChoice;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(choice: &Option<ToolChoice>, serializer: S) -> Result<S::Ok, S::Error> {
        choice
            .as_ref()
            .map(|choice| match choice {
                ToolChoice::Auto => "auto".to_owned(),
                ToolChoice::None => "none".to_owned(),
                ToolChoice::Required => "required".to_owned(),
                ToolChoice::Tool(name) => format!("tool:{name}"),
            })
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ToolChoice>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(|word| match word.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            other => ToolChoice::Tool(other.strip_prefix("tool:").unwrap_or(other).to_owned()),
        }))
    }
}
