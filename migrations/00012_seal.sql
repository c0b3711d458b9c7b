-- +goose Up

-- What the sealer chains has to be numbered in the order of its writing; the log, the kept
-- finishes and the audit trail are already. (This rewrites both tables, once.)
ALTER TABLE evidence ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY;
ALTER TABLE evidence ADD CONSTRAINT evidence_seq UNIQUE (seq);
ALTER TABLE decisions ADD COLUMN seq bigint GENERATED ALWAYS AS IDENTITY;
ALTER TABLE decisions ADD CONSTRAINT decisions_seq UNIQUE (seq);
COMMENT ON COLUMN evidence.seq IS 'For the sealer alone: rows are sealed in this order.';
COMMENT ON COLUMN decisions.seq IS 'For the sealer alone: rows are sealed in this order.';

CREATE TABLE seal_blocks (
    number      bigint PRIMARY KEY CHECK (number >= 1),
    at          timestamptz NOT NULL,
    stream      text NOT NULL CHECK (octet_length(stream) BETWEEN 1 AND 63),
    after_id    bigint NOT NULL CHECK (after_id >= 0),
    last_id     bigint NOT NULL,
    rows        integer NOT NULL CHECK (rows >= 1),
    marks       bytea NOT NULL CHECK (length(marks) >= rows * 5),
    last_digest bytea NOT NULL CHECK (length(last_digest) = 32),
    previous    bytea NOT NULL CHECK (length(previous) = 32),
    digest      bytea NOT NULL CHECK (length(digest) = 32),
    CHECK (last_id >= after_id + rows),
    CHECK ((number = 1) = (previous = decode(repeat('00', 32), 'hex'))),
    CONSTRAINT seal_blocks_one_next UNIQUE (previous),
    CONSTRAINT seal_blocks_digest UNIQUE (number, digest),
    CONSTRAINT seal_blocks_one_after UNIQUE (stream, after_id),
    CONSTRAINT seal_blocks_one_last UNIQUE (stream, last_id)
);
COMMENT ON TABLE seal_blocks IS 'The sealed record: each block chains rows of one append-only table to all blocks before it. Append-only, behind the writers.';
COMMENT ON COLUMN seal_blocks.stream IS 'The table whose rows are sealed.';
COMMENT ON COLUMN seal_blocks.after_id IS 'The block holds every row whose number is above after_id and up to last_id; no other can come any more.';
COMMENT ON COLUMN seal_blocks.marks IS 'For each row the distance to the number before it (a varint) and the first four bytes of its digest, so that a row that is gone or changed can be named.';
COMMENT ON COLUMN seal_blocks.last_digest IS 'Digest of the last row: whether it is still there is looked at each second.';
COMMENT ON COLUMN seal_blocks.previous IS 'Digest of the block before; zeros for the first. Unique: the chain cannot fork.';
COMMENT ON COLUMN seal_blocks.digest IS 'SHA-256 over the block before, the columns here, and the digests of its rows.';

CREATE TABLE seal_head (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint,
    digest bytea,
    CHECK ((number IS NULL) = (digest IS NULL)),
    CONSTRAINT seal_head_block FOREIGN KEY (number, digest) REFERENCES seal_blocks (number, digest)
);
INSERT INTO seal_head DEFAULT VALUES;
COMMENT ON TABLE seal_head IS 'The last block. The chain grows only from it; begin and finish never touch it.';

CREATE TABLE seal_damage (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    block    bigint,
    digest   bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
    what     text NOT NULL
);
COMMENT ON TABLE seal_damage IS 'What was found missing or changed in the sealed record. Each finding opens a log gap once.';
COMMENT ON COLUMN seal_damage.block IS 'The block that does not recompute; null for what concerns the chain as a whole.';
COMMENT ON COLUMN seal_damage.digest IS 'SHA-256 of block and words: the same damage is one finding.';

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['seal_blocks','seal_damage'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_append_only', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_no_truncate', t);
    END LOOP;
END $$;
-- +goose StatementEnd
CREATE TRIGGER seal_head_kept BEFORE DELETE ON seal_head FOR EACH ROW EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER seal_head_no_truncate BEFORE TRUNCATE ON seal_head FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER seal_head_steps_forward BEFORE UPDATE ON seal_head
    FOR EACH ROW WHEN ((NEW.number > COALESCE(OLD.number, 0)) IS NOT TRUE)
    EXECUTE FUNCTION refuse_change('the chain only grows');

ALTER TABLE installation ADD COLUMN synchronous boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN installation.synchronous IS 'Whether each commit waited for a standby when a server last looked: then a promoted standby has all that was confirmed.';

-- A gap that is found is audited like what people say of it. One that was acknowledged
-- and not ended opens again when more was lost since: what was said then does not cover it.
-- +goose StatementBegin
CREATE FUNCTION audit_gap_found() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (actor, via, action, outcome, subject, before, note)
    VALUES ('the server', 'record', 'gap.found', 'done', 'gap:' || NEW.id,
        CASE WHEN TG_OP = 'UPDATE' THEN json_build_object('acknowledged_at', OLD.acknowledged_at, 'acknowledged_by', OLD.acknowledged_by, 'note', OLD.note)::text END,
        NEW.found_by);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER log_gaps_found_audited AFTER INSERT ON log_gaps FOR EACH ROW EXECUTE FUNCTION audit_gap_found();
CREATE TRIGGER log_gaps_again_audited AFTER UPDATE ON log_gaps
    FOR EACH ROW WHEN (OLD.acknowledged_at IS NOT NULL AND NEW.acknowledged_at IS NULL)
    EXECUTE FUNCTION audit_gap_found();
