// Package seal holds the statements about the sealed record: the tables it chains, the
// blocks, what was found damaged, and what `quittance verify` reads.
package seal

import (
	"fmt"
	"slices"
	"strings"
)

// Stream is an append-only table whose rows are sealed. Its rows are numbered by an
// identity column that has a unique index.
type Stream struct {
	Table string
	// id is the number, sum the digest that a row should have, in SQL; digest the one
	// that it carries, or the same again where a row carries none.
	id, sum, digest string
	// about names a row's subject for people, in SQL.
	about string
}

// Streams are all tables that are sealed: the log, what was seen and decided, finishes
// without an intent, what happened to payments and where their money stands, and the audit
// trail. What is not here is derived from these (attempts
// stand in the events of their begins) or proves nothing (refusals, checkpoints).
//
// A table is added here and nowhere else. Its columns are named one by one, so that a
// later migration that adds one leaves the digests of old rows as they are; columns that
// a sealed table gets later are not covered until they are named in a stream of their own.
var Streams = []Stream{
	{
		Table: "effect_events", id: "id", digest: "digest",
		// Equal to Event.Sum in ledger/effects.
		sum: digestOf(
			number("run_id"), part("COALESCE(effect_id::text, '')"), number("COALESCE(version, 0)"), part("kind"), number(micros("at")), part("data")),
		about: "COALESCE('effect ' || effect_id, 'run number ' || run_id) || ', ' || kind",
	},
	plain("evidence", "seq", "'effect ' || effect_id || ', ' || source",
		"seq", "id", "effect_id", micros("at"), "source", "person_id", "fence", "verdict", "reference", "seen", "data"),
	plain("decisions", "seq", "'effect ' || effect_id || ', ' || act",
		"seq", "id", "effect_id", "decision_id", micros("at"), "act", "verdict", "decided_by", "person_id", "note", "reference", "result",
		"same_as", "array_to_json(not_ours)", "evidence_id", "version", "answer", "about"),
	plain("kept_finishes", "id", "'run number ' || run_id",
		"id", "run_id", "encode(key, 'hex')", micros("at"), "tool", "outcome", "reference", "body"),
	plain("payment_events", "id", "COALESCE('payment number ' || payment, 'transfer ' || transfer_id, 'refund ' || refund_id) || ', ' || kind",
		"id", micros("at"), "payment", "transfer_id", "refund_id", "kind", "alert", "person_id", "data"),
	plain("postings", "id", "'transfer ' || transfer_id || ', ' || account",
		"id", "entry", micros("at"), "account", "network", "asset", "amount", "transfer_id", "refund_id"),
	plain("audit", "id", "action || ' ' || subject",
		"id", micros("at"), "person_id", "actor", "via", "action", "outcome", "subject", "before", "after", "note", "request_id"),
}

// Find is the stream of a table.
func Find(table string) (Stream, bool) {
	i := slices.IndexFunc(Streams, func(s Stream) bool { return s.Table == table })
	if i < 0 {
		return Stream{}, false
	}
	return Streams[i], true
}

// plain is a stream of rows that carry no digest of their own.
func plain(table, id, about string, columns ...string) Stream {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = orNull(c)
	}
	sum := digestOf(parts...)
	return Stream{Table: table, id: id, sum: sum, digest: sum, about: about}
}

// micros is a time as the microseconds that PostgreSQL keeps: no zone and no format is in it.
func micros(column string) string {
	return "(extract(epoch FROM " + column + ") * 1000000)::bigint"
}

func digestOf(parts ...string) string { return "sha256(" + strings.Join(parts, " || ") + ")" }

// part is a text behind its length, number one of eight bytes. orNull tells NULL from
// the empty text.
func part(text string) string {
	return fmt.Sprintf("int8send(octet_length(%[1]s)::bigint) || convert_to(%[1]s, 'UTF8')", text)
}

func number(n string) string { return "int8send(8) || int8send(" + n + ")" }

func orNull(column string) string {
	return fmt.Sprintf("COALESCE(%s, int8send(-1))", part("("+column+")::text"))
}
