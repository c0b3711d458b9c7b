package effects

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"slices"
	"time"

	"golang.org/x/text/unicode/norm"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/inbox"
	"quittance/ledger/lookups"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/redact"
)

// eventful is a look-up in the events that a downstream sent us.
type eventful interface {
	lookup.Told
	Inbox() string
	Verify(h http.Header, body []byte, now time.Time) (id string, err error)
}

const (
	// EventLimit is the most that an event may hold, in bytes.
	EventLimit = 1 << 20
	// wordsLimit is how many different texts and numbers may stand in an event.
	wordsLimit = 20_000
	// eventsRead and eventsSize bound what one look reads of the events that hold a key of its
	// effect: more are no answer to a question about one call.
	eventsRead = 500
	eventsSize = 8 << 20
	// unmatchedAfter is how long an event may wait for a key of ours to become known: the
	// reference of a call is recorded when its finish comes.
	unmatchedAfter = 24 * time.Hour
	// examinedAtOnce is how many events one transaction holds against our effects.
	examinedAtOnce = 200
	// watchedAtMost bounds the open effects that events are held against.
	watchedAtMost = 50_000
	// namedAtMost bounds the claims that one event is held against.
	namedAtMost = 20_000
)

// Received is what became of an event.
type Received struct {
	EventID string // the sender's, or made of the event's digest
	Repeats int64  // how often it was sent before; it is stored once
}

// inboxes are the policy's inboxes: each has one look-up or more.
func (e *Engine) inboxes() map[string][]eventful {
	found := map[string][]eventful{}
	for _, t := range e.Policy().Tools() {
		if l := t.Lookup(); l != nil {
			if s, ok := l.Source.(eventful); ok {
				found[s.Inbox()] = append(found[s.Inbox()], s)
			}
		}
	}
	return found
}

// inboxTools are the tools that are looked up in an inbox.
func (e *Engine) inboxTools(name string) (tools []string) {
	for _, t := range e.Policy().Tools() {
		if l := t.Lookup(); l != nil {
			if s, ok := l.Source.(eventful); ok && s.Inbox() == name {
				tools = append(tools, t.Name)
			}
		}
	}
	return tools
}

// Receive stores an event that was sent to an inbox, as it came but for its secrets, durably
// when it returns. Refused with not_found, with unsigned where none of the inbox's secrets
// signed it just now, and with invalid where it is not JSON.
func (e *Engine) Receive(ctx context.Context, name string, h http.Header, body []byte) (Received, error) {
	sources := e.inboxes()[name]
	if len(sources) == 0 {
		return Received{}, &Refusal{Code: CodeNotFound, Detail: "There is no such inbox."}
	}
	var id string
	signed := slices.ContainsFunc(sources, func(s eventful) (ok bool) {
		var err error
		id, err = s.Verify(h, body, time.Now())
		return err == nil
	})
	if !signed {
		return Received{}, &Refusal{Code: CodeUnsigned, Detail: "No secret of this inbox signed this event, or not within the last five minutes."}
	}
	value, safe, err := e.readEvent(body)
	if err != nil {
		return Received{}, badJSON("", err)
	}
	digest := lookup.Digest(body)
	if id == "" {
		id, _ = value.Lookup("id").Text()
	}
	if limited("", id, 512) != nil {
		id = "sha256:" + digest
	}
	words := wordsOf(textsIn(value))
	if len(words) > wordsLimit {
		return Received{}, invalid("", "It holds more than %d different texts and numbers.", wordsLimit)
	}
	repeats, err := inbox.Add(ctx, e.db, inbox.Event{Inbox: name, EventID: id, Digest: digest, Body: string(safe), Words: words})
	if err != nil {
		return Received{}, err
	}
	if repeats == 0 {
		select {
		case e.arrived <- struct{}{}:
		default:
		}
	}
	return Received{EventID: id, Repeats: repeats}, nil
}

// readEvent takes the secrets out of an event. What a look could not read is refused: one
// such event would hide all others from it.
func (e *Engine) readEvent(body []byte) (value *canon.Value, safe []byte, err error) {
	if _, err := canon.Parse(body); err != nil {
		return nil, nil, err // with the place as the sender sees it
	}
	if safe, _, err = e.redact.JSON(body, nil, nil); err != nil {
		return nil, nil, err
	}
	if _, err := canon.Parse(slices.Concat([]byte(`{"events":[`), safe, []byte(`]}`))); err != nil {
		return nil, nil, err
	}
	value, err = canon.Parse(safe)
	return value, safe, err
}

// textsIn are the texts and numbers that stand in an event, each once; none longer than a
// key of ours can be.
func textsIn(v *canon.Value) (list []string) {
	seen := map[string]bool{}
	var walk func(v *canon.Value)
	walk = func(v *canon.Value) {
		text, ok := v.Text()
		if !ok {
			text, ok = v.Number()
		}
		if text = norm.NFC.String(text); ok && text != "" && len(text) <= 1024 && !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
		for _, child := range v.Members() {
			walk(child)
		}
		for _, child := range v.Items() {
			walk(child)
		}
	}
	walk(v)
	return list
}

// wordsOf are hashes of texts, by which events are found.
func wordsOf(texts []string) []int64 {
	words := make([]int64, 0, len(texts))
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		words = append(words, int64(binary.BigEndian.Uint64(sum[:])))
	}
	return words
}

