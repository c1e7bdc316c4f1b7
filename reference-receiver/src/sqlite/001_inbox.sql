-- Time is integer milliseconds since the epoch, UTC. Bodies are bytes, exactly as signed and sent.

CREATE TABLE inbox (
    seq          INTEGER PRIMARY KEY,
    source       TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    body         BLOB NOT NULL,
    content_type TEXT NOT NULL,
    received_at  INTEGER NOT NULL,
    duplicates   INTEGER NOT NULL DEFAULT 0, -- how often it arrived again
    version      INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    phase        TEXT NOT NULL,              -- pending | claimed | applied | dead
    wake_at      INTEGER,                    -- when it is due or its claim ends; NULL when settled
    state        TEXT NOT NULL,              -- JSON of the machine; the columns beside it follow it
    UNIQUE (source, event_id)
) STRICT;

CREATE INDEX inbox_pending ON inbox (wake_at) WHERE phase = 'pending';
CREATE INDEX inbox_claimed ON inbox (wake_at) WHERE phase = 'claimed';

-- What the events have brought about. There is deliberately no unique key on the event: that an
-- effect happens once must come from the protocol, and a ledger that cannot hold a second effect
-- could not show that the protocol failed.
CREATE TABLE effects (
    id         INTEGER PRIMARY KEY,
    source     TEXT NOT NULL,
    event_id   TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    summary    TEXT NOT NULL
) STRICT;

CREATE INDEX effects_by_event ON effects (event_id, source);
