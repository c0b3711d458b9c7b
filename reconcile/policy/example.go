package policy

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/read"
)

// example is a result as the tool would give it.
type example struct {
	raw   []byte
	value *canon.Value
}

// ResultExample is the declared example as a JSON object, nil without one. The caller
// must not change it.
func (t *Tool) ResultExample() []byte {
	if t.example == nil {
		return nil
	}
	return t.example.raw
}

// CheckResult checks a result that a person enters: an object with exactly the
// top-level fields of the example, each of its kind (a null in the example stands for
// any). Without an example any JSON will do. Errors name fields, never contents.
func (t *Tool) CheckResult(raw []byte) error {
	if t.example == nil {
		_, err := canon.Parse(raw)
		return err
	}
	got, err := canon.ParseObject(raw)
	if err != nil {
		return err
	}
	var problems []error
	for name, want := range t.example.value.Members() {
		switch member := got.Lookup(name); {
		case member == nil:
			problems = append(problems, fmt.Errorf("%s is missing", name))
		case want.Kind() != canon.Null && member.Kind() != want.Kind():
			problems = append(problems, fmt.Errorf("%s must be %s, not %s", name, want.Kind(), member.Kind()))
		}
	}
	for name := range got.Members() {
		if t.example.value.Lookup(name) == nil {
			problems = append(problems, fmt.Errorf("%s is not a field of the result example", name))
		}
	}
	return errors.Join(problems...)
}

func (r *reader) example(n ast.Node, path string) *example {
	if n == nil {
		return nil
	}
	if n.Type() != ast.MappingType {
		r.Mistake(n, path, "must be an object, not %s", read.KindOf(n))
		return nil
	}
	before := r.Count()
	raw := r.JSON(nil, n, path)
	if r.Count() > before {
		return nil
	}
	value, err := canon.ParseObject(raw)
	if err != nil {
		r.Mistake(n, path, "%s", err)
		return nil
	}
	return &example{raw, value}
}
