-- +goose Up

-- What a gateway sells: payment ids, the authorizations that were offered under them,
-- their orders, what moved on the rails, and what must be given back of it. The row of a
-- payment is the one lock of everything that hangs on it: whoever changes its order, its
-- transfers or what is owed for them holds it.

-- +goose StatementBegin
CREATE FUNCTION payment_move(was text, now text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN was || '>' || now IN (
        'in_flight>unknown', 'in_flight>settled', 'in_flight>refused',
        'unknown>in_flight', 'unknown>settled', 'unknown>refused',
        'settled>pruned', 'refused>pruned');
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION order_move(was text, now text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN was || '>' || now IN (
        'created>paying', 'created>paid', 'created>failed', 'created>expired', 'created>cancelled',
        'paying>paid', 'paying>failed', 'paying>expired', 'paying>cancelled',
        'paid>paying', 'paid>failed');
END $$;
-- +goose StatementEnd

CREATE TABLE payments (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id     bigint NOT NULL REFERENCES accounts,
    gateway        text COLLATE "C" NOT NULL CHECK (octet_length(gateway) BETWEEN 1 AND 128),
    payment_id     text COLLATE "C" NOT NULL CHECK (payment_id ~ '^[A-Za-z0-9_-]{16,128}$'),
    payer          text COLLATE "C" NOT NULL CHECK (octet_length(payer) BETWEEN 1 AND 256),
    fingerprint    bytea NOT NULL CHECK (length(fingerprint) = 32),
    network        text COLLATE "C" NOT NULL CHECK (octet_length(network) BETWEEN 1 AND 128),
    asset          text COLLATE "C" NOT NULL CHECK (octet_length(asset) BETWEEN 1 AND 128),
    amount         numeric(38,0) NOT NULL CHECK (amount > 0),
    pay_to         text COLLATE "C" NOT NULL CHECK (octet_length(pay_to) BETWEEN 1 AND 256),
    quote          text COLLATE "C" CHECK (octet_length(quote) BETWEEN 1 AND 512),
    method         text CHECK (octet_length(method) <= 32),
    tool           text CHECK (octet_length(tool) BETWEEN 1 AND 256),
    arguments      text,
    order_id       uuid NOT NULL UNIQUE,
    first_at       timestamptz NOT NULL,

    state          text NOT NULL CHECK (state IN ('in_flight','unknown','settled','refused','pruned')),
    fence          bigint NOT NULL CHECK (fence >= 1),
    attempt_id     text CHECK (octet_length(attempt_id) BETWEEN 1 AND 256),
    claimed_at     timestamptz NOT NULL,
    paid_first     boolean NOT NULL DEFAULT false,
    broadcast_at   timestamptz,
    broadcast_hash text COLLATE "C" CHECK (octet_length(broadcast_hash) BETWEEN 1 AND 256),
    tx             text COLLATE "C" CHECK (octet_length(tx) BETWEEN 1 AND 256),
    why            text CHECK (octet_length(why) <= 1024),
    healed         boolean NOT NULL DEFAULT false,
    ended_at       timestamptz,
    response_status  integer,
    response_headers text,
    response_body    bytea CHECK (length(response_body) <= 262144),
    response_size    bigint,
    response_digest  bytea CHECK (length(response_digest) = 32),
    pruned_from    text CHECK (pruned_from IN ('settled','refused')),
    pruned_at      timestamptz,
    check_at       timestamptz,
    check_step     integer NOT NULL DEFAULT 0,
    checking_until timestamptz,
    checked_at     timestamptz,
    check_said     text CHECK (octet_length(check_said) <= 1024),

    CONSTRAINT payments_identity UNIQUE (account_id, gateway, payment_id),
    CONSTRAINT payments_ended CHECK ((ended_at IS NOT NULL) = (state IN ('settled','refused','pruned'))),
    CONSTRAINT payments_answer CHECK (num_nulls(response_status, response_size, response_digest) IN (0, 3)
        AND (response_status IS NULL OR state IN ('settled','refused','pruned'))
        AND (response_body IS NULL OR response_status IS NOT NULL AND state <> 'pruned')),
    CONSTRAINT payments_pruned CHECK ((state = 'pruned') = (pruned_from IS NOT NULL) AND (state = 'pruned') = (pruned_at IS NOT NULL)),
    CONSTRAINT payments_healed CHECK (NOT healed OR state IN ('settled','pruned')),
    CONSTRAINT payments_checked CHECK (check_at IS NULL OR state IN ('in_flight','unknown','settled'))
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX payments_one_a_quote ON payments (account_id, gateway, quote)
    WHERE quote IS NOT NULL AND state <> 'refused' AND pruned_from IS DISTINCT FROM 'refused';
CREATE INDEX payments_check ON payments (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX payments_open ON payments (claimed_at, id) WHERE state IN ('in_flight','unknown');
CREATE INDEX payments_old ON payments (ended_at) WHERE state IN ('settled','refused');
COMMENT ON TABLE payments IS 'Payment ids, minted by payers. What was claimed never changes; who may act for it does, by fence. The row is locked by whoever changes it, its order, its transfers or what is owed for them.';
COMMENT ON COLUMN payments.fingerprint IS 'SHA-256 of gateway, request less volatile fields, amount, asset, network, pay_to and quote; never of the authorization.';
COMMENT ON COLUMN payments.arguments IS 'Of the request, after redaction.';
COMMENT ON COLUMN payments.order_id IS 'Given at the claim; the order itself may come later, or never.';
COMMENT ON COLUMN payments.claimed_at IS 'From when its age counts: the claim, or the last take-over.';
COMMENT ON COLUMN payments.attempt_id IS 'Of the gateway''s try that holds the fence: it gets the same answer again.';
COMMENT ON COLUMN payments.paid_first IS 'Taken over after the order was paid: the work and the finish only.';
COMMENT ON COLUMN payments.broadcast_at IS 'Recorded before the payment was sent to its rail.';
COMMENT ON COLUMN payments.healed IS 'Settled by its paid order: nobody finished it.';
COMMENT ON COLUMN payments.response_status IS 'With response_*: the answer as it first went out. Once there it never changes.';
COMMENT ON COLUMN payments.response_size IS 'Bytes of the whole body; above the stored limit only its digest is kept.';
COMMENT ON COLUMN payments.check_at IS 'When the rail is asked next about its authorizations.';
COMMENT ON COLUMN payments.checking_until IS 'A server asks just now; if it dies, another may from then on.';

CREATE TABLE authorizations (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payment      bigint NOT NULL REFERENCES payments,
    network      text COLLATE "C" NOT NULL,
    asset        text COLLATE "C" NOT NULL,
    payer        text COLLATE "C" NOT NULL,
    nonce        text COLLATE "C" NOT NULL CHECK (octet_length(nonce) BETWEEN 1 AND 128),
    valid_before bigint NOT NULL CHECK (valid_before > 0),
    signed       boolean NOT NULL,
    offered_at   timestamptz NOT NULL,
    taken_up_at  timestamptz,
    dead_why     text CHECK (dead_why IN ('expired','cancelled')),
    dead_at      timestamptz,
    dead_block   bigint,
    seen         text CHECK (octet_length(seen) <= 1024),
    CONSTRAINT authorizations_once UNIQUE (network, asset, payer, nonce),
    CONSTRAINT authorizations_dead CHECK (num_nulls(dead_why, dead_at, dead_block) IN (0, 3)),
    CONSTRAINT authorizations_expired CHECK (dead_why IS DISTINCT FROM 'expired' OR signed)
);
CREATE INDEX authorizations_of_payment ON authorizations (payment);
COMMENT ON TABLE authorizations IS 'Every authorization that was offered under a payment id, also those never taken up. One belongs to one id for ever.';
COMMENT ON COLUMN authorizations.valid_before IS 'Unix seconds of block time.';
COMMENT ON COLUMN authorizations.signed IS 'The payer''s signature over it was checked. Without, valid_before is the gateway''s word, and that it expired proves nothing.';
COMMENT ON COLUMN authorizations.taken_up_at IS 'When a gateway was told to go on with it: it may have been sent.';
COMMENT ON COLUMN authorizations.dead_block IS 'The final block that proves that it can never move money: unused at or past valid_before, or cancelled.';

CREATE TABLE orders (
    id             uuid PRIMARY KEY,
    payment        bigint NOT NULL UNIQUE REFERENCES payments,
    account_id     bigint NOT NULL REFERENCES accounts,
    gateway        text COLLATE "C" NOT NULL,
    payer          text COLLATE "C" NOT NULL,
    network        text COLLATE "C" NOT NULL,
    asset          text COLLATE "C" NOT NULL,
    amount         numeric(38,0) NOT NULL CHECK (amount > 0),
    pay_to         text COLLATE "C" NOT NULL,
    memo           text COLLATE "C" CHECK (octet_length(memo) BETWEEN 1 AND 128),
    description    text CHECK (octet_length(description) <= 4096),
    state          text NOT NULL CHECK (state IN ('created','paying','paid','failed','expired','cancelled')),
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz CHECK (expires_at > created_at),
    changed_at     timestamptz NOT NULL,
    receipt_hash   bytea NOT NULL UNIQUE CHECK (length(receipt_hash) = 32),
    receipt_number integer NOT NULL DEFAULT 1 CHECK (receipt_number >= 1)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX orders_memo ON orders (network, pay_to, memo) WHERE memo IS NOT NULL;
CREATE INDEX orders_expiry ON orders (expires_at) WHERE state IN ('created','paying');
CREATE INDEX orders_by_time ON orders (created_at, id);
COMMENT ON TABLE orders IS 'What was asked for, once for each payment. A failed attempt never moves it; only expiry, cancel or the gateway''s refusal does.';
COMMENT ON COLUMN orders.receipt_hash IS 'SHA-256 of the receipt''s token, which is derived by a key of this database and is stored nowhere.';
COMMENT ON COLUMN orders.receipt_number IS 'Goes into the token: raised, the old one is revoked.';

CREATE TABLE transfers (
    id           uuid PRIMARY KEY,
    account_id   bigint NOT NULL REFERENCES accounts,
    network      text COLLATE "C" NOT NULL CHECK (octet_length(network) BETWEEN 1 AND 128),
    tx_hash      text COLLATE "C" NOT NULL CHECK (octet_length(tx_hash) BETWEEN 1 AND 256),
    position     integer NOT NULL CHECK (position >= 0),
    asset        text COLLATE "C" NOT NULL CHECK (octet_length(asset) BETWEEN 1 AND 128),
    sender       text COLLATE "C" NOT NULL CHECK (octet_length(sender) BETWEEN 1 AND 256),
    recipient    text COLLATE "C" NOT NULL CHECK (octet_length(recipient) BETWEEN 1 AND 256),
    amount       numeric(38,0) NOT NULL CHECK (amount > 0),
    nonce        text COLLATE "C" CHECK (octet_length(nonce) BETWEEN 1 AND 128),
    memo         text COLLATE "C" CHECK (octet_length(memo) BETWEEN 1 AND 128),
    known_by     text NOT NULL CHECK (known_by IN ('gateway','reconcile')),
    seen_at      timestamptz NOT NULL,

    order_id     uuid REFERENCES orders,
    class        text NOT NULL CHECK (class IN ('applied','late','duplicate','under','unmatched','failed_call','given_back')),
    over         numeric(38,0) NOT NULL DEFAULT 0 CHECK (over >= 0 AND over < amount),
    block        bigint,
    block_hash   text COLLATE "C",
    final        boolean NOT NULL DEFAULT false,
    reverted_at  timestamptz,
    asked_at     timestamptz,
    changed_at   timestamptz NOT NULL,

    CONSTRAINT transfers_once UNIQUE (network, tx_hash, position),
    CONSTRAINT transfers_over CHECK (over = 0 OR class = 'applied'),
    CONSTRAINT transfers_order CHECK (order_id IS NOT NULL OR class IN ('unmatched','given_back')),
    CONSTRAINT transfers_matched CHECK (order_id IS NULL OR class <> 'unmatched'),
    CONSTRAINT transfers_reverted CHECK (reverted_at IS NULL OR NOT final)
) WITH (fillfactor = 85);
CREATE INDEX transfers_of_order ON transfers (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX transfers_not_final ON transfers (network, COALESCE(asked_at, seen_at)) WHERE NOT final;
CREATE INDEX transfers_unmatched ON transfers (seen_at, id) WHERE class = 'unmatched' AND reverted_at IS NULL;
CREATE INDEX transfers_by_time ON transfers (seen_at, id);
COMMENT ON TABLE transfers IS 'Incoming movements on the rails, each classified once, in the transaction that holds its payment.';
COMMENT ON COLUMN transfers.position IS 'Of its log within the receipt of its transaction: a block-wide index changes when a reorganised transaction is mined again.';
COMMENT ON COLUMN transfers.over IS 'What it brought above what the order asks: owed back.';
COMMENT ON COLUMN transfers.reverted_at IS 'Reorganised away since then. The same one coming back is classified again in its own row.';
COMMENT ON COLUMN transfers.asked_at IS 'When the rail was last asked whether it is still there.';

CREATE TABLE refunds (
    id           uuid PRIMARY KEY,
    transfer_id  uuid NOT NULL UNIQUE REFERENCES transfers,
    account_id   bigint NOT NULL REFERENCES accounts,
    gateway      text COLLATE "C",
    network      text COLLATE "C" NOT NULL,
    asset        text COLLATE "C" NOT NULL,
    payer        text COLLATE "C" NOT NULL,
    amount       numeric(38,0) NOT NULL CHECK (amount >= 0),
    reserved     numeric(38,0) NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    paid         numeric(38,0) NOT NULL DEFAULT 0 CHECK (paid >= 0),
    written_off  numeric(38,0) NOT NULL DEFAULT 0 CHECK (written_off >= 0),
    state        text NOT NULL CHECK (state IN ('owed','approved','batched','sending','sent','confirmed','unknown','returned','held','written_off','void')),
    reason       text NOT NULL CHECK (reason IN ('late','duplicate','over','failed_call','given_back')),
    opened_at    timestamptz NOT NULL,
    changed_at   timestamptz NOT NULL,
    version      bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    CONSTRAINT refunds_never_over CHECK (reserved + paid + written_off <= amount),
    CONSTRAINT refunds_void CHECK ((state = 'void') = (amount = 0)),
    CONSTRAINT refunds_reserved CHECK (reserved = 0 OR state IN ('approved','batched','sending','sent','unknown')),
    CONSTRAINT refunds_closed CHECK (state NOT IN ('confirmed','written_off') OR paid + written_off = amount)
) WITH (fillfactor = 85);
CREATE INDEX refunds_open ON refunds (opened_at, id) WHERE state NOT IN ('confirmed','written_off','void');
CREATE INDEX refunds_by_time ON refunds (opened_at, id);
COMMENT ON TABLE refunds IS 'Refunds owed: money that came in and must go back, once for each transfer, one ledger for all rails.';
COMMENT ON COLUMN refunds.amount IS 'What is owed back in all; it changes with the class of the transfer, never above it.';
COMMENT ON COLUMN refunds.reserved IS 'Under way in a payout that is not confirmed; kept while nobody knows whether it arrived.';

CREATE TABLE payment_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    payment     bigint REFERENCES payments,
    transfer_id uuid REFERENCES transfers,
    refund_id   uuid REFERENCES refunds,
    kind        text NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
    alert       boolean NOT NULL DEFAULT false,
    person_id   bigint REFERENCES people,
    data        text NOT NULL,
    CONSTRAINT payment_events_subject CHECK (num_nonnulls(payment, transfer_id, refund_id) >= 1)
);
CREATE INDEX payment_events_of_payment ON payment_events (payment, id) WHERE payment IS NOT NULL;
CREATE INDEX payment_events_of_transfer ON payment_events (transfer_id, id) WHERE transfer_id IS NOT NULL;
CREATE INDEX payment_events_of_refund ON payment_events (refund_id, id) WHERE refund_id IS NOT NULL;
CREATE INDEX payment_events_alerts ON payment_events (id) WHERE alert;
COMMENT ON TABLE payment_events IS 'Everything that happened to payments, orders, transfers and refunds owed, in the transaction that changed them. Append-only.';
COMMENT ON COLUMN payment_events.data IS 'JSON: what changed, and what caused it. What a late writer brought is kept here too.';
COMMENT ON COLUMN payment_events.alert IS 'A person should look: somebody used an id, a quote or an authorization that is not theirs.';

CREATE TABLE postings (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry       uuid NOT NULL,
    at          timestamptz NOT NULL,
    account     text NOT NULL CHECK (account IN ('incoming','revenue','held','unmatched','refund_owed','refund_in_transit','refund_wallet','write_off')),
    network     text COLLATE "C" NOT NULL,
    asset       text COLLATE "C" NOT NULL,
    amount      numeric(38,0) NOT NULL CHECK (amount <> 0),
    transfer_id uuid NOT NULL REFERENCES transfers,
    refund_id   uuid REFERENCES refunds
);
CREATE INDEX postings_entry ON postings (entry);
CREATE INDEX postings_of_transfer ON postings (transfer_id, id);
COMMENT ON TABLE postings IS 'The double entries: what arrived (incoming, positive) and where it stands (negative). Each entry adds up to nothing. Append-only: what was wrong is posted back.';

CREATE TABLE paid_reads (
    id          uuid PRIMARY KEY,
    account_id  bigint NOT NULL REFERENCES accounts,
    gateway     text COLLATE "C" NOT NULL,
    payer       text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    asked_at    timestamptz NOT NULL,
    outcome     text CHECK (outcome IN ('taken','failed')),
    payment     bigint REFERENCES payments,
    finished_at timestamptz,
    response_status  integer,
    response_headers text,
    response_body    bytea CHECK (length(response_body) <= 262144),
    CONSTRAINT paid_reads_finished CHECK ((outcome IS NULL) = (finished_at IS NULL)),
    CONSTRAINT paid_reads_answer CHECK ((response_status IS NOT NULL) <= (outcome IS NOT DISTINCT FROM 'taken'))
);
CREATE INDEX paid_reads_latest ON paid_reads (account_id, gateway, payer, fingerprint, asked_at DESC) WHERE outcome = 'taken';
CREATE INDEX paid_reads_age ON paid_reads (asked_at);
COMMENT ON TABLE paid_reads IS 'Reads that may be answered again without a charge, for two minutes. Pruned soon after: nothing hangs on them.';

CREATE TABLE rail_recipients (
    network    text COLLATE "C" NOT NULL,
    asset      text COLLATE "C" NOT NULL,
    recipient  text COLLATE "C" NOT NULL,
    account_id bigint NOT NULL REFERENCES accounts,
    PRIMARY KEY (network, asset, recipient)
);
COMMENT ON TABLE rail_recipients IS 'Addresses that orders ask to be paid to: what arrives there is read from the rail. The account is the first that asked.';

CREATE TABLE rail_cursors (
    network    text COLLATE "C" NOT NULL,
    asset      text COLLATE "C" NOT NULL,
    next_block bigint NOT NULL DEFAULT -1,
    read_at    timestamptz,
    read_until timestamptz,
    problem    text CHECK (octet_length(problem) <= 1024),
    PRIMARY KEY (network, asset)
);
COMMENT ON TABLE rail_cursors IS 'How far each rail was read, final blocks only.';
COMMENT ON COLUMN rail_cursors.next_block IS 'Where reading goes on; -1 before the first time.';
COMMENT ON COLUMN rail_cursors.read_until IS 'A server reads just now; if it dies, another may from then on.';
COMMENT ON COLUMN rail_cursors.problem IS 'Why the last reading failed; NULL when it did not.';

-- Guards -------------------------------------------------------------------------------

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['payment_events','postings'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_append_only', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''the record is append-only'')', t || '_no_truncate', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['payments','authorizations','orders','transfers','refunds'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_kept', t);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(''it is kept for ever'')', t || '_no_truncate', t);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE TRIGGER payments_fixed
    BEFORE UPDATE OF id, account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, quote, order_id, first_at ON payments
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was claimed never changes');
CREATE TRIGGER payments_legal_move BEFORE UPDATE OF state ON payments
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND NOT payment_move(OLD.state, NEW.state))
    EXECUTE FUNCTION refuse_change('a payment has no such move');
CREATE TRIGGER payments_fence BEFORE UPDATE OF fence, claimed_at, state ON payments
    FOR EACH ROW WHEN (NEW.fence < OLD.fence OR NEW.fence = OLD.fence AND (NEW.claimed_at <> OLD.claimed_at OR OLD.state = 'unknown' AND NEW.state = 'in_flight'))
    EXECUTE FUNCTION refuse_change('every take-over raises the fence, and nothing lowers it');
CREATE TRIGGER payments_frozen BEFORE UPDATE OF response_status, response_headers, response_body, response_size, response_digest ON payments
    FOR EACH ROW WHEN (OLD.response_digest IS NOT NULL AND (NEW.response_digest IS DISTINCT FROM OLD.response_digest
        OR NEW.response_status IS DISTINCT FROM OLD.response_status
        OR NEW.state <> 'pruned' AND (NEW.response_headers IS DISTINCT FROM OLD.response_headers OR NEW.response_body IS DISTINCT FROM OLD.response_body)))
    EXECUTE FUNCTION refuse_change('a frozen answer never changes');
CREATE TRIGGER authorizations_fixed
    BEFORE UPDATE OF id, payment, network, asset, payer, nonce, offered_at ON authorizations
    FOR EACH ROW EXECUTE FUNCTION refuse_change('an authorization belongs to one payment for ever');
CREATE TRIGGER authorizations_signed BEFORE UPDATE OF valid_before, signed ON authorizations
    FOR EACH ROW WHEN (OLD.signed AND (NEW.valid_before <> OLD.valid_before OR NOT NEW.signed))
    EXECUTE FUNCTION refuse_change('what was signed never changes');
CREATE TRIGGER authorizations_dead_stay BEFORE UPDATE OF dead_why, dead_at, dead_block ON authorizations
    FOR EACH ROW WHEN (OLD.dead_why IS NOT NULL)
    EXECUTE FUNCTION refuse_change('the dead stay dead');
CREATE TRIGGER orders_fixed
    BEFORE UPDATE OF id, payment, account_id, gateway, payer, network, asset, amount, pay_to, memo, description, created_at ON orders
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what was asked for never changes');
CREATE TRIGGER orders_legal_move BEFORE UPDATE OF state ON orders
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND NOT order_move(OLD.state, NEW.state))
    EXECUTE FUNCTION refuse_change('an order has no such move');
CREATE TRIGGER transfers_fixed
    BEFORE UPDATE OF id, account_id, network, tx_hash, position, asset, sender, recipient, amount, nonce, memo, known_by, seen_at ON transfers
    FOR EACH ROW EXECUTE FUNCTION refuse_change('what moved never changes');
CREATE TRIGGER transfers_final_stay BEFORE UPDATE OF final ON transfers
    FOR EACH ROW WHEN (OLD.final AND NOT NEW.final)
    EXECUTE FUNCTION refuse_change('final is final');
CREATE TRIGGER transfers_order_stays BEFORE UPDATE OF order_id ON transfers
    FOR EACH ROW WHEN (OLD.order_id IS NOT NULL AND NEW.order_id IS DISTINCT FROM OLD.order_id)
    EXECUTE FUNCTION refuse_change('a transfer is matched to one order');
CREATE TRIGGER refunds_fixed
    BEFORE UPDATE OF id, transfer_id, account_id, gateway, network, asset, payer, opened_at ON refunds
    FOR EACH ROW EXECUTE FUNCTION refuse_change('who is owed never changes');
CREATE TRIGGER refunds_steps_forward BEFORE UPDATE ON refunds
    FOR EACH ROW WHEN (NEW.version <> OLD.version + 1)
    EXECUTE FUNCTION refuse_change('every change raises the version by one');

-- What is owed for a transfer is what its class says: all of it, what is over, or
-- nothing. Checked when the transaction ends, since the two rows change one after the
-- other.
-- +goose StatementBegin
CREATE FUNCTION transfer_owes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    t transfers;
    owed numeric;
    want numeric;
BEGIN
    SELECT * INTO t FROM transfers WHERE id = CASE TG_TABLE_NAME WHEN 'transfers' THEN (to_jsonb(NEW)->>'id')::uuid ELSE (to_jsonb(NEW)->>'transfer_id')::uuid END;
    SELECT COALESCE(sum(amount), 0) INTO owed FROM refunds WHERE transfer_id = t.id;
    want := CASE WHEN t.reverted_at IS NOT NULL THEN 0
        WHEN t.class IN ('late','duplicate','failed_call','given_back') THEN t.amount
        WHEN t.class = 'applied' THEN t.over
        ELSE 0 END;
    IF owed <> want THEN
        RAISE EXCEPTION 'transfer % is % and owes %, not %', t.id, t.class, want, owed USING ERRCODE = 'check_violation', CONSTRAINT = 'transfers_owe_their_class';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER transfers_owe_their_class AFTER INSERT OR UPDATE ON transfers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION transfer_owes();
CREATE CONSTRAINT TRIGGER refunds_owe_their_class AFTER INSERT OR UPDATE OF amount ON refunds
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION transfer_owes();

-- An order is paid exactly when what was applied to it is what it asks.
-- +goose StatementBegin
CREATE FUNCTION order_paid_exactly() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    o orders;
    got numeric;
BEGIN
    SELECT * INTO o FROM orders WHERE id = CASE TG_TABLE_NAME WHEN 'orders' THEN (to_jsonb(NEW)->>'id')::uuid ELSE (to_jsonb(NEW)->>'order_id')::uuid END;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT COALESCE(sum(amount - over), 0) INTO got FROM transfers WHERE order_id = o.id AND class = 'applied' AND reverted_at IS NULL;
    IF got <> (CASE WHEN o.state = 'paid' THEN o.amount ELSE 0 END) THEN
        RAISE EXCEPTION 'order % is %, asks % and has %', o.id, o.state, o.amount, got USING ERRCODE = 'check_violation', CONSTRAINT = 'orders_paid_exactly';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER orders_paid_exactly AFTER INSERT OR UPDATE OF state ON orders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION order_paid_exactly();
CREATE CONSTRAINT TRIGGER transfers_pay_exactly AFTER INSERT OR UPDATE ON transfers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.order_id IS NOT NULL) EXECUTE FUNCTION order_paid_exactly();

-- +goose StatementBegin
CREATE FUNCTION entry_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM postings WHERE entry = NEW.entry GROUP BY network, asset HAVING sum(amount) <> 0) THEN
        RAISE EXCEPTION 'entry % does not add up to nothing', NEW.entry USING ERRCODE = 'check_violation', CONSTRAINT = 'postings_balance';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER postings_balance AFTER INSERT ON postings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION entry_balances();

-- The equation, for each asset of each rail: what was received, less what was taken back
-- by reorganisations, is what was applied, still owed, given back, written off, held or
-- unmatched; and the double entries say the same.
CREATE VIEW money_equation AS
WITH moved AS (
    SELECT network, asset,
        sum(amount) AS received,
        COALESCE(sum(amount) FILTER (WHERE reverted_at IS NOT NULL), 0) AS reverted,
        COALESCE(sum(amount - over) FILTER (WHERE class = 'applied' AND reverted_at IS NULL), 0) AS applied,
        COALESCE(sum(amount) FILTER (WHERE class = 'under' AND reverted_at IS NULL), 0) AS held,
        COALESCE(sum(amount) FILTER (WHERE class = 'unmatched' AND reverted_at IS NULL), 0) AS unmatched
    FROM transfers GROUP BY network, asset
), owed AS (
    SELECT network, asset, sum(amount - paid - written_off) AS owed, sum(paid) AS refunded, sum(written_off) AS written_off
    FROM refunds GROUP BY network, asset
), posted AS (
    SELECT network, asset,
        COALESCE(sum(amount) FILTER (WHERE account = 'incoming'), 0) AS incoming,
        -COALESCE(sum(amount) FILTER (WHERE account = 'revenue'), 0) AS revenue,
        -COALESCE(sum(amount) FILTER (WHERE account = 'held'), 0) AS held,
        -COALESCE(sum(amount) FILTER (WHERE account = 'unmatched'), 0) AS unmatched,
        -COALESCE(sum(amount) FILTER (WHERE account IN ('refund_owed','refund_in_transit')), 0) AS owed,
        -COALESCE(sum(amount) FILTER (WHERE account = 'refund_wallet'), 0) AS refunded,
        -COALESCE(sum(amount) FILTER (WHERE account = 'write_off'), 0) AS written_off
    FROM postings GROUP BY network, asset
)
SELECT m.network, m.asset, m.received, m.reverted, m.applied, COALESCE(o.owed, 0) AS owed, COALESCE(o.refunded, 0) AS refunded,
    COALESCE(o.written_off, 0) AS written_off, m.held, m.unmatched,
    m.received - m.reverted - m.applied - COALESCE(o.owed + o.refunded + o.written_off, 0) - m.held - m.unmatched AS difference,
    (COALESCE(p.incoming, 0), COALESCE(p.revenue, 0), COALESCE(p.held, 0), COALESCE(p.unmatched, 0), COALESCE(p.owed, 0), COALESCE(p.refunded, 0), COALESCE(p.written_off, 0))
        = (m.received - m.reverted, m.applied, m.held, m.unmatched, COALESCE(o.owed, 0), COALESCE(o.refunded, 0), COALESCE(o.written_off, 0)) AS posted
FROM moved m LEFT JOIN owed o USING (network, asset) LEFT JOIN posted p USING (network, asset);
COMMENT ON VIEW money_equation IS 'A row a rail and asset; difference is 0 and posted is true, or something is wrong.';
