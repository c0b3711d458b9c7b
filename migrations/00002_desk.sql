-- +goose Up

-- Signing in -------------------------------------------------------------------

CREATE TABLE passwords (
    person_id  bigint PRIMARY KEY REFERENCES people,
    hash       text NOT NULL CHECK (hash LIKE '$argon2id$%'),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE passwords IS 'Argon2id hashes with their parameters, in the PHC string format.';

CREATE TABLE sessions (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    person_id  bigint NOT NULL REFERENCES people,
    zone       text NOT NULL DEFAULT 'UTC' CHECK (octet_length(zone) <= 64),
    began_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX sessions_of_person ON sessions (person_id) WHERE ended_at IS NULL;
COMMENT ON TABLE sessions IS 'Who is signed in in which browser. The cookie holds a secret of which only the SHA-256 is stored.';
COMMENT ON COLUMN sessions.zone IS 'Time zone the person reads times in.';
COMMENT ON COLUMN sessions.seen_at IS 'Last use, to the minute: an idle session ends.';

CREATE TABLE form_tokens (
    session_id bigint NOT NULL REFERENCES sessions,
    nonce      bytea NOT NULL CHECK (length(nonce) = 16),
    used_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, nonce)
);
COMMENT ON TABLE form_tokens IS 'Form tokens that were used: each works once. Unused ones need no row, their MAC is enough.';

CREATE TABLE links (
    hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
    person_id  bigint NOT NULL REFERENCES people,
    kind       text NOT NULL CHECK (kind IN ('invite', 'sign_in')),
    made_by    bigint REFERENCES people,
    made_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
COMMENT ON TABLE links IS 'One-time links: an invite sets a password, a sign-in link opens one session. Opening one changes nothing; its form does.';

CREATE TABLE throttles (
    key    bytea PRIMARY KEY CHECK (length(key) = 32),
    misses integer NOT NULL CHECK (misses >= 0),
    last   timestamptz NOT NULL
);
COMMENT ON TABLE throttles IS 'Failed sign-ins by name and by address (digests), which slow the next ones down.';

-- The audit trail ----------------------------------------------------------------

CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    person_id  bigint REFERENCES people,
    actor      text NOT NULL,
    via        text NOT NULL CHECK (via IN ('page', 'api', 'command', 'record')),
    action     text NOT NULL,
    outcome    text NOT NULL CHECK (outcome IN ('done', 'denied')),
    subject    text NOT NULL DEFAULT '',
    before     text,
    after      text,
    note       text,
    request_id text
);
CREATE INDEX audit_of_person ON audit (person_id, id);
CREATE INDEX audit_of_action ON audit (action, id);
CREATE INDEX audit_of_subject ON audit (subject, id) WHERE subject <> '';
CREATE INDEX audit_denied ON audit (id) WHERE outcome = 'denied';
CREATE INDEX audit_by_time ON audit (at, id);
COMMENT ON TABLE audit IS 'Every change a person made and every attempt that was denied: who, what, before and after. Append-only.';
COMMENT ON COLUMN audit.actor IS 'The name as it was then; "somebody" when nobody was signed in.';
COMMENT ON COLUMN audit.via IS 'record: written with the decision itself, whichever way it came.';
COMMENT ON COLUMN audit.subject IS 'What it was done to, such as effect:<id> or person:<id>.';

-- What people say of effects is audited by the database, so that no path can leave it
-- out: pages, the API, bulk and whatever comes later.
-- +goose StatementBegin
CREATE FUNCTION audit_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (at, person_id, actor, via, action, outcome, subject, before, after, note)
    SELECT NEW.at, NEW.person_id, p.name, 'record', 'effect.' || NEW.act, 'done', 'effect:' || NEW.effect_id,
        (SELECT json_build_object('state', v.data::json ->> 'state', 'why', v.data::json ->> 'why',
                'decided_by', v.data::json ->> 'decided_by', 'version', v.version)::text
            FROM effect_events v WHERE v.effect_id = NEW.effect_id AND v.at < NEW.at ORDER BY v.version DESC LIMIT 1),
        (SELECT json_build_object('state', e.state, 'why', e.why, 'decided_by', e.decided_by, 'version', e.version,
                'verdict', NEW.verdict, 'reference', NEW.reference)::text
            FROM effects e WHERE e.id = NEW.effect_id),
        NEW.note
    FROM people p WHERE p.id = NEW.person_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER decisions_audited AFTER INSERT ON decisions
    FOR EACH ROW WHEN (NEW.person_id IS NOT NULL) EXECUTE FUNCTION audit_decision();

-- +goose StatementBegin
CREATE FUNCTION audit_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (at, person_id, actor, via, action, outcome, subject, after, note)
    SELECT NEW.at, NEW.person_id, p.name, 'record', 'effect.evidence', 'done', 'effect:' || NEW.effect_id,
        json_build_object('verdict', NEW.verdict, 'reference', NEW.reference)::text, NEW.seen
    FROM people p WHERE p.id = NEW.person_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER evidence_audited AFTER INSERT ON evidence
    FOR EACH ROW WHEN (NEW.person_id IS NOT NULL) EXECUTE FUNCTION audit_evidence();

-- The queue ----------------------------------------------------------------------

CREATE TABLE waiting (
    effect_id    uuid PRIMARY KEY REFERENCES effects,
    since        timestamptz NOT NULL,
    state        text NOT NULL,
    contradicted boolean NOT NULL,
    second       boolean NOT NULL,
    early        boolean NOT NULL,
    tool         text NOT NULL,
    agent        text NOT NULL,
    account      text NOT NULL,
    run_id       text COLLATE "C" NOT NULL,
    business_key text COLLATE "C",
    amount       numeric(38,0),
    currency     text,
    decimals     smallint,
    words        text[] NOT NULL
) WITH (fillfactor = 85);
CREATE INDEX waiting_order ON waiting (since, effect_id);
CREATE INDEX waiting_tool ON waiting (tool, since, effect_id);
CREATE INDEX waiting_agent ON waiting (agent, since, effect_id);
CREATE INDEX waiting_account ON waiting (account, since, effect_id);
CREATE INDEX waiting_state ON waiting (state, since, effect_id);
CREATE INDEX waiting_run ON waiting (run_id, since, effect_id);
CREATE INDEX waiting_business_key ON waiting (business_key, since, effect_id);
CREATE INDEX waiting_amount ON waiting (currency, amount);
CREATE INDEX waiting_contradicted ON waiting (since, effect_id) WHERE contradicted;
CREATE INDEX waiting_second ON waiting (since, effect_id) WHERE second;
CREATE INDEX waiting_early ON waiting (since, effect_id) WHERE early;
CREATE INDEX waiting_words ON waiting USING gin (words);
COMMENT ON TABLE waiting IS 'The queue: one narrow row for every effect with waiting_since, kept by a trigger, so that a page costs what is open and not what is stored.';
COMMENT ON COLUMN waiting.words IS 'Lower-case words of business key, summary and run, for the search box.';

CREATE TABLE waiting_totals (
    shard    smallint NOT NULL,
    currency text NOT NULL,
    decimals smallint NOT NULL,
    effects  bigint NOT NULL,
    amount   numeric NOT NULL,
    PRIMARY KEY (shard, currency, decimals)
) WITH (fillfactor = 50);
COMMENT ON TABLE waiting_totals IS 'How many effects wait and for how much, by currency ('''' for none). Sharded so that writers rarely meet; summed when read.';

-- +goose StatementBegin
CREATE FUNCTION waiting_words(summary text, business_key text, run text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT DISTINCT left(w, 200) FROM regexp_split_to_table(
        lower(concat_ws(' ', business_key, left(summary, 2000), run)), '[\s/,;:()"\[\]]+') AS w WHERE w <> '')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION waiting_count(currency text, decimals smallint, n bigint, amount numeric) RETURNS void LANGUAGE sql AS $$
    INSERT INTO waiting_totals VALUES (pg_backend_pid() % 32, COALESCE(currency, ''), COALESCE(decimals, 0::smallint), n, COALESCE(amount, 0) * n)
    ON CONFLICT ON CONSTRAINT waiting_totals_pkey DO UPDATE
    SET effects = waiting_totals.effects + EXCLUDED.effects, amount = waiting_totals.amount + EXCLUDED.amount
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION keep_waiting() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE had boolean; has boolean;
BEGIN
    has := NEW.waiting_since IS NOT NULL AND (NEW.state IN ('interrupted', 'held') OR NEW.contradictions > 0);
    had := TG_OP = 'UPDATE' AND EXISTS (SELECT 1 FROM waiting w WHERE w.effect_id = NEW.id AND (w.state IN ('interrupted', 'held') OR w.contradicted));
    IF has AND NOT had THEN
        PERFORM waiting_count(NEW.currency, NEW.decimals, 1, NEW.amount);
    ELSIF had AND NOT has THEN
        PERFORM waiting_count(NEW.currency, NEW.decimals, -1, NEW.amount);
    END IF;
    IF NEW.waiting_since IS NULL THEN
        DELETE FROM waiting WHERE effect_id = NEW.id;
        RETURN NULL;
    END IF;
    UPDATE waiting SET since = NEW.waiting_since, state = NEW.state, contradicted = NEW.contradictions > 0,
        second = NEW.proposal IS NOT NULL, early = NEW.early, business_key = NEW.business_key
    WHERE effect_id = NEW.id;
    IF NOT FOUND THEN
        INSERT INTO waiting
        SELECT NEW.id, NEW.waiting_since, NEW.state, NEW.contradictions > 0, NEW.proposal IS NOT NULL, NEW.early, NEW.tool,
            r.agent, a.name, r.run_id, NEW.business_key, NEW.amount, NEW.currency, NEW.decimals,
            waiting_words(NEW.summary, NEW.business_key, r.run_id)
        FROM runs r JOIN accounts a ON a.id = r.account_id WHERE r.id = NEW.run_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER effects_begin_waiting AFTER INSERT ON effects
    FOR EACH ROW WHEN (NEW.waiting_since IS NOT NULL) EXECUTE FUNCTION keep_waiting();
CREATE TRIGGER effects_keep_waiting AFTER UPDATE OF waiting_since, state, contradictions, proposal, early, business_key ON effects
    FOR EACH ROW WHEN (OLD.waiting_since IS NOT NULL OR NEW.waiting_since IS NOT NULL) EXECUTE FUNCTION keep_waiting();

INSERT INTO waiting
SELECT e.id, e.waiting_since, e.state, e.contradictions > 0, e.proposal IS NOT NULL, e.early, e.tool, r.agent, a.name, r.run_id,
    e.business_key, e.amount, e.currency, e.decimals, waiting_words(e.summary, e.business_key, r.run_id)
FROM effects e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = e.account_id WHERE e.waiting_since IS NOT NULL;
INSERT INTO waiting_totals
SELECT 0, COALESCE(currency, ''), COALESCE(decimals, 0), count(*), COALESCE(sum(amount), 0) FROM waiting
WHERE state IN ('interrupted', 'held') OR contradicted GROUP BY 2, 3;

-- Lists of what is closed. Not for 'agent': nearly all are, and each index there would be
-- paid by every finish.
CREATE INDEX effects_closed_by ON effects (decided_by, changed_at, id)
    WHERE decided_by IN ('late_agent', 'look_up', 'vendor_key', 'person', 'run_closed');
CREATE INDEX effects_decided ON effects (changed_at, id)
    WHERE used_at IS NULL AND state IN ('cleared', 'taken', 'cancelled');

-- Desk furniture -------------------------------------------------------------------

CREATE TABLE drafts (
    effect_id uuid NOT NULL REFERENCES effects,
    person_id bigint NOT NULL REFERENCES people,
    form      text NOT NULL CHECK (octet_length(form) <= 1048576),
    saved_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (effect_id, person_id)
);
COMMENT ON TABLE drafts IS 'What somebody has typed about an effect and not sent; shown to nobody else.';

CREATE TABLE attachments (
    id        uuid PRIMARY KEY,
    effect_id uuid NOT NULL REFERENCES effects,
    person_id bigint NOT NULL REFERENCES people,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    name      text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 256),
    type      text NOT NULL CHECK (type IN ('image/png', 'image/jpeg', 'image/webp', 'application/pdf')),
    size      bigint NOT NULL CHECK (size BETWEEN 1 AND 10485760),
    digest    bytea NOT NULL CHECK (length(digest) = 32),
    content   bytea NOT NULL
);
ALTER TABLE attachments ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX attachments_of_effect ON attachments (effect_id, at, id);
COMMENT ON TABLE attachments IS 'Photos and PDFs that people saw and kept with an effect. The digest also stands in the evidence.';

CREATE TABLE bulks (
    id          uuid PRIMARY KEY,
    person_id   bigint NOT NULL REFERENCES people,
    name        text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 256),
    filter      text NOT NULL,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    verdict     text CHECK (verdict IN ('taken', 'not_taken', 'stop')),
    note        text,
    ordered_at  timestamptz,
    undone_at   timestamptz,
    undone_by   bigint REFERENCES people,
    undo_note   text,
    finished_at timestamptz,
    CONSTRAINT bulks_undo CHECK (undone_at IS NULL OR ordered_at IS NOT NULL),
    CONSTRAINT bulks_order CHECK (num_nulls(verdict, note, ordered_at) IN (0, 3))
);
CREATE INDEX bulks_unfinished ON bulks (ordered_at) WHERE ordered_at IS NOT NULL AND finished_at IS NULL;
COMMENT ON TABLE bulks IS 'A frozen set of effects and the one verdict a person gives on all of them.';

CREATE TABLE bulk_rows (
    bulk_id   uuid NOT NULL REFERENCES bulks,
    effect_id uuid NOT NULL REFERENCES effects,
    place     integer NOT NULL,
    version   bigint NOT NULL,
    excluded  text,
    outcome   text,
    detail    text,
    done_at   timestamptz,
    undone    text,
    PRIMARY KEY (bulk_id, effect_id)
);
CREATE INDEX bulk_rows_todo ON bulk_rows (bulk_id, place) WHERE excluded IS NULL AND done_at IS NULL;
COMMENT ON COLUMN bulk_rows.version IS 'The version that was frozen: an effect that has changed since is left out, with a reason.';
COMMENT ON COLUMN bulk_rows.excluded IS 'Why the row is not part of the order; NULL when it is.';

-- Guards -------------------------------------------------------------------------

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['audit', 'attachments', 'form_tokens'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is append-only'')', t || '_append_only', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''it is append-only'')', t || '_no_truncate', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['audit', 'attachments'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_kept', t);
    END LOOP;
END $$;
-- +goose StatementEnd
