// Package policy is quittance.yaml: what a team declares about its tools, read once
// and then asked on every call. It decides nothing by itself.
//
// A [Policy] is immutable. A file with any mistake is no policy at all: the caller
// keeps the one in force and shows the mistakes.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quittance/reconcile/policy/read"
)

// Policy is one whole, valid file.
type Policy struct {
	Source string // as read
	Digest string // SHA-256 of Source in hexadecimal

	hold         time.Duration
	notTakenHold time.Duration
	permission   time.Duration
	redact       []string
	checkpoints  []string
	keep         int
	webhooks     []*Webhook
	gateways     map[string]*Gateway
	rails        []*Rail
	paymentsKept time.Duration
	accounts     map[string]string
	tools        map[string]*Tool
}

// Defaults of the release section. The hold is long enough to notice a slip; a second
// payment of real money gets two minutes.
const (
	defaultHold         = 10 * time.Second
	defaultNotTakenHold = 120 * time.Second
	defaultPermission   = 24 * time.Hour
	defaultKeep         = 10 // checkpoints of a run
)

// Default is the policy of an empty file: every tool is guarded, nothing is known of
// any.
func Default() *Policy {
	p, _ := Load("", nil)
	return p
}

// Hold is how long a person's decision waits before agents see it. notTaken is true
// for a verdict that lets the call be made again; with money in it, it waits longer.
func (p *Policy) Hold(notTaken, hasAmount bool) time.Duration {
	if notTaken && hasAmount {
		return p.notTakenHold
	}
	return p.hold
}

// PermissionLife is how long an unused permission lasts after its run could resume.
func (p *Policy) PermissionLife() time.Duration { return p.permission }

// CheckpointRedact are the RFC 6901 pointers to redact in checkpoint states.
func (p *Policy) CheckpointRedact() []string { return p.checkpoints }

// CheckpointsKept is how many checkpoints of a run are kept, the latest.
func (p *Policy) CheckpointsKept() int { return p.keep }

// Tool is what is declared about a tool, or the defaults: never nil.
func (p *Policy) Tool(name string) *Tool {
	if t, ok := p.tools[name]; ok {
		return t
	}
	t := newTool(name)
	t.Redact = p.redact
	return t
}

// Tools are the declared tools by name, sorted.
func (p *Policy) Tools() []*Tool {
	list := make([]*Tool, 0, len(p.tools))
	for _, t := range p.tools {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Volatile are the declared tools' volatile paths, by tool; nil when there are none.
func (p *Policy) Volatile() map[string][]string {
	var m map[string][]string
	for name, t := range p.tools {
		if len(t.Volatile) == 0 {
			continue
		}
		if m == nil {
			m = map[string][]string{}
		}
		m[name] = t.Volatile
	}
	return m
}

// Load reads a policy; name is the file's name in mistakes. It returns either a policy
// or every mistake there is. Only what is not YAML at all ends the search early.
//
// Secrets come from the environment and files from the policy's folder; both are read
// now and never again.
func Load(name string, src []byte) (*Policy, Mistakes) {
	return LoadIn(read.Surroundings{
		Getenv:   os.LookupEnv,
		ReadFile: func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(name), file)) },
	}, name, src)
}

// LoadStored reads a policy that was in force once. Its secrets and files are not asked
// for, and its look-ups ask nobody.
func LoadStored(src []byte) (*Policy, Mistakes) {
	return LoadIn(read.Surroundings{Stored: true}, "stored policy", src)
}

// LoadIn is [Load] with secrets and files from elsewhere.
func LoadIn(in read.Surroundings, name string, src []byte) (*Policy, Mistakes) {
	r := &reader{read.New(name, in)}
	root, m := read.Document(name, src)
	if m != nil {
		return nil, Mistakes{*m}
	}
	digest := sha256.Sum256(src)
	p := &Policy{Source: string(src), Digest: hex.EncodeToString(digest[:]), tools: map[string]*Tool{}}

	f := r.Fields(root, "", "release", "redact", "checkpoints", "connections", "webhooks", "gateways", "rails", "payments", "tools")
	release := r.Fields(f["release"], "release", "hold", "not_taken_hold", "permission")
	p.hold = r.Duration(release["hold"], "release.hold", defaultHold, 0)
	p.notTakenHold = r.Duration(release["not_taken_hold"], "release.not_taken_hold", defaultNotTakenHold, 0)
	p.permission = r.Duration(release["permission"], "release.permission", defaultPermission, time.Second)
	p.redact = r.Texts(f["redact"], "redact", read.CheckPointer)
	checkpoints := r.Fields(f["checkpoints"], "checkpoints", "redact", "keep")
	p.keep = r.Whole(checkpoints["keep"], "checkpoints.keep", defaultKeep, 1, 1000)
	p.checkpoints = r.Texts(checkpoints["redact"], "checkpoints.redact", read.CheckPointer)
	connections := r.connections(f["connections"], "connections")
	p.webhooks = r.webhooks(f["webhooks"], "webhooks")
	p.gateways = r.gateways(f["gateways"], "gateways")
	p.rails = r.railsOf(f["rails"], "rails")
	payments := r.Fields(f["payments"], "payments", "keep", "accounts")
	p.accounts = r.accounts(payments["accounts"], "payments.accounts")
	p.paymentsKept = r.Duration(payments["keep"], "payments.keep", defaultPaymentsKept, 24*time.Hour)
	for _, e := range r.Entries(f["tools"], "tools") {
		if e.Name == "" || len(e.Name) > maxToolName {
			r.Mistake(e.Key, "tools", "a tool's name has 1 to %d bytes", maxToolName)
			continue
		}
		t := r.tool(e, "tools."+e.Name, connections)
		t.Redact = slices.Concat(p.redact, t.Redact)
		p.tools[e.Name] = t
	}
	if r.Count() > 0 {
		return nil, r.Found()
	}
	return p, nil
}

// Mistake is one thing wrong with a policy file, at the place to correct.
type Mistake = read.Mistake

// Mistakes are all the mistakes of one file.
type Mistakes = read.Mistakes

// reader reads the fields of a policy.
type reader struct{ *read.Reader }
