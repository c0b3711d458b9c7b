// Package block is what all kinds of look-up share of the policy's lookup block.
package block

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy/read"
)

// Block is a lookup block while it is read. An adapter takes what is its own from it.
type Block struct {
	*read.Reader
	Node ast.Node // the block itself, where what is missing is reported
	Path string   // "tools.send_payment.lookup"

	Kind   ast.Node            // the kind's own member: what stands under "http:"
	Fields map[string]ast.Node // the members that all kinds share
	Tool   rules.Tool

	// Connections are the databases that the policy names.
	Connections map[string]Connection

	AbsenceIsProof bool
	AllowPrivate   bool
}

// Adapter reads its part of a block and returns a source that asks accordingly. What is
// wrong becomes a mistake; then the source is not used.
type Adapter func(b *Block) lookup.Source

// Shared are the members that stand beside the kind's own.
var Shared = slices.Concat(rules.Fields, []string{"absence_is_proof", "visible_after", "kept_for", "canary", "world",
	"allow_private", "samples", "per_second", "at_once"})

// At is a shared field and its path.
func (b *Block) At(name string) (ast.Node, string) { return b.Fields[name], b.Path + "." + name }

// KindPath is the path of the kind's own member.
func (b *Block) KindPath(kind string) string { return b.Path + "." + kind }

// Own are the fields of the kind's own member.
func (b *Block) Own(kind string, known ...string) map[string]ast.Node {
	return b.Reader.Fields(b.Kind, b.KindPath(kind), known...)
}

// Default gives an expression to a kind of look-up whose answers we know, where the
// policy has none of its own.
func (b *Block) Default(name, expression string) {
	if b.Fields[name] != nil {
		return
	}
	position := *b.Node.GetToken().Position
	b.Fields[name] = ast.String(token.New(expression, expression, &position))
}

// Rules reads the expressions.
func (b *Block) Rules() *rules.Rules {
	return rules.Read(b.Reader, b.Node, b.Path, b.Fields, b.Tool)
}

// Refuse reports shared fields that mean nothing for this kind.
func (b *Block) Refuse(kind string, names ...string) {
	for _, name := range names {
		if b.Fields[name] != nil {
			b.Mistake(b.Fields[name], b.Path+"."+name, "means nothing for %s", kind)
		}
	}
}

// CheckTemplate refuses a template that names what no effect of this tool has.
func (b *Block) CheckTemplate(n ast.Node, path string, t *read.Template) {
	if t == nil {
		return
	}
	for _, field := range t.Fields() {
		switch {
		case strings.HasPrefix(field, "arguments."):
		case !slices.Contains(questionFields, field):
			b.Mistake(n, path, "{%s} is unknown; known here are %s, and {arguments.NAME}", field, strings.Join(questionFields, ", "))
		case field == "business_key" && !b.Tool.HasBusinessKey:
			b.Mistake(n, path, "{business_key} is never there: the tool declares no business_key")
		case (field == "amount" || field == "amount_minor" || field == "currency") && !b.Tool.HasAmount:
			b.Mistake(n, path, "{%s} is never there: the tool declares no amount", field)
		}
	}
}
