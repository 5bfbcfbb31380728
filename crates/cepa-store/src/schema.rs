//! The tables, and the marks by which a file is known as ours.

/// `application_id` of a cepa database: "cepa" in ASCII.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"cepa");

/// `user_version` of the tables below. It rises with every change that an older version could not live with.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Ids of conversations, messages, turns and pauses are texts; inside the database a conversation and a turn are known
/// by their `key`.
pub(crate) const TABLES: &str = "
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

CREATE TABLE messages(
    conversation INTEGER NOT NULL REFERENCES conversations(key),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    turn TEXT,
    created INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY(conversation, seq),
    UNIQUE(conversation, id)
);

CREATE TABLE turns(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations(key),
    state TEXT NOT NULL,
    ephemeral INTEGER NOT NULL,
    input TEXT NOT NULL,
    carried TEXT,
    data TEXT NOT NULL,
    token INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
);
CREATE INDEX turns_of_conversation ON turns(conversation);
CREATE INDEX turns_live ON turns(conversation) WHERE state IN ('running', 'paused');

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
    PRIMARY KEY(turn, batch, idx)
);

CREATE TABLE results(
    message TEXT PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns(key) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX results_of_turn ON results(turn, batch, idx);

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

CREATE TABLE audit(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT,
    what TEXT NOT NULL,
    pause TEXT,
    data TEXT NOT NULL
);
";
