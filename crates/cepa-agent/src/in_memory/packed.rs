//! A conversation that nobody uses now, as one buffer: its rows in a dense private form that lives only in the process.
//!
//! A row is its id (what it shares with the id before is left out), its time (the difference to the time before) and its
//! message. Every member is written: what comes back equals what went in.

use std::sync::Arc;

use cepa_core::{
    Args, AssistantMessage, Content, EncodedSlot, Entry, Error, ErrorKind, Extra, FinishReason, History, Media,
    Message, Origin, Part, RawJson, Replay, Source, SystemMessage, ToolCall, ToolMessage, ToolStatus, Usage,
    UserMessage,
};

// The first byte of a message: who speaks, then which members follow.
const ROLE: u8 = 0b11;
const SYSTEM: u8 = 0;
const USER: u8 = 1;
const ASSISTANT: u8 = 2;
const TOOL: u8 = 3;
const CONTENT: u8 = 1 << 2;
const CALLS: u8 = 1 << 3;
const ORIGIN: u8 = 1 << 4;
const FINISH: u8 = 1 << 5;
const USAGE: u8 = 1 << 6;
const REST: u8 = 1 << 7;
// In place of those for a tool message.
const STATUS: u8 = 1 << 2;
const WRITES: u8 = 1 << 3;
const EXECUTED: u8 = 1 << 4;

/// What the row before said, of which the next one repeats much.
#[derive(Default)]
struct Before {
    id: String,
    created: i64,
    origin: Option<Origin>,
}

/// All rows in one buffer.
pub(super) fn pack(history: &History) -> Box<[u8]> {
    let mut packer = Packer::default();
    history.iter().for_each(|entry| packer.entry(entry));
    packer.out.into_boxed_slice()
}

/// The rows of a buffer, in order.
///
/// # Errors
/// `corrupt`, naming the row, if it is not what [`pack`] made.
pub(super) fn unpack(packed: &[u8]) -> impl Iterator<Item = Result<Arc<Entry>, Error>> {
    let mut rows = Rows { rest: packed, before: Before::default() };
    let mut row = 0;
    std::iter::from_fn(move || {
        if rows.rest.is_empty() {
            return None;
        }
        row += 1;
        let entry = rows.entry().map(Arc::new);
        if entry.is_none() {
            rows.rest = &[];
        }
        Some(entry.ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("message {row} cannot be read back"))))
    })
}

#[derive(Default)]
struct Packer {
    out: Vec<u8>,
    before: Before,
}

impl Packer {
    fn entry(&mut self, entry: &Entry) {
        let Entry { id, created, message, encoded: _ } = entry;
        match id {
            None => self.number(0),
            Some(id) => {
                let same = id.bytes().zip(self.before.id.bytes()).take_while(|(a, b)| a == b).count();
                let shared = id.floor_char_boundary(same);
                let (_, rest) = id.split_at(shared);
                self.number(rest.len() as u64 + 1);
                self.number(shared as u64);
                self.out.extend_from_slice(rest.as_bytes());
                self.before.id.truncate(shared);
                self.before.id.push_str(rest);
            }
        }
        let step = created.wrapping_sub(self.before.created);
        self.before.created = *created;
        // The sign goes last, so that small steps are short both ways.
        self.number(((step << 1) ^ (step >> 63)).cast_unsigned());
        self.message(message);
    }

    fn message(&mut self, message: &Message) {
        let flag = |flag: u8, is: bool| if is { flag } else { 0 };
        match message {
            Message::System(SystemMessage { content, extra }) => {
                self.out.push(SYSTEM | flag(REST, !extra.is_empty()));
                self.content(content);
                self.extra(extra);
            }
            Message::User(UserMessage { content, extra }) => {
                self.out.push(USER | flag(REST, !extra.is_empty()));
                self.content(content);
                self.extra(extra);
            }
            Message::Assistant(AssistantMessage {
                content,
                tool_calls,
                origin,
                finish_reason,
                usage,
                replay,
                extra,
            }) => {
                let rest = !replay.is_empty() || !extra.is_empty();
                let members = flag(CONTENT, content.is_some()) | flag(CALLS, !tool_calls.is_empty());
                let facts = flag(ORIGIN, origin.is_some()) | flag(FINISH, finish_reason.is_some());
                self.out.push(ASSISTANT | members | facts | flag(USAGE, usage.is_some()) | flag(REST, rest));
                if let Some(content) = content {
                    self.content(content);
                }
                if !tool_calls.is_empty() {
                    self.list(tool_calls, Self::call);
                }
                if let Some(origin) = origin {
                    self.origin(origin);
                }
                if let Some(finish) = finish_reason {
                    self.text(finish.as_str());
                }
                if let Some(Usage { input, output, cache_read, cache_write, reasoning }) = usage {
                    [input, output, cache_read, cache_write, reasoning].into_iter().for_each(|n| self.number(*n));
                }
                if rest {
                    self.list(replay, Self::replay);
                    self.members(extra);
                }
            }
            Message::Tool(ToolMessage { tool_call_id, name, content, status, writes, executed_args, extra }) => {
                let members = flag(STATUS, *status != ToolStatus::Ok) | flag(WRITES, writes.is_some());
                let rest = flag(EXECUTED, executed_args.is_some()) | flag(REST, !extra.is_empty());
                self.out.push(TOOL | members | rest);
                self.text(tool_call_id);
                self.text(name);
                self.content(content);
                if *status != ToolStatus::Ok {
                    self.text(status.as_str());
                }
                writes.iter().chain(executed_args).for_each(|raw| self.text(raw.as_str()));
                self.extra(extra);
            }
        }
    }

