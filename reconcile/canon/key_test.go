package canon_test

import (
	"regexp"
	"testing"

	"quittance/reconcile/canon"
)

func key(t testing.TB, args string) canon.Key {
	t.Helper()
	return canon.EffectKey("run", "tool", parse(t, args), 1)
}

func wantOneKey(t *testing.T, args ...string) {
	t.Helper()
	for _, a := range args[1:] {
		if key(t, a) != key(t, args[0]) {
			t.Errorf("%s and %s have two keys, want one", args[0], a)
		}
	}
}

func wantDifferentKeys(t *testing.T, args ...string) {
	t.Helper()
	seen := map[canon.Key]string{}
	for _, a := range args {
		if other, ok := seen[key(t, a)]; ok {
			t.Errorf("%s and %s share a key", a, other)
		}
		seen[key(t, a)] = a
	}
}

func TestBC047_OnlyTheDeclaredPathsAreVolatile(t *testing.T) {
	t.Parallel()
	volatile := []string{"attempt_id", "sdk.created_at"}
	of := func(args string) canon.Key {
		return canon.EffectKey("run", "pay", parse(t, args).Without(volatile), 1)
	}
	first := of(`{"order":"O-9","amount":"31.00","attempt_id":"x1","sdk":{"created_at":"2026-01-02T10:00:00Z","name":"web"}}`)
	second := of(`{"order":"O-9","amount":"31.00","attempt_id":"x2","sdk":{"created_at":"2026-01-02T10:00:09Z","name":"web"}}`)
	third := of(`{"order":"O-9","amount":"31.00","attempt_id":"x2","sdk":{"created_at":"2026-01-02T10:00:09Z","name":"app"}}`)
	fourth := of(`{"order":"O-9","amount":"31.00","attempt_id":"x1","created_at":"later","sdk":{"created_at":"2026-01-02T10:00:00Z","name":"web"}}`)
	if first != second {
		t.Error("the declared paths are still in the key")
	}
	if first == third || first == fourth || third == fourth {
		t.Error("a path that was not declared was left out of the key")
	}
}

func TestBC048_SpellingsOfANumberShareAKey(t *testing.T) {
	t.Parallel()
	wantOneKey(t, `{"hours":1.0,"rate":40}`, `{"hours":1,"rate":40.00}`, `{"hours":1e0,"rate":4E1}`, `{"rate":40,"hours":10e-1}`)
	wantDifferentKeys(t, `{"hours":1}`, `{"hours":"1"}`, `{"hours":"1.0"}`)
}

func TestBC049_ArrayOrderCountsAndMemberOrderDoesNot(t *testing.T) {
	t.Parallel()
	wantOneKey(t, `{"zeta":1,"a":{"bb":2,"b":[3,1,2]}}`, `{"a":{"b":[3,1,2],"bb":2},"zeta":1}`)
	wantDifferentKeys(t, `{"zeta":1,"a":{"bb":2,"b":[3,1,2]}}`, `{"zeta":1,"a":{"bb":2,"b":[1,2,3]}}`)
}

func TestBC051_LargeIntegersAreExactInEverySpelling(t *testing.T) {
	t.Parallel()
	wantOneKey(t, `{"units":100000000000000000000}`, `{"units":1e20}`, `{"units":1E+20}`)
	wantDifferentKeys(t, `{"units":100000000000000000000}`, `{"units":100000000000000000001}`)
}

func TestBC052_ComposedAndDecomposedShareAKey(t *testing.T) {
	t.Parallel()
	const composed = "{\"vendor\":\"Caf\u00e9 Z\u00fcrich\",\"amount\":\"70.00\"}"
	const decomposed = "{\"vendor\":\"Cafe\u0301 Zu\u0308rich\",\"amount\":\"70.00\"}"
	wantOneKey(t, composed, decomposed)
	if got, _ := parse(t, decomposed).Lookup("vendor").Text(); got != "Cafe\u0301 Zu\u0308rich" {
		t.Errorf("the text is not as sent: %q", got)
	}
	wantDifferentKeys(t, `{"f":"ﬁle"}`, `{"f":"file"}`)
	wantDifferentKeys(t, `{"f":"１"}`, `{"f":"1"}`)
	if canon.ClaimKey("a", "t", "Caf\u00e9") != canon.ClaimKey("a", "t", "Cafe\u0301") {
		t.Error("two spellings of a business key are two claims")
	}
}

func TestBC054_NullIsNotItsLookalikes(t *testing.T) {
	t.Parallel()
	wantDifferentKeys(t, `{"memo":null}`, `{"memo":"null"}`, `{"memo":""}`, `{}`)
	if _, err := canon.ParseObject([]byte(`{"memo":NaN}`)); err == nil {
		t.Error("NaN is accepted")
	}
}

func TestBC057_PartsAreNeverGlued(t *testing.T) {
	t.Parallel()
	empty := parse(t, `{}`)
	x := `{"x":"1","y":"2"}`
	glued := `{"x":"1\",\"y\":\"2"}`
	keys := map[canon.Key]bool{
		canon.EffectKey("a", "b:c", empty, 1):         true,
		canon.EffectKey("a:b", "c", empty, 1):         true,
		canon.EffectKey("r", "t", parse(t, x), 1):     true,
		canon.EffectKey("r", "t", parse(t, glued), 1): true,
		canon.EffectKey("r", "ts1:1", parse(t, x), 1): true,
		canon.EffectKey("", "a", empty, 1):            true,
		canon.EffectKey("a", "", empty, 1):            true,
	}
	if len(keys) != 7 {
		t.Errorf("%d different keys, want 7", len(keys))
	}
}

