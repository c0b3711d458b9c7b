package block

import (
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/read"
)

// Connection is a database that look-ups may read.
type Connection interface {
	// Read runs one statement in a read-only transaction and returns at most most rows, each
	// a JSON object, exact. more says that there were more.
	Read(ctx context.Context, patience time.Duration, most int, query string, args []any) (rows [][]byte, more bool, err error)
}

// questionFields are what a template may name of a question, besides its arguments.
var questionFields = []string{"business_key", "vendor_key", "reference", "amount", "amount_minor", "currency",
	"tool", "run", "account", "effect"}

// Value is a field of a question as text; ok is false where this question has none, or an
// empty one: asking for nothing finds everything.
func Value(q lookup.Question, field string) (value string, ok bool) {
	switch path, isArgument := strings.CutPrefix(field, "arguments."); {
	case isArgument:
		value, _ = read.Scalar(q.Arguments.Lookup(path))
	case field == "business_key":
		value = q.BusinessKey
	case field == "vendor_key":
		value = q.VendorKey
	case field == "reference":
		value = q.Reference
	case field == "tool":
		value = q.Tool
	case field == "run":
		value = q.Run
	case field == "account":
		value = q.Account
	case field == "effect":
		value = q.Effect
	case q.Amount == nil:
	case field == "amount":
		value = q.Amount.String()
	case field == "amount_minor":
		value = q.Amount.Atomic().String()
	case field == "currency":
		value = q.Amount.Asset().Code
	}
	return value, strings.TrimSpace(value) != ""
}

// Fill puts a question into a template, each value escaped. The error names the field that
// the question lacks.
func Fill(t *read.Template, q lookup.Question, escape func(string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t.Parts {
		if p.Path == "" {
			b.WriteString(p.Text)
			continue
		}
		v, ok := Value(q, p.Path)
		if !ok {
			return "", fmt.Errorf("this call has no %s", p.Path)
		}
		safe, err := escape(v)
		if err != nil {
			return "", fmt.Errorf("the %s of this call %w", p.Path, err)
		}
		b.WriteString(safe)
	}
	return b.String(), nil
}
