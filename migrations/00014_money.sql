-- +goose Up

-- Money owed in both directions: how what is owed back is approved, sent, seen to arrive,
-- comes back or is written off; and what left twice and is to be claimed back. A payment's
-- row stays the one lock of what is owed for it; of a transfer without an order it is the
-- transfer's.

-- +goose StatementBegin
CREATE FUNCTION refund_move(was text, now text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN was || '>' || now IN (
        'owed>approved', 'owed>held', 'owed>written_off', 'owed>void', 'owed>returned', 'owed>confirmed',
        'approved>owed', 'approved>batched', 'approved>sending', 'approved>held', 'approved>written_off', 'approved>void',
        'approved>returned', 'approved>confirmed',
        'batched>approved', 'batched>owed', 'batched>sending',
        'sending>sent', 'sending>unknown', 'sending>approved',
        'sent>unknown', 'sent>confirmed', 'sent>approved', 'sent>owed',
        'unknown>sent', 'unknown>approved',
        'confirmed>returned', 'confirmed>owed',
        'returned>approved', 'returned>held', 'returned>written_off', 'returned>confirmed', 'returned>void',
        'held>owed', 'held>written_off', 'held>confirmed', 'held>void',
        'written_off>owed', 'written_off>returned',
        'void>owed');
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION payout_move(was text, now text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN was || '>' || now IN (
        'sending>sent', 'sending>unknown', 'sending>failed',
        'unknown>sent', 'unknown>failed',
        'sent>confirmed', 'sent>unknown', 'sent>failed',
        'failed>confirmed', 'failed>landed',
        'confirmed>returned');
END $$;
-- +goose StatementEnd

ALTER TABLE refunds
    ADD COLUMN approved        numeric(38,0) NOT NULL DEFAULT 0,
    ADD COLUMN approved_by     bigint REFERENCES people,
    ADD COLUMN approved_at     timestamptz,
    ADD COLUMN opened_by       bigint REFERENCES people,
    ADD COLUMN destination     text COLLATE "C" CHECK (octet_length(destination) BETWEEN 1 AND 256),
    ADD COLUMN destination_by  bigint REFERENCES people,
    ADD COLUMN held_why        text CHECK (octet_length(held_why) BETWEEN 1 AND 4096),
    ADD COLUMN write_off       numeric(38,0) CHECK (write_off > 0),
    ADD COLUMN write_off_by    bigint REFERENCES people,
    ADD COLUMN write_off_why   text CHECK (octet_length(write_off_why) BETWEEN 1 AND 4096),
    ADD CONSTRAINT refunds_approved CHECK (paid + reserved <= approved AND approved + written_off <= amount),
    ADD CONSTRAINT refunds_approval CHECK ((approved_by IS NULL) = (approved_at IS NULL) AND (approved <= paid OR approved_by IS NOT NULL)),
    ADD CONSTRAINT refunds_not_approved CHECK (approved = paid OR state NOT IN ('owed','returned','held','void')),
    ADD CONSTRAINT refunds_may_be_paid CHECK (state <> 'approved' OR approved > paid AND reserved = 0),
    ADD CONSTRAINT refunds_under_way CHECK ((reserved > 0) = (state IN ('batched','sending','sent','unknown'))),
    ADD CONSTRAINT refunds_open CHECK (paid + written_off < amount OR state IN ('confirmed','written_off','void')),
    ADD CONSTRAINT refunds_two_people CHECK (approved_by <> opened_by AND approved_by <> destination_by),
    ADD CONSTRAINT refunds_destination CHECK ((destination IS NULL) = (destination_by IS NULL)),
    ADD CONSTRAINT refunds_held CHECK ((held_why IS NOT NULL) = (state = 'held')),
    ADD CONSTRAINT refunds_write_off CHECK (num_nulls(write_off, write_off_by, write_off_why) IN (0, 3) AND (write_off IS NULL OR reserved = 0));
COMMENT ON COLUMN refunds.approved IS 'Of the amount, how much may be paid in all: what is paid and under way never passes it. A return takes back what was approved with it.';
COMMENT ON COLUMN refunds.opened_by IS 'Who decided that it is given back, where a person did: somebody else approves it.';
COMMENT ON COLUMN refunds.destination IS 'Where it goes instead of to the payer; set by one person, approved by another.';
COMMENT ON COLUMN refunds.write_off IS 'Asked for by one person (write_off_by), and not done before another says so.';

CREATE INDEX refunds_by_state ON refunds (state, opened_at, id);
CREATE INDEX refunds_open_money ON refunds (opened_at, id) INCLUDE (network, asset, state, reason, amount, paid, written_off)
    WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_open_asset ON refunds (network, asset, opened_at, id) WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_of_payer ON refunds (payer, opened_at, id);
DROP INDEX refunds_open;

CREATE TABLE payouts (
    id           uuid PRIMARY KEY,
    refund_id    uuid NOT NULL REFERENCES refunds,
    attempt      integer NOT NULL CHECK (attempt >= 1),
    payout_key   text COLLATE "C" NOT NULL UNIQUE GENERATED ALWAYS AS
        ('qp_' || encode(sha256((refund_id::text || '/' || attempt::text)::bytea), 'hex')) STORED,
    network      text COLLATE "C" NOT NULL,
    asset        text COLLATE "C" NOT NULL,
    recipient    text COLLATE "C" NOT NULL CHECK (octet_length(recipient) BETWEEN 1 AND 256),
    amount       numeric(38,0) NOT NULL CHECK (amount > 0),
    how          text NOT NULL CHECK (how IN ('hand')),
    state        text NOT NULL CHECK (state IN ('sending','sent','unknown','confirmed','failed','landed','returned')),
    made_by      bigint NOT NULL REFERENCES people,
    approved_by  bigint NOT NULL REFERENCES people,
    started_at   timestamptz NOT NULL,
    tx           text COLLATE "C" CHECK (octet_length(tx) BETWEEN 1 AND 256),
    sent_at      timestamptz,
    ended_at     timestamptz,
    ended_by     bigint REFERENCES people,
    block        bigint,
    said         text CHECK (octet_length(said) <= 4096),
    checked_at   timestamptz,
    check_at     timestamptz,
    checking_until timestamptz,
    check_step   integer NOT NULL DEFAULT 0,
    returned     numeric(38,0) NOT NULL DEFAULT 0 CHECK (returned >= 0 AND returned <= amount),
    returned_tx  text COLLATE "C" CHECK (octet_length(returned_tx) BETWEEN 1 AND 256),
    returned_at  timestamptz,

    CONSTRAINT payouts_once UNIQUE (refund_id, attempt),
    CONSTRAINT payouts_two_people CHECK (made_by <> approved_by AND (ended_by IS NULL OR state NOT IN ('confirmed','returned') OR ended_by <> made_by)),
    CONSTRAINT payouts_sent CHECK ((tx IS NULL) = (sent_at IS NULL) AND (tx IS NOT NULL OR state IN ('sending','unknown','failed'))),
    CONSTRAINT payouts_ended CHECK ((ended_at IS NOT NULL) = (state IN ('confirmed','failed','landed','returned'))),
    CONSTRAINT payouts_returned CHECK ((state = 'returned') = (returned > 0) AND (state = 'returned') = (returned_at IS NOT NULL)),
    CONSTRAINT payouts_checked CHECK (check_at IS NULL OR tx IS NOT NULL AND state IN ('sent','unknown','failed'))
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX payouts_one_live ON payouts (refund_id) WHERE state IN ('sending','sent','unknown');
CREATE UNIQUE INDEX payouts_hash_once ON payouts (network, tx) WHERE tx IS NOT NULL;
CREATE UNIQUE INDEX payouts_return_once ON payouts (network, returned_tx) WHERE returned_tx IS NOT NULL;
CREATE INDEX payouts_check ON payouts (check_at) WHERE check_at IS NOT NULL;
COMMENT ON TABLE payouts IS 'Attempts to give back what is owed: at most one live one for each refund. Kept for ever.';
COMMENT ON COLUMN payouts.payout_key IS 'From the owed row and the attempt, not from what else is sent with it: what a downstream knows the attempt by.';
COMMENT ON COLUMN payouts.approved_by IS 'Who had approved it when it was made: somebody else.';
COMMENT ON COLUMN payouts.ended_by IS 'Who said what became of it, where the rail could not be asked.';
COMMENT ON COLUMN payouts.said IS 'What the rail last said of it, or the person.';

CREATE TABLE recoveries (
    id               uuid PRIMARY KEY,
    effect_id        uuid REFERENCES effects,
    payout_id        uuid UNIQUE REFERENCES payouts,
    origin           text NOT NULL CHECK (origin IN ('contradiction','double','payout')),
    counterparty     text NOT NULL CHECK (octet_length(counterparty) <= 4096),
    amount           numeric(38,0) CHECK (amount > 0),
    currency         text CHECK (octet_length(currency) BETWEEN 1 AND 128),
    decimals         smallint CHECK (decimals BETWEEN 0 AND 36),
    state            text NOT NULL CHECK (state IN ('suspected','confirmed','claimed','recovered','written_off','dismissed')),
    how              text CHECK (how IN ('cash','credit_note')),
    owner_id         bigint REFERENCES people,
    claim            text CHECK (octet_length(claim) BETWEEN 1 AND 512),
    reference        text CHECK (octet_length(reference) BETWEEN 1 AND 512),
    recovered        numeric(38,0) NOT NULL DEFAULT 0 CHECK (recovered >= 0),
    opened_at        timestamptz NOT NULL,
    changed_at       timestamptz NOT NULL,
    version          bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    CONSTRAINT recoveries_subject CHECK (num_nonnulls(effect_id, payout_id) = 1),
    CONSTRAINT recoveries_asset CHECK ((currency IS NULL) = (decimals IS NULL) AND (amount IS NULL OR currency IS NOT NULL)),
    CONSTRAINT recoveries_how CHECK ((how IS NOT NULL) = (state = 'recovered') AND (reference IS NOT NULL) >= (state = 'recovered')),
    CONSTRAINT recoveries_claimed CHECK (claim IS NOT NULL OR state <> 'claimed'),
    CONSTRAINT recoveries_known CHECK (amount IS NOT NULL OR state IN ('suspected','dismissed')),
    CONSTRAINT recoveries_never_over CHECK (recovered = 0 OR recovered <= amount),
    CONSTRAINT recoveries_all CHECK (state <> 'recovered' OR recovered = amount)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX recoveries_one_open ON recoveries (effect_id) WHERE state IN ('suspected','confirmed','claimed');
CREATE INDEX recoveries_of_effect ON recoveries (effect_id) WHERE effect_id IS NOT NULL;
CREATE INDEX recoveries_open ON recoveries (opened_at, id) WHERE state IN ('suspected','confirmed','claimed');
CREATE INDEX recoveries_by_state ON recoveries (state, opened_at, id);
COMMENT ON TABLE recoveries IS 'Money that left twice and others hold. Never part of what is owed back.';
COMMENT ON COLUMN recoveries.amount IS 'In the smallest unit; NULL while nobody has said how much. A person confirms it.';
COMMENT ON COLUMN recoveries.claim IS 'How the counterparty knows the claim: a ticket, a letter.';
COMMENT ON COLUMN recoveries.reference IS 'Of the money that came back, or of the credit note.';

CREATE TABLE recovery_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recovery_id uuid NOT NULL REFERENCES recoveries,
    at          timestamptz NOT NULL,
    kind        text NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
    person_id   bigint REFERENCES people,
    data        text NOT NULL
);
CREATE INDEX recovery_events_of ON recovery_events (recovery_id, id);
COMMENT ON TABLE recovery_events IS 'Everything that happened to recoveries, in the transaction that changed them. Append-only.';

DROP INDEX transfers_unmatched;
CREATE INDEX transfers_unplaced ON transfers (seen_at, id) WHERE class IN ('unmatched','under') AND reverted_at IS NULL;
CREATE INDEX transfers_by_asset ON transfers (network, asset);
CREATE INDEX postings_of_refund ON postings (refund_id) WHERE refund_id IS NOT NULL;
CREATE INDEX postings_by_time ON postings (at, id);
CREATE INDEX payment_events_by_time ON payment_events (at, id);

-- Guards -------------------------------------------------------------------------------

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    EXECUTE 'CREATE TRIGGER recovery_events_append_only BEFORE UPDATE OR DELETE ON recovery_events FOR EACH ROW EXECUTE FUNCTION refuse_change(''the record is append-only'')';
    EXECUTE 'CREATE TRIGGER recovery_events_no_truncate BEFORE TRUNCATE ON recovery_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''the record is append-only'')';
    FOREACH t IN ARRAY ARRAY['payouts','recoveries'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_kept', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_no_truncate', t);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE TRIGGER refunds_legal_move BEFORE UPDATE OF state ON refunds
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND NOT refund_move(OLD.state, NEW.state))
    EXECUTE FUNCTION refuse_change('a refund has no such move');
CREATE TRIGGER payouts_legal_move BEFORE UPDATE OF state ON payouts
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND NOT payout_move(OLD.state, NEW.state))
    EXECUTE FUNCTION refuse_change('a payout has no such move');
CREATE TRIGGER payouts_fixed
    BEFORE UPDATE OF id, refund_id, attempt, network, asset, recipient, amount, how, made_by, approved_by, started_at ON payouts
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was to be sent never changes');
CREATE TRIGGER payouts_hash_stays BEFORE UPDATE OF tx ON payouts
    FOR EACH ROW WHEN (OLD.tx IS NOT NULL AND NEW.tx IS DISTINCT FROM OLD.tx)
    EXECUTE FUNCTION refuse_change('a reference that was recorded never changes');
CREATE TRIGGER recoveries_fixed BEFORE UPDATE OF id, effect_id, payout_id, origin, opened_at ON recoveries
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what it is about never changes');
CREATE TRIGGER recoveries_steps_forward BEFORE UPDATE ON recoveries
    FOR EACH ROW WHEN (NEW.version <> OLD.version + 1)
    EXECUTE FUNCTION refuse_change('every change raises the version by one');

-- Only money that cannot go away again is approved or written off: its transfer is final, and where it
-- is what came over, so is everything else that paid its order: a reorganisation of that
-- would make a part of it due again.
-- +goose StatementBegin
CREATE FUNCTION refund_final() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM transfers t WHERE t.id = NEW.transfer_id AND (NOT t.final OR t.reverted_at IS NOT NULL)) OR EXISTS (
        SELECT FROM transfers t JOIN transfers o ON o.order_id = t.order_id
        WHERE t.id = NEW.transfer_id AND t.class = 'applied' AND o.class = 'applied' AND o.reverted_at IS NULL AND NOT o.final) THEN
        RAISE EXCEPTION 'refund %: its transfer is not final', NEW.id USING ERRCODE = 'check_violation', CONSTRAINT = 'refunds_final';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER refunds_final BEFORE UPDATE OF approved, written_off ON refunds
    FOR EACH ROW WHEN (NEW.approved > OLD.approved OR NEW.written_off > OLD.written_off) EXECUTE FUNCTION refund_final();

