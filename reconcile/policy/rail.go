package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/ledger/money"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/rail"
)

// Rail is a network that payments move on.
type Rail struct {
	Network string // CAIP-2, "eip155:8453"
	Name    string // for people
	// Chain asks its nodes; nil where the network is no EVM chain, or no node is declared.
	Chain  *rail.Chain
	Assets []RailAsset // sorted by ID
}

// RailAsset is an asset of a rail. One that is not declared is shown in raw units and
// cannot be given back.
type RailAsset struct {
	ID    string // the token's contract, in small letters
	Asset money.Asset
	Step  money.Atomic // the least that the rail moves
	// Domain is the token's EIP-712 domain, for EIP-3009 signatures; empty where it has none.
	Domain struct{ Name, Version string }
}

// Rails are the declared networks, sorted.
func (p *Policy) Rails() []*Rail { return p.rails }

// Rail is the network's declaration, or nil.
func (p *Policy) Rail(network string) *Rail {
	for _, r := range p.rails {
		if r.Network == network {
			return r
		}
	}
	return nil
}

// RailAsset is the declaration of an asset of a network, or nil. Codes differ in case on
// no rail: contracts are compared in small letters.
func (p *Policy) RailAsset(network, id string) *RailAsset {
	if r := p.Rail(network); r != nil {
		for i := range r.Assets {
			if r.Assets[i].ID == strings.ToLower(id) {
				return &r.Assets[i]
			}
		}
	}
	return nil
}

var caip2 = regexp.MustCompile(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`)

func (r *reader) railsOf(n ast.Node, path string) (list []*Rail) {
	for _, e := range r.Entries(n, path) {
		if !caip2.MatchString(e.Name) {
			r.Mistake(e.Key, path, "a network is named as CAIP-2 does, such as eip155:8453")
			continue
		}
		list = append(list, r.rail(e, read.Join(path, e.Name)))
	}
	slices.SortFunc(list, func(a, b *Rail) int { return strings.Compare(a.Network, b.Network) })
	return list
}

func (r *reader) rail(e read.Entry, path string) *Rail {
	f := r.Fields(e.Value, path, "name", "rpc", "final_lag", "allow_private", "assets")
	declared := &Rail{Network: e.Name, Name: e.Name}
	if name, ok := r.Text(f["name"], path+".name"); ok {
		declared.Name = name
	}
	private := r.Boolean(f["allow_private"], path+".allow_private")
	lag := r.Duration(f["final_lag"], path+".final_lag", rail.DefaultLag, time.Second)
	var nodes []*node.Client
	for i, item := range r.Items(f["rpc"], path+".rpc") {
		at := path + ".rpc[" + strconv.Itoa(i) + "]"
		was := r.Count()
		t := secret.Read(r.Reader, item, at, secret.NewSet())
		if !r.Stored && r.Count() == was {
			if fault := urlFault(t.Reveal(), private); fault != "" {
				if t.Secret() { // the fault names the host
					fault = "must be a public https:// URL (others with allow_private: true), without credentials before the host"
				}
				r.Mistake(item, at, "%s", fault)
			}
		}
		nodes = append(nodes, node.New(t.Reveal(), outbound.Options{AllowPrivate: private}))
	}
	id, evm := strings.CutPrefix(e.Name, "eip155:")
	switch n, err := strconv.ParseUint(id, 10, 53); {
	case evm && err != nil:
		r.Mistake(e.Key, path, "eip155: is followed by the number of the chain")
	case !evm && len(nodes) > 0:
		r.Mistake(f["rpc"], path+".rpc", "only networks of eip155 can be asked")
	case evm && len(nodes) > 0 && !r.Stored:
		declared.Chain = &rail.Chain{ID: n, Nodes: nodes, Lag: lag}
	}
	for _, a := range r.Entries(f["assets"], path+".assets") {
		declared.Assets = append(declared.Assets, r.railAsset(a, path+".assets."+a.Name))
	}
	slices.SortFunc(declared.Assets, func(a, b RailAsset) int { return strings.Compare(a.ID, b.ID) })
	return declared
}

func (r *reader) railAsset(e read.Entry, path string) RailAsset {
	f := r.Fields(e.Value, path, "code", "decimals", "step", "eip3009")
	a := RailAsset{ID: strings.ToLower(e.Name)}
	code, _ := r.Text(f["code"], path+".code")
	decimals := r.Whole(f["decimals"], path+".decimals", -1, 0, money.MaxDecimals)
	switch {
	case code == "" || f["decimals"] == nil:
		r.Mistake(e.Key, path, "code and decimals are needed")
	case decimals >= 0:
		asset, err := money.NewAsset(code, decimals)
		if err != nil {
			r.Mistake(f["code"], path, "%s", err)
		}
		a.Asset = asset
	}
	a.Step, _ = money.AtomicOf("1")
	if s, ok := r.Spelling(f["step"], path+".step"); ok {
		step, err := money.AtomicOf(s)
		if err != nil || step.Sign() == 0 {
			r.Mistake(f["step"], path+".step", "must be a whole number of the smallest unit, 1 or more")
		} else {
			a.Step = step
		}
	}
	if f["eip3009"] != nil {
		d := r.Fields(f["eip3009"], path+".eip3009", "name", "version")
		a.Domain.Name, _ = r.Text(d["name"], path+".eip3009.name")
		a.Domain.Version, _ = r.Spelling(d["version"], path+".eip3009.version")
		if a.Domain.Name == "" || a.Domain.Version == "" {
			r.Mistake(f["eip3009"], path+".eip3009", "name and version of the token's EIP-712 domain are needed")
		}
	}
	return a
}