func TestBC058_AStringThatHoldsAnObjectIsRefused(t *testing.T) {
	t.Parallel()
	_, err := canon.ParseObject([]byte(`"{\"amount\":\"5.00\"}"`))
	if err == nil || err.Error() != "at byte 0: this is a JSON string that contains an object: send the object itself" {
		t.Errorf("got %v", err)
	}
	for src, want := range map[string]string{
		`[{"amount":"5.00"}]`: "at byte 0: must be an object, not an array",
		`"5.00"`:              "at byte 0: must be an object, not a string",
		`null`:                "at byte 0: must be an object, not null",
		`5`:                   "at byte 0: must be an object, not a number",
	} {
		if _, err := canon.ParseObject([]byte(src)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
	if _, err := canon.ParseObject([]byte(` {"amount":"5.00"} `)); err != nil {
		t.Errorf("an object is refused: %v", err)
	}
}

func TestBC059_NeighboursPastFloatPrecisionDiffer(t *testing.T) {
	t.Parallel()
	wantDifferentKeys(t, `{"order_id":9007199254740993}`, `{"order_id":9007199254740992}`, `{"order_id":3141592653589793239}`, `{"order_id":3141592653589793238}`)
	for _, digits := range []string{"9007199254740993", "3141592653589793239"} {
		if got, _ := parse(t, `{"order_id":`+digits+`}`).Lookup("order_id").Number(); got != digits {
			t.Errorf("%s became %s", digits, got)
		}
	}
}

func TestBC133_OddCharactersKeepKeysApart(t *testing.T) {
	t.Parallel()
	wantDifferentKeys(t, `{"m":"O\u0000K"}`, `{"m":"OK"}`, `{"m":"O\\u0000K"}`, `{"m":"O K"}`)
	wantDifferentKeys(t, `{"m":"cut \ud83d"}`, `{"m":"cut \ud83e"}`, `{"m":"cut \ufffd"}`, `{"m":"cut "}`, `{"m":"cut 😀"}`)
	wantOneKey(t, `{"m":"😀"}`, `{"m":"\ud83d\ude00"}`, `{"m":"\uD83D\uDE00"}`)
}

func TestKeysSeparateEveryPart(t *testing.T) {
	t.Parallel()
	args, other := parse(t, `{"a":1}`), parse(t, `{"a":2}`)
	call := canon.CallDigest("t", args)
	keys := []canon.Key{
		canon.EffectKey("r", "t", args, 1), canon.EffectKey("r", "t", args, 2), canon.EffectKey("r", "t", args, 10),
		canon.EffectKey("r2", "t", args, 1), canon.EffectKey("r", "t2", args, 1), canon.EffectKey("r", "t", other, 1),
		canon.EffectKey("r", "t", nil, 1),
		call, canon.CallDigest("t2", args), canon.CallDigest("t", other),
		canon.MintedKey("r", "k"), canon.MintedKey("r2", "k"), canon.MintedKey("r", "k2"),
		canon.ClaimKey("a", "t", "k"), canon.ClaimKey("b", "t", "k"), canon.ClaimKey("a", "u", "k"), canon.ClaimKey("a", "t", "l"),
		canon.CallClaim("a", "t", call), canon.CallClaim("b", "t", call), canon.CallClaim("a", "u", call),
		// A business key that spells a digest, raw or in hexadecimal, is not that call's claim.
		canon.ClaimKey("a", "t", string(call[:])), canon.ClaimKey("a", "t", call.String()),
	}
	seen := map[canon.Key]int{}
	for i, k := range keys {
		if j, ok := seen[k]; ok {
			t.Errorf("keys %d and %d are equal", j, i)
		}
		seen[k] = i
	}
}

// The keys of stored effects: a change here orphans every record.
func TestKeysStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	args := parse(t, `{"vendor":"ACME Tools","invoice":"INV-9","amount":"4200.00","currency":"USD"}`)
	for what, c := range map[string]struct{ got, want string }{
		"effect": {canon.EffectKey("run-ap-771", "send_payment", args, 1).String(), "fbc64a542cd52a4f87a1a467acf065bb112cca8f9f9ac47975d6878866c7cc79"},
		"call":   {canon.CallDigest("send_payment", args).String(), "895223e89b54452ea575b8261ed34940199c39765424cac134c52b3b8299255e"},
		"claim":  {canon.ClaimKey("acme", "send_payment", "ACME Tools/INV-9").String(), "b6622f84fbb654b22b2d498f05049577d92a0a8c53f43e7666550d80bef813a9"},
		"vendor": {canon.VendorKey("acme", "run-ap-771", "k"), "qt_s6jqukqp5csvtw57qudqndfprz5scrffcbnpqshra5fa667kqwgq"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s", what, c.got)
		}
	}
}

func TestVendorKeyFitsAnyHeader(t *testing.T) {
	t.Parallel()
	good := regexp.MustCompile(`^qt_[a-z2-7]{52}$`)
	seen := map[string]bool{}
	for _, k := range []string{
		canon.VendorKey("a", "b", "c"), canon.VendorKey("ab", "", "c"), canon.VendorKey("", "ab", "c"),
		canon.VendorKey("a", "bc", ""), canon.VendorKey("\x00", "\n", "é"),
	} {
		if !good.MatchString(k) || seen[k] {
			t.Errorf("bad or repeated vendor key %q", k)
		}
		seen[k] = true
	}
}
