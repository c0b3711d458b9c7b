// Package where puts together the conditions of a list that can be filtered.
package where

import (
	"fmt"
	"strings"
)

// Conds are conditions that must all hold. The zero value has none. Conditions added in
// one order give one text, and so one prepared statement.
type Conds struct {
	list []string
	args []any
}

// Add adds a condition, in which each ? stands for the next of values.
func (c *Conds) Add(cond string, values ...any) {
	for _, v := range values {
		cond = strings.Replace(cond, "?", c.Arg(v), 1)
	}
	c.list = append(c.list, cond)
}

// Arg adds a value that is no part of a condition, such as a limit, and returns how
// the statement names it.
func (c *Conds) Arg(v any) string {
	c.args = append(c.args, v)
	return fmt.Sprintf("$%d", len(c.args))
}

// Args are the values, in the order of their names.
func (c *Conds) Args() []any { return c.args }

// String is what stands behind WHERE.
func (c *Conds) String() string {
	if len(c.list) == 0 {
		return "true"
	}
	return strings.Join(c.list, " AND ")
}
