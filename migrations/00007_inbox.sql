-- +goose Up

-- A worker answers by the id of its question alone, and a question whose worker died is
-- found without a walk through what is due.
CREATE UNIQUE INDEX lookup_schedule_asked ON lookup_schedule (asked_by) WHERE asked_by IS NOT NULL;
-- An event is held against what is open, not against what is stored.
CREATE INDEX lookup_schedule_open ON lookup_schedule (tool) WHERE plan IN ('unknown','permission');

CREATE TABLE inbox_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    inbox       text NOT NULL CHECK (octet_length(inbox) BETWEEN 1 AND 256),
    event_id    text NOT NULL CHECK (octet_length(event_id) BETWEEN 1 AND 512),
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    digest      text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    body        text NOT NULL,
    words       bigint[] NOT NULL,
    examine_at  timestamptz DEFAULT clock_timestamp(),
    matched_at  timestamptz,
    repeats     bigint NOT NULL DEFAULT 0 CHECK (repeats >= 0),
    repeated_at timestamptz,
    UNIQUE (inbox, event_id),
    CONSTRAINT inbox_events_repeated CHECK ((repeats = 0) = (repeated_at IS NULL))
);
CREATE INDEX inbox_events_words ON inbox_events USING gin (words);
CREATE INDEX inbox_events_due ON inbox_events (examine_at) WHERE examine_at IS NOT NULL;
CREATE INDEX inbox_events_unmatched ON inbox_events (received_at, id) WHERE matched_at IS NULL AND examine_at IS NULL;
COMMENT ON TABLE inbox_events IS 'Every event that a downstream sent us and signed. What came never changes; only what became of it does.';
COMMENT ON COLUMN inbox_events.event_id IS 'The sender''s own: the same one again is the same event sent again. sha256: and the digest where the sender gives none.';
COMMENT ON COLUMN inbox_events.digest IS 'SHA-256 of the body as it came, in hexadecimal.';
COMMENT ON COLUMN inbox_events.body IS 'JSON as it came, its secrets replaced.';
COMMENT ON COLUMN inbox_events.words IS 'Hashes of the texts and numbers in the body: an effect''s keys are looked for among them. A hint; what an event proves is read from the body.';
COMMENT ON COLUMN inbox_events.examine_at IS 'When it is next held against our effects; NULL: it was, for good.';
COMMENT ON COLUMN inbox_events.matched_at IS 'When a key of one of our effects was first seen in it.';
COMMENT ON COLUMN inbox_events.repeats IS 'How many times it was sent again.';

CREATE TRIGGER inbox_events_fixed
    BEFORE UPDATE OF id, inbox, event_id, received_at, digest, body, words ON inbox_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the record is append-only');
CREATE TRIGGER inbox_events_kept BEFORE DELETE ON inbox_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the record is append-only');
CREATE TRIGGER inbox_events_no_truncate BEFORE TRUNCATE ON inbox_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('the record is append-only');
