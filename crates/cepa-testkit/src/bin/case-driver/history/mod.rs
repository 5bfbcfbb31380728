//! Kind `history`: operations on a memory, a window over one, or a database.

mod raw;
mod store;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cepa_agent::{ChatMemory, load_whole};
use cepa_core::{Entry, Error, ErrorKind, Message, RawJson};
use serde::{Deserialize, Serialize};

use crate::{
    line::{Fail, Line, Observed, Refused, SmallError, observed},
    neutral::{self, Neutral},
};
use store::{Store, StoreWords};

#[derive(Deserialize)]
struct Input {
    store: StoreWords,
    ops: Vec<Op>,
}

#[derive(Clone, Deserialize)]
struct Op {
    op: String,
    r#as: Option<String>,
    conv: Option<String>,
    msgs: Option<RawJson>,
    fail_on_row: Option<i64>,
    of: Option<String>,
    workers: Option<usize>,
    times: Option<usize>,
    #[serde(default)]
    each: Vec<Op>,
    position: Option<i64>,
    field: Option<String>,
    value: Option<RawJson>,
}

/// What an operation gave.
#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Done { ok: bool },
    Messages { messages: Vec<Neutral>, warned: bool },
    All { conversations: BTreeMap<String, Vec<Neutral>> },
    Count { count: i64 },
    Errors { errors: Vec<SmallError> },
    Refused(Refused),
}

impl Value {
    fn of(result: Result<Self, Error>) -> Self {
        result.unwrap_or_else(|error| Self::Refused((&error).into()))
    }
}

/// Does the operations and reports those that have a name.
pub(crate) async fn run(line: &Line) -> Result<Observed, Fail> {
    let input: Input = line.input()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut store = match Store::open(&input.store, folder.path())? {
        Ok(store) => store,
        Err(error) => return observed(&Refused::from(&error)),
    };
    let mut report = BTreeMap::new();
    for op in &input.ops {
        let value = if op.op == "reopen" {
            drop(store);
            store = Store::open(&input.store, folder.path())??;
            Value::Done { ok: true }
        } else {
            match op.op.as_str() {
                "parallel" => parallel(&input.store, folder.path(), op).await?,
                _ => perform(&store, op).await?,
            }
        };
        if let Some(name) = &op.r#as {
            report.insert(name.clone(), value);
        }
    }
    observed(&report)
}

async fn perform(store: &Store, op: &Op) -> Result<Value, Fail> {
    let conv = op.conv.as_deref().unwrap_or_default();
    let file = || store.file().ok_or_else(|| Fail::Crash("this needs a database".to_owned()));
    let need = |number: Option<i64>| number.ok_or_else(|| Fail::Crash("a number is missing".to_owned()));
    Ok(match op.op.as_str() {
        "add" => {
            let messages = messages(op.msgs.as_ref())?;
            match op.fail_on_row {
                None => Value::of(add(&*store.shown, conv, messages).await),
                Some(row) => {
                    let trap = raw::Trap::set(file()?, conv, row)?;
                    let value = Value::of(add(&*store.shown, conv, messages).await);
                    trap.remove()?;
                    value
                }
            }
        }
        "get" => {
            let memory = if op.of.as_deref() == Some("base") { &store.base } else { &store.shown };
            Value::of(get(&**memory, conv).await)
        }
        "get_all" => Value::of(get_all(&*store.shown).await),
        "clear" => Value::of(store.shown.clear(conv).await.map(|()| Value::Done { ok: true })),
        "raw_corrupt_row" => {
            raw::corrupt_row(file()?, conv, need(op.position)?)?;
            Value::Done { ok: true }
        }
        "raw_add_field" => {
            let (field, value) = op.field.as_deref().zip(op.value.as_ref()).ok_or_else(|| "no field".to_owned())?;
            raw::add_field(file()?, conv, need(op.position)?, field, value)?;
            Value::Done { ok: true }
        }
        "raw_count" => Value::Count { count: raw::count(file()?, conv)? },
        op => return Err(Fail::Crash(format!("the operation `{op}` is not known"))),
    })
}

fn messages(raw: Option<&RawJson>) -> Result<Vec<Message>, Fail> {
    Ok(raw.map(RawJson::read).transpose()?.unwrap_or_default())
}

/// Appends in one unit at the present version; where somebody was faster, the version is read again.
async fn add(memory: &dyn ChatMemory, conv: &str, messages: Vec<Message>) -> Result<Value, Error> {
    let entries: Vec<Arc<Entry>> = messages.into_iter().map(|message| Arc::new(Entry::new(message))).collect();
    loop {
        let (version, _) = load_whole(memory, conv).await?;
        match memory.append(conv, version, entries.clone()).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            done => return done.map(|_| Value::Done { ok: true }),
        }
    }
}

async fn get(memory: &dyn ChatMemory, conv: &str) -> Result<Value, Error> {
    let (_, history) = load_whole(memory, conv).await?;
    // A load that succeeds has left nothing out: a row that does not parse is an error.
    Ok(Value::Messages { messages: history.messages().map(neutral::stored).collect(), warned: false })
}

async fn get_all(memory: &dyn ChatMemory) -> Result<Value, Error> {
    let mut conversations = BTreeMap::new();
    for info in memory.list(0, usize::MAX).await? {
        let (_, history) = load_whole(memory, &info.id).await?;
        conversations.insert(info.id, history.messages().map(neutral::stored).collect());
    }
    Ok(Value::All { conversations })
}

/// Workers with a store object of their own on the same file, all at once.
async fn parallel(words: &StoreWords, folder: &Path, op: &Op) -> Result<Value, Fail> {
    let mut tasks = Vec::new();
    for worker in 0..op.workers.unwrap_or(1) {
        let store = Store::open(words, folder)??;
        let op = op.clone();
        tasks.push(tokio::spawn(async move {
            let mut errors = Vec::new();
            for i in 0..op.times.unwrap_or(1) {
                for each in &op.each {
                    let each = filled_in(each, worker, i)?;
                    if let Value::Refused(refused) = perform(&store, &each).await? {
                        errors.push(refused.error);
                    }
                }
            }
            Ok::<_, Fail>(errors)
        }));
    }
    let mut errors = Vec::new();
    for task in tasks {
        errors.extend(task.await.map_err(|error| format!("panicked: {error}"))??);
    }
    Ok(Value::Errors { errors })
}

/// The operation with `{worker}` and `{i}` filled in.
fn filled_in(op: &Op, worker: usize, i: usize) -> Result<Op, Fail> {
    let fill = |text: &str| text.replace("{worker}", &worker.to_string()).replace("{i}", &i.to_string());
    let mut op = op.clone();
    op.conv = op.conv.as_deref().map(fill);
    op.msgs = op.msgs.map(|raw| RawJson::parse(&fill(raw.as_str()))).transpose()?;
    Ok(op)
}
