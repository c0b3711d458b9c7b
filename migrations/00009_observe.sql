-- +goose Up

-- Calls of tools that are only observed. They are no effects: they claim nothing, pause
-- nothing and prove nothing. What is known of them is what their agents said.

CREATE TABLE observed_tools (
    tool  text COLLATE "C" PRIMARY KEY CHECK (octet_length(tool) BETWEEN 1 AND 256),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE observed_tools IS 'Tools of which a call was observed at some time: their begins, once enforced, look for it.';

CREATE TABLE observed_calls (
    id             uuid PRIMARY KEY,
    account_id     bigint NOT NULL,
    run_id         bigint NOT NULL,
    key            bytea NOT NULL CHECK (length(key) = 32),
    call_digest    bytea NOT NULL CHECK (length(call_digest) = 32),
    tool           text COLLATE "C" NOT NULL REFERENCES observed_tools,
    occurrence     integer NOT NULL CHECK (occurrence >= 1),
    arguments      text NOT NULL,
    claim          bytea NOT NULL CHECK (length(claim) = 32),
    call_claim     boolean NOT NULL,
    claimed_by     text COLLATE "C" NOT NULL,
    business_key   text,
    summary        text NOT NULL,
    amount         numeric(38,0),
    currency       text,
    decimals       smallint,
    amount_problem text,
    attempt        integer NOT NULL CHECK (attempt >= 1),
    attempt_id     text NOT NULL CHECK (octet_length(attempt_id) BETWEEN 1 AND 256),
    epoch          bigint NOT NULL,
    worker         text,
    begun_at       timestamptz NOT NULL,
    deadline       timestamptz NOT NULL CHECK (deadline > begun_at),
    would          text NOT NULL CHECK (would IN ('proceed','replay','hold','pause','wait','refuse')),
    why            text,
    met_call       uuid REFERENCES observed_calls,
    met_effect     uuid REFERENCES effects,
    finished_at    timestamptz,
    outcome        text CHECK (outcome IN ('taken','failed','unknown')),
    said           text,
    reference      text,
    FOREIGN KEY (run_id, account_id) REFERENCES runs (id, account_id),
    UNIQUE (run_id, key, attempt),
    CONSTRAINT observed_calls_money CHECK (num_nulls(amount, currency, decimals) IN (0, 3)),
    CONSTRAINT observed_calls_finished CHECK (num_nulls(finished_at, outcome, said) IN (0, 3)),
    CONSTRAINT observed_calls_met CHECK (num_nonnulls(met_call, met_effect) <= 1)
) WITH (fillfactor = 85);
CREATE INDEX observed_calls_claim ON observed_calls (claim);
CREATE INDEX observed_calls_claimed_by ON observed_calls (tool, claimed_by);
CREATE INDEX observed_calls_of_tool ON observed_calls (tool, begun_at, id);
CREATE INDEX observed_calls_by_time ON observed_calls (begun_at, id);
CREATE INDEX observed_calls_of_run ON observed_calls (run_id, begun_at) WHERE outcome IS NULL OR outcome = 'unknown' OR would = 'hold';
COMMENT ON TABLE observed_calls IS 'Every begin of a tool in mode observe, one row an attempt: what was asked, what enforcing would have answered, and what the agent said came of it. It proves nothing for an enforced tool, which is told of it all the same.';
COMMENT ON COLUMN observed_calls.claimed_by IS 'The business_key template that claim was made with; empty: none.';
COMMENT ON COLUMN observed_calls.would IS 'What enforcing would have answered: proceed; replay of a recorded outcome; hold for an overlap or a missing business key; pause, since its own outcome was not known; wait for another call of the run; refuse.';

CREATE TRIGGER observed_calls_fixed
    BEFORE UPDATE OF id, account_id, run_id, key, call_digest, tool, occurrence, arguments, summary, amount, currency, decimals,
        amount_problem, attempt, attempt_id, epoch, begun_at, deadline, would, why, met_call, met_effect ON observed_calls
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was observed never changes');
CREATE TRIGGER observed_calls_kept BEFORE DELETE ON observed_calls
    FOR EACH ROW EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER observed_calls_no_truncate BEFORE TRUNCATE ON observed_calls
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is kept for ever');

-- An effect that an observed call may have performed: interrupted, why observed.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION effect_shape(state text, why text, decided_by text, decided_from text, attempts integer, released boolean, used boolean,
    has_release boolean, outcomes integer, early boolean, proposed boolean, has_reference boolean, is_same boolean,
    has_deadline boolean, gap boolean) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (attempts = 0) <> (NOT has_deadline) AND NOT gap THEN
        RETURN false;
    END IF;
    IF attempts = 0 AND (decided_by IN ('agent','late_agent','vendor_key') OR NOT gap AND (decided_by = 'look_up' OR why IN (
            'deadline','lease','unknown','reference','kept_finish','hit','key_life')))
        OR attempts > 0 AND why IN ('kept_finish','no_business_key')
        OR NOT gap AND why IN ('log_gap','observed') THEN
        RETURN false;
    END IF;
    IF state IN ('in_flight','interrupted','held') THEN
        IF decided_by IS NOT NULL OR released OR used OR has_release OR outcomes > 0 OR early THEN
            RETURN false;
        END IF;
    ELSE
        IF NOT has_release OR proposed AND state <> 'cleared' OR used AND NOT released
            OR NOT released AND decided_by IS DISTINCT FROM 'person'
            OR has_reference AND state <> 'taken'
            OR is_same AND (state <> 'taken' OR has_reference OR decided_by IS DISTINCT FROM 'person') THEN
            RETURN false;
        END IF;
        -- What was used is final. What was not can be undone: it is known from where a
        -- person or a look-up decided it, and only what was held is the same as another.
        IF used AND decided_from IS NOT NULL
            OR NOT used AND state <> 'cleared' AND (decided_by = 'person' AND decided_from IN ('interrupted','held')
                OR decided_by = 'look_up' AND decided_from = 'interrupted') IS NOT TRUE
            OR is_same AND decided_from = 'interrupted' THEN
            RETURN false;
        END IF;
    END IF;
    CASE state
        WHEN 'in_flight' THEN
            RETURN why IS NULL AND attempts >= 1;
        WHEN 'interrupted' THEN
            RETURN (why IN ('deadline','lease','unknown','reference','log_gap','kept_finish','undone','hit','expired',
                'contradicted','key_life','observed')) IS TRUE;
        WHEN 'held' THEN
            RETURN (why IN ('overlap','no_business_key','undone','expired')) IS TRUE;
        WHEN 'cleared' THEN
            RETURN (why = 'not_taken' AND decided_by IN ('look_up','person') AND decided_from = 'interrupted'
                OR why = 'allowed' AND decided_by = 'person' AND decided_from = 'held'
                OR why = 'same_key' AND decided_by = 'vendor_key' AND decided_from = 'interrupted') IS TRUE AND NOT used;
        WHEN 'taken' THEN
            RETURN why IS NULL AND (decided_by IN ('agent','late_agent','look_up','person')) IS TRUE;
        WHEN 'failed' THEN
            RETURN why IS NULL AND (decided_by IN ('agent','late_agent')) IS TRUE AND used;
        WHEN 'cancelled' THEN
            RETURN why IS NULL AND (decided_by IN ('person','run_closed')) IS TRUE;
        ELSE
            RETURN false;
    END CASE;
END $$;
-- +goose StatementEnd
