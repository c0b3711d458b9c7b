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

// value is a field of a question as text. The error names a field that this question has not,
// or that is empty: asking for nothing finds everything.
func value(q lookup.Question, field string) (text string, err error) {
	switch path, isArgument := strings.CutPrefix(field, "arguments."); {
	case isArgument:
		text, _ = read.Scalar(q.Arguments.Lookup(path))
	case field == "business_key":
		text = q.BusinessKey
	case field == "vendor_key":
		text = q.VendorKey
	case field == "reference":
		text = q.Reference
	case field == "tool":
		text = q.Tool
	case field == "run":
		text = q.Run
	case field == "account":
		text = q.Account
	case field == "effect":
		text = q.Effect
	case q.Amount == nil:
	case field == "amount":
		text = q.Amount.String()
	case field == "amount_minor":
		text = q.Amount.Atomic().String()
	case field == "currency":
		text = q.Amount.Asset().Code
	}
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("this call has no %s", field)
	}
	return text, nil
}

// URL puts a question into the template of a URL; the error says what does not fit.
func URL(t *read.Template, q lookup.Question) (string, error) {
	return t.URL(func(field string) (string, error) { return value(q, field) })
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
		v, err := value(q, p.Path)
		if err != nil {
			return "", err
		}
		safe, err := escape(v)
		if err != nil {
			return "", fmt.Errorf("the %s of this call %w", p.Path, err)
		}
		b.WriteString(safe)
	}
	return b.String(), nil
}
