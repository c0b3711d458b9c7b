-- +goose NO TRANSACTION
-- +goose Up

-- The sealer reads the log by number. Made beside running servers: on a large log it takes
-- minutes, in which a plain CREATE INDEX would keep every begin waiting. One that was
-- interrupted leaves an invalid index behind, which goes first.
DROP INDEX CONCURRENTLY IF EXISTS effect_events_by_id;
CREATE UNIQUE INDEX CONCURRENTLY effect_events_by_id ON effect_events (id);
