// Package onchain is the look-up on an Ethereum-like chain: of an authorization (EIP-3009)
// by its nonce, or of a transfer by the memo that it carries or by its hash. What is seen
// there is package rail's; this one reads the policy and puts a call's arguments in.
package onchain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/rail"
)

// chain is what both kinds have: where to ask, about which asset, and what a hit becomes.
type chain struct {
	rail    *rail.Chain
	asset   evm.Address
	hosts   []string
	secrets *secret.Set
	result  rules.Result
}

// common are the fields of the kind's own member that both kinds have.
var common = []string{"rpc", "chain_id", "asset", "lag", "chunk", "recipient", "value"}

// readChain reads them.
func readChain(b *block.Block, kind string, f map[string]ast.Node) *chain {
	path := b.KindPath(kind)
	c := &chain{rail: &rail.Chain{}, secrets: secret.NewSet()}
	for name, why := range map[string]string{
		"rpc": "the URL of a node, or a list of them", "chain_id": "the number of the chain", "asset": "the address of the token's contract",
		"recipient": "who is paid", "value": "how much is paid, in atomic units",
	} {
		if f != nil && f[name] == nil {
			b.Mistake(b.Kind, path, "%s is missing: %s", name, why)
		}
	}
	c.rail.ID = uint64(b.Whole(f["chain_id"], path+".chain_id", 0, 1, 1<<53))
	if text, ok := b.Spelling(f["asset"], path+".asset"); ok {
		asset, err := evm.ParseAddress(text)
		if err != nil {
			b.Mistake(f["asset"], path+".asset", "%s", err)
		}
		c.asset = asset
	}
	c.rail.Lag = b.Duration(f["lag"], path+".lag", rail.DefaultLag, time.Second)
	c.rail.Chunk = uint64(b.Whole(f["chunk"], path+".chunk", rail.MaxChunk, 1, rail.MaxChunk))
	if n := f["rpc"]; n != nil && n.Type() == ast.SequenceType {
		list := b.Items(n, path+".rpc")
		if len(list) == 0 {
			b.Mistake(n, path+".rpc", "needs at least one URL")
		}
		for i, item := range list {
			c.readNode(b, item, fmt.Sprintf("%s.rpc[%d]", path, i))
		}
	} else {
		c.readNode(b, n, path+".rpc")
	}
	n, at := b.At("result")
	c.result = rules.ReadResult(b.Reader, n, at, b.Tool)
	if example, err := json.Marshal(record{}); err == nil && n == nil && b.Tool.CheckResult != nil && b.Tool.CheckResult(example) != nil {
		b.Mistake(b.Node, at, "result is missing: the record of a transfer does not fit result_example")
	}
	var without []string
	for _, name := range rules.Fields {
		if name != "result" {
			without = append(without, name)
		}
	}
	b.Refuse(kind, append(without, "world", "samples")...)
	return c
}

// readNode reads a URL whose end may be a secret, as providers have it.
func (c *chain) readNode(b *block.Block, n ast.Node, path string) {
	target := secret.Read(b.Reader, n, path, c.secrets)
	fixed, _, _ := strings.Cut(target.String(), "${")
	switch _, rest, _ := strings.Cut(fixed, "://"); {
	case target.String() == "":
		return
	case target.Secret() && !strings.ContainsAny(rest, "/?"):
		b.Mistake(n, path, "the host must stand in the open: a secret may stand only after it")
		return
	case !b.CheckTarget(n, path, fixed):
		return
	}
	if u, err := url.Parse(fixed); err == nil {
		c.hosts = append(c.hosts, strings.ToLower(u.Host))
	}
	c.rail.Nodes = append(c.rail.Nodes, node.New(target.Reveal(), outbound.Options{AllowPrivate: b.AllowPrivate}))
}

// template reads what is put in from the call. One argument that differs from try to try
// names one try's payment only, and another's may have landed.
func template(b *block.Block, n ast.Node, path string) *read.Template {
	t := b.Template(n, path)
	if t == nil {
		return nil
	}
	b.CheckTemplate(n, path, t)
	for _, field := range t.Fields() {
		argument, is := strings.CutPrefix(field, "arguments.")
		for _, v := range b.Tool.Volatile {
			if is && (read.Covers(v, argument) || read.Covers(argument, v)) {
				b.Mistake(n, path, "{%s} is volatile: what another try sent would not be looked for", field)
			}
		}
	}
	return t
}

// fill puts a call into a template and parses what comes out. The error names the field.
func fill[T any](name string, t *read.Template, q lookup.Question, parse func(string) (T, error)) (T, error) {
	var none T
	if t == nil {
		return none, fmt.Errorf("the policy has no %s", name)
	}
	text, err := block.Fill(t, q, func(v string) (string, error) { return v, nil })
	if err != nil {
		return none, err
	}
	v, err := parse(text)
	if err != nil {
		return none, fmt.Errorf("the %s of this call %w", name, err)
	}
	return v, nil
}

// Host is where the first node is: what limits are counted by.
func (c *chain) Host() string {
	if len(c.hosts) == 0 {
		return ""
	}
	return c.hosts[0]
}

// Mask replaces the keys of the nodes' URLs.
func (c *chain) Mask(text string) string { return c.secrets.Mask(text) }

func (c *chain) describe(kind string, facts ...string) string {
	return fmt.Sprintf("%s on %s, asset %s, at %s\n%s", kind, c.rail.Network(), c.asset, strings.Join(c.hosts, ", "), strings.Join(facts, "\n"))
}

// since is when the first attempt began.
func since(q lookup.Question) time.Time {
	if len(q.Attempts) == 0 || slices.ContainsFunc(q.Attempts, func(a lookup.Attempt) bool { return a.Begun.IsZero() }) {
		return time.Time{}
	}
	first := q.Attempts[0].Begun
	for _, a := range q.Attempts {
		if a.Begun.Before(first) {
			first = a.Begun
		}
	}
	return first
}

// record is a transfer as people and expressions see it, and as it is replayed.
type record struct {
	Network     string    `json:"network"`
	Transaction evm.Hash  `json:"transaction"`
	Position    int       `json:"position"`
	Block       uint64    `json:"block"`
	At          time.Time `json:"at"`
	Asset       string    `json:"asset"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	Value       string    `json:"value"`
	Nonce       *evm.Hash `json:"nonce,omitempty"`
	Memo        *evm.Hash `json:"memo,omitempty"`
}

// hit is a transfer as a look-up's.
func (c *chain) hit(ctx context.Context, q lookup.Question, t rail.Transfer, match, final bool, state string) (lookup.Hit, error) {
	raw, err := json.Marshal(record{Network: t.Network, Transaction: t.Transaction, Position: t.Position, Block: t.Block, At: t.At,
		Asset: t.Asset.String(), From: t.From.String(), To: t.To.String(), Value: t.Value.String(), Nonce: t.Nonce, Memo: t.Memo})
	if err != nil {
		return lookup.Hit{}, err
	}
	h := lookup.Hit{Reference: t.Reference(), Match: match, Final: final, State: state, Record: string(raw),
		// How many decimals it has, and what it is called, is for nobody to guess.
		Amount: t.Value.String(), Currency: "atomic units of " + t.Asset.String()}
	h.Result, err = c.result.Of(ctx, q, raw)
	if err != nil && match && final {
		return h, fmt.Errorf("result: %w", err)
	}
	if err != nil {
		h.Result = nil
	}
	return h, nil
}

func troubled(seen *lookup.Seen, t *rail.Trouble) {
	seen.Problem, seen.Detail, seen.RetryAfter = t.Problem, t.Detail, t.RetryAfter
}
