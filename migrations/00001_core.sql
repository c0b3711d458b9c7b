-- +goose Up

-- Accounts, people and their tokens --------------------------------------------

CREATE TABLE accounts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 256),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE accounts IS 'Owners of agent tokens. Runs, keys and business keys are unique within an account; another account''s look absent.';

CREATE TABLE people (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 1024),
    email       text COLLATE "C" UNIQUE CHECK (octet_length(email) <= 320),
    roles       text[] NOT NULL DEFAULT '{}'
                CHECK (roles <@ ARRAY['viewer','operator','approver','finance','admin','auditor']),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    disabled_at timestamptz
);
COMMENT ON TABLE people IS 'Everyone who may read or decide; a person works across all accounts.';

CREATE TABLE tokens (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    hint       text NOT NULL,
    name       text NOT NULL,
    account_id bigint REFERENCES accounts,
    person_id  bigint REFERENCES people,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT tokens_one_owner CHECK ((account_id IS NULL) <> (person_id IS NULL))
);
COMMENT ON TABLE tokens IS 'Bearer tokens: of an account (agents) or of a person. Only the SHA-256 is stored.';
COMMENT ON COLUMN tokens.hint IS 'The first characters, to tell tokens apart in a list.';

CREATE TABLE secrets (
    name  text PRIMARY KEY,
    value bytea NOT NULL CHECK (length(value) >= 32)
);
COMMENT ON TABLE secrets IS 'Keys made at the first start: lease tokens, log positions, redaction. They travel with a backup on purpose.';

-- The installation ---------------------------------------------------------------

CREATE TABLE installation (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    environment       text,
    system_identifier text,
    timeline          bigint,
    outward           boolean NOT NULL DEFAULT true,
    fence_base        bigint NOT NULL DEFAULT 0 CHECK (fence_base >= 0)
);
INSERT INTO installation DEFAULT VALUES;
COMMENT ON COLUMN installation.environment IS 'Mark of the place this database belongs to; a copy started elsewhere is recognised by it.';
COMMENT ON COLUMN installation.outward IS 'Whether look-ups, deliveries and payouts may leave; off in a copy until a person switches it on.';
COMMENT ON COLUMN installation.fence_base IS 'Where fences and epochs of anything first begun now start; raised by 1,000,000 with each acknowledged log gap.';

CREATE TABLE log_gaps (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    found_by        text NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by bigint REFERENCES people,
    note            text,
    ended_at        timestamptz,
    ended_by        bigint REFERENCES people,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK (ended_at IS NULL OR acknowledged_at IS NOT NULL)
);
CREATE UNIQUE INDEX log_gaps_one_open ON log_gaps ((true)) WHERE ended_at IS NULL;
COMMENT ON TABLE log_gaps IS 'Times when this database was found not to hold an event it once confirmed. While one is open nothing is released; once acknowledged, new effects start as interrupted until a person ends it.';