-- A payout is of what is owed and approved: to the payer or the approved destination, on
-- the rail it came by, by somebody else than who approved it, and not known by the hash of
-- money that came in.
-- +goose StatementBegin
CREATE FUNCTION payout_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE f refunds;
BEGIN
    SELECT * INTO f FROM refunds WHERE id = NEW.refund_id;
    IF NEW.network <> f.network OR NEW.asset <> f.asset THEN
        RAISE EXCEPTION 'payout of refund %: another rail or asset', f.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payouts_rail';
    END IF;
    IF NEW.recipient <> COALESCE(f.destination, f.payer) THEN
        RAISE EXCEPTION 'payout of refund %: not to its payer', f.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payouts_recipient';
    END IF;
    IF NEW.approved_by IS DISTINCT FROM f.approved_by THEN
        RAISE EXCEPTION 'payout of refund %: not approved', f.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payouts_approved';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payouts_fit BEFORE INSERT ON payouts FOR EACH ROW EXECUTE FUNCTION payout_fits();

-- +goose StatementBegin
CREATE FUNCTION payout_hash_is_ours() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM transfers WHERE network = NEW.network AND tx_hash IN (NEW.tx, NEW.returned_tx)) THEN
        RAISE EXCEPTION 'payout %: its reference is of money that came in', NEW.id USING ERRCODE = 'check_violation', CONSTRAINT = 'payouts_incoming';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payouts_hash_is_ours BEFORE INSERT OR UPDATE OF tx, returned_tx ON payouts
    FOR EACH ROW WHEN (NEW.tx IS NOT NULL OR NEW.returned_tx IS NOT NULL) EXECUTE FUNCTION payout_hash_is_ours();

