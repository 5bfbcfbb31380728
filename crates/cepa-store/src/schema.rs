//! The tables, and the marks by which a file is known as ours.

/// `application_id` of a cepa database: "cepa" in ASCII.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"cepa");

/// `user_version` of the tables below. It rises with every change that an older version could not live with;
/// [`migrate`](crate::migrate) brings older files up to it.
pub(crate) const SCHEMA_VERSION: u32 = 2;

/// The page size of new files. A page is the least that a table or an index takes, and that a commit writes for each one
/// it touches; the rows of a conversation are short.
pub(crate) const PAGE_SIZE: u32 = 1024;

/// Ids of conversations, messages, turns and pauses are texts; inside the database a conversation and a turn are known
/// by their `key`.
pub(crate) fn tables() -> String {
    [CONVERSATIONS, MESSAGES, TURNS, CALLS, PAUSES, AUDIT].map(statement).concat()
}

/// A statement as the file keeps it: SQLite stores the text of a table, indented or not.
pub(crate) fn statement(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

const CONVERSATIONS: &str = "
CREATE TABLE conversations(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL DEFAULT 0,
    head INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    title TEXT,
    parent INTEGER REFERENCES conversations(key),
    parent_seq INTEGER,
    lease_by TEXT,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX conversations_by_change ON conversations(updated DESC, key DESC) WHERE head > 0;
";

/// `place` is conversation and `seq` in one number, so that one tree holds the rows in their order. `scope` and `id` are
/// the message's id (see [`names`](crate::names)): for a message of a turn, the turn's key and what follows its id.
pub(crate) const MESSAGES: &str = "
CREATE TABLE messages(
    place INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    created INTEGER NOT NULL,
    body TEXT NOT NULL,
    conversation INTEGER AS (place >> 24),
    seq INTEGER AS (place & 16777215)
);
CREATE UNIQUE INDEX messages_by_id ON messages(scope, id);
";

/// `input` is a JSON text, or the number of the turn's messages `u0`, `u1`, … that say the same. `data` is a JSON text,
/// or, with a `base`, what stands between so many first and last characters of the base's (see [`kept`](crate::kept)).
pub(crate) const TURNS: &str = "
CREATE TABLE turns(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations(key),
    state TEXT NOT NULL,
    ephemeral INTEGER NOT NULL,
    input NOT NULL,
    carried TEXT,
    data TEXT NOT NULL,
    base INTEGER,
    first INTEGER,
    last INTEGER,
    token INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
);
CREATE INDEX turns_of_conversation ON turns(conversation);
CREATE INDEX turns_live ON turns(conversation) WHERE state IN ('running', 'paused');
";

/// `full` is the text of a result that was cut for the model. It comes last: who does not ask for it does not read it.
const CALLS: &str = "
CREATE TABLE calls(
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    args TEXT NOT NULL,
    args_why TEXT,
    args_hash TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    executed_args TEXT,
    status TEXT,
    result TEXT,
    writes TEXT,
    failure TEXT,
    started INTEGER,
    finished INTEGER,
    full TEXT,
    PRIMARY KEY(turn, batch, idx)
);
";

const PAUSES: &str = "
CREATE TABLE pauses(
    id TEXT PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    args TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    reason TEXT,
    created INTEGER NOT NULL,
    expires INTEGER,
    state TEXT NOT NULL,
    decision TEXT,
    actor TEXT,
    decided INTEGER
);
CREATE INDEX pauses_of_turn ON pauses(turn, batch, idx);
CREATE INDEX pauses_waiting ON pauses(created) WHERE state = 'pending';
";

/// Rows are never removed, so `seq` only rises.
pub(crate) const AUDIT: &str = "
CREATE TABLE audit(
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT,
    what TEXT NOT NULL,
    pause TEXT,
    data TEXT NOT NULL
);
";