CREATE TABLE policies (
    digest    bytea PRIMARY KEY CHECK (length(digest) = 32),
    source    text NOT NULL,
    loaded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE policies IS 'Every policy text a run was opened under; a run keeps the volatile lists it started with.';

CREATE TABLE business_templates (
    tool       text NOT NULL,
    template   text NOT NULL,
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    rekeyed_at timestamptz,
    retired_at timestamptz,
    PRIMARY KEY (tool, template)
);
COMMENT ON TABLE business_templates IS 'The business_key template each tool had. A changed one re-keys the stored effects; until rekeyed_at begins are checked under both.';

-- Runs -----------------------------------------------------------------------------

CREATE TABLE runs (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint NOT NULL REFERENCES accounts,
    run_id        text COLLATE "C" NOT NULL CHECK (octet_length(run_id) BETWEEN 1 AND 512),
    agent         text NOT NULL CHECK (octet_length(agent) BETWEEN 1 AND 256),
    policy        bytea NOT NULL REFERENCES policies (digest),
    state         text NOT NULL,
    epoch         bigint NOT NULL DEFAULT 0,
    lease_hash    bytea,
    lease_until   timestamptz,
    lease_worker  text,
    lease_attempt text,
    lease_seconds integer,
    refused       bigint NOT NULL DEFAULT 0,
    kept          bigint NOT NULL DEFAULT 0,
    opened_at     timestamptz NOT NULL,
    changed_at    timestamptz NOT NULL,
    resumable_since timestamptz,
    closed_at     timestamptz,
    UNIQUE (account_id, run_id),
    UNIQUE (id, account_id),
    CONSTRAINT runs_state CHECK (state IN ('running','paused','ready','finished','failed','cancelled')),
    CONSTRAINT runs_lease_whole CHECK (
        num_nulls(lease_hash, lease_until, lease_worker, lease_attempt, lease_seconds) IN (0, 5)),
    CONSTRAINT runs_lease_of_state CHECK (
        CASE state WHEN 'running' THEN lease_hash IS NOT NULL
                   WHEN 'paused' THEN true
                   ELSE lease_hash IS NULL END),
    CONSTRAINT runs_closed CHECK ((closed_at IS NOT NULL) = (state IN ('finished','failed','cancelled')))
) WITH (fillfactor = 80);
CREATE INDEX runs_lease_due ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_ready ON runs (account_id, agent, changed_at, id) WHERE state = 'ready';
CREATE INDEX runs_by_opened ON runs (opened_at, id);
COMMENT ON TABLE runs IS 'One execution of an agent, named by its own run_id; the row carries the present lease, leases the history.';
COMMENT ON COLUMN runs.lease_hash IS 'SHA-256 of the holder''s secret lease token.';
COMMENT ON COLUMN runs.epoch IS 'Rises with every holder; a late holder is told by it.';
COMMENT ON COLUMN runs.resumable_since IS 'Since when nothing has kept the run paused: unused permissions expire counted from here.';
COMMENT ON COLUMN runs.kept IS 'How many finishes came without an intent; while 0, begin need not look for one.';
COMMENT ON COLUMN runs.refused IS 'How many starts and begins were refused; the first 100 are in refusals.';

CREATE TABLE leases (
    run_id     bigint NOT NULL REFERENCES runs,
    epoch      bigint NOT NULL,
    worker     text NOT NULL,
    attempt_id text NOT NULL,
    taken_at   timestamptz NOT NULL,
    ended_at   timestamptz,
    ended_by   text CHECK (ended_by IN ('released','expired','closed','log_gap')),
    PRIMARY KEY (run_id, epoch),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK (ended_at >= taken_at)
);
CREATE UNIQUE INDEX leases_one_holder ON leases (run_id) WHERE ended_at IS NULL;
COMMENT ON TABLE leases IS 'Who held a run, and when; the unique index keeps two holders from overlapping.';

CREATE TABLE checkpoints (
    run_id      bigint NOT NULL REFERENCES runs,
    epoch       bigint NOT NULL,
    turn        bigint NOT NULL CHECK (turn >= 0),
    state       text NOT NULL,
    occurrences text NOT NULL,
    digest      bytea NOT NULL CHECK (length(digest) = 32),
    saved_at    timestamptz NOT NULL,
    PRIMARY KEY (run_id, epoch, turn)
);
CREATE INDEX checkpoints_last ON checkpoints (run_id, epoch DESC, saved_at DESC);
COMMENT ON TABLE checkpoints IS 'An agent''s saved state after a completed turn. Proves nothing about the world.';

CREATE TABLE refusals (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id     bigint NOT NULL REFERENCES runs,
    at         timestamptz NOT NULL,
    call       text NOT NULL CHECK (call IN ('start','begin')),
    reason     text NOT NULL,
    worker     text,
    attempt_id text,
    tool       text,
    arguments  text,
    effect_id  uuid
);
CREATE INDEX refusals_of_run ON refusals (run_id, id);
COMMENT ON TABLE refusals IS 'Starts and begins that were refused, at most 100 a run; nothing else changes with them.';

-- Effects ----------------------------------------------------------------------------

-- What a row of effects may look like: each state tied to the columns that give it
-- meaning. Equal to Valid in reconcile/effects by a test over every combination. A
-- function, since PostgreSQL reads the text of every CHECK again for each statement
-- that writes: spelt out, this one cost more than the write.
-- +goose StatementBegin
CREATE FUNCTION effect_shape(state text, why text, decided_by text, decided_from text, attempts integer, released boolean, used boolean,
    has_release boolean, outcomes integer, early boolean, proposed boolean, has_reference boolean, is_same boolean,
    has_deadline boolean, gap boolean) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (attempts = 0) <> (NOT has_deadline) AND NOT gap THEN
        RETURN false;
    END IF;
    IF attempts = 0 AND (decided_by IN ('agent','late_agent','vendor_key') OR NOT gap AND (decided_by = 'look_up' OR why IN (
            'deadline','lease','unknown','reference','kept_finish','hit','key_life')))
        OR attempts > 0 AND why IN ('kept_finish','no_business_key')
        OR NOT gap AND why = 'log_gap' THEN
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
                'contradicted','key_life')) IS TRUE;
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

