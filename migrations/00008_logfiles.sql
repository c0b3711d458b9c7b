-- +goose Up

-- Log files: agents that keep their own effects.jsonl. What their lines say goes through
-- the state table like every call; these tables hold where reading stands, which line made
-- what, and what is to be written back.

ALTER TABLE installation ADD COLUMN policy bytea CHECK (length(policy) = 32);
COMMENT ON COLUMN installation.policy IS 'The policy that a server put in force last; commands that read log files work under it.';

CREATE TABLE logfiles (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint NOT NULL REFERENCES accounts,
    path       text NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 4096),
    agent      text NOT NULL CHECK (octet_length(agent) BETWEEN 1 AND 256),
    run_id     text NOT NULL CHECK (octet_length(run_id) BETWEEN 1 AND 512),
    generation integer NOT NULL DEFAULT 1,
    opened_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    read_at    timestamptz,
    UNIQUE (account_id, path)
);
COMMENT ON TABLE logfiles IS 'Log files that agents keep, by their path. The row''s lock is the right to read one.';
COMMENT ON COLUMN logfiles.run_id IS 'The run of lines that name none.';
COMMENT ON COLUMN logfiles.generation IS 'Rises when a person acknowledges that the file was changed: it is then read from its beginning.';

CREATE TABLE logfile_parts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_id     bigint NOT NULL REFERENCES logfiles,
    generation integer NOT NULL,
    read_to    bigint NOT NULL DEFAULT 0 CHECK (read_to >= 0),
    lines      bigint NOT NULL DEFAULT 0,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    identity   text NOT NULL DEFAULT '',
    opened_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX logfile_parts_of_log ON logfile_parts (log_id, id);
COMMENT ON TABLE logfile_parts IS 'The files that a log has been, one after the other as it was rotated; the last is read on.';
COMMENT ON COLUMN logfile_parts.digest IS 'SHA-256 of the first read_to bytes: what was read must still stand there.';
COMMENT ON COLUMN logfile_parts.identity IS 'Device and inode, as last seen: a hint, the digest decides.';

CREATE TABLE logfile_lines (
    part_id    bigint NOT NULL REFERENCES logfile_parts,
    start      bigint NOT NULL,
    number     bigint NOT NULL,
    log_id     bigint NOT NULL,
    generation integer NOT NULL,
    account_id bigint NOT NULL,
    digest     bytea NOT NULL CHECK (length(digest) = 16),
    ordinal    integer NOT NULL CHECK (ordinal >= 1),
    repeat     boolean NOT NULL,
    effect_id  uuid,
    PRIMARY KEY (part_id, start)
);
CREATE UNIQUE INDEX logfile_lines_once ON logfile_lines (account_id, digest, ordinal) WHERE NOT repeat;
CREATE INDEX logfile_lines_same ON logfile_lines (log_id, generation, digest);
COMMENT ON TABLE logfile_lines IS 'Every whole record that was read, by its digest: the n-th line of one wording counts once in an account, in whichever file it stands.';

CREATE TABLE logfile_damage (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    part_id    bigint NOT NULL REFERENCES logfile_parts,
    start      bigint NOT NULL,
    size       bigint NOT NULL,
    first_line bigint NOT NULL,
    last_line  bigint NOT NULL,
    reason     text NOT NULL,
    excerpt    text NOT NULL,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    torn       boolean NOT NULL,
    healed     boolean NOT NULL DEFAULT false,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (part_id, start)
);
COMMENT ON TABLE logfile_damage IS 'The quarantine: lines that could not be read or used, with their place. Nothing is closed from them.';
COMMENT ON COLUMN logfile_damage.excerpt IS 'The bytes after redaction, cut; the whole stands in the file, at start.';
COMMENT ON COLUMN logfile_damage.torn IS 'The last line when it was read, without its end; healed once it could be read whole.';

CREATE TABLE logfile_runs (
    run_id bigint NOT NULL REFERENCES runs,
    log_id bigint NOT NULL REFERENCES logfiles,
    PRIMARY KEY (run_id, log_id)
);
CREATE INDEX logfile_runs_of_log ON logfile_runs (log_id);
COMMENT ON TABLE logfile_runs IS 'Runs that live in log files: whoever writes the file acts for them, so nobody else is given their lease.';

