package money_test

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/ledger/money"
)

// FuzzAmount: what is read is written and read again to the same unit, by every way there
// is, and what is refused is not repeated.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "-0", "1000.00", "-5", "0.000000000000000001", strings.Repeat("9", 38), "1e2", "1,000", "٥", "1.", ".5", "007", "--1", "0x10", "NaN", " 1"} {
		for _, decimals := range []uint8{0, 2, 18, 36} {
			f.Add(text, decimals)
		}
	}
	f.Fuzz(func(t *testing.T, text string, decimals uint8) {
		asset := money.Asset{Code: "TOKEN", Decimals: int(decimals) % (money.MaxDecimals + 1)}
		a, err := money.ParseDecimal(text, asset)
		if err != nil {
			// Long enough not to be a word of ours by chance.
			if len(text) > 40 && strings.Contains(err.Error(), text) {
				t.Fatalf("%q is repeated: %v", text, err)
			}
			return
		}
		if strings.Trim(text, "0123456789.-") != "" {
			t.Fatalf("%q is read as %s", text, a)
		}
		same := func(how string, b money.Amount, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%q as %s: %v", text, how, err)
			}
			if c, err := a.Cmp(b); err != nil || c != 0 {
				t.Fatalf("%q as %s is %s, not %s (%v)", text, how, b, a, err)
			}
		}
		b, err := money.ParseDecimal(a.String(), asset)
		same("a decimal", b, err)
		if b.String() != a.String() {
			t.Fatalf("%s is written again as %s", a, b)
		}
		b, err = money.ParseMinor(a.Atomic().String(), asset)
		same("smallest units", b, err)
		shown, ok := strings.CutSuffix(a.Display(), " TOKEN")
		b, err = money.ParseDecimal(strings.ReplaceAll(shown, ",", ""), asset)
		same("what people see", b, err)
		if !ok {
			t.Fatalf("%q is shown without its code", a.Display())
		}
		wire, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back money.Amount
		err = json.Unmarshal(wire, &back)
		same("JSON", back, err)
	})
}

// FuzzAtomic: the whole numbers of rows and of the wire.
func FuzzAtomic(f *testing.F) {
	for _, text := range []string{"0", "1", "01", "-1", strings.Repeat("9", 38), strings.Repeat("9", 39), "", "1.0", "１"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := money.AtomicOf(text)
		if err != nil {
			return
		}
		if a.String() != text || len(text) > money.MaxDigits {
			t.Fatalf("%q is read as %s", text, a)
		}
		stored, err := a.Value()
		if err != nil {
			t.Fatal(err)
		}
		var back money.Atomic
		if err := back.Scan(stored); err != nil || back.Cmp(a) != 0 || back.Sign() != a.Sign() {
			t.Fatalf("%q comes back from a row as %s, %v", text, back, err)
		}
		if rest := a.Plus(back).Minus(a); rest.Cmp(back) != 0 {
			t.Fatalf("%s + %s - %s = %s", a, back, a, rest)
		}
	})
}
