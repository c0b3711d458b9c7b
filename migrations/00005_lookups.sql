-- +goose Up

-- When an effect's downstream is asked next is no part of where the effect stands: it
-- changes with every answer, and begin and finish must not pay for its index.
ALTER TABLE effects DROP COLUMN next_lookup_at;

CREATE TABLE lookup_schedule (
    effect_id      uuid PRIMARY KEY REFERENCES effects,
    tool           text NOT NULL,
    plan           text NOT NULL CHECK (plan IN ('none','unknown','permission','closed')),
    step           integer NOT NULL DEFAULT 0 CHECK (step BETWEEN 0 AND 63),
    next_lookup_at timestamptz,
    pulled         boolean NOT NULL DEFAULT false,
    cause          text NOT NULL DEFAULT 'schedule' CHECK (cause IN ('schedule','release','page','person','event')),
    recheck_from   timestamptz,
    recheck_until  timestamptz,
    asked_at       timestamptz,
    asked_by       uuid,
    asked_until    timestamptz,
    finding        text NOT NULL DEFAULT '',
    hit            boolean NOT NULL DEFAULT false,
    ended_at       timestamptz,
    CONSTRAINT lookup_schedule_asked CHECK (num_nulls(asked_at, asked_by, asked_until) IN (0, 3)),
    CONSTRAINT lookup_schedule_recheck CHECK ((recheck_from IS NULL) = (recheck_until IS NULL)),
    CONSTRAINT lookup_schedule_ended CHECK (ended_at IS NULL OR plan = 'unknown')
) WITH (fillfactor = 70);
CREATE INDEX lookup_schedule_due ON lookup_schedule (tool, step, next_lookup_at) WHERE next_lookup_at IS NOT NULL;
CREATE INDEX lookup_schedule_recheck_due ON lookup_schedule (recheck_until) WHERE recheck_from IS NOT NULL;
COMMENT ON TABLE lookup_schedule IS 'When the downstream of an effect is asked next, and who is asking just now: one row an effect, so that nobody asks twice at once.';
COMMENT ON COLUMN lookup_schedule.plan IS 'unknown: what became of it is not known; permission: a repeat is permitted and unused; closed: it is decided and looked at three times more; none: nobody asks.';
COMMENT ON COLUMN lookup_schedule.step IS 'How many steps of the plan are done. Low steps come first, so that what has been asked in vain for days never starves what is new.';
COMMENT ON COLUMN lookup_schedule.pulled IS 'The next look comes sooner than its step, at the time at which everything can be proven.';
COMMENT ON COLUMN lookup_schedule.recheck_from IS 'A decision for "not taken" or "stop" is not released before a look that was asked at or after this time.';
COMMENT ON COLUMN lookup_schedule.recheck_until IS 'From then on silence releases it, where it was made or confirmed after the moment.';
COMMENT ON COLUMN lookup_schedule.asked_at IS 'Committed before the question left: an answer is never older than it.';
COMMENT ON COLUMN lookup_schedule.asked_until IS 'Whoever asks and has not answered by then counts as dead.';
COMMENT ON COLUMN lookup_schedule.finding IS 'The records that the last look showed that could look; the effect''s version moves when it changes.';
COMMENT ON COLUMN lookup_schedule.ended_at IS 'The schedule ended without proof: a person has to find out. It proves nothing.';

CREATE TABLE lookups (
    id          uuid PRIMARY KEY,
    effect_id   uuid NOT NULL REFERENCES effects,
    cause       text NOT NULL CHECK (cause IN ('schedule','release','page','person','event')),
    asked_at    timestamptz NOT NULL,
    answered_at timestamptz NOT NULL,
    tool        text NOT NULL,
    kind        text NOT NULL,
    source      text NOT NULL,
    request     text NOT NULL,
    status      integer,
    latency     double precision NOT NULL CHECK (latency >= 0),
    pages       integer NOT NULL DEFAULT 0,
    body_digest text,
    excerpt     text,
    problem     text,
    verdict     text NOT NULL CHECK (verdict IN ('taken','not_taken','inconclusive')),
    reason      text NOT NULL,
    why         text NOT NULL,
    reference   text,
    earliest    timestamptz,
    found       text NOT NULL,
    read        text NOT NULL,
    CHECK (answered_at >= asked_at),
    CHECK (verdict <> 'taken' OR reference IS NOT NULL)
);
CREATE INDEX lookups_of_effect ON lookups (effect_id, asked_at);
CREATE INDEX lookups_of_tool ON lookups (tool, answered_at);
COMMENT ON TABLE lookups IS 'Every answer of a downstream. Append-only; free of the source''s secrets, and cut.';
COMMENT ON COLUMN lookups.source IS 'Digest of the look-up as it was declared: reads of another source do not count.';
COMMENT ON COLUMN lookups.latency IS 'Seconds, of all requests together.';
COMMENT ON COLUMN lookups.body_digest IS 'SHA-256 of everything that came, in hexadecimal.';
COMMENT ON COLUMN lookups.found IS 'JSON: the records, and the conditions of a proven "not taken".';
COMMENT ON COLUMN lookups.read IS 'JSON: what counts of this look for a later one.';

CREATE TRIGGER lookups_append_only BEFORE UPDATE OR DELETE ON lookups
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the record is append-only');
CREATE TRIGGER lookups_no_truncate BEFORE TRUNCATE ON lookups
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('the record is append-only');
