-- +goose Up

-- What people say of a log gap is audited by the database, like what they say of effects:
-- pages and the API alike, in the transaction of the change itself.
ALTER TABLE log_gaps ADD COLUMN end_note text;
COMMENT ON COLUMN log_gaps.note IS 'What the person who acknowledged it said.';
COMMENT ON COLUMN log_gaps.end_note IS 'What the person who ended it said.';

-- +goose StatementBegin
CREATE FUNCTION audit_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.acknowledged_at IS NULL AND NEW.acknowledged_at IS NOT NULL THEN
        INSERT INTO audit (at, person_id, actor, via, action, outcome, subject, before, after, note)
        SELECT NEW.acknowledged_at, p.id, p.name, 'record', 'gap.acknowledge', 'done', 'gap:' || NEW.id,
            json_build_object('found_by', OLD.found_by, 'found_at', OLD.found_at)::text,
            json_build_object('acknowledged_at', NEW.acknowledged_at)::text, NEW.note
        FROM people p WHERE p.id = NEW.acknowledged_by;
    END IF;
    IF OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL THEN
        INSERT INTO audit (at, person_id, actor, via, action, outcome, subject, before, after, note)
        SELECT NEW.ended_at, p.id, p.name, 'record', 'gap.end', 'done', 'gap:' || NEW.id,
            json_build_object('acknowledged_at', OLD.acknowledged_at)::text,
            json_build_object('ended_at', NEW.ended_at)::text, NEW.end_note
        FROM people p WHERE p.id = NEW.ended_by;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER log_gaps_audited AFTER UPDATE ON log_gaps FOR EACH ROW EXECUTE FUNCTION audit_gap();
