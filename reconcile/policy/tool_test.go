package policy_test

import (
	"errors"
	"strings"
	"testing"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/policy"
)

func args(t testing.TB, src string) *canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(src))
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return v
}

func TestBusinessKey(t *testing.T) {
	t.Parallel()
	x := tool(t, `business_key: "{vendor.name}/{invoice}#{{{vendor.name}}}"`)
	for _, c := range []struct{ args, key, missing string }{
		{`{"vendor":{"name":"ACME"},"invoice":"INV-9"}`, "ACME/INV-9#{ACME}", ""},
		{`{"vendor":{"name":"Cafe\u0301"},"invoice":9.0}`, "Caf\u00e9/9#{Caf\u00e9}", ""},
		{`{"vendor":{"name":true},"invoice":9007199254740993}`, "true/9007199254740993#{true}", ""},
		{`{"vendor":{"name":"ACME"}}`, "", "invoice"},
		{`{"vendor":"ACME","invoice":null}`, "", "vendor.name invoice"},
		{`{"vendor":{"name":""},"invoice":" \t"}`, "", "vendor.name invoice"},
		{`{"vendor":{"name":["ACME"]},"invoice":{}}`, "", "vendor.name invoice"},
		{`{"vendor":{"name":"A\u0000"},"invoice":"\ud83d"}`, "", "vendor.name invoice"},
	} {
		key, missing, err := x.BusinessKey(args(t, c.args))
		if key != c.key || strings.Join(missing, " ") != c.missing || err != nil {
			t.Errorf("%s: %q, %v, %v", c.args, key, missing, err)
		}
	}
	y := tool(t, `business_key: "{a}"`)
	if key, _, err := y.BusinessKey(args(t, `{"a":"`+strings.Repeat("x", policy.MaxBusinessKey)+`"}`)); err != nil || len(key) != policy.MaxBusinessKey {
		t.Errorf("the longest key: %d bytes, %v", len(key), err)
	}
	if _, _, err := y.BusinessKey(args(t, `{"a":"`+strings.Repeat("x", policy.MaxBusinessKey+1)+`"}`)); !errors.Is(err, policy.ErrBusinessKeyTooLong) {
		t.Errorf("a key that is too long: %v", err)
	}
	if key, missing, err := policy.Default().Tool("x").BusinessKey(args(t, `{"a":1}`)); key != "" || missing != nil || err != nil {
		t.Errorf("a tool without one: %q, %v, %v", key, missing, err)
	}
	before, err := policy.ParseBusinessKey("{a}-{b}")
	if err != nil {
		t.Fatal(err)
	}
	if key, _, _ := before.BusinessKey(args(t, `{"a":1,"b":2}`)); key != "1-2" {
		t.Errorf("the template in force before: %q", key)
	}
	for _, bad := range []string{"", "{", "fixed"} {
		if _, err := policy.ParseBusinessKey(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	minor := tool(t, "summary: \"Pay {amount} {currency} to {vendor}\"\namount: {value: amount, currency: currency, unit: minor}")
	for in, want := range map[string]string{
		`{"amount":420000,"currency":"usd","vendor":"ACME"}`: "Pay 4200.00 usd to ACME",
		`{"amount":"420000","currency":"USD"}`:               "Pay 4200.00 USD to [vendor]",
		`{"amount":420000,"currency":"???","vendor":"ACME"}`: "Pay 420000 (in its smallest unit) ??? to ACME",
		`{}`: "Pay [amount] [currency] to [vendor]",
		`{"amount":1,"currency":"JPY","vendor":"a\u0000\n\ud83d\u202eb"}`:           `Pay 1 JPY to a\u0000\u000a\ud83d\u202eb`,
		`{"amount":1,"currency":"JPY","vendor":"👩‍👧 é e\u0301"}`:                    "Pay 1 JPY to 👩‍👧 é e\u0301",
		`{"amount":1,"currency":"JPY","vendor":"` + strings.Repeat("é", 200) + `"}`: "Pay 1 JPY to " + strings.Repeat("é", 120) + "…",
	} {
		if got := minor.Summary(args(t, in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	none := policy.Default().Tool("send_payment.v2")
	for in, want := range map[string]string{
		`{}`: "Send payment v2",
		`{"vendor":"ACME","lines":[1],"a.b":1.50,"ok":true,"x":"","y":2,"z":3}`: "Send payment v2 (vendor: ACME, a.b: 1.5, ok: true, x: [x], …)",
	} {
		if got := none.Summary(args(t, in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	minor := tool(t, "amount: {value: a, currency: c, unit: minor}")
	major := tool(t, "amount: {value: pay.a, currency: pay.c, unit: major}")
	token := tool(t, "amount: {value: a, currency: c, unit: major, decimals: 6}")
	for _, c := range []struct {
		tool         *policy.Tool
		args, amount string
		reason       string
	}{
		{minor, `{"a":420000,"c":"USD"}`, "4,200.00 USD", ""},
		{minor, `{"a":"420000","c":"usd"}`, "4,200.00 USD", ""},
		{minor, `{"a":4.2e5,"c":"USD"}`, "4,200.00 USD", ""},
		{minor, `{"a":9007199254740993,"c":"USD"}`, "90,071,992,547,409.93 USD", ""},
		{minor, `{"a":5,"c":"JPY"}`, "5 JPY", ""},
		{minor, `{"a":0,"c":"USD"}`, "0.00 USD", ""},
		{minor, `{"a":4200.5,"c":"USD"}`, "", "a: an amount in the smallest unit is a whole number"},
		{minor, `{"a":"4200.00","c":"USD"}`, "", "a: an amount in the smallest unit is a whole number"},
		{minor, `{"a":-5,"c":"USD"}`, "", "a is negative"},
		{minor, `{"a":"1e3","c":"USD"}`, "", "a: an amount is written"},
		{minor, `{"a":1e39,"c":"USD"}`, "", "a: an amount has at most 38 digits"},
		{minor, `{"c":"USD"}`, "", "a is neither text nor a number"},
		{minor, `{"a":null,"c":"USD"}`, "", "a is neither text nor a number"},
		{minor, `{"a":5}`, "", "c is not a currency code"},
		{minor, `{"a":5,"c":840}`, "", "c is not a currency code"},
		{minor, `{"a":5,"c":"secret-currency"}`, "", "c: not an ISO 4217 currency code"},
		{major, `{"pay":{"a":"1000.00","c":"USD"}}`, "1,000.00 USD", ""},
		{major, `{"pay":{"a":12.3,"c":"USD"}}`, "12.30 USD", ""},
		{major, `{"pay":{"a":0.1,"c":"USD"}}`, "0.10 USD", ""},
		{major, `{"pay":{"a":9.145,"c":"USD"}}`, "", "pay.a: USD has 2 decimals"},
		{token, `{"a":"0.000001","c":"USDC"}`, "0.000001 USDC", ""},
		{token, `{"a":"5","c":"USD"}`, "", "c: USD has 2 decimals, not 6"},
		{policy.Default().Tool("x"), `{"a":5,"c":"USD"}`, "", ""},
	} {
		a, reason := c.tool.Amount(args(t, c.args))
		got := ""
		if a != nil {
			got = a.Display()
		}
		if got != c.amount || !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") {
			t.Errorf("%s: %q, %q", c.args, got, reason)
		}
		if strings.Contains(reason, "secret") {
			t.Errorf("the reason repeats the argument: %s", reason)
		}
	}
}

func TestNeedsSecondPerson(t *testing.T) {
	t.Parallel()
	x := tool(t, "amount: {value: a, currency: c, unit: major}\nsecond_person_above: {USD: '1000.00', JPY: 0}")
	none := tool(t, "amount: {value: a, currency: c, unit: major}")
	for in, want := range map[string]bool{
		`{"a":"999.99","c":"USD"}`: false, `{"a":"1000.00","c":"USD"}`: false, `{"a":"1000.01","c":"USD"}`: true,
		`{"a":"0","c":"JPY"}`: false, `{"a":"1","c":"JPY"}`: true,
		`{"a":"0.01","c":"EUR"}`: true, `{"a":"1","c":"USDC"}`: true, `{"c":"USD"}`: true, `{}`: true, `{"a":"-1","c":"USD"}`: true,
	} {
		a, reason := x.Amount(args(t, in))
		if got := x.NeedsSecondPerson(a, reason); got != want {
			t.Errorf("%s: %v", in, got)
		}
		if none.NeedsSecondPerson(a, reason) {
			t.Errorf("%s: needed though no limit is declared", in)
		}
	}
	if huge, _ := money.ParseDecimal("5000", money.Asset{Code: "USD", Decimals: 3}); !x.NeedsSecondPerson(&huge, "") {
		t.Error("an asset of the same code and other decimals passes")
	}
	if zero := tool(t, "amount: {value: a, currency: c, unit: major}\nsecond_person_above: {}"); !zero.NeedsSecondPerson(nil, "") {
		t.Error("an empty list of limits lists no currency, so that every call is above")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	code := tool(t, `refusal: 'error.code == "card_declined"'`)
	number := tool(t, `refusal: 'error.id == 9007199254740993 || error.big == 18446744073709551615u || error.rate == "0.1"'`)
	dyn := tool(t, "refusal: error.final")
	loop := tool(t, `refusal: 'error.list.all(a, error.list.all(b, error.list.all(c, a == b && b == c)))'`)
	for _, c := range []struct {
		tool  *policy.Tool
		error string
		want  bool
	}{
		{code, `{"code":"card_declined"}`, true},
		{code, `{"code":"timeout"}`, false},
		{code, `{"message":"card_declined"}`, false},
		{code, `"card_declined"`, false},
		{code, `null`, false},
		{code, `{"code":["card_declined"]}`, false},
		{number, `{"id":9007199254740993}`, true},
		{number, `{"id":9007199254740992,"big":0,"rate":0.1}`, true},
		{number, `{"id":9007199254740992,"big":18446744073709551615,"rate":""}`, true},
		{number, `{"id":9007199254740992,"big":18446744073709551614,"rate":""}`, false},
		{dyn, `{"final":true}`, true},
		{dyn, `{"final":"true"}`, false},
		{loop, `{"list":[` + strings.Repeat("1,", 500) + `1]}`, false}, // true, but only after too much work
		{policy.Default().Tool("x"), `{"code":"card_declined"}`, false},
	} {
		if got := c.tool.Refused(args(t, c.error)); got != c.want {
			t.Errorf("%.60s: %v", c.error, got)
		}
	}
	if code.Refused(nil) {
		t.Error("no error at all is a refusal")
	}
}

func TestCheckResult(t *testing.T) {
	t.Parallel()
	x := tool(t, `result_example: {payment_id: "po_1", amount: 5, note: null}`)
	for in, want := range map[string]string{
		`{"payment_id":"po_2","amount":7.5,"note":"x"}`:        "",
		`{"payment_id":"po_2","amount":7.5,"note":null}`:       "",
		`{"payment_id":5,"amount":"sk_secret"}`:                "payment_id must be a string, not a number\namount must be a number, not a string\nnote is missing",
		`{"payment_id":"a","amount":1,"note":1,"other":"sk_"}`: "other is not a field of the result example",
		`"po_2"`: "at byte 0: must be an object, not a string",
		`{`:      "at byte 1: a member name in double quotes is expected",
	} {
		got := ""
		if err := x.CheckResult([]byte(in)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	none := policy.Default().Tool("x")
	if none.CheckResult([]byte(`"anything"`)) != nil || none.CheckResult([]byte(`{`)) == nil {
		t.Error("without an example, any JSON is a result and nothing else is")
	}
}

func TestWhereToCheck(t *testing.T) {
	t.Parallel()
	x := tool(t, `
where_to_check:
  - "Search {{bank}} for {id}"
  - "https://bank.example/p/{id}/x?q={id}&y=1#{id}"
  - https://bank.example/fixed`)
	for in, want := range map[string][3]policy.Place{
		`{"id":"INV-9"}`: {
			{Text: "Search {bank} for INV-9"},
			{Text: "https://bank.example/p/INV-9/x?q=INV-9&y=1#INV-9", URL: "https://bank.example/p/INV-9/x?q=INV-9&y=1#INV-9"},
			{Text: "https://bank.example/fixed", URL: "https://bank.example/fixed"},
		},
		`{"id":"a/../b?c=d&e #é"}`: {
			{Text: "Search {bank} for a/../b?c=d&e #é"},
			{Text: "https://bank.example/p/a/../b?c=d&e #é/x?q=a/../b?c=d&e #é&y=1#a/../b?c=d&e #é",
				URL: "https://bank.example/p/a%2F..%2Fb%3Fc=d&e%20%23%C3%A9/x?q=a%2F..%2Fb%3Fc%3Dd%26e+%23%C3%A9&y=1#a%2F..%2Fb%3Fc=d&e%20%23%C3%A9"},
			{Text: "https://bank.example/fixed", URL: "https://bank.example/fixed"},
		},
		`{"id":".."}`: {{Text: "Search {bank} for .."}, {Text: "https://bank.example/p/../x?q=..&y=1#.."}, {Text: "https://bank.example/fixed", URL: "https://bank.example/fixed"}},
		`{}`:          {{Text: "Search {bank} for [id]"}, {Text: "https://bank.example/p/[id]/x?q=[id]&y=1#[id]"}, {Text: "https://bank.example/fixed", URL: "https://bank.example/fixed"}},
	} {
		got := x.WhereToCheck(args(t, in))
		if len(got) != 3 || [3]policy.Place(got) != want {
			t.Errorf("%s:\ngot  %q\nwant %q", in, got, want)
		}
	}
	if got := policy.Default().Tool("x").WhereToCheck(args(t, `{}`)); len(got) != 0 {
		t.Errorf("a tool without places: %v", got)
	}
}
