package policy_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"quittance/reconcile/policy"
)

// mistakes are the reported lines without the file's name.
func mistakes(t testing.TB, src string) []string {
	t.Helper()
	p, found := policy.LoadIn(surroundings, "f", []byte(src))
	if (p == nil) != (len(found) > 0) || (found.Err() == nil) != (len(found) == 0) {
		t.Fatalf("a policy and mistakes at once, or neither: %v, %v", p, found)
	}
	var lines []string
	for _, m := range found {
		line, ok := strings.CutPrefix(m.String(), "f:")
		if !ok {
			t.Fatalf("%q does not start with the file", m.String())
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEachMistakeIsNamedAtItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		// The file.
		{"a: [1", "1:4: not YAML: "},
		{"tools: {}\n\tx: 1", "2:"},
		{"tools: {}\n---\ntools: {}", "3:6: a policy is one YAML document"},
		{"tools: {}\n# \xff", "2:1: invalid UTF-8"},
		{"#" + strings.Repeat("x", 1<<20), "1:1: larger than 1048576 bytes"},
		{"- tools", "1:1: must be a mapping, not a list"},
		{"policy", "1:1: must be a mapping, not text"},
		{"tool: {}", "1:1: tool: unknown field; known here are release, redact, checkpoints, connections, webhooks, gateways, rails, payments, tools"},
		{"tools: {}\ntools: {}", "2:1: tools: was already set on line 1"},
		{"1: x", "1:1: a name must be text, not a number"},
		// Sections.
		{"release: 10s", "1:10: release: must be a mapping, not text"},
		{"release: {holds: 10s}", "1:11: release.holds: unknown field"},
		{"release: {hold: 10}", "1:17: release.hold: must be a duration"},
		{"release: {hold: -1s}", "1:17: release.hold: must not be negative"},
		{"release:\n  permission: 0s", "2:15: release.permission: must be at least 1s"},
		{"release: {hold: }", "1:16: release.hold: must be text, not nothing"},
		{"redact: /a", "1:9: redact: must be a list, not text"},
		{"redact: [/a, b]", "1:14: redact[1]: must be a JSON Pointer"},
		{"redact: [/a~2]", "1:10: redact[0]: in a JSON Pointer"},
		{"redact: [/a, /a]", "1:14: redact[1]: is in the list already"},
		{"checkpoints: {redact: [x]}", "1:24: checkpoints.redact[0]: must be a JSON Pointer"},
		{"tools: [x]", "1:8: tools: must be a mapping, not a list"},
		{"tools: {x: 5}", "1:12: tools.x: must be a mapping, not a number"},
		{"tools: {'': {}}", "1:9: tools: a tool's name has 1 to 256 bytes"},
		{"tools: {" + strings.Repeat("x", 257) + ": {}}", "1:9: tools: a tool's name has 1 to 256 bytes"},
		{"tools:\n  x: &a {}\n", "2:6: tools.x: must be a mapping, not an anchor"},
		{"tools: {x: {busines_key: '{a}'}}", "1:13: tools.x.busines_key: unknown field"},
		{"tools: {x: {mode: observe, mode: observe}}", "1:28: tools.x.mode: was already set on line 1"},
		// Text and choices.
		{"tools: {x: {summary: 5}}", "1:22: tools.x.summary: must be text, not a number"},
		{"tools: {x: {mode: watch}}", "1:19: tools.x.mode: must be enforce or observe"},
		{"tools: {x: {effect: true}}", "1:21: tools.x.effect: must be text, not a boolean"},
		{"tools: {x: {effect: read}}", "1:21: tools.x.effect: must be guarded or none"},
		{"tools: {x: {repeat: [hold]}}", "1:21: tools.x.repeat: must be text, not a list"},
		{"tools: {x: {repeat: never}}", "1:21: tools.x.repeat: must be hold or allow"},
		{"tools: {x: {on_unknown: retry}}", "1:25: tools.x.on_unknown: must be pause or same_key"},
		// Times.
		{"tools: {x: {deadline: 0s}}", "1:23: tools.x.deadline: must be at least 1s"},
		{"tools: {x: {deadline: -5s}}", "1:23: tools.x.deadline: must not be negative"},
		{"tools: {x: {deadline: soon}}", "1:23: tools.x.deadline: must be a duration"},
		{"tools: {x: {deadline: 999999999999d}}", "1:23: tools.x.deadline: must be a duration"},
		{"tools: {x: {lands_within: -10m}}", "1:27: tools.x.lands_within: must not be negative"},
		{"tools: {x: {overdue_after: 0s}}", "1:28: tools.x.overdue_after: must be at least 1s"},
		// Templates.
		{"tools: {x: {summary: 'Pay {amount'}}", "1:22: tools.x.summary: a { that is not closed"},
		{"tools: {x: {summary: 'Pay amount}'}}", "1:22: tools.x.summary: a } without a {"},
		{"tools: {x: {summary: 'Pay {}'}}", "1:22: tools.x.summary: {} must be a path"},
		{"tools: {x: {summary: 'Pay {a b}'}}", "1:22: tools.x.summary: {a b} must be a path"},
		{"tools: {x: {business_key: invoice}}", "1:27: tools.x.business_key: names no argument"},
		{"tools: {x: {where_to_check: portal}}", "1:29: tools.x.where_to_check: must be a list"},
		{"tools: {x: {where_to_check: [ok, '{']}}", "1:34: tools.x.where_to_check[1]: a { that is not closed"},
		{"tools: {x: {where_to_check: ['https://{bank}/x']}}", "1:30: tools.x.where_to_check[0]: the host of a link must be fixed"},
		{"tools: {x: {where_to_check: ['https://bank{x}/']}}", "1:30: tools.x.where_to_check[0]: the host of a link must be fixed"},
		{"tools: {x: {where_to_check: ['https://u:p@bank/{x}']}}", "1:30: tools.x.where_to_check[0]: the host of a link must be fixed"},
		// Volatile.
		{"tools: {x: {volatile: trace_id}}", "1:23: tools.x.volatile: must be a list"},
		{"tools: {x: {volatile: [$.trace]}}", "1:24: tools.x.volatile[0]: must be a path"},
		{"tools: {x: {volatile: [/trace]}}", "1:24: tools.x.volatile[0]: must be a path"},
		{"tools: {x: {volatile: [a..b]}}", "1:24: tools.x.volatile[0]: must be a path"},
		{"tools: {x: {volatile: ['items[0]']}}", "1:24: tools.x.volatile[0]: must be a path"},
		{"tools: {x: {volatile: [7]}}", "1:24: tools.x.volatile[0]: must be text, not a number"},
		{"tools: {x: {volatile: [a, a]}}", "1:27: tools.x.volatile[1]: is in the list already"},
		{"tools: {x: {business_key: '{a}/{b}', volatile: [c, b]}}", "1:48: tools.x.volatile: b leaves out b"},
		{"tools: {x: {business_key: '{a.b}', volatile: [a]}}", "1:46: tools.x.volatile: a leaves out a.b"},
		{"tools: {x: {amount: {value: v, currency: c, unit: minor}, volatile: [v]}}", "1:69: tools.x.volatile: v leaves out v"},
		// Money.
		{"tools: {x: {amount: v}}", "1:21: tools.x.amount: must be a mapping"},
		{"tools: {x: {amount: {value: v, currency: c}}}", "1:21: tools.x.amount: unit is missing"},
		{"tools: {x: {amount: {value: v, unit: minor}}}", "1:21: tools.x.amount: currency is missing"},
		{"tools: {x: {amount: {currency: c, unit: minor}}}", "1:21: tools.x.amount: value is missing"},
		{"tools: {x: {amount: {value: v, currency: c, unit: cents}}}", "1:51: tools.x.amount.unit: must be minor or major"},
		{"tools: {x: {amount: {value: '{v}', currency: c, unit: minor}}}", "1:29: tools.x.amount.value: must be a path"},
		{"tools: {x: {amount: {value: v, currency: c, unit: minor, decimals: 2.5}}}", "1:68: tools.x.amount.decimals: must be a whole number"},
		{"tools: {x: {amount: {value: v, currency: c, unit: minor, decimals: [6]}}}", "1:68: tools.x.amount.decimals: must be text, not a list"},
		{"tools: {x: {second_person_above: {USD: '5'}}}", "1:34: tools.x.second_person_above: needs amount"},
		{above("[USD]"), "1:80: tools.x.second_person_above: must be a mapping"},
		{above("{USB: '5'}"), "1:81: tools.x.second_person_above.USB: not an ISO 4217 currency code"},
		{above("{USD: '5.001'}"), "1:86: tools.x.second_person_above.USD: USD has 2 decimals"},
		{above("{USD: 1e3}"), "1:86: tools.x.second_person_above.USD: an amount is written with the digits"},
		{above("{USD: '-5'}"), "1:86: tools.x.second_person_above.USD: must not be negative"},
		{above("{USD: [5]}"), "1:86: tools.x.second_person_above.USD: must be text, not a list"},
		{above("{USD: 5, USD: 6}"), "1:89: tools.x.second_person_above.USD: was already set"},
		// Expressions.
		{"tools: {x: {refusal: true}}", "1:22: tools.x.refusal: must be text, not a boolean"},
		{"tools: {x: {refusal: 'error.code =='}}", "1:22: tools.x.refusal: at character 14 of the expression: Syntax error"},
		{"tools: {x: {refusal: 'eror.code == 1'}}", "1:22: tools.x.refusal: at character 1 of the expression: undeclared reference to 'eror'"},
		{"tools: {x: {refusal: '\"a\" == 1'}}", "1:22: tools.x.refusal: at character 5 of the expression: found no matching overload"},
		{"tools: {x: {refusal: '1 + 1'}}", "1:22: tools.x.refusal: must give true or false, not int"},
		// The vendor's key.
		{"tools: {x: {vendor_key: 24h}}", "1:25: tools.x.vendor_key: must be a mapping"},
		{"tools: {x: {vendor_key: {checks_body: true}}}", "1:25: tools.x.vendor_key: life is missing"},
		{"tools: {x: {vendor_key: {life: 0s}}}", "1:32: tools.x.vendor_key.life: must be at least 1s"},
		{"tools: {x: {vendor_key: {life: 1d, checks_body: 1}}}", "1:49: tools.x.vendor_key.checks_body: must be true or false, not a number"},
		{"tools: {x: {on_unknown: same_key, lands_within: 1m}}", "1:25: tools.x.on_unknown: same_key needs vendor_key"},
		{"tools: {x: {on_unknown: same_key, vendor_key: {life: 1d}}}", "1:25: tools.x.on_unknown: same_key needs lands_within"},
		// Examples and look-ups.
		{"tools: {x: {result_example: [1]}}", "1:29: tools.x.result_example: must be an object, not a list"},
		{"tools: {x: {result_example: '{}'}}", "1:29: tools.x.result_example: must be an object, not text"},
		{"tools: {x: {result_example: {a: 0x10}}}", "1:33: tools.x.result_example.a: must be a number as JSON writes it"},
		{"tools: {x: {result_example: {a: [.nan]}}}", "1:34: tools.x.result_example.a[0]: must be text, not a number"},
		{"tools: {x: {result_example: {a: {b: 1, b: 2}}}}", "1:40: tools.x.result_example.a.b: was already set"},
		{"tools: {x: {result_example: {a: " + strings.Repeat("[", 128) + strings.Repeat("]", 128) + "}}}", "1:29: tools.x.result_example: at /a/0/0/"},
		// Endpoints and checkpoints.
		{"webhooks: [x]", "1:11: webhooks: must be a mapping"},
		{"webhooks: {a: {url: 'https://x.example'}}", "1:15: webhooks.a: secrets is missing"},
		{"webhooks: {a: {secrets: ['whsec_aaaa'], url: 'https://x.example'}}", "1:26: webhooks.a.secrets[0]: holds a secret in the open"},
		{"webhooks: {a: {secrets: ['${env:BANK_TOKEN}'], url: 'https://x.example'}}", "1:26: webhooks.a.secrets[0]: must hold a secret of Standard Webhooks"},
		{"webhooks: {a: {secrets: ['${env:WAKE_SECRET}']}}", "1:15: webhooks.a: url is missing"},
		{"webhooks: {a: {secrets: ['${env:WAKE_SECRET}'], url: 'http://x.example'}}", "1:54: webhooks.a.url: must start with https://"},
		{"webhooks: {a: {secrets: ['${env:WAKE_SECRET}'], url: 'https://10.0.0.1/x'}}", "1:54: webhooks.a.url: 10.0.0.1 is a private address"},
		{"webhooks: {a: {secrets: ['${env:WAKE_SECRET}'], url: 'https://u:p@x.example'}}", "1:54: webhooks.a.url: must not hold credentials"},
		{"webhooks: {a: {secrets: ['${env:WAKE_SECRET}'], url: 'https://x.example', events: []}}", "1:75: webhooks.a.events: unknown field"},
		{"checkpoints: {keep: 0}", "1:21: checkpoints.keep: must be a whole number from 1 to 1000"},
		{"tools: {x: {lookup: http}}", "1:21: tools.x.lookup: must be a mapping, not text"},
	} {
		got := mistakes(t, c.src)
		if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%.90q\n got %q\nwant one that starts with %q", c.src, got, c.want)
		}
	}
}

