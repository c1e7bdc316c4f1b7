-- What grows too old is looked for by when it was created, whether or not its endpoint takes attempts.
CREATE INDEX deliveries_created ON deliveries (endpoint_id, created_at) WHERE phase = 'scheduled';
