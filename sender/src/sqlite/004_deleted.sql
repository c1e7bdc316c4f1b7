-- An endpoint can have the status `deleted`: its row stays for the deliveries that refer to it, without
-- secrets.
CREATE INDEX endpoints_deleted ON endpoints (id) WHERE status = 'deleted';
