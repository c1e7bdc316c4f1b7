-- Beside the breaker, a gate keeps when attempts began and how the endpoint is throttled. Snapshots can
-- arrive in any order: one is written only over one with a lower number.
ALTER TABLE endpoints RENAME COLUMN breaker TO gate;
ALTER TABLE endpoints ADD COLUMN gate_sequence INTEGER NOT NULL DEFAULT 0;

-- A delivery whose `state` cannot be read gets the phase `unreadable`: no attempt is made until somebody
-- has mended it.
