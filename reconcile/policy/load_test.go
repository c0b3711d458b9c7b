package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
)

// surroundings are this folder's files, and secrets that no test has in its environment.
var surroundings = read.Surroundings{
	Getenv: func(name string) (string, bool) {
		value, set := map[string]string{
			"BANK_TOKEN": "zz-91-token", "STRIPE_KEY": "rk_live_zz91stripe", "EMPTY": "", "BROKEN": "a\nb",
			"BOOKS_URL": "postgres://u:pw9zz@db.example/books", "LETTERS_SECRET": "whsec_enotOTFsZXR0ZXJzLXNlY3JldA==",
			"WAKE_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		}[name]
		return value, set
	},
	ReadFile: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) },
}

// load fails the test on a policy that must be valid.
func load(t testing.TB, src string) *policy.Policy {
	t.Helper()
	p, mistakes := policy.LoadIn(surroundings, "quittance.yaml", []byte(src))
	if err := mistakes.Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

// tool is a tool of the given body, indented by nothing.
func tool(t testing.TB, body string) *policy.Tool {
	t.Helper()
	return load(t, "tools:\n  x:\n    "+strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n    ")+"\n").Tool("x")
}

func full(t testing.TB) *policy.Policy {
	t.Helper()
	src, err := os.ReadFile("testdata/quittance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(src))
}

func TestAWholePolicyIsReadAsWritten(t *testing.T) {
	t.Parallel()
	p := full(t)
	if p.Hold(false, true) != 20*time.Second || p.Hold(true, false) != 20*time.Second || p.Hold(true, true) != 5*time.Minute || p.PermissionLife() != 12*time.Hour {
		t.Error("the release section")
	}
	if got := strings.Join(p.CheckpointRedact(), " "); got != "/session/*/cookie" {
		t.Errorf("checkpoints: %s", got)
	}
	s := p.Tool("send_payment")
	lands, declared := s.LandsWithin()
	if !s.Declared || s.Deadline != 90*time.Second || lands != 10*time.Minute || !declared || s.OverdueAfter != 30*time.Minute {
		t.Error("the times of send_payment")
	}
	if strings.Join(s.Volatile, " ") != "request_time trace_id sdk.created_at" || strings.Join(s.Redact, " ") != "/headers/authorization /iban" {
		t.Errorf("volatile %v, redact %v", s.Volatile, s.Redact)
	}
	if s.Repeat != policy.RepeatHold || s.OnUnknown != policy.OnUnknownSameKey || *s.VendorKey != (policy.VendorKey{Life: 24 * time.Hour, ChecksBody: true}) {
		t.Error("repeat, on_unknown, vendor_key")
	}
	if !s.Guarded() || s.Observe() || !s.HasLookup() || s.BusinessKeyTemplate() != "{vendor}/{invoice}" {
		t.Error("effect, mode, lookup, business_key")
	}
	if got := string(s.ResultExample()); got != `{"payment_id":"po_1","amount":9007199254740993,"fee":1.50,"steps":[1,{"ok":true}],"memo":null}` {
		t.Errorf("result_example: %s", got)
	}
	if got := strings.Join(s.Keep(), " "); got != "vendor invoice amount currency vendor invoice amount currency" {
		t.Errorf("keep: %s", got)
	}
	if !p.Tool("pay_invoice_token").Observe() || p.Tool("get_balance").Guarded() || !p.Tool("send_mail").Declared {
		t.Error("the other tools")
	}
	var names []string
	for _, tool := range p.Tools() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "buy_page charge_card file_return get_balance pay_invoice_token pay_on_chain pay_with_memo post_entry send_letter send_mail send_payment" {
		t.Errorf("tools: %s", got)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "# nothing yet\n", "---\n", "release:\ntools:\n", "tools: {}"} {
		p := load(t, src)
		if p.Hold(false, true) != 10*time.Second || p.Hold(true, false) != 10*time.Second || p.Hold(false, false) != 10*time.Second || p.Hold(true, true) != 120*time.Second || p.PermissionLife() != 24*time.Hour {
			t.Errorf("%q: the release section", src)
		}
		u := p.Tool("anything")
		_, lands := u.LandsWithin()
		if u.Name != "anything" || u.Declared || !u.Guarded() || u.Observe() || u.HasLookup() || u.HasBusinessKey() || lands ||
			u.Deadline != 180*time.Second || u.OverdueAfter != time.Hour || u.Repeat != policy.RepeatAllow || u.OnUnknown != policy.OnUnknownPause ||
			u.VendorKey != nil || u.ResultExample() != nil || u.BusinessKeyTemplate() != "" || len(u.Keep()) != 0 {
			t.Errorf("%q: an undeclared tool is %+v", src, u)
		}
	}
	if tool(t, `business_key: "{a}"`).Repeat != policy.RepeatHold || tool(t, "business_key: '{a}'\nrepeat: allow").Repeat != policy.RepeatAllow || tool(t, "repeat: hold").Repeat != policy.RepeatHold {
		t.Error("the default of repeat")
	}
	if d, declared := tool(t, "lands_within: 0s").LandsWithin(); d != 0 || !declared {
		t.Error("lands_within 0s is a declaration")
	}
	zero := load(t, "release: {hold: 0s, not_taken_hold: 0}")
	if zero.Hold(false, false) != 0 || zero.Hold(true, true) != 0 {
		t.Error("a hold of 0 is allowed")
	}
	if got := strings.Join(load(t, "redact: [/a]").Tool("undeclared").Redact, " "); got != "/a" {
		t.Errorf("an undeclared tool's pointers: %s", got)
	}
	if policy.Default().Source != "" || policy.Default().Digest != load(t, "").Digest || load(t, "").Digest == load(t, "#").Digest {
		t.Error("source and digest")
	}
}
