-- +goose Up

-- Where the sending follows the work, a recorded broadcast says that the work was done. A
-- take-over clears the broadcast, and must not forget the work with it.
ALTER TABLE payments ADD COLUMN work_done boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN payments.work_done IS 'An earlier try recorded the broadcast that follows the work: it is never done again.';
CREATE TRIGGER payments_work_stays BEFORE UPDATE OF work_done ON payments
    FOR EACH ROW WHEN (OLD.work_done AND NOT NEW.work_done)
    EXECUTE FUNCTION refuse_change('work that was done stays done');

-- A payer may sign the same nonce again with a later end: whichever is sent first uses it
-- up, and it is not dead before the latest end has passed.
DROP TRIGGER authorizations_signed ON authorizations;
CREATE TRIGGER authorizations_signed BEFORE UPDATE OF valid_before, signed ON authorizations
    FOR EACH ROW WHEN (OLD.signed AND (NEW.valid_before < OLD.valid_before OR NOT NEW.signed))
    EXECUTE FUNCTION refuse_change('what was signed never changes, but may be signed again with a later end');