func above(limits string) string {
	return "tools: {x: {amount: {value: v, currency: c, unit: minor}, second_person_above: " + limits + "}}"
}

func TestAFileWithFiveMistakesReportsFive(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/five_mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"4:16: tools.send_payment.deadline: must be at least 1s",
		"5:5: tools.send_payment.volatil: unknown field",
		"7:14: tools.send_payment.refusal: at character 1 of the expression: undeclared reference to 'eror'",
		"8:32: tools.send_payment.second_person_above.USD: USD has 2 decimals; this amount has more",
		"10:14: tools.send_mail.summary: a { that is not closed",
	}
	got := mistakes(t, string(src))
	if len(got) != len(want) {
		t.Fatalf("%d mistakes, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// lineEnds are what YAML takes for the end of a line.
var lineEnds = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

var place = regexp.MustCompile(`^(f|[^:]+\.yaml):([0-9]+):([0-9]+:)? `)

func FuzzLoad(f *testing.F) {
	for _, file := range []string{"testdata/quittance.yaml", "testdata/five_mistakes.yaml"} {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		most := 1 + len(lineEnds.FindAllIndex(src, -1))
		p, found := policy.LoadIn(surroundings, "f", src)
		if (p == nil) != (len(found) > 0) {
			t.Fatalf("a policy and mistakes at once, or neither: %v", found)
		}
		for _, m := range found {
			// A mistake may also be one of the samples that the policy names.
			place := place.FindStringSubmatch(m.String())
			if place == nil {
				t.Fatalf("a mistake without a place: %s", m)
			}
			if line, _ := strconv.Atoi(place[2]); line < 1 || place[1] == "f" && line > most {
				t.Errorf("a mistake at no place of %d lines: %s", most, m)
			}
		}
	})
}
