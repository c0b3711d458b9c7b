// Package policy is quittance.yaml: what a team declares about its tools, read once
// and then asked on every call. It decides nothing by itself.
//
// A [Policy] is immutable. A file with any mistake is no policy at all: the caller
// keeps the one in force and shows the mistakes.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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
	tools        map[string]*Tool
}

// Defaults of the release section. The hold is long enough to notice a slip; a second
// payment of real money gets two minutes.
const (
	defaultHold         = 10 * time.Second
	defaultNotTakenHold = 120 * time.Second
	defaultPermission   = 24 * time.Hour
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

// maxSource is far above any real file and keeps a wrong path (a log, a dump) from
// being parsed.
const maxSource = 1 << 20

// Load reads a policy; name is the file's name in mistakes. It returns either a policy
// or every mistake there is. Only what is not YAML at all ends the search early.
func Load(name string, src []byte) (*Policy, Mistakes) {
	r := &reader{file: name}
	root, m := parse(name, src)
	if m != nil {
		return nil, Mistakes{*m}
	}
	digest := sha256.Sum256(src)
	p := &Policy{Source: string(src), Digest: hex.EncodeToString(digest[:]), tools: map[string]*Tool{}}

	f := r.fields(root, "", "release", "redact", "checkpoints", "tools")
	release := r.fields(f["release"], "release", "hold", "not_taken_hold", "permission")
	p.hold = r.duration(release["hold"], "release.hold", defaultHold, 0)
	p.notTakenHold = r.duration(release["not_taken_hold"], "release.not_taken_hold", defaultNotTakenHold, 0)
	p.permission = r.duration(release["permission"], "release.permission", defaultPermission, time.Second)
	p.redact = r.texts(f["redact"], "redact", checkPointer)
	checkpoints := r.fields(f["checkpoints"], "checkpoints", "redact")
	p.checkpoints = r.texts(checkpoints["redact"], "checkpoints.redact", checkPointer)
	for _, e := range r.entries(f["tools"], "tools") {
		if e.name == "" || len(e.name) > maxToolName {
			r.mistake(e.key, "tools", "a tool's name has 1 to %d bytes", maxToolName)
			continue
		}
		t := r.tool(e, "tools."+e.name)
		t.Redact = slices.Concat(p.redact, t.Redact)
		p.tools[e.name] = t
	}
	if len(r.found) > 0 {
		slices.SortStableFunc(r.found, func(a, b Mistake) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, r.found
	}
	return p, nil
}

// parse returns the root node, nil for a file with nothing in it.
func parse(name string, src []byte) (ast.Node, *Mistake) {
	fail := func(line, column int, problem string) (ast.Node, *Mistake) {
		return nil, &Mistake{File: name, Line: line, Column: column, Problem: problem}
	}
	if len(src) > maxSource {
		return fail(1, 1, fmt.Sprintf("larger than %d bytes", maxSource))
	}
	if !utf8.Valid(src) {
		// The parser would put U+FFFD in its place and say nothing.
		for i, line := range strings.Split(string(src), "\n") {
			if !utf8.ValidString(line) {
				return fail(i+1, 1, "invalid UTF-8 in this line")
			}
		}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey()) // reader reports them all
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			pos := at.GetToken().Position
			return fail(pos.Line, pos.Column, "not YAML: "+at.GetMessage())
		}
		return fail(1, 1, "not YAML: "+err.Error())
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			pos := doc.Body.GetToken().Position
			return fail(pos.Line, pos.Column, "a policy is one YAML document")
		}
		root = doc.Body
	}
	return root, nil
}
