package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// names are the values that a scenario took.
type names map[string]any

// fill replaces each $name in a command by what was taken.
func (n names) fill(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, "$") {
			return v, nil
		}
		taken, known := n[v]
		if !known {
			return nil, fmt.Errorf("%s was not taken yet", v)
		}
		return taken, nil
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			filled, err := n.fill(member)
			if err != nil {
				return nil, err
			}
			out[name] = filled
		}
		return out, nil
	case []any:
		out := []any{}
		for _, item := range v {
			filled, err := n.fill(item)
			if err != nil {
				return nil, err
			}
			out = append(out, filled)
		}
		return out, nil
	}
	return v, nil
}

// texts are the members that hold JSON as text.
var texts = map[string]bool{"result": true, "reason": true, "arguments": true, "state": true}

// compare says where got differs from want, "" where it does not; at is the place.
func (n names) compare(at string, want, got any) string {
	switch want := want.(type) {
	case nil:
		if got != nil && got != "" {
			return fmt.Sprintf("%s: %v, want nothing", at, got)
		}
		return ""
	case string:
		switch {
		case want == "*":
			if got == nil || got == "" {
				return at + ": nothing"
			}
			return ""
		case strings.HasPrefix(want, "$"):
			taken, known := n[want]
			if !known && got != nil && got != "" {
				n[want] = got
				return ""
			}
			if taken != got || !known {
				return fmt.Sprintf("%s: %v, want %s, which is %v", at, got, want, taken)
			}
			return ""
		case texts[at[strings.LastIndex(at, "/")+1:]]:
			if text, ok := got.(string); ok {
				return sameText(at, want, text)
			}
		}
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return at + ": not an object"
		}
		for name, member := range want {
			if d := n.compare(at+"/"+name, member, got[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Sprintf("%s: %v, want %d items", at, got, len(want))
		}
		for i, item := range want {
			if d := n.compare(fmt.Sprintf("%s/%d", at, i), item, got[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Sprintf("%s: %v, want %v", at, cut(got), cut(want))
	}
	return ""
}

// sameText compares two texts as JSON: members in any order, numbers as written. What
// is wanted and is no JSON, such as the name of a state, is compared as it is.
func sameText(at, want, got string) string {
	a, err := exact(want)
	if err != nil && want == got {
		return ""
	}
	if b, errGot := exact(got); err != nil || errGot != nil || a != b {
		return fmt.Sprintf("%s: %s, want %s", at, cut(got), cut(want))
	}
	return ""
}

// exact is a JSON text with sorted members. Strings stay as they are written, but for
// escapes that stand for a character.
func exact(text string) (string, error) {
	dec := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, `\ud`, `\\ud`))) // halves of a pair would be lost
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v) // writes numbers as they were
	return b.String(), err
}

func cut(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return s
}
