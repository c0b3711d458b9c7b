package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"quittance/reconcile/policy"
)

// schema is what our schema uses of JSON Schema.
type schema struct {
	Ref        string             `json:"$ref"`
	Types      any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Additional any                `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	Required   []string           `json:"required"`
	Pattern    string             `json:"pattern"`
	AnyOf      []*schema          `json:"anyOf"`
	OneOf      []*schema          `json:"oneOf"`
	Defs       map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(policy.Schema, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func (s *schema) resolve(root *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return root.Defs[name]
	}
	return s
}

// check returns what is wrong with a value, as an editor would show it.
func (s *schema) check(root *schema, path string, v any) (wrong []string) {
	s = s.resolve(root)
	fail := func(format string, args ...any) { wrong = append(wrong, path+": "+fmt.Sprintf(format, args...)) }
	if s.Types != nil && !slices.Contains(s.types(), kind(v)) && !(kind(v) == "integer" && slices.Contains(s.types(), "number")) {
		fail("is %s, not %v", kind(v), s.Types)
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		fail("is none of %v", s.Enum)
	}
	if text, ok := v.(string); ok && s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		fail("does not match %s", s.Pattern)
	}
	fits := func(list []*schema) (n int) {
		for _, one := range list {
			if len(one.check(root, path, v)) == 0 {
				n++
			}
		}
		return n
	}
	if s.AnyOf != nil && fits(s.AnyOf) == 0 || s.OneOf != nil && fits(s.OneOf) != 1 {
		fail("fits none, or more than one, of its forms")
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if s.Items != nil {
				wrong = append(wrong, s.Items.check(root, fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, there := v[name]; !there {
				fail("%s is missing", name)
			}
		}
		for name, member := range v {
			switch of := s.Properties[name]; {
			case of != nil:
				wrong = append(wrong, of.check(root, path+"."+name, member)...)
			case s.Additional == false:
				fail("%s is unknown", name)
			default:
				if more := s.additional(); more != nil {
					wrong = append(wrong, more.check(root, path+"."+name, member)...)
				}
			}
		}
	}
	return wrong
}

func (s *schema) types() []string {
	raw, _ := json.Marshal(s.Types)
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &many)
	return many
}

func (s *schema) additional() *schema {
	raw, _ := json.Marshal(s.Additional)
	var of schema
	if json.Unmarshal(raw, &of) != nil {
		return nil
	}
	return &of
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int, int64, uint64:
		return "integer"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

func parseYAML(t *testing.T, src string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(src), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSchemaAcceptsAValidPolicy(t *testing.T) {
	t.Parallel()
	root := readSchema(t)
	src, err := os.ReadFile("testdata/quittance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{string(src), "release:\ntools:\n", "tools: {}", asTool(bank), "release: {hold: 0, not_taken_hold: 1h30m}"} {
		load(t, src)
		for _, wrong := range root.check(root, "", parseYAML(t, src)) {
			t.Error(wrong)
		}
	}
}

func TestTheSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	t.Parallel()
	root := readSchema(t)
	for _, src := range []string{
		"tool: {}", "tools: []", "release: {hold: soon}", "release: {hold: -1s}", "redact: [a]", "tools: {x: {mode: watch}}", "tools: {x: {amount: {value: a}}}",
		"tools: {x: {vendor_key: {checks_body: true}}}", "tools: {x: {lookup: {}}}", "tools: {x: {lookup: {http: {url: a}, sql: {connection: a, query: b, parameters: [c]}}}}",
		"tools: {x: {lookup: {http: {}}}}", "tools: {x: {lookup: {stripe: {key: a, object: customer}}}}", "tools: {x: {lookup: {http: {url: a, method: PUT}}}}",
		"tools: {x: {lookup: {worker: {}, canary: {url: a}}}}", "connections: {a: 5}",
		"tools: {x: {lookup: {eip3009: {rpc: a}}}}", "tools: {x: {lookup: {memo: {rpc: 'https://a', chain_id: 1, asset: '0x0000000000000000000000000000000000000001', recipient: a, value: b}}}}",
	} {
		if len(mistakes(t, src)) == 0 {
			t.Errorf("the parser takes %s", src)
		}
		if len(root.check(root, "", parseYAML(t, src))) == 0 {
			t.Errorf("the schema takes %s", src)
		}
	}
}

// The parser says which fields it knows: at every mapping the schema knows the same.
func TestTheSchemaKnowsTheParsersFields(t *testing.T) {
	t.Parallel()
	root := readSchema(t)
	tool := root.Properties["tools"].additional()
	lookup := tool.Properties["lookup"]
	for src, of := range map[string]*schema{
		"zz: 1":                                                       root,
		"release: {zz: 1}":                                            root.Properties["release"],
		"checkpoints: {zz: 1}":                                        root.Properties["checkpoints"],
		"tools: {x: {zz: 1}}":                                         tool,
		"tools: {x: {amount: {zz: 1}}}":                               tool.Properties["amount"],
		"tools: {x: {vendor_key: {zz: 1}}}":                           tool.Properties["vendor_key"],
		"tools: {x: {lookup: {zz: 1}}}":                               lookup,
		"tools: {x: {lookup: {http: {zz: 1}}}}":                       lookup.Properties["http"],
		"tools: {x: {lookup: {sql: {zz: 1}}}}":                        lookup.Properties["sql"],
		"tools: {x: {lookup: {stripe: {zz: 1}}}}":                     lookup.Properties["stripe"],
		"tools: {x: {lookup: {worker: {zz: 1}}}}":                     lookup.Properties["worker"],
		"tools: {x: {lookup: {eip3009: {zz: 1}}}}":                    lookup.Properties["eip3009"],
		"tools: {x: {lookup: {eip3009: {domain: {zz: 1}}}}}":          lookup.Properties["eip3009"].Properties["domain"],
		"tools: {x: {lookup: {order: {zz: 1}}}}":                      lookup.Properties["order"],
		"tools: {x: {lookup: {memo: {zz: 1}}}}":                       lookup.Properties["memo"],
		"tools: {x: {lookup: {webhook_inbox: {zz: 1}}}}":              lookup.Properties["webhook_inbox"],
		"tools: {x: {lookup: {http: {oauth2: {zz: 1}}}}}":             lookup.Properties["http"].Properties["oauth2"],
		"tools: {x: {lookup: {http: {client_certificate: {zz: 1}}}}}": lookup.Properties["http"].Properties["client_certificate"],
		"tools: {x: {lookup: {http: {}, canary: {zz: 1}}}}":           lookup.Properties["canary"].AnyOf[1],
	} {
		_, known, found := strings.Cut(strings.Join(mistakes(t, src), "\n"), "unknown field; known here are ")
		if !found {
			t.Errorf("%s: no field was called unknown", src)
			continue
		}
		known, _, _ = strings.Cut(known, "\n")
		parser := strings.Split(known, ", ")
		slices.Sort(parser)
		var ours []string
		for name := range of.Properties {
			ours = append(ours, name)
		}
		slices.Sort(ours)
		if !slices.Equal(parser, ours) {
			t.Errorf("%s\nthe parser knows %v\nthe schema knows %v", src, parser, ours)
		}
	}
}
