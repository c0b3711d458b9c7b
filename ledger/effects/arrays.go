package effects

import (
	"encoding/hex"
	"strconv"
	"strings"

	"quittance/ledger"
)

// Rows travel to PostgreSQL as one array a column, written by hand: a batch is one
// statement of a fixed shape, and neither side spends time on JSON or reflection.

// fields names columns with their types, in their order: "id uuid, run_id bigint".
type fields struct {
	names []string
	types []string
}

func parseFields(list string) (f fields) {
	for _, c := range strings.Split(list, ",") {
		name, typ, _ := strings.Cut(strings.TrimSpace(c), " ")
		f.names, f.types = append(f.names, name), append(f.types, typ)
	}
	return f
}

func (f fields) plus(more fields) fields {
	return fields{append(f.names[:len(f.names):len(f.names)], more.names...), append(f.types[:len(f.types):len(f.types)], more.types...)}
}

// list is the columns' names, each behind the prefix.
func (f fields) list(prefix string) string { return prefix + strings.Join(f.names, ", "+prefix) }

// unnest is the rows as a FROM item named x; its parameters are numbered from first.
func (f fields) unnest(first int) string {
	arrays := make([]string, len(f.types))
	for i, t := range f.types {
		arrays[i] = "$" + strconv.Itoa(first+i) + "::" + t + "[]"
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") WITH ORDINALITY AS x(" + f.list("") + ", n)"
}

// cells fills in a statement whose parameters, from first, are the columns of rows: {c}
// stands for column c of row n, and {rows} for a FROM item that numbers them, guided by
// the first column. A row so costs nothing until a column of it is needed. Most calls
// stand alone: a row's statement is the same with its values in the place of arrays,
// which spares PostgreSQL a tenth of the work.
func (f fields) cells(first int, query string) statement {
	array := []string{"{rows}", "(SELECT n::integer AS n FROM unnest($" + strconv.Itoa(first) + "::" + f.types[0] + "[]) WITH ORDINALITY AS x(x, n)) AS x"}
	value := []string{"{rows}", "(SELECT 1 AS n) AS x"}
	for i, name := range f.names {
		p, t := "$"+strconv.Itoa(first+i), f.types[i]
		array = append(array, "{"+name+"}", "("+p+"::"+t+"[])[n]")
		value = append(value, "{"+name+"}", p+"::"+t)
	}
	return statement{rows: strings.NewReplacer(array...).Replace(query), row: strings.NewReplacer(value...).Replace(query)}
}

// statement is what [fields.cells] makes: for rows, and for one.
type statement struct{ rows, row string }

// with is the statement that takes the rows, and its parameters behind args.
func (s statement) with(rows *arrays, args []any) (query string, params []any) {
	if rows.alone {
		return s.row, rows.params(args)
	}
	return s.rows, rows.params(args)
}

// arrays gathers rows. A row's values are set in the order of its fields; what is
// not set, or empty, is NULL.
type arrays struct {
	fields
	alone bool // one row, whose values are no arrays
	buf   [][]byte
	rows  []int // how many each column has; the NULLs at its end are not written
	n     int   // rows that are closed
	at    int   // the field that is set next
}

func newArrays(f fields) *arrays {
	return &arrays{fields: f, buf: make([][]byte, len(f.names)), rows: make([]int, len(f.names))}
}

// newCells is for the n rows of a statement made by [fields.cells].
func newCells(f fields, n int) *arrays {
	c := newArrays(f)
	c.alone = n == 1
	return c
}

// end closes a row.
func (c *arrays) end() {
	c.n++
	c.at = 0
}

// to moves on to a field, leaving those before it NULL.
func (c *arrays) to(name string) *[]byte {
	for c.names[c.at] != name {
		c.at++
	}
	b := &c.buf[c.at]
	for ; c.rows[c.at] < c.n; c.rows[c.at]++ {
		*b = append(*b, "NULL,"...)
	}
	c.rows[c.at]++
	c.at++
	return b
}

func (c *arrays) text(name, v string) {
	if v == "" {
		return
	}
	c.quote(name, v)
}

// quote is text that may be empty without being NULL.
func (c *arrays) quote(name, v string) {
	b := c.to(name)
	if c.alone {
		*b = append(*b, v...)
		return
	}
	*b = append(*b, '"')
	for i := 0; i < len(v); i++ {
		if v[i] == '"' || v[i] == '\\' {
			*b = append(*b, '\\')
		}
		*b = append(*b, v[i])
	}
	*b = append(*b, '"', ',')
}

func (c *arrays) number(name string, v int64) {
	b := c.to(name)
	*b = c.next(strconv.AppendInt(*b, v, 10))
}

func (c *arrays) yes(name string, v bool) {
	b := c.to(name)
	if v {
		*b = c.next(append(*b, 't'))
	} else {
		*b = c.next(append(*b, 'f'))
	}
}

func (c *arrays) time(name string, v ledger.Time) {
	if v.IsZero() {
		return
	}
	c.quote(name, string(appendTime(nil, v.UTC())))
}

func (c *arrays) bytes(name string, v []byte) {
	if v == nil {
		return
	}
	b := c.to(name)
	if c.alone {
		*b = append([]byte{}, v...)
		return
	}
	*b = append(hex.AppendEncode(append(*b, `"\\x`...), v), '"', ',')
}

// next parts a value from the one of the next row.
func (c *arrays) next(b []byte) []byte {
	if c.alone {
		return b
	}
	return append(b, ',')
}

// params are the arrays, or the one row's values, as parameters of the statement.
func (c *arrays) params(args []any) []any {
	for i, a := range c.buf {
		if c.alone {
			args = append(args, c.value(i))
			continue
		}
		if len(a) == 0 {
			args = append(args, "{}")
			continue
		}
		b := make([]byte, 0, len(a)+1)
		b = append(append(append(b, '{'), a[:len(a)-1]...), '}')
		args = append(args, string(b))
	}
	return args
}

// value is what the one row has in a column. lib/pq writes bytea itself.
func (c *arrays) value(i int) any {
	switch {
	case c.rows[i] == 0:
		return nil
	case c.types[i] == "bytea":
		return c.buf[i]
	default:
		return string(c.buf[i])
	}
}

// sink takes the values of a row: columns of a statement, or the JSON of an event.
type sink interface {
	text(name, v string)
	number(name string, v int64)
	yes(name string, v bool)
	time(name string, v ledger.Time)
	bytes(name string, v []byte)
}