-- What a refund says of itself is what its payouts and the double entries say. Checked
-- when the transaction ends, since the rows change one after the other.
-- +goose StatementBegin
CREATE FUNCTION refund_adds_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    f refunds;
    live numeric;
    out numeric;
    posted numeric[];
BEGIN
    SELECT * INTO f FROM refunds WHERE id = CASE TG_TABLE_NAME WHEN 'refunds' THEN (to_jsonb(NEW)->>'id')::uuid ELSE (to_jsonb(NEW)->>'refund_id')::uuid END;
    SELECT COALESCE(sum(amount) FILTER (WHERE state IN ('sending','sent','unknown')), 0),
        COALESCE(sum(amount - returned) FILTER (WHERE state IN ('confirmed','returned')), 0)
        INTO live, out FROM payouts WHERE refund_id = f.id;
    IF live <> f.reserved OR out <> f.paid THEN
        RAISE EXCEPTION 'refund %: % under way and % paid, and its payouts say % and %', f.id, f.reserved, f.paid, live, out
            USING ERRCODE = 'check_violation', CONSTRAINT = 'refunds_payouts';
    END IF;
    SELECT ARRAY[COALESCE(sum(amount) FILTER (WHERE account = 'refund_owed'), 0), COALESCE(sum(amount) FILTER (WHERE account = 'refund_in_transit'), 0),
        COALESCE(sum(amount) FILTER (WHERE account = 'refund_wallet'), 0), COALESCE(sum(amount) FILTER (WHERE account = 'write_off'), 0)]
        INTO posted FROM postings WHERE refund_id = f.id;
    IF posted <> ARRAY[f.reserved + f.paid + f.written_off - f.amount, -f.reserved, -f.paid, -f.written_off] THEN
        RAISE EXCEPTION 'refund %: the double entries say %', f.id, posted USING ERRCODE = 'check_violation', CONSTRAINT = 'refunds_posted';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER refunds_add_up AFTER INSERT OR UPDATE ON refunds
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refund_adds_up();
CREATE CONSTRAINT TRIGGER payouts_add_up AFTER INSERT OR UPDATE OF state, returned ON payouts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refund_adds_up();
CREATE CONSTRAINT TRIGGER postings_add_up AFTER INSERT ON postings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.refund_id IS NOT NULL) EXECUTE FUNCTION refund_adds_up();

-- Contradictions of the time before are suspicions like the new ones; those that a person
-- found to be money that left twice are confirmed, where it is known how much.
INSERT INTO recoveries (id, effect_id, origin, counterparty, amount, currency, decimals, state, opened_at, changed_at)
SELECT gen_random_uuid(), e.id, 'contradiction', COALESCE(e.business_key, e.summary), CASE WHEN e.amount > 0 THEN e.amount END, e.currency, e.decimals,
    CASE WHEN bool_or(k.recovery = 'yes') AND e.amount > 0 THEN 'confirmed' ELSE 'suspected' END, min(k.at), min(k.at)
FROM contradictions k JOIN effects e ON e.id = k.effect_id WHERE k.recovery <> 'no' GROUP BY e.id;
INSERT INTO recovery_events (recovery_id, at, kind, data)
SELECT id, opened_at, 'opened', json_build_object('state', state)::text FROM recoveries;