    /// A number, seven bits a byte, the lowest first.
    fn number(&mut self, mut n: u64) {
        while n > 0x7f {
            self.out.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.out.push(n as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], item: impl Fn(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|one| item(self, one));
    }

    fn option(&mut self, text: Option<&str>) {
        self.out.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Members where the first byte says whether there are any.
    fn extra(&mut self, extra: &Extra) {
        if !extra.is_empty() {
            self.members(extra);
        }
    }

    fn members(&mut self, extra: &Extra) {
        self.number(extra.len() as u64);
        for (name, value) in extra {
            self.text(name);
            self.text(value.as_str());
        }
    }

    fn content(&mut self, content: &Content) {
        match content {
            Content::Text(text) => {
                self.number((text.len() as u64) << 1);
                self.out.extend_from_slice(text.as_bytes());
            }
            Content::Parts(parts) => {
                self.number((parts.len() as u64) << 1 | 1);
                parts.iter().for_each(|part| self.part(part));
            }
        }
    }

    fn part(&mut self, part: &Part) {
        let (kind, text) = match part {
            Part::Text(text) => (0, text.as_str()),
            Part::Reasoning(text) => (1, text.as_str()),
            Part::Other(raw) => (2, raw.as_str()),
            Part::Image(media) => return self.media(3, media),
            Part::Audio(media) => return self.media(4, media),
            Part::Document(media) => return self.media(5, media),
        };
        self.out.push(kind);
        self.text(text);
    }

    fn media(&mut self, kind: u8, media: &Media) {
        let Media { source, media_type, name } = media;
        self.out.push(kind);
        self.option(media_type.as_deref());
        self.option(name.as_deref());
        match source {
            Source::Bytes(bytes) => {
                self.out.push(0);
                self.bytes(bytes);
            }
            Source::Url(url) => {
                self.out.push(1);
                self.text(url);
            }
        }
    }

    fn call(&mut self, call: &ToolCall) {
        let ToolCall { id, name, args, extra } = call;
        self.text(id);
        self.text(name);
        match args {
            Args::Object(raw) => {
                self.out.push(0);
                self.text(raw.as_str());
            }
            Args::Invalid { raw, why } => {
                self.out.push(1);
                self.text(raw);
                self.text(why);
            }
        }
        self.members(extra);
    }

    fn origin(&mut self, origin: &Origin) {
        let Origin { provider, model } = origin;
        let same = self.before.origin.as_ref() == Some(origin);
        self.out.push(u8::from(same));
        if !same {
            self.text(provider);
            self.text(model);
            self.before.origin = Some(origin.clone());
        }
    }

    fn replay(&mut self, replay: &Replay) {
        let Replay { format, provider, model, data } = replay;
        [format.as_str(), provider, model, data.as_str()].into_iter().for_each(|text| self.text(text));
    }
}

/// Reads what [`Packer`] wrote, member by member; `None` where it is something else.
struct Rows<'a> {
    rest: &'a [u8],
    before: Before,
}

impl<'a> Rows<'a> {
    fn entry(&mut self) -> Option<Entry> {
        let id = match self.length()? {
            0 => None,
            more => {
                let shared = self.length()?;
                let rest = std::str::from_utf8(self.take(more - 1)?).ok()?;
                self.before.id.get(..shared)?;
                self.before.id.truncate(shared);
                self.before.id.push_str(rest);
                Some(Arc::from(self.before.id.as_str()))
            }
        };
        let step = self.number()?;
        let step = (step >> 1).cast_signed() ^ -((step & 1).cast_signed());
        self.before.created = self.before.created.wrapping_add(step);
        let message = self.message()?;
        Some(Entry { id, created: self.before.created, message, encoded: EncodedSlot::default() })
    }

