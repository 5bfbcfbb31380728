//! What children left behind: the rows of the database, the conversations, and the lines of their tools.

use std::{collections::HashMap, path::Path};

use cepa_agent::{ids, load_whole};
use cepa_core::{History, Message};
use cepa_store::Sqlite;
use cepa_testkit::rows::{MESSAGES, TURNS};
use rusqlite::{Connection, Row};

use super::program::{Manner, TOOLS};

/// A body that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) tool: String,
    pub(crate) key: String,
    pub(crate) attempt: usize,
    pub(crate) args: String,
    /// Whether it came to its end.
    pub(crate) ended: bool,
}

/// A row of `calls` with the pauses of the call.
#[derive(Clone, Debug)]
pub(crate) struct CallLeft {
    pub(crate) turn: String,
    pub(crate) batch: u32,
    pub(crate) idx: u32,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) verdict: String,
    pub(crate) state: String,
    pub(crate) attempt: usize,
    pub(crate) status: Option<String>,
    /// Kind and state of each pause.
    pub(crate) pauses: Vec<(String, String)>,
    /// The bodies that were entered for it.
    pub(crate) ran: Vec<Ran>,
}

impl CallLeft {
    pub(crate) fn key(&self) -> String {
        format!("{}-{}-{}", self.turn, self.batch, self.idx)
    }

    pub(crate) fn manner(&self) -> Option<Manner> {
        TOOLS.iter().find(|(name, _)| *name == self.tool).map(|(_, manner)| *manner)
    }

    /// How many of its pauses are of this kind and stand so.
    pub(crate) fn paused(&self, kind: &str, states: &[&str]) -> usize {
        self.pauses.iter().filter(|(of, state)| of == kind && states.contains(&state.as_str())).count()
    }
}

/// A row of `turns`.
#[derive(Clone, Debug)]
pub(crate) struct TurnLeft {
    pub(crate) id: String,
    pub(crate) conversation: String,
    pub(crate) state: String,
    /// The text of the message that opened it.
    pub(crate) input: String,
    pub(crate) token: u64,
    pub(crate) replies: usize,
}

/// Everything, read at one time.
pub(crate) struct Left {
    pub(crate) turns: Vec<TurnLeft>,
    pub(crate) calls: Vec<CallLeft>,
    /// Each conversation's messages, in order.
    pub(crate) conversations: HashMap<String, History>,
    /// State by pause.
    pub(crate) pauses: HashMap<String, String>,
    /// Bodies that were entered.
    pub(crate) ran: Vec<Ran>,
    /// What is wrong with the rows themselves.
    pub(crate) wrong: Vec<String>,
}