-- The moves of the state table; kept equal to reconcile/effects by a test.
-- +goose StatementBegin
CREATE FUNCTION effect_move(was text, now text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN was || '>' || now IN (
        'in_flight>interrupted', 'in_flight>taken', 'in_flight>failed',
        'interrupted>taken', 'interrupted>failed', 'interrupted>cleared', 'interrupted>cancelled',
        'held>cleared', 'held>taken', 'held>cancelled', 'held>interrupted',
        'cleared>in_flight', 'cleared>held', 'cleared>interrupted', 'cleared>taken', 'cleared>cancelled',
        'cancelled>interrupted', 'cancelled>held',
        'taken>interrupted', 'taken>held');
END $$;
-- +goose StatementEnd

CREATE TABLE effects (
    id             uuid PRIMARY KEY,
    account_id     bigint NOT NULL,
    run_id         bigint NOT NULL,
    key            bytea NOT NULL,
    client_key     text,
    tool           text NOT NULL,
    occurrence     integer NOT NULL,
    arguments      text NOT NULL,
    call_digest    bytea NOT NULL,
    business_key   text,
    claim          bytea NOT NULL,
    claim_was      bytea,
    call_claim     boolean NOT NULL,
    summary        text NOT NULL,
    amount         numeric(38,0),
    currency       text,
    decimals       smallint,
    amount_problem text,
    call_id        text,
    client_time    text,
    context        text,
    repeat_of      uuid,
    opened_at      timestamptz NOT NULL,

    state          text NOT NULL,
    why            text,
    version        bigint NOT NULL DEFAULT 1,
    attempts       integer NOT NULL,
    fence          bigint NOT NULL,
    deadline       timestamptz,
    moment         timestamptz,
    gap            boolean NOT NULL DEFAULT false,
    decided_by     text,
    decided_from   text,
    decision       uuid,
    proposal       uuid,
    early          boolean NOT NULL DEFAULT false,
    release_at     timestamptz,
    released       boolean NOT NULL DEFAULT false,
    used_at        timestamptz,
    reference      text COLLATE "C",
    same_as        uuid,
    result         text,
    result_size    bigint,
    result_digest  bytea,
    error          text,
    contradictions integer NOT NULL DEFAULT 0,
    next_lookup_at timestamptz,
    waiting_since  timestamptz,
    changed_at     timestamptz NOT NULL,

    FOREIGN KEY (run_id, account_id) REFERENCES runs (id, account_id),
    CONSTRAINT effects_identity UNIQUE (run_id, key),
    CONSTRAINT effects_numbers CHECK (least(occurrence, version, attempts + 1, fence + 1, contradictions + 1) >= 1),
    CONSTRAINT effects_lengths CHECK (
        length(key || call_digest || claim || COALESCE(claim_was, claim) || COALESCE(result_digest, claim)) = 160
        AND octet_length(tool) BETWEEN 1 AND 256
        AND COALESCE(octet_length(client_key), 1) BETWEEN 1 AND 512
        AND COALESCE(octet_length(business_key), 1) BETWEEN 1 AND 1024
        AND COALESCE(octet_length(reference), 1) BETWEEN 1 AND 1024),
    CONSTRAINT effects_money CHECK (num_nulls(amount, currency, decimals) IN (0, 3)),
    CONSTRAINT effects_shape CHECK (effect_shape(state, why, decided_by, decided_from, attempts, released, used_at IS NOT NULL,
        release_at IS NOT NULL, num_nonnulls(decision, decided_from, reference, same_as, result, error), early,
        proposal IS NOT NULL, reference IS NOT NULL, same_as IS NOT NULL, deadline IS NOT NULL, gap))
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX effects_reference ON effects (account_id, tool, reference) WHERE reference IS NOT NULL;
CREATE INDEX effects_claim ON effects (claim);
CREATE INDEX effects_claim_was ON effects (claim_was) WHERE claim_was IS NOT NULL;
CREATE INDEX effects_in_flight ON effects (deadline) WHERE state = 'in_flight';
CREATE INDEX effects_of_run_open ON effects (run_id)
    WHERE state IN ('in_flight','interrupted','held') OR NOT released OR contradictions > 0;
CREATE INDEX effects_queue ON effects (waiting_since, id) WHERE waiting_since IS NOT NULL;
CREATE INDEX effects_release_due ON effects (release_at) WHERE NOT released AND release_at IS NOT NULL AND NOT early;
CREATE INDEX effects_cleared ON effects (release_at) WHERE state = 'cleared';
CREATE INDEX effects_unused ON effects (run_id)
    WHERE used_at IS NULL AND state IN ('cleared','taken','cancelled');
COMMENT ON TABLE effects IS 'Side-effecting calls and what is known of them. The columns before state never change, but for the claims, which a new business_key template re-keys; those from state on change only together with a version and one row in effect_events.';
COMMENT ON COLUMN effects.key IS 'SHA-256 of the canonical run, tool, arguments less volatile fields, and occurrence (or of the key the client minted).';
COMMENT ON COLUMN effects.arguments IS 'As sent, after redaction: text, never jsonb, which refuses \u0000.';
COMMENT ON COLUMN effects.claim IS 'Digest this effect claims in business_claims: of its business key, or of tool and arguments where call_claim.';
COMMENT ON COLUMN effects.claim_was IS 'The digest under the tool''s earlier business_key template, until every effect is re-keyed.';
COMMENT ON COLUMN effects.why IS 'Why it is interrupted, held or cleared.';
COMMENT ON COLUMN effects.moment IS 'The last attempt''s deadline plus lands_within plus visible_after: before it no not-taken and no stop is released.';
COMMENT ON COLUMN effects.gap IS 'Touched by an acknowledged log gap: attempts may exist that this database does not hold.';
COMMENT ON COLUMN effects.early IS 'Decided before the moment: silence of a look-up does not release it, a person must confirm.';
COMMENT ON COLUMN effects.release_at IS 'When the decision may become visible to agents; released says that it has.';
COMMENT ON COLUMN effects.used_at IS 'When a begin was answered from it, an agent''s finish made it, or its run closed.';
COMMENT ON COLUMN effects.waiting_since IS 'Set while a person may be needed (interrupted, held, an open contradiction); the order of the queue.';

CREATE TABLE attempts (
    effect_id  uuid NOT NULL REFERENCES effects,
    number     integer NOT NULL CHECK (number >= 1),
    fence      bigint NOT NULL CHECK (fence >= number),
    attempt_id text NOT NULL CHECK (octet_length(attempt_id) BETWEEN 1 AND 256),
    epoch      bigint NOT NULL,
    begun_at   timestamptz NOT NULL,
    deadline   timestamptz NOT NULL CHECK (deadline > begun_at),
    PRIMARY KEY (effect_id, fence)
);
COMMENT ON TABLE attempts IS 'Tries at performing an effect. Append-only; how one ended is in effect_events and evidence.';

CREATE TABLE business_claims (
    digest       bytea PRIMARY KEY CHECK (length(digest) = 32),
    account_id   bigint NOT NULL,
    tool         text NOT NULL,
    business_key text,
    effect_id    uuid NOT NULL,
    taken_at     timestamptz NOT NULL,
    CONSTRAINT business_claims_effect FOREIGN KEY (effect_id) REFERENCES effects DEFERRABLE INITIALLY DEFERRED
) WITH (fillfactor = 80);
COMMENT ON TABLE business_claims IS 'Which effect may act for a business key; digest is over (account, tool, business key), or over (account, tool, arguments) for tools without one.';

CREATE TABLE kept_finishes (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id    bigint NOT NULL REFERENCES runs,
    key       bytea NOT NULL CHECK (length(key) = 32),
    at        timestamptz NOT NULL,
    tool      text,
    outcome   text NOT NULL,
    reference text,
    body      text NOT NULL
);
CREATE INDEX kept_finishes_key ON kept_finishes (run_id, key);
COMMENT ON TABLE kept_finishes IS 'Finishes without an intent: a broken client. A later begin of the key starts as interrupted.';

-- The record ---------------------------------------------------------------------------

CREATE TABLE effect_events (
    id        bigint GENERATED ALWAYS AS IDENTITY,
    at        timestamptz NOT NULL,
    run_id    bigint NOT NULL,
    effect_id uuid,
    version   bigint,
    kind      text NOT NULL,
    data      text NOT NULL,
    digest    bytea NOT NULL CHECK (length(digest) = 32),
    CHECK ((effect_id IS NULL) = (version IS NULL)),
    PRIMARY KEY (run_id, id),
    CONSTRAINT effect_events_one_a_version UNIQUE (effect_id, version)
);
COMMENT ON TABLE effect_events IS 'The effects log: append-only, written in the transaction that changes the row; folding it gives effects.';
COMMENT ON COLUMN effect_events.data IS 'JSON: the effect''s changing columns after the event, and what caused it.';
COMMENT ON COLUMN effect_events.digest IS 'SHA-256 over everything but id; a log position names id and digest.';

CREATE TABLE evidence (
    id        uuid PRIMARY KEY,
    effect_id uuid NOT NULL REFERENCES effects,
    at        timestamptz NOT NULL,
    source    text NOT NULL CHECK (source IN ('agent','late_agent','look_up','vendor_key','person','system')),
    person_id bigint REFERENCES people,
    fence     bigint,
    verdict   text NOT NULL CHECK (verdict IN ('taken','not_taken','failed','reversed','inconclusive')),
    reference text,
    seen      text,
    data      text,
    CHECK ((source = 'person') = (person_id IS NOT NULL))
);
CREATE INDEX evidence_of_effect ON evidence (effect_id, at, id);
COMMENT ON TABLE evidence IS 'Immutable observations about effects: who or what saw it, when, and what.';

CREATE TABLE decisions (
    id           uuid PRIMARY KEY,
    effect_id    uuid NOT NULL REFERENCES effects,
    decision_id  text CHECK (octet_length(decision_id) BETWEEN 1 AND 256),
    at           timestamptz NOT NULL,
    act          text NOT NULL CHECK (act IN ('propose','decide','confirm','concur','send_back','undo','acknowledge','reopen')),
    verdict      text CHECK (verdict IN ('taken','not_taken','stop','allow','same_as','failed','same_key')),
    decided_by   text NOT NULL CHECK (decided_by IN ('late_agent','look_up','vendor_key','person','system')),
    person_id    bigint REFERENCES people,
    note         text,
    reference    text,
    result       text,
    same_as      uuid,
    not_ours     text[],
    evidence_id  uuid REFERENCES evidence,
    version      bigint NOT NULL,
    answer       text,
    about        uuid REFERENCES decisions,
    CHECK ((decided_by = 'person') = (person_id IS NOT NULL)),
    CONSTRAINT decisions_note CHECK (decided_by <> 'person' OR act IN ('concur','confirm') OR length(btrim(note)) > 0)
);
CREATE UNIQUE INDEX decisions_once ON decisions (effect_id, decision_id) WHERE decision_id IS NOT NULL;
CREATE INDEX decisions_of_effect ON decisions (effect_id, at, id);
COMMENT ON TABLE decisions IS 'Every act that closed, confirmed, sent back or reopened an unknown. Append-only; effects.decision names the one in force.';
COMMENT ON COLUMN decisions.not_ours IS 'References a person named as other people''s: the re-check before release ignores them.';

CREATE TABLE contradictions (
    id              uuid PRIMARY KEY,
    effect_id       uuid NOT NULL REFERENCES effects,
    at              timestamptz NOT NULL,
    kind            text NOT NULL,
    evidence_id     uuid REFERENCES evidence,
    recovery        text NOT NULL DEFAULT 'suspected' CHECK (recovery IN ('suspected','yes','no')),
    acknowledged_at timestamptz,
    acknowledged_by bigint REFERENCES people,
    note            text,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
    CHECK ((acknowledged_at IS NULL) = (recovery = 'suspected'))
);
CREATE INDEX contradictions_of_effect ON contradictions (effect_id, at);
CREATE INDEX contradictions_open ON contradictions (at) WHERE acknowledged_at IS NULL;
COMMENT ON TABLE contradictions IS 'Evidence that disagrees with a decision: an incident, never an overwrite.';

-- Guards -------------------------------------------------------------------------------

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % is refused: %', TG_TABLE_NAME, TG_OP, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['effect_events','attempts','evidence','decisions','refusals','kept_finishes'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_append_only', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_no_truncate', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['effects','runs','leases','contradictions','log_gaps'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_kept', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_no_truncate', t);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE TRIGGER effects_identity_fixed
    BEFORE UPDATE OF id, account_id, run_id, key, client_key, tool, occurrence, arguments, call_digest, summary, amount, currency,
        decimals, amount_problem, call_id, client_time, context, repeat_of, opened_at ON effects
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was asked for never changes');

-- Every change raises the version, and effect_events has one row a version: no
-- change can go unrecorded or be recorded twice.
CREATE TRIGGER effects_steps_forward
    BEFORE UPDATE OF state, why, attempts, fence, gap, decided_by, decided_from, decision, proposal, early, released, used_at,
        reference, same_as, result, result_size, result_digest, error, contradictions, version ON effects
    FOR EACH ROW WHEN (NEW.version <= OLD.version)
    EXECUTE FUNCTION refuse_change('every change raises the version');

CREATE TRIGGER effects_legal_move
    BEFORE UPDATE OF state ON effects
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND NOT effect_move(OLD.state, NEW.state))
    EXECUTE FUNCTION refuse_change('the state table has no such move');