CREATE TABLE logfile_calls (
    run_id     bigint NOT NULL REFERENCES runs,
    call       bytea NOT NULL CHECK (length(call) = 32),
    log_id     bigint NOT NULL REFERENCES logfiles,
    times      integer NOT NULL,
    effect_id  uuid NOT NULL,
    begun      bigint NOT NULL,
    permitted  boolean NOT NULL DEFAULT false,
    possible   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, call)
) WITH (fillfactor = 80);
CREATE INDEX logfile_calls_effect ON logfile_calls (effect_id);
COMMENT ON TABLE logfile_calls IS 'Which effect the lines about one call speak of at present: by the key the file gives it, or by tool and arguments.';
COMMENT ON COLUMN logfile_calls.begun IS 'Fence of the attempt whose intent line was read last: outcomes belong to it.';
COMMENT ON COLUMN logfile_calls.permitted IS 'A resolved line that is not ours says that it may run once more.';
COMMENT ON COLUMN logfile_calls.possible IS 'The effect stands for a damaged line that may be an intent.';

CREATE TABLE logfile_waiting (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id    bigint NOT NULL REFERENCES runs,
    call      bytea NOT NULL CHECK (length(call) = 32),
    part_id   bigint NOT NULL REFERENCES logfile_parts,
    number    bigint NOT NULL,
    body      text NOT NULL,
    paired_at timestamptz
);
CREATE INDEX logfile_waiting_call ON logfile_waiting (run_id, call) WHERE paired_at IS NULL;
COMMENT ON TABLE logfile_waiting IS 'Outcomes whose intent has not been read yet.';

CREATE TABLE logfile_outbox (
    id           uuid PRIMARY KEY,
    log_id       bigint NOT NULL REFERENCES logfiles,
    effect_id    uuid NOT NULL REFERENCES effects,
    verdict      text NOT NULL CHECK (verdict IN ('taken','not_taken','stop')),
    fence        bigint NOT NULL,
    line         text NOT NULL,
    made_at      timestamptz NOT NULL,
    appended_at  timestamptz,
    part_id      bigint REFERENCES logfile_parts,
    begun_at     timestamptz,
    withdrawn_at timestamptz,
    CHECK (begun_at IS NULL OR verdict = 'not_taken'),
    CHECK ((appended_at IS NULL) = (part_id IS NULL))
);
CREATE INDEX logfile_outbox_pending ON logfile_outbox (log_id, made_at) WHERE appended_at IS NULL AND withdrawn_at IS NULL;
CREATE INDEX logfile_outbox_effect ON logfile_outbox (effect_id);
COMMENT ON TABLE logfile_outbox IS 'Resolved lines for log files, made in the transaction that uses the decision; appended_at is set when the line was read back from the file.';
COMMENT ON COLUMN logfile_outbox.fence IS 'The attempt that the line lets run, for not_taken.';
COMMENT ON COLUMN logfile_outbox.begun_at IS 'When an intent line for that attempt was read.';

CREATE TABLE logfile_alarms (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log_id          bigint NOT NULL REFERENCES logfiles,
    found_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind            text NOT NULL CHECK (kind IN ('shrunken','replaced','rewritten')),
    detail          text NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by bigint REFERENCES people,
    note            text,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL)),
    CHECK (acknowledged_at IS NULL OR length(btrim(note)) > 0)
);
CREATE UNIQUE INDEX logfile_alarms_one_open ON logfile_alarms (log_id) WHERE acknowledged_at IS NULL;
COMMENT ON TABLE logfile_alarms IS 'A log file no longer holds what was read from it. While one is open nothing is read from the file, released from its runs, or appended to it.';

-- +goose StatementBegin
CREATE FUNCTION audit_logfile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.acknowledged_at IS NULL AND NEW.acknowledged_at IS NOT NULL THEN
        INSERT INTO audit (at, person_id, actor, via, action, outcome, subject, before, after, note)
        SELECT NEW.acknowledged_at, p.id, p.name, 'record', 'logfile.acknowledge', 'done', 'logfile:' || NEW.log_id,
            json_build_object('kind', OLD.kind, 'detail', OLD.detail, 'found_at', OLD.found_at)::text,
            json_build_object('acknowledged_at', NEW.acknowledged_at)::text, NEW.note
        FROM people p WHERE p.id = NEW.acknowledged_by;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER logfile_alarms_audited AFTER UPDATE ON logfile_alarms FOR EACH ROW EXECUTE FUNCTION audit_logfile();

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['logfiles','logfile_parts','logfile_lines','logfile_damage','logfile_runs','logfile_waiting','logfile_outbox','logfile_alarms'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_kept', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_no_truncate', t);
    END LOOP;
END $$;
-- +goose StatementEnd
