-- +goose Up

-- Whoever may take a run is told when it becomes ready. The row is written by the
-- database itself, in the transaction that makes the run ready, whatever made it so.

CREATE TABLE wakes (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id   bigint NOT NULL REFERENCES runs,
    ready_at timestamptz NOT NULL
);
COMMENT ON TABLE wakes IS 'Runs that became ready and of which nobody was told yet: taken out as soon as there is a delivery for each endpoint that wants it.';

-- +goose StatementBegin
CREATE FUNCTION wake_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wakes (run_id, ready_at) VALUES (NEW.id, NEW.changed_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER runs_wake AFTER UPDATE OF state ON runs
    FOR EACH ROW WHEN (NEW.state = 'ready' AND OLD.state <> 'ready') EXECUTE FUNCTION wake_run();

CREATE TABLE deliveries (
    id          uuid PRIMARY KEY,
    endpoint    text COLLATE "C" NOT NULL CHECK (octet_length(endpoint) BETWEEN 1 AND 256),
    run_id      bigint NOT NULL REFERENCES runs,
    ready_at    timestamptz NOT NULL,
    body        text NOT NULL,
    made_at     timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'due' CHECK (state IN ('due','delivered','overtaken','given_up')),
    step        integer NOT NULL DEFAULT 0 CHECK (step >= 0),
    attempts    integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_at     timestamptz,
    forced      boolean NOT NULL DEFAULT false,
    asked_by    uuid,
    asked_until timestamptz,
    ended_at    timestamptz,
    UNIQUE (endpoint, run_id, ready_at),
    CONSTRAINT deliveries_due CHECK ((state = 'due') = (next_at IS NOT NULL) AND (state = 'due') = (ended_at IS NULL)),
    CONSTRAINT deliveries_asked CHECK ((asked_by IS NULL) = (asked_until IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX deliveries_next ON deliveries (endpoint, next_at) WHERE state = 'due';
CREATE INDEX deliveries_by_time ON deliveries (made_at, id);
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint, made_at, id);
COMMENT ON TABLE deliveries IS 'What an endpoint is told, once for each time that a run becomes ready: sent under its id until it is answered, so at least once.';
COMMENT ON COLUMN deliveries.body IS 'Exactly what is sent, each time.';
COMMENT ON COLUMN deliveries.state IS 'due; delivered: answered by 2xx; overtaken: the run was taken, or paused again, before anybody answered; given_up: nobody answered in days, or the endpoint is gone.';
COMMENT ON COLUMN deliveries.forced IS 'A person asked for it: it is sent although the run may have been taken.';
COMMENT ON COLUMN deliveries.asked_until IS 'Whoever sends and has not recorded an answer by then counts as dead: it is sent again.';

CREATE TABLE delivery_attempts (
    delivery_id uuid NOT NULL REFERENCES deliveries,
    number      integer NOT NULL CHECK (number >= 1),
    at          timestamptz NOT NULL,
    seconds     double precision NOT NULL CHECK (seconds >= 0),
    status      integer,
    problem     text,
    PRIMARY KEY (delivery_id, number)
);
COMMENT ON TABLE delivery_attempts IS 'Every answer of an endpoint, and every failure to get one. An attempt whose server died is missing here and counted there. Append-only; no body of an answer is kept.';

CREATE TRIGGER delivery_attempts_append_only BEFORE UPDATE OR DELETE ON delivery_attempts
    FOR EACH ROW EXECUTE FUNCTION refuse_change('the record is append-only');
CREATE TRIGGER delivery_attempts_no_truncate BEFORE TRUNCATE ON delivery_attempts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('the record is append-only');
CREATE TRIGGER deliveries_fixed BEFORE UPDATE OF id, endpoint, run_id, ready_at, body, made_at ON deliveries
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what is sent never changes');
CREATE TRIGGER deliveries_kept BEFORE DELETE ON deliveries
    FOR EACH ROW EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER deliveries_no_truncate BEFORE TRUNCATE ON deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is kept for ever');
