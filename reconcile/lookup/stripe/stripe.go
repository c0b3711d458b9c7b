// Package stripe is the look-up at Stripe, whose answers we know: a policy names the kind
// of object and how to find it, and writes no expression.
//
// Search is never used: it lags behind a write, by a minute normally and up to an hour in
// an outage. Reading by id and listing show a write at once.
package stripe

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

// Kind is this look-up's name in the policy.
const Kind = "stripe"

const (
	api     = "https://api.stripe.com"
	version = "2025-03-31.basil" // pinned: another version may show other members
)

// objects are the kinds that can be looked up, with their paths.
var objects = map[string]string{
	"payment_intent": "payment_intents", "charge": "charges", "refund": "refunds",
}

// skew is how far before our first attempt a list begins: Stripe's clock is not ours.
const skew = 5 * time.Minute

type source struct {
	base    string
	host    string
	path    string         // "payment_intents"
	id      *read.Template // nil to list
	key     secret.Text
	account string
	world   string
	canary  string
	absence bool
	rules   *rules.Rules
	secrets *secret.Set
	fetcher *fetch.Fetcher
}

// Read reads a stripe look-up.
func Read(b *block.Block) lookup.Source {
	path := b.KindPath(Kind)
	f := b.Own(Kind, "key", "object", "id", "metadata", "account", "url")
	s := &source{secrets: secret.NewSet(), base: api, absence: b.AbsenceIsProof}
	if f != nil && f["key"] == nil {
		b.Mistake(b.Kind, path, "key is missing: a restricted key that may read, as ${env:NAME}")
	}
	s.key = secret.Need(b.Reader, f["key"], path+".key", s.secrets)
	s.world = worldOf(s.key.Reveal())
	s.account, _ = b.Text(f["account"], path+".account")
	object := b.Choice(f["object"], path+".object", "payment_intent", slices.Sorted(maps.Keys(objects))...)
	s.path = objects[object]
	if base, ok := b.Text(f["url"], path+".url"); ok {
		s.base = strings.TrimSuffix(base, "/")
		b.CheckTarget(f["url"], path+".url", base)
	}
	if u, err := url.Parse(s.base); err == nil {
		s.host = u.Host
	}
	if n := f["id"]; n != nil {
		s.id = b.Template(n, path+".id")
		b.CheckTemplate(n, path+".id", s.id)
	}
	metadata, named := b.Text(f["metadata"], path+".metadata")
	if f != nil && (f["id"] == nil) == !named {
		b.Mistake(b.Kind, path, "id or metadata is needed, one of them: what names the object, or the member of its metadata that holds our vendor_key")
	}
	s.defaults(b, metadata)
	s.rules = b.Rules()
	n, at := b.At("canary")
	s.canary, _ = b.Text(n, at)
	if absence, where := b.At("absence_is_proof"); b.AbsenceIsProof && s.canary == "" {
		b.Mistake(absence, where, "needs canary: the id of an object that exists, without which a blind key looks like absence")
	}
	s.fetcher = &fetch.Fetcher{Do: outbound.New(outbound.Options{AllowPrivate: b.AllowPrivate}).Do}
	return s
}

// defaults are the rules that Stripe's documentation gives: its amounts are in the smallest
// unit and its currencies in small letters. Only "canceled"
// can never change back.
func (s *source) defaults(b *block.Block, metadata string) {
	if s.id != nil {
		b.Default("found", "[body].filter(o, o.id == "+expression(s.id)+")")
		b.Default("not_found", `status == 404 && body.error.code == "resource_missing"`)
		if s.path != "refunds" { // which do not say
			b.Default("world_seen", `body.livemode ? "live" : "sandbox"`)
		}
	} else {
		b.Default("found", fmt.Sprintf("body.data.filter(o, o.?metadata[?%q].orValue('') == effect.vendor_key)", metadata))
	}
	b.Default("ours", "true") // found by our own key, or by the id that the call names
	match, final := `same_amount(hit.amount, "minor") && hit.currency == effect.currency.lowerAscii()`, `hit.status == "succeeded"`
	switch s.path {
	case "payment_intents": // a part of it may have been captured; before that nothing was
		match += ` && (hit.status != "succeeded" || same_amount(hit.amount_received, "minor"))`
	case "charges": // an authorization succeeds, and takes nothing yet
		match += ` && (!hit.captured || same_amount(hit.amount_captured, "minor"))`
		final += " && hit.captured"
	}
	b.Default("match", match)
	b.Default("final", final)
	b.Default("never", `hit.status == "canceled"`)
	b.Default("reversed", "hit.?refunded.orValue(false)")
	b.Default("reference", "hit.id")
	b.Default("result", `{"id": hit.id, "status": hit.status}`)
	b.Default("state", "hit.status")
}

// expression is a template as an expression.
func expression(t *read.Template) string {
	var parts []string
	for _, p := range t.Parts {
		path, isArgument := strings.CutPrefix(p.Path, "arguments.")
		switch {
		case p.Path == "":
			parts = append(parts, strconv.Quote(p.Text))
		case isArgument:
			member := "effect.arguments"
			for _, name := range strings.Split(path, ".") {
				member += "[" + strconv.Quote(name) + "]"
			}
			parts = append(parts, "string("+member+")")
		default:
			parts = append(parts, "effect."+p.Path)
		}
	}
	return strings.Join(parts, " + ")
}

// worldOf reads the world off a key: sk_live_, rk_test_.
func worldOf(key string) string {
	switch {
	case strings.Contains(key, "_live_"):
		return "live"
	case strings.Contains(key, "_test_"):
		return "sandbox"
	}
	return ""
}
