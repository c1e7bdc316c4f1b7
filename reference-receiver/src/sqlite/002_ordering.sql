-- The highest version of each entity that is applied; it is written with the effect.
CREATE TABLE entities (
    source   TEXT NOT NULL,
    entity   TEXT NOT NULL,
    version  INTEGER NOT NULL,
    event_id TEXT NOT NULL,                  -- the event that brought it
    PRIMARY KEY (source, entity)
) STRICT, WITHOUT ROWID;

-- Entities that are to be fetched again from their source, since an event came too late that may hold
-- what no newer one does. Whoever has fetched one deletes the row.
CREATE TABLE reconciliations (
    id       INTEGER PRIMARY KEY,
    source   TEXT NOT NULL,
    entity   TEXT NOT NULL,
    version  INTEGER NOT NULL,               -- of the late event
    event_id TEXT NOT NULL,
    asked_at INTEGER NOT NULL
) STRICT;

-- An event that came too late has the phase `superseded` in the inbox.
