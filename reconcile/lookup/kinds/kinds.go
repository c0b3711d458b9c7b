// Package kinds knows every kind of look-up there is, and reads the policy's lookup block
// by it. A new kind is a package and a line here.
package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/httpapi"
	"quittance/reconcile/lookup/inbox"
	"quittance/reconcile/lookup/onchain"
	"quittance/reconcile/lookup/orders"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/sqlquery"
	"quittance/reconcile/lookup/stripe"
	"quittance/reconcile/lookup/worker"
	"quittance/reconcile/policy/read"
)

var adapters = map[string]block.Adapter{
	httpapi.Kind:        httpapi.Read,
	sqlquery.Kind:       sqlquery.Read,
	stripe.Kind:         stripe.Read,
	worker.Kind:         worker.Read,
	onchain.KindEIP3009: onchain.ReadEIP3009,
	onchain.KindMemo:    onchain.ReadMemo,
	inbox.Kind:          inbox.Read,
	orders.Kind:         orders.Read,
}

// Names are the kinds, sorted.
func Names() []string { return slices.Sorted(maps.Keys(adapters)) }

// Limits without a declaration: nobody's API minds sixteen questions at once, and few say
// how many a second are too many.
const defaultAtOnce = 16

// Read reads a lookup block. What is wrong becomes a mistake. In a stored policy the
// look-up has no source.
func Read(r *read.Reader, n ast.Node, path string, tool rules.Tool, connections map[string]block.Connection) *lookup.Lookup {
	if n == nil {
		return nil
	}
	all := r.Fields(n, path, slices.Concat(Names(), block.Shared)...)
	if all == nil {
		return nil
	}
	kind := oneKind(r, n, path, all)
	if kind == "" {
		return nil
	}
	b := &block.Block{Reader: r, Node: n, Path: path, Kind: all[kind], Tool: tool, Connections: connections, Fields: map[string]ast.Node{}}
	for _, name := range block.Shared {
		if all[name] != nil {
			b.Fields[name] = all[name]
		}
	}
	l := terms(b, kind)
	source := adapters[kind](b)
	if r.Stored || source == nil {
		return l
	}
	l.Source = source
	if b.Fields["samples"] != nil {
		samples(b, l)
	}
	return l
}

func oneKind(r *read.Reader, n ast.Node, path string, all map[string]ast.Node) (kind string) {
	for _, name := range Names() {
		switch {
		case all[name] == nil:
		case kind != "":
			r.Mistake(all[name], read.Join(path, name), "a look-up has one kind, and this one has %s already", kind)
			return ""
		default:
			kind = name
		}
	}
	if kind == "" {
		r.Mistake(n, path, "says not how to look: one of %s is missing", strings.Join(Names(), ", "))
	}
	return kind
}

// terms reads what is the same for all kinds.
func terms(b *block.Block, kind string) *lookup.Lookup {
	optional := func(name string) *time.Duration {
		n, at := b.At(name)
		if n == nil {
			return nil
		}
		d := b.Duration(n, at, 0, 0)
		return &d
	}
	b.AbsenceIsProof = b.Boolean(b.At("absence_is_proof"))
	b.AllowPrivate = b.Boolean(b.At("allow_private"))
	world, _ := b.Text(b.At("world"))
	limit := func(name string, otherwise int) int {
		n, at := b.At(name)
		return b.Whole(n, at, otherwise, 1, 10_000)
	}
	l := &lookup.Lookup{Kind: kind, AtOnce: limit("at_once", defaultAtOnce), PerSecond: limit("per_second", 0)}
	l.Terms = lookup.Terms{
		AbsenceIsProof: b.AbsenceIsProof, VisibleAfter: optional("visible_after"), KeptFor: optional("kept_for"), World: world,
		Digest: digest(b, kind),
	}
	return l
}

// digest names the source as it is written: comments and what does not change what is
// asked or understood count too, which costs at most one more read.
func digest(b *block.Block, kind string) string {
	h := sha256.New()
	h.Write([]byte(kind + "\n" + b.Node.String()))
	return hex.EncodeToString(h.Sum(nil)[:16])
}