// wordsFor are the words by which an event about a call is known: its business key, the
// vendor's key and the reference, each also as it reads where it passed for a secret.
func (e *Engine) wordsFor(keys ...string) []int64 {
	var texts []string
	for _, key := range keys {
		if key != "" {
			texts = append(texts, e.redact.Forms(norm.NFC.String(key))...)
		}
	}
	return wordsOf(texts)
}

// seeEvents looks among the events in which a key of the effect stands. The keys themselves
// are shown to the rules also where they passed for secrets.
func (e *Engine) seeEvents(ctx context.Context, l *lookup.Lookup, in eventful, q lookup.Question) (lookup.Seen, error) {
	keys := []string{q.BusinessKey, q.VendorKey, q.Reference}
	list, more, err := inbox.With(ctx, e.db, in.Inbox(), e.wordsFor(keys...), eventsRead, eventsSize)
	if err != nil {
		return lookup.Seen{}, err
	}
	var unmatched []int64
	bodies := make([][]byte, 0, len(list))
	for _, ev := range list {
		bodies = append(bodies, e.redact.Restore([]byte(ev.Body), keys...))
		if ev.MatchedAt.IsZero() {
			unmatched = append(unmatched, ev.ID)
		}
	}
	if len(unmatched) > 0 {
		err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return inbox.Matched(ctx, tx, unmatched) })
		if err != nil {
			return lookup.Seen{}, err
		}
	}
	seen := l.See(ctx, e.redact, q, bodies)
	seen.Complete = seen.Complete && !more
	return seen, nil
}

// arrivals holds the events that came against our effects: a look at those whose keys stand
// in them is due now.
func (e *Engine) arrivals(ctx context.Context) error {
	boxes := names(e.inboxes())
	if len(boxes) == 0 {
		return nil
	}
	for {
		n, due := 0, int64(0)
		err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
			n, due, err = e.examine(ctx, tx, boxes)
			return err
		})
		if err != nil {
			return err
		}
		e.lookSoon(due > 0)
		if n < examinedAtOnce {
			return nil
		}
	}
}

func (e *Engine) examine(ctx context.Context, tx *ledger.Tx, boxes []string) (n int, due int64, err error) {
	events, err := inbox.Due(ctx, tx, boxes, examinedAtOnce)
	if err != nil || len(events) == 0 {
		return 0, 0, err
	}
	type kind struct {
		inbox  string
		hidden bool // secrets were taken out: keys of ours may be among them
	}
	watched := map[kind]map[int64][]string{} // by word, the effects
	accounts, err := store.AccountIDs(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	for _, ev := range events {
		tools := e.inboxTools(ev.Inbox)
		k := kind{ev.Inbox, redact.Redacted(ev.Body)}
		if watched[k] == nil {
			if watched[k], err = e.watched(ctx, tx, tools, k.hidden); err != nil {
				return 0, 0, err
			}
		}
		value, err := canon.Parse([]byte(ev.Body))
		if err != nil {
			return 0, 0, err
		}
		texts := textsIn(value)
		about, err := named(ctx, tx, accounts, tools, texts)
		if err != nil {
			return 0, 0, err
		}
		for _, word := range ev.Words {
			about = append(about, watched[k][word]...)
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return 0, 0, err
		}
		more, busy, err := lookups.Arrived(ctx, tx, about)
		if err != nil {
			return 0, 0, err
		}
		due += more
		matched := len(about) > 0 || slices.ContainsFunc(texts, canon.IsVendorKey)
		var again ledger.Time
		switch late := ev.ReceivedAt.Add(unmatchedAfter); {
		case busy:
			again = ledger.At(now.Add(askEvery))
		case !matched && ev.MatchedAt.IsZero() && now.Before(late):
			again = ledger.At(late)
		}
		if err := inbox.Examined(ctx, tx, ev.ID, matched, again); err != nil {
			return 0, 0, err
		}
	}
	return len(events), due, nil
}

// watched are the effects of tools about which somebody still wants to know, by the words of
// their keys; hidden: also as these read where they passed for secrets, which costs ten times
// as much. They are read after the events: whatever is interrupted later is looked at then.
func (e *Engine) watched(ctx context.Context, tx *ledger.Tx, tools []string, hidden bool) (map[int64][]string, error) {
	list, err := lookups.Watching(ctx, tx, tools, watchedAtMost)
	if err != nil {
		return nil, err
	}
	by := map[int64][]string{}
	for _, x := range list {
		vendorKey := canon.VendorKey(accountText(x.Account), x.RunName, canon.Key(x.Key).String())
		words := wordsOf([]string{norm.NFC.String(x.BusinessKey), vendorKey, norm.NFC.String(x.Reference)})
		if hidden {
			words = e.wordsFor(x.BusinessKey, vendorKey, x.Reference)
		}
		for _, word := range words {
			by[word] = append(by[word], x.Effect)
		}
	}
	return by, nil
}

// named are effects, whatever became of them, whose business key or reference is one of the
// texts. Of an event that speaks of very much only a part is looked at: the effects that are
// open are found by [Engine.watched].
func named(ctx context.Context, tx *ledger.Tx, accounts []int64, tools, texts []string) ([]string, error) {
	texts = texts[:min(len(texts), namedAtMost/max(len(accounts)*len(tools), 1))]
	var claims [][]byte
	for _, account := range accounts {
		for _, tool := range tools {
			for _, text := range texts {
				key := canon.ClaimKey(accountText(account), tool, text)
				claims = append(claims, key[:])
			}
		}
	}
	return lookups.Named(ctx, tx, tools, claims, texts, eventsRead)
}
