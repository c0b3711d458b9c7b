package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrArguments means that a call's arguments are not a JSON object. Nothing was sent.
var ErrArguments = errors.New("the arguments must be a JSON object")

// CallDigest names "the same call" within a run, to count occurrences; the clients of
// all languages make the same (see conformance/README.md). The effect's key is computed
// by the server alone; this digest only has to agree with it on which calls are equal:
// members in any order, numbers by value, volatile paths left out. Two spellings of one
// accented letter count apart here and together at the server, where the second of two
// such calls is then taken for a replay.
func CallDigest(tool string, args json.RawMessage, volatile []string) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil || v == nil {
		return "", fmt.Errorf("couldn't begin %s: %w", tool, ErrArguments)
	}
	for _, path := range volatile {
		leaveOut(v, path)
	}
	var b bytes.Buffer
	writeCanonical(&b, []any{tool, v})
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// leaveOut removes exactly the member at a dotted path, through objects only.
func leaveOut(v map[string]any, path string) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		delete(v, name)
		return
	}
	if inner, ok := v[name].(map[string]any); ok {
		leaveOut(inner, rest)
	}
}

// writeCanonical writes sorted members and exact numbers; strings are quoted by the
// encoder, so nothing can be glued into something else.
func writeCanonical(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			writeCanonical(b, name)
			b.WriteByte(':')
			writeCanonical(b, v[name])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			writeCanonical(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case json.Number:
		b.WriteString(exactNumber(v.String()))
	default: // string, bool, nil: cannot fail
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

// exactNumber writes a JSON number as digits and a power of ten without needless
// zeros, so that 1, 1.0 and 1e0 are equal and nothing passes through a float.
func exactNumber(s string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	exp := 0
	if exponent != "" {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil {
			return s // an exponent beyond any limit; the server refuses it
		}
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits, exp = strings.TrimLeft(whole+fraction, "0"), exp-len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	exp += len(digits) - len(short)
	if negative {
		short = "-" + short
	}
	return short + "e" + strconv.Itoa(exp)
}
