-- +goose Up

-- Log files, continued: what stands between two looks, how a run in a file ends, and tools
-- that are only observed.

ALTER TABLE logfile_alarms DROP CONSTRAINT logfile_alarms_kind_check;
ALTER TABLE logfile_alarms ADD CONSTRAINT logfile_alarms_kind_check CHECK (kind IN ('shrunken','replaced','rewritten','removed'));

ALTER TABLE logfile_parts ADD COLUMN since timestamptz;
COMMENT ON COLUMN logfile_parts.since IS 'By the clock of the file system: a rotated file beside it that was written at this time or later, and was not read, comes before it. NULL: not known, begun by a program that did not look.';

ALTER TABLE logfile_runs ADD COLUMN closes text CHECK (closes IN ('finished','failed','cancelled'));
CREATE INDEX logfile_runs_closing ON logfile_runs (run_id) WHERE closes IS NOT NULL;
COMMENT ON COLUMN logfile_runs.closes IS 'A line says that the run has ended so: it is closed once nothing in it is open and every decision was written to the file.';

CREATE TABLE logfile_observed (
    run_id bigint NOT NULL REFERENCES runs,
    call   bytea NOT NULL CHECK (length(call) = 32),
    times  integer NOT NULL CHECK (times >= 1),
    seen   uuid NOT NULL REFERENCES observed_calls,
    PRIMARY KEY (run_id, call)
);
COMMENT ON TABLE logfile_observed IS 'Which observed call the lines about one call of an observed tool speak of at present. They make no effect.';
COMMENT ON COLUMN logfile_observed.times IS 'How often the call was made in the file.';

-- A run in a log file is its file's: nobody can take it, so nobody is woken for it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION wake_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wakes (run_id, ready_at)
    SELECT NEW.id, NEW.changed_at WHERE NOT EXISTS (SELECT 1 FROM logfile_runs l WHERE l.run_id = NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