    fn message(&mut self) -> Option<Message> {
        let first = self.byte()?;
        let has = |flag: u8| first & flag != 0;
        Some(match first & ROLE {
            SYSTEM => {
                Message::System(SystemMessage { content: self.content()?, extra: self.when(has(REST), Self::members)? })
            }
            USER => {
                Message::User(UserMessage { content: self.content()?, extra: self.when(has(REST), Self::members)? })
            }
            ASSISTANT => Message::Assistant(AssistantMessage {
                content: self.some(has(CONTENT), Self::content)?,
                tool_calls: self.when(has(CALLS), |rows| rows.list(Self::call))?,
                origin: self.some(has(ORIGIN), Self::origin)?,
                finish_reason: self.some(has(FINISH), |rows| FinishReason::from_word(rows.text()?))?,
                usage: self.some(has(USAGE), Self::usage)?,
                replay: self.when(has(REST), |rows| rows.list(Self::replay))?,
                extra: self.when(has(REST), Self::members)?,
            }),
            _ => Message::Tool(ToolMessage {
                tool_call_id: self.string()?,
                name: self.string()?,
                content: self.content()?,
                status: self.when(has(STATUS), |rows| ToolStatus::from_word(rows.text()?))?,
                writes: self.some(has(WRITES), Self::raw)?,
                executed_args: self.some(has(EXECUTED), Self::raw)?,
                extra: self.when(has(REST), Self::members)?,
            }),
        })
    }

    /// A member that may be left out.
    fn some<T>(&mut self, is_there: bool, read: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if is_there { read(self).map(Some) } else { Some(None) }
    }

    /// A member that is left out where it is what it is by default.
    fn when<T: Default>(&mut self, is_there: bool, read: impl Fn(&mut Self) -> Option<T>) -> Option<T> {
        if is_there { read(self) } else { Some(T::default()) }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.take(len)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn string(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    fn raw(&mut self) -> Option<RawJson> {
        RawJson::parse(self.text()?).ok()
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.length()?).map(|_| item(self)).collect()
    }

    fn option(&mut self) -> Option<Option<String>> {
        let is_there = self.byte()? != 0;
        self.some(is_there, Self::string)
    }

    fn members(&mut self) -> Option<Extra> {
        (0..self.length()?).map(|_| Some((self.string()?, self.raw()?))).collect()
    }

    fn content(&mut self) -> Option<Content> {
        let length = self.length()?;
        if length & 1 == 0 {
            let text = std::str::from_utf8(self.take(length >> 1)?).ok()?;
            return Some(Content::Text(text.to_owned()));
        }
        (0..length >> 1).map(|_| self.part()).collect::<Option<_>>().map(Content::Parts)
    }

    fn part(&mut self) -> Option<Part> {
        Some(match self.byte()? {
            0 => Part::Text(self.string()?),
            1 => Part::Reasoning(self.string()?),
            2 => Part::Other(self.raw()?),
            3 => Part::Image(self.media()?),
            4 => Part::Audio(self.media()?),
            5 => Part::Document(self.media()?),
            _ => return None,
        })
    }

    fn media(&mut self) -> Option<Media> {
        let (media_type, name) = (self.option()?, self.option()?);
        let source = match self.byte()? {
            0 => Source::Bytes(self.bytes()?.to_vec().into()),
            _ => Source::Url(self.string()?),
        };
        Some(Media { source, media_type, name })
    }

    fn call(&mut self) -> Option<ToolCall> {
        let (id, name) = (self.string()?, self.string()?);
        let args = match self.byte()? {
            0 => Args::Object(self.raw()?),
            _ => Args::Invalid { raw: self.string()?, why: self.string()? },
        };
        Some(ToolCall { id, name, args, extra: self.members()? })
    }

    fn origin(&mut self) -> Option<Origin> {
        if self.byte()? == 0 {
            let (provider, model) = (Arc::from(self.text()?), Arc::from(self.text()?));
            self.before.origin = Some(Origin { provider, model });
        }
        self.before.origin.clone()
    }

    fn usage(&mut self) -> Option<Usage> {
        Some(Usage {
            input: self.number()?,
            output: self.number()?,
            cache_read: self.number()?,
            cache_write: self.number()?,
            reasoning: self.number()?,
        })
    }

    fn replay(&mut self) -> Option<Replay> {
        Some(Replay { format: self.string()?, provider: self.string()?, model: self.string()?, data: self.raw()? })
    }
}
