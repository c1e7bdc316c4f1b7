-- Time is integer milliseconds since the epoch, UTC. Bodies are bytes, exactly as signed and sent.

CREATE TABLE endpoints (
    id          TEXT PRIMARY KEY,
    url         TEXT NOT NULL,
    secrets     TEXT NOT NULL,               -- JSON array, the newest first
    event_types TEXT NOT NULL,               -- JSON array; empty means all
    status      TEXT NOT NULL,               -- enabled | disabled
    breaker     TEXT NOT NULL,               -- JSON, as of the last recorded attempt
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
    id              TEXT PRIMARY KEY,
    event_type      TEXT NOT NULL,
    content_type    TEXT NOT NULL,
    body            BLOB NOT NULL,
    idempotency_key TEXT UNIQUE,             -- NULL when the publisher gave none
    created_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    event_id     TEXT NOT NULL REFERENCES events (id),
    endpoint_id  TEXT NOT NULL REFERENCES endpoints (id),
    version      INTEGER NOT NULL,
    phase        TEXT NOT NULL,              -- scheduled | in_flight | delivered | dead | cancelled
    attempts     INTEGER NOT NULL,
    wake_at      INTEGER,                    -- when it is due or its lease ends; NULL when settled
    last_outcome TEXT,
    state        TEXT NOT NULL,              -- JSON of the machine; the columns beside it follow it
    created_at   INTEGER NOT NULL,
    UNIQUE (event_id, endpoint_id)
) STRICT;

CREATE INDEX deliveries_due ON deliveries (endpoint_id, wake_at) WHERE phase = 'scheduled';
CREATE INDEX deliveries_leased ON deliveries (wake_at) WHERE phase = 'in_flight';

CREATE TABLE attempts (
    delivery_id TEXT NOT NULL REFERENCES deliveries (id),
    attempt     INTEGER NOT NULL,
    record      TEXT NOT NULL,               -- JSON: when, what came of it, what that meant
    excerpt     BLOB NOT NULL,               -- the beginning of the response body
    PRIMARY KEY (delivery_id, attempt)
) STRICT, WITHOUT ROWID;

-- What owners must be told: written with the step that makes it so, sent afterwards.
CREATE TABLE notices (
    id          INTEGER PRIMARY KEY,
    delivery_id TEXT NOT NULL REFERENCES deliveries (id),
    endpoint_id TEXT NOT NULL,
    reason      TEXT NOT NULL,
    disables    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    sent_at     INTEGER
) STRICT;

CREATE INDEX notices_pending ON notices (id) WHERE sent_at IS NULL;
