-- +goose Up

-- What people decide of payments of which nobody knows what became, where no rail can tell:
-- one person looks and says it, another one looks again and lets it go. Until then it is
-- only asked for, and can be dropped.
CREATE TABLE payment_decisions (
    id        uuid PRIMARY KEY,
    payment   bigint NOT NULL REFERENCES payments,
    verdict   text NOT NULL CHECK (verdict IN ('settled','not_taken')),
    tx        text COLLATE "C" CHECK (octet_length(tx) BETWEEN 1 AND 256),
    note      text NOT NULL CHECK (octet_length(note) BETWEEN 1 AND 4096),
    fence     bigint NOT NULL,
    made_by   bigint NOT NULL REFERENCES people,
    made_at   timestamptz NOT NULL,
    ready_at  timestamptz NOT NULL CHECK (ready_at >= made_at),
    state     text NOT NULL CHECK (state IN ('waiting','done','dropped')),
    ended_by  bigint REFERENCES people,
    ended_at  timestamptz,
    end_note  text CHECK (octet_length(end_note) BETWEEN 1 AND 4096),
    CONSTRAINT payment_decisions_reference CHECK ((tx IS NOT NULL) = (verdict = 'settled')),
    CONSTRAINT payment_decisions_ended CHECK (num_nulls(ended_by, ended_at, end_note) = CASE state WHEN 'waiting' THEN 3 ELSE 0 END),
    CONSTRAINT payment_decisions_two_people CHECK (state <> 'done' OR ended_by <> made_by),
    CONSTRAINT payment_decisions_in_time CHECK (state <> 'done' OR ended_at >= ready_at)
);
CREATE UNIQUE INDEX payment_decisions_one_waiting ON payment_decisions (payment) WHERE state = 'waiting';
CREATE INDEX payment_decisions_of_payment ON payment_decisions (payment, made_at);
COMMENT ON TABLE payment_decisions IS 'What people say became of payments that no rail can tell about. Asked for by one, let go by another.';
COMMENT ON COLUMN payment_decisions.tx IS 'By which its network knows the payment that was settled.';
COMMENT ON COLUMN payment_decisions.note IS 'Where the person looked, and what they saw.';
COMMENT ON COLUMN payment_decisions.fence IS 'Of the payment when it was looked at: nobody took it over since.';
COMMENT ON COLUMN payment_decisions.ready_at IS 'Before then it is not let go.';
COMMENT ON COLUMN payment_decisions.end_note IS 'What the person saw who let it go, or why it was dropped.';

CREATE TRIGGER payment_decisions_kept BEFORE DELETE ON payment_decisions FOR EACH ROW EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER payment_decisions_no_truncate BEFORE TRUNCATE ON payment_decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is kept for ever');
CREATE TRIGGER payment_decisions_fixed
    BEFORE UPDATE OF id, payment, verdict, tx, note, fence, made_by, made_at, ready_at ON payment_decisions
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was decided never changes');
CREATE TRIGGER payment_decisions_end BEFORE UPDATE ON payment_decisions
    FOR EACH ROW WHEN (OLD.state <> 'waiting') EXECUTE FUNCTION refuse_change('a decision ends once');

-- A person decides only what is unknown and not young, with the fence that they looked at;
-- and never that nothing was taken while an authorization may still land, or the order is
-- paid.
-- +goose StatementBegin
CREATE FUNCTION payment_decidable() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE p payments;
BEGIN
    SELECT * INTO p FROM payments WHERE id = NEW.payment FOR UPDATE;
    IF p.state <> 'unknown' OR p.claimed_at >= clock_timestamp() - interval '180 seconds' THEN
        RAISE EXCEPTION 'payment %: it is % since %', p.id, p.state, p.claimed_at USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_decisions_unknown';
    END IF;
    IF p.fence <> NEW.fence THEN
        RAISE EXCEPTION 'payment %: somebody took it over since', p.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_decisions_fence';
    END IF;
    IF EXISTS (SELECT FROM orders o WHERE o.payment = p.id AND o.state = 'paid') THEN
        RAISE EXCEPTION 'payment %: its order is paid', p.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_decisions_paid';
    END IF;
    IF NEW.verdict = 'not_taken' AND EXISTS (
        SELECT FROM authorizations a WHERE a.payment = p.id AND a.dead_why IS NULL AND a.valid_before >= extract(epoch FROM clock_timestamp())
            AND NOT EXISTS (SELECT FROM transfers t JOIN orders o ON o.id = t.order_id WHERE o.payment = p.id AND t.nonce = a.nonce AND t.sender = a.payer
                AND t.asset = a.asset AND t.reverted_at IS NULL AND t.class IN ('late','duplicate','failed_call','given_back'))) THEN
        RAISE EXCEPTION 'payment %: an authorization may still land', p.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payment_decisions_may_land';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_decisions_asked BEFORE INSERT ON payment_decisions FOR EACH ROW EXECUTE FUNCTION payment_decidable();
