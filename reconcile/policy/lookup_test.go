package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"quittance/reconcile/policy"
)

// bank is a lookup block without a mistake; each test spoils one line of it.
const bank = `
business_key: "{invoice}"
amount: {value: amount, currency: currency, unit: minor}
lookup:
  http:
    url: https://bank.example/v1/payments?reference={business_key}
    headers: {Authorization: "Bearer ${env:BANK_TOKEN}"}
  found: body.data.filter(p, p.reference == effect.business_key)
  match: same_amount(hit.amount, "minor") && hit.currency == effect.currency
  final: hit.status == "booked"
  reference: hit.id
  result: '{"id": hit.id}'
  absence_is_proof: true
  canary: https://bank.example/v1/payments?reference=CANARY-1
`

func asTool(body string) string {
	return "tools:\n  x:\n    " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n    ") + "\n"
}

func TestALookupBlockIsStrict(t *testing.T) {
	t.Parallel()
	if got := mistakes(t, asTool(bank)); len(got) > 0 {
		t.Fatalf("the block that the mistakes are made in has some already: %q", got)
	}
	for _, c := range []struct{ old, new, want string }{
		// Where to ask.
		{"  http:\n", "  soap:\n", "6:7: tools.x.lookup.soap: unknown field; known here are eip3009, http, memo, order, sql, stripe, webhook_inbox, worker, found"},
		{"https://bank.example/v1/payments?reference={business_key}", "https://bank.example/{arguments.invoice}?r={invoce}", "{invoce} is unknown; known here are business_key"},
		{`business_key: "{invoice}"`, `summary: x`, "{business_key} is never there: the tool declares no business_key"},
		{"https://bank.example/v1/payments?reference={b", "https://{b", "the host must be fixed"},
		{"https://bank.example/v1", "https://10.0.0.7/v1", "10.0.0.7 is a private address"},
		{"https://bank.example/v1", "https://localhost/v1", "localhost is a private address"},
		{"https://bank.example/v1", "https://169.254.169.254/v1", "169.254.169.254 is a private address"},
		{"https://bank.example/v1", "https://[::ffff:127.0.0.1]/v1", "::ffff:127.0.0.1 is a private address"},
		{"https://bank.example/v1", "http://bank.example/v1", "must start with https://"},
		{"https://bank.example/v1", "https://u:p@bank.example/v1", "must not hold credentials"},
		{"https://bank.example/v1", "ftp://bank.example/v1", "must be a URL that starts with https://"},
		{"{business_key}", "{business_key}#top", "a fragment (#) is never sent"},
		// Secrets.
		{"${env:BANK_TOKEN}", "${env:UNSET}", "the environment variable UNSET is not set"},
		{"${env:BANK_TOKEN}", "${env:EMPTY}", "the environment variable EMPTY is not set"},
		{"${env:BANK_TOKEN}", "${env:BROKEN}", "the environment variable BROKEN holds a line break"},
		{"${env:BANK_TOKEN}", "${BANK_TOKEN}", "a secret is written ${env:NAME}"},
		{"Bearer ${env:BANK_TOKEN}", "Bearer abc", "holds a secret in the open"},
		{"headers: {Authorization", "headers: {Host", "is not a header that can be set here"},
		{"headers: {", "oauth2: {token_url: https://bank.example/t, client_id: us, client_secret: plain}\n    headers: {", "client_secret: holds a secret in the open"},
		// Methods.
		{"headers: {", "method: POST\n    headers: {", "POST needs read_only: true"},
		{"headers: {", "method: DELETE\n    headers: {", "must be GET or POST"},
		{"headers: {", "body: {a: b}\n    headers: {", "goes with method: POST"},
		// Expressions.
		{"effect.business_key)", "effect.busines_key)", "at character 42 of the expression: undefined field 'busines_key'"},
		{"p.reference == effect.business_key", "p.reference.contains(effect.business_key)", "compares a key in part: 27 is also in 1927"},
		{"body.data.filter(p, p.reference == effect.business_key)", "body.data", "neither found nor match compares a hit with the effect"},
		{"body.data.filter(p, p.reference == effect.business_key)", "size(body.data)", "must give a list, not int"},
		{`same_amount(hit.amount, "minor") &&`, `hit.amount == effect.amount_minor &&`, "match does not compare it with same_amount"},
		{`same_amount(hit.amount, "minor") &&`, `hit.amount == 1.5 && same_amount(hit.amount, "minor") &&`, "must not use floats"},
		{`same_amount(hit.amount, "minor") &&`, `double(hit.amount) > double(0) && same_amount(hit.amount, "minor") &&`, "must not use floats"},
		{`"minor") &&`, `"cents") &&`, `the unit of same_amount is "minor" or "major"`},
		{"hit.currency == effect.currency", "true", "match does not compare effect.currency"},
		{"amount: {value: amount, currency: currency, unit: minor}", "summary: x", "the tool declares no amount"},
		{`final: hit.status == "booked"`, `state: hit.status`, "final is missing: whether a hit can still change"},
		{"reference: hit.id", "not_found: status == 404\n  reference: hit.id", "names nothing of the body"},
		{"reference: hit.id", "never: hit.status == 'x'\n  reference: hit.id", "needs ours"},
		{"reference: hit.id", "next: page.next\n  reference: hit.id", "undeclared reference to 'page'"},
		// Absence.
		{"  canary: https://bank.example/v1/payments?reference=CANARY-1\n", "", "needs canary"},
		{"payments?reference=CANARY-1", "transfers?reference=CANARY-1", "must be the look-up's URL with the canary's key"},
		{"canary: https://bank.example/v1/payments?reference=CANARY-1", "canary: {key: C, url: https://other.example/C}", "must be on the host of the look-up"},
		{"canary: ", "kept_for: soon\n  canary: ", "must be a duration"},
		{"canary: ", "per_second: 0\n  canary: ", "must be a whole number from 1 to 10000"},
		{"canary: ", "samples: nowhere.yaml\n  canary: ", "couldn't read the file nowhere.yaml"},
		{"p.reference == effect.business_key", "p.reference == effect.arguments.invoice", "the canary has no arguments to be found by"},
	} {
		src := strings.Replace(bank, c.old, c.new, 1)
		if src == bank {
			t.Errorf("nothing was spoilt by %q", c.old)
		}
		got := strings.Join(mistakes(t, asTool(src)), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%q for %q\n got %q\nwant one with %q", c.new, c.old, got, c.want)
		}
		if strings.Contains(got, "zz-91") {
			t.Errorf("a mistake tells a secret: %s", got)
		}
	}
}

func TestAllMistakesOfALookupAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	src := strings.NewReplacer("bank.example/v1/payments?reference={", "10.1.2.3/v1/payments?reference={", "BANK_TOKEN", "UNSET", "hit.status ==", "hitt.status ==").Replace(bank)
	got := mistakes(t, asTool(src))
	for i, want := range []string{
		"7:14: tools.x.lookup.http.url: 10.1.2.3 is a private address",
		"8:34: tools.x.lookup.http.headers.Authorization: the environment variable UNSET is not set",
		"11:14: tools.x.lookup.final: at character 1 of the expression: undeclared reference to 'hitt'",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("mistake %d is not %q:\n%s", i, want, strings.Join(got, "\n"))
		}
	}
	if len(got) != 3 {
		t.Errorf("%d mistakes, want 3:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestTheOtherKindsAreStrictToo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lookup, want string }{
		{"{}", "says not how to look: one of eip3009, http, memo, order, sql, stripe, webhook_inbox, worker is missing"},
		{"{http: {}, sql: {}}", "a look-up has one kind, and this one has http already"},
		{"{sql: {connection: nowhere, query: 'SELECT 1', parameters: ['{business_key}']}}", "no connection of this name"},
		{"{sql: {connection: books, query: 'DELETE FROM x', parameters: ['{business_key}']}}", "must be one statement that reads"},
		{"{sql: {connection: books, query: 'SELECT 1; SELECT 2', parameters: ['{business_key}']}}", "without a ; in it"},
		{"{sql: {connection: books, query: 'SELECT 1', parameters: []}}", "needs at least one"},
		{"{sql: {connection: books, query: 'SELECT 1', parameters: ['{business_key}']}, absence_is_proof: true}", "needs canary: the business key of a row that exists"},
		{"{stripe: {key: rk_live_x, metadata: k}}", "holds a secret in the open"},
		{"{stripe: {key: '${env:STRIPE_KEY}'}}", "id or metadata is needed"},
		{"{stripe: {key: '${env:STRIPE_KEY}', metadata: k}}", "the tool declares no amount"},
		{"{stripe: {key: '${env:STRIPE_KEY}', metadata: k, url: 'http://127.0.0.1:12111'}}", "127.0.0.1 is a private address"},
		{"{stripe: {key: '${env:STRIPE_KEY}', metadata: k, url: 'http://stripe.example'}}", "must start with https://"},
		{"{stripe: {key: '${env:STRIPE_KEY}', metadata: k, url: 'https://u:p@stripe.example'}}", "must not hold credentials"},
		{"{stripe: {key: '${env:STRIPE_KEY}', metadata: k, object: customer}}", "must be charge or payment_intent or refund"},
		{"{webhook_inbox: {name: a, signature: standard_webhooks, secrets: [plain]}}", "holds a secret in the open"},
		{"{webhook_inbox: {name: a, signature: standard_webhooks, secrets: ['${env:BANK_TOKEN}']}}", "must hold a secret of Standard Webhooks"},
		{"{webhook_inbox: {name: a, signature: stripe, secrets: ['${env:BANK_TOKEN}']}, absence_is_proof: true}", "an event that did not come proves nothing"},
		{"{worker: {pool: 5}}", "pool: must be text"},
		{"{worker: {}, allow_private: true}", "means nothing for worker"},
		{"{worker: {}, next: body.next}", "next: means nothing for worker"},
		{"{sql: {}, not_found: 'body == null'}", "not_found: means nothing for sql"},
		{"{webhook_inbox: {}, next: body.next}", "next: means nothing for webhook_inbox"},
		{"{eip3009: {}}", "nonce is missing: the authorization's 32 bytes"},
		{"{eip3009: {}}", "chain_id is missing: the number of the chain"},
		{"{eip3009: {asset: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB49'}}", "asset: is an address whose letters do not fit its checksum"},
		{"{eip3009: {asset: usdc}}", "asset: is not an address"},
		{"{eip3009: {chain_id: 0}}", "must be a whole number from 1"},
		{"{eip3009: {chunk: 2000}}", "must be a whole number from 1 to 1999"},
		{"{eip3009: {rpc: 'https://${env:BANK_TOKEN}'}}", "the host must stand in the open"},
		{"{eip3009: {rpc: 'https://${env:BANK_TOKEN}.rpc.example/v2'}}", "the host must stand in the open"},
		{"{eip3009: {rpc: 'https://rpc.example/${env:UNSET}'}}", "the environment variable UNSET is not set"},
		{"{eip3009: {rpc: 'http://rpc.example'}}", "must start with https://"},
		{"{eip3009: {rpc: [https://rpc.example, 'https://10.0.0.7/']}}", "rpc[1]: 10.0.0.7 is a private address"},
		{"{eip3009: {rpc: []}}", "needs at least one URL"},
		{"{eip3009: {nonce: '{arguments.trace}'}}", "{arguments.trace} is volatile"},
		{"{eip3009: {nonce: '{nonce}'}}", "{nonce} is unknown"},
		{"{eip3009: {signature: '{arguments.signature}'}}", "signature, domain {name, version} and valid_after go together"},
		{"{eip3009: {}, absence_is_proof: true}", "absence_is_proof: means nothing for eip3009"},
		{"{eip3009: {}, kept_for: 3d}", "kept_for: means nothing for eip3009"},
		{"{eip3009: {}, match: 'true'}", "match: means nothing for eip3009"},
		{"{eip3009: {}, samples: x.yaml}", "samples: means nothing for eip3009"},
		{"{eip3009: {}, result: hitt.x}", "undeclared reference to 'hitt'"},
		{"{memo: {rpc: 'https://rpc.example'}}", "memo or transaction is needed"},
		{"{memo: {transaction: '{arguments.tx}', digest: true}}", "digest: goes with memo"},
		{"{memo: {memo: '{business_key}'}, absence_is_proof: true}", "needs canary: the hash of a transaction with a memo"},
		{"{memo: {memo: '{business_key}'}, canary: CANARY}", "must be the hash of a transaction"},
		{"{memo: {memo: '{arguments.trace}'}}", "{arguments.trace} is volatile"},
	} {
		src := fmt.Sprintf("connections: {books: '${env:BOOKS_URL}'}\ntools: {x: {business_key: '{a}', volatile: [trace], lookup: %s}}", c.lookup)
		if got := strings.Join(mistakes(t, src), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s\n got %q\nwant one with %q", c.lookup, got, c.want)
		}
	}
	for src, want := range map[string]string{
		"connections: {b: 'postgres://u:pw9zz@h/d'}":  "must be ${env:NAME}",
		"connections: {b: '${env:UNSET}'}":            "the environment variable UNSET is not set",
		"connections: {b: '${env:LETTERS_SECRET} x'}": "is neither a postgres:// URL nor a key=value list",
	} {
		if got := strings.Join(mistakes(t, src), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// Each sample is turned into what it is not: a sample that passes whatever it says would be
// worth nothing.
func TestAFailingSampleRefusesThePolicy(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/quittance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := os.ReadFile("testdata/lookups/send_payment.samples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(samples), "\n- name: ")
	for i := 1; i < len(parts); i++ {
		spoilt := strings.Clone(parts[i])
		for _, word := range []string{"inconclusive", "not_taken", "taken"} {
			if before, after, found := strings.Cut(spoilt, "verdict: "+word); found {
				other := map[string]string{"inconclusive": "taken", "not_taken": "inconclusive", "taken": "not_taken"}[word]
				spoilt = before + "verdict: " + other + after
				break
			}
		}
		file := strings.Join([]string{strings.Join(parts[:i], "\n- name: "), spoilt}, "\n- name: ")
		if i+1 < len(parts) {
			file += "\n- name: " + strings.Join(parts[i+1:], "\n- name: ")
		}
		in := surroundings
		in.ReadFile = func(string) ([]byte, error) { return []byte(file), nil }
		_, found := policy.LoadIn(in, "quittance.yaml", src)
		name, _, _ := strings.Cut(parts[i], "\n")
		if len(found) != 1 || found[0].File != "lookups/send_payment.samples.yaml" || !strings.Contains(found[0].String(), name) || !strings.Contains(found[0].Problem, "is judged") {
			t.Errorf("%s: %v", name, found)
		}
	}
	in := surroundings
	in.ReadFile = func(string) ([]byte, error) { return []byte("- {name: x}\n- 5\n"), nil }
	_, found := policy.LoadIn(in, "quittance.yaml", src)
	if got := found.String(); !strings.Contains(got, "lookups/send_payment.samples.yaml:1:3: [0]: verdict is missing") || !strings.Contains(got, "2:3: [1]: must be a mapping") {
		t.Errorf("mistakes of the samples' own form: %s", got)
	}
}

// A source that says how far its view reaches needs no visible_after, in a sample neither.
func TestASampleOfASourceThatSaysAsOf(t *testing.T) {
	t.Parallel()
	src := asTool(strings.Replace(bank, "absence_is_proof", "as_of: timestamp(body.at)\n  kept_for: 30d\n  samples: s.yaml\n  absence_is_proof", 1))
	for verdict, want := range map[string]int{"not_taken": 0, "inconclusive": 1} {
		in := surroundings
		in.ReadFile = func(string) ([]byte, error) {
			return []byte("- {arguments: {invoice: I, amount: 1, currency: USD}, answer: {body: {data: [], at: '2020-01-01T00:00:00Z'}}, verdict: " + verdict + "}\n"), nil
		}
		if _, found := policy.LoadIn(in, "quittance.yaml", []byte(src)); len(found) != want {
			t.Errorf("%s: %v", verdict, found)
		}
	}
}

// A policy that was in force once is read without its secrets and files, which may be gone.
func TestAStoredPolicyNeedsNothingAround(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/quittance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, found := policy.LoadStored(src)
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"send_payment", "charge_card", "post_entry", "file_return", "send_letter"} {
		tool := p.Tool(name)
		if !tool.HasLookup() || tool.Lookup().Source != nil {
			t.Errorf("%s: a stored policy must know that there is a look-up and be unable to ask", name)
		}
	}
	if _, found := policy.LoadStored([]byte("tools: {x: {lookup: {http: {}}}}")); len(found) == 0 {
		t.Error("a stored policy is as strict otherwise")
	}
}

// Whatever of a policy is printed, its secrets are not in it.
func TestBC148_ASecretOfThePolicyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	p := full(t)
	for _, name := range []string{"send_payment", "charge_card", "post_entry", "send_letter"} {
		tool := p.Tool(name)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			for _, what := range []any{p, tool, tool.Lookup(), tool.Lookup().Source} {
				text := fmt.Sprintf(verb, what)
				for _, secret := range []string{"zz-91", "zz91stripe", "pw9zz", "enotOTFs"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s of %T of %s tells %s", verb, what, name, secret)
					}
				}
			}
		}
		if masked := tool.Lookup().Source.Mask("a zz-91-token, a rk_live_zz91stripe"); name == "send_payment" && masked != "a [secret], a rk_live_zz91stripe" {
			t.Errorf("masked: %s", masked)
		}
	}
}