fn rows<T>(database: &Connection, sql: &str, row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map([], row).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

impl Left {
    pub(crate) fn read(path: &Path, ran: &Path) -> Self {
        let database = Connection::open(path).unwrap();
        database.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
        let ran = read_ran(ran);
        let mut pauses = HashMap::new();
        let mut of_call: HashMap<(String, u32, u32), Vec<(String, String)>> = HashMap::new();
        let sql = "SELECT p.id, p.kind, p.state, t.id, p.batch, p.idx FROM pauses p JOIN turns t ON t.key = p.turn
                   ORDER BY p.created, p.id";
        for (id, kind, state, key) in rows(&database, sql, |row| {
            let key: (String, u32, u32) = (row.get(3)?, row.get(4)?, row.get(5)?);
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, key))
        }) {
            pauses.insert(id, state.clone());
            of_call.entry(key).or_default().push((kind, state));
        }
        let sql =
            "SELECT t.id, l.batch, l.idx, l.call_id, l.tool, coalesce(l.executed_args, l.args), l.verdict, l.state,
                          l.attempt, l.status
                   FROM calls l JOIN turns t ON t.key = l.turn ORDER BY t.key, l.batch, l.idx";
        let mut calls = rows(&database, sql, |row| {
            let (turn, batch, idx): (String, u32, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(CallLeft {
                pauses: of_call.remove(&(turn.clone(), batch, idx)).unwrap_or_default(),
                turn,
                batch,
                idx,
                call: row.get(3)?,
                tool: row.get(4)?,
                args: row.get(5)?,
                verdict: row.get(6)?,
                state: row.get(7)?,
                attempt: row.get::<_, u32>(8)? as usize,
                status: row.get(9)?,
                ran: Vec::new(),
            })
        });
        for call in &mut calls {
            let key = call.key();
            call.ran = ran.iter().filter(|ran| ran.key == key).cloned().collect();
        }
        let sql = format!(
            "SELECT t.id, c.id, t.state, t.input, t.token, coalesce(t.data ->> 'replies', 0)
             FROM {TURNS} t JOIN conversations c ON c.key = t.conversation ORDER BY t.key"
        );
        let turns = rows(&database, &sql, |row| {
            let input: Vec<Message> = serde_json::from_str(&row.get::<_, String>(3)?).unwrap();
            Ok(TurnLeft {
                id: row.get(0)?,
                conversation: row.get(1)?,
                state: row.get(2)?,
                input: input.iter().map(|message| message.text().into_owned()).collect(),
                token: row.get::<_, i64>(4)?.unsigned_abs(),
                replies: row.get::<_, u32>(5)? as usize,
            })
        });
        let wrong = wrong_rows(&database);
        let conversations = rows(&database, "SELECT id FROM conversations", |row| row.get::<_, String>(0));
        let conversations = histories(path, conversations);
        Self { turns, calls, conversations, pauses, ran, wrong }
    }

    /// The messages of a turn, with their ids.
    pub(crate) fn messages(&self, turn: &TurnLeft) -> Vec<(String, Message)> {
        let history = self.conversations.get(&turn.conversation).into_iter().flat_map(History::iter);
        let entry = |entry: &std::sync::Arc<cepa_core::Entry>| {
            let id = entry.id.as_deref().filter(|id| ids::turn_of(id) == Some(&turn.id))?;
            Some((id.to_owned(), entry.message.clone()))
        };
        history.filter_map(entry).collect()
    }
}

fn histories(path: &Path, conversations: Vec<String>) -> HashMap<String, History> {
    let store = Sqlite::open(path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut histories = HashMap::new();
        for id in conversations {
            let (_, history) = load_whole(&store, &id).await.unwrap();
            histories.insert(id, history);
        }
        histories
    })
}

/// What must hold of the rows whatever they say.
fn wrong_rows(database: &Connection) -> Vec<String> {
    let mut wrong = Vec::new();
    let sql = format!(
        "SELECT c.id, c.head, count(m.seq), coalesce(min(m.seq), 1), coalesce(max(m.seq), 0), count(DISTINCT m.id)
         FROM conversations c LEFT JOIN {MESSAGES} m ON m.conversation = c.key GROUP BY c.key"
    );
    for (id, numbers) in rows(database, &sql, |row| {
        let numbers: [i64; 5] = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?];
        Ok((row.get::<_, String>(0)?, numbers))
    }) {
        let [head, count, first, last, ids] = numbers;
        if count != head || first != 1 || last != head || ids != count {
            wrong.push(format!(
                "M1: {id} has the head {head}, but {count} messages numbered {first} to {last} with {ids} ids"
            ));
        }
    }
    let checked: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if checked != "ok" {
        wrong.push(format!("D5: the database is damaged: {checked}"));
    }
    wrong
}

fn read_ran(path: &Path) -> Vec<Ran> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut ran: Vec<Ran> = Vec::new();
    for line in text.lines() {
        let [what, tool, key, attempt, args] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let attempt = attempt.parse().unwrap();
        match what {
            "begin" => {
                ran.push(Ran { tool: tool.into(), key: key.into(), attempt, args: args.into(), ended: false });
            }
            "end" => {
                let begun = ran.iter_mut().rev().find(|ran| ran.key == key && ran.attempt == attempt);
                begun.unwrap().ended = true;
            }
            other => panic!("what is {other:?}?"),
        }
    }
    ran
}
