package logfile

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Fragment is what a damaged line may have said of one effect. It is a hint for a
// person and never proof.
type Fragment struct {
	Kind Kind
	Key  string // "" where none can be told
	Run  string
	Tool string
}

// maxFragments bounds what one damaged span can name.
const maxFragments = 100

// member finds a member of interest with a whole string behind it, wherever it stands.
var member = regexp.MustCompile(`"(type|event|status|state|key|effect_key|idempotency_key|run|run_id|tool|tool_name)"\s*:\s*"((?:[^"\\\x00-\x1f]|\\.)*)"`)

// Fragments lists what a damaged span may have named, in its order.
func Fragments(span []byte) []Fragment {
	var list []Fragment
	var loose Fragment // members before the first kind
	for _, at := range member.FindAllSubmatch(span, -1) {
		name, text := string(at[1]), unquoted(at[2])
		f := &loose
		if len(list) > 0 {
			f = &list[len(list)-1]
		}
		switch name {
		case "type", "event", "status", "state":
			k, ok := words[strings.ToLower(text)]
			if !ok || len(list) == maxFragments {
				continue
			}
			list = append(list, Fragment{Kind: k})
			if len(list) == 1 {
				list[0].Key, list[0].Run, list[0].Tool = loose.Key, loose.Run, loose.Tool
			}
		case "key", "effect_key", "idempotency_key":
			set(&f.Key, text)
		case "run", "run_id":
			set(&f.Run, text)
		default:
			set(&f.Tool, text)
		}
	}
	return list
}

func set(to *string, text string) {
	if *to == "" {
		*to = text
	}
}

func unquoted(raw []byte) string {
	var s string
	if json.Unmarshal([]byte(`"`+string(raw)+`"`), &s) != nil {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	return s
}

// Fragment is what a record would have said, where it cannot be used as it is.
func (r *Record) Fragment() Fragment { return Fragment{r.Kind, r.Key, r.Run, r.Tool} }