CREATE TRIGGER payment_decisions_let_go BEFORE UPDATE OF state ON payment_decisions
    FOR EACH ROW WHEN (NEW.state = 'done') EXECUTE FUNCTION payment_decidable();

-- An authorization of which two people said so is dead like one of which a block does.
ALTER TABLE authorizations
    DROP CONSTRAINT authorizations_dead_why_check,
    DROP CONSTRAINT authorizations_dead,
    ADD CONSTRAINT authorizations_dead_why_check CHECK (dead_why IN ('expired','cancelled','person')),
    ADD CONSTRAINT authorizations_dead CHECK (num_nulls(dead_why, dead_at) IN (0, 2) AND (dead_block IS NOT NULL) = (dead_why IN ('expired','cancelled') AND dead_why IS NOT NULL)),
    ADD CONSTRAINT authorizations_over CHECK (dead_why IS DISTINCT FROM 'person' OR valid_before < extract(epoch FROM dead_at));
COMMENT ON COLUMN authorizations.dead_why IS 'expired and cancelled are proven by a final block; of person two people said it, after its end.';

-- What a person tells of a rail that nobody can ask has no place there that they could know.
ALTER TABLE transfers
    DROP CONSTRAINT transfers_known_by_check,
    ADD CONSTRAINT transfers_known_by_check CHECK (known_by IN ('gateway','reconcile','person')),
    ADD COLUMN shown_position integer CHECK (shown_position >= 0),
    ADD CONSTRAINT transfers_shown CHECK (shown_position IS NULL OR known_by = 'person');
COMMENT ON COLUMN transfers.shown_position IS 'Of what a person told: the place in its transaction at which it was shown since. The first that fits is the same movement, every other one is another.';

-- +goose StatementBegin
CREATE FUNCTION two_people_said() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'authorizations' THEN
        IF NOT EXISTS (SELECT FROM payment_decisions d WHERE d.payment = (to_jsonb(NEW)->>'payment')::bigint AND d.verdict = 'not_taken' AND d.state = 'done') THEN
            RAISE EXCEPTION 'nobody decided that it is dead' USING ERRCODE = 'check_violation', CONSTRAINT = 'authorizations_decided';
        END IF;
    ELSIF NOT EXISTS (SELECT FROM payment_decisions d JOIN payments p ON p.id = d.payment WHERE p.network = to_jsonb(NEW)->>'network'
            AND d.tx = to_jsonb(NEW)->>'tx_hash' AND d.verdict = 'settled' AND d.state = 'done') THEN
        RAISE EXCEPTION 'nobody decided that it moved' USING ERRCODE = 'check_violation', CONSTRAINT = 'transfers_decided';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER authorizations_decided BEFORE UPDATE OF dead_why ON authorizations FOR EACH ROW WHEN (NEW.dead_why = 'person') EXECUTE FUNCTION two_people_said();
CREATE TRIGGER transfers_decided BEFORE INSERT ON transfers FOR EACH ROW WHEN (NEW.known_by = 'person') EXECUTE FUNCTION two_people_said();
CREATE INDEX payment_decisions_by_reference ON payment_decisions (tx) WHERE tx IS NOT NULL;

-- An alert is open until a person has said that they saw it.
CREATE INDEX payment_events_seen ON payment_events (payment, id) WHERE kind = 'alerts_seen';
COMMENT ON COLUMN payment_events.alert IS 'A person should look: somebody used an id, a quote or an authorization that is not theirs, or what was said does not fit what moved.';
-- Orders that are open, for what was settled and is not paid.
CREATE INDEX orders_open ON orders (payment) WHERE state IN ('created','paying');

-- Finance filters a million refunds by one thing at a time: also where nothing fits it, and
-- of those that are closed.
CREATE INDEX refunds_of_gateway ON refunds (gateway, opened_at, id);
CREATE INDEX refunds_of_asset ON refunds (asset, opened_at, id);
CREATE INDEX refunds_of_network ON refunds (network, opened_at, id);
CREATE INDEX refunds_of_reason ON refunds (reason, opened_at, id);
-- Of those that are open, and with the figures, so that ages are added up from the index.
CREATE INDEX refunds_open_gateway ON refunds (gateway, opened_at, id) INCLUDE (network, asset, amount, paid, written_off) WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_open_network ON refunds (network, opened_at, id) WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_open_one_asset ON refunds (asset, opened_at, id) WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_open_reason ON refunds (reason, opened_at, id) WHERE state NOT IN ('confirmed','written_off','void');
-- What is open is often all of one rail or reason: known one by one they look independent.
CREATE STATISTICS refunds_together (mcv) ON state, network, asset, reason FROM refunds;
