-- +goose Up

-- The business_key template that each tool's claims are made with is decided here, not
-- by what a server's policy file says: servers with different files, for the minutes of
-- a roll-out, must look for an overlap under the same digests.
DROP TABLE business_templates;
CREATE TABLE business_templates (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool        text COLLATE "C" NOT NULL CHECK (octet_length(tool) BETWEEN 1 AND 256),
    template    text NOT NULL,
    earlier     text NOT NULL,
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    in_force_at timestamptz,
    rekeyed_at  timestamptz,
    settled_at  timestamptz,
    upto        uuid,
    scanned     uuid,
    CONSTRAINT business_templates_changed CHECK (template <> earlier),
    CONSTRAINT business_templates_order CHECK (
        (rekeyed_at IS NULL OR in_force_at IS NOT NULL) AND (settled_at IS NULL OR rekeyed_at IS NOT NULL)),
    CONSTRAINT business_templates_scan CHECK (
        (upto IS NULL OR in_force_at IS NOT NULL AND settled_at IS NULL) AND (scanned IS NULL OR upto IS NOT NULL))
);
CREATE UNIQUE INDEX business_templates_one_waits ON business_templates (tool) WHERE in_force_at IS NULL;
CREATE UNIQUE INDEX business_templates_one_open ON business_templates (tool) WHERE in_force_at IS NOT NULL AND settled_at IS NULL;
CREATE INDEX business_templates_of_tool ON business_templates (tool, id);
COMMENT ON TABLE business_templates IS 'Every change of a tool''s business_key template, one after the other. From in_force_at begins are checked under it and the earlier one, from rekeyed_at, when every stored effect has its claim under it, under it alone; from settled_at the last claim under the earlier one is gone, and the next change may begin.';
COMMENT ON COLUMN business_templates.template IS 'Empty: no business key, the tool and its arguments are claimed.';
COMMENT ON COLUMN business_templates.in_force_at IS 'Null while an earlier change of the same tool is not settled.';
COMMENT ON COLUMN business_templates.upto IS 'The last effect that was stored when this pass over the effects began; null until every begin that may not know of the change is over.';
COMMENT ON COLUMN business_templates.scanned IS 'How far the pass has come, in the order of ids.';

ALTER TABLE installation ADD COLUMN keying bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN installation.keying IS 'Rises whenever the templates that begins are checked under change: a server that knows another number reads them again.';
COMMENT ON COLUMN effects.claim_was IS 'The digest under the tool''s earlier business_key template, until no begin is checked under that any more.';
