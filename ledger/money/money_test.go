package money_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"quittance/ledger/money"
)

var usd, jpy, bhd, idr, usdc = mustCurrency("USD"), mustCurrency("JPY"), mustCurrency("BHD"), mustCurrency("IDR"), money.Asset{Code: "USDC", Decimals: 6}

func mustCurrency(code string) money.Asset {
	a, err := money.Currency(code)
	if err != nil {
		panic(err)
	}
	return a
}

func decimal(t *testing.T, text string, asset money.Asset) money.Amount {
	t.Helper()
	a, err := money.ParseDecimal(text, asset)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return a
}

func TestBC061_LargeAmountsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	var sum money.Amount
	for i, text := range []string{"2300000000", "9223372036854775807", "9223372036854775808"} {
		a, err := money.ParseMinor(text, idr)
		if err != nil {
			t.Fatal(err)
		}
		stored, _ := a.Atomic().Value()
		if stored != text {
			t.Errorf("%s is stored as %v", text, stored)
		}
		if i == 0 {
			sum = a
		} else if sum, err = sum.Add(a); err != nil {
			t.Fatal(err)
		}
	}
	if got := sum.Atomic().String(); got != "18446744076009551615" {
		t.Errorf("the sum is %s", got)
	}

	nines := strings.Repeat("9", money.MaxDigits)
	largest, err := money.ParseMinor(nines, idr)
	if err != nil || largest.Atomic().String() != nines {
		t.Errorf("the largest amount: %v, %v", largest, err)
	}
	one, _ := money.ParseMinor("1", idr)
	minus, _ := money.ParseMinor("-"+nines, idr)
	for what, err := range map[string]error{
		"add":         second(largest.Add(one)),
		"sub":         second(minus.Sub(one)),
		"parse minor": second(money.ParseMinor("1"+strings.Repeat("0", 38), idr)),
		"parse":       second(money.ParseDecimal("1"+strings.Repeat("0", 36), idr)),
		"huge":        second(money.ParseDecimal(strings.Repeat("1", 10000), idr)),
		"from minor":  second(money.FromMinor(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), idr)),
	} {
		if !errors.Is(err, money.ErrTooLarge) {
			t.Errorf("%s past the limit: %v", what, err)
		}
	}
}

func second(_ money.Amount, err error) error { return err }

func TestBC064_OneWrittenRuleForTypedAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		asset money.Asset
		want  string // "" where it is refused
	}{
		{"9.145", usd, ""}, {"1e2", usd, ""}, {"1E2", usd, ""}, {"0x10", usd, ""}, {"+5", usd, ""}, {"5.", usd, ""}, {".5", usd, ""}, {"٥", usd, ""},
		{"12.3", usd, "12.30"}, {"12", usd, "12.00"}, {"0", usd, "0.00"}, {"0.01", usd, "0.01"}, {"-0.01", usd, "-0.01"}, {"-0", usd, "0.00"}, {"1000.00", usd, "1000.00"},
		{"", usd, ""}, {"-", usd, ""}, {".", usd, ""}, {"--1", usd, ""}, {"1-", usd, ""}, {" 1", usd, ""}, {"1 ", usd, ""}, {"1,000", usd, ""}, {"1.0.0", usd, ""},
		{"1_000", usd, ""}, {"007", usd, ""}, {"00.5", usd, ""}, {"１", usd, ""}, {"NaN", usd, ""}, {"Inf", usd, ""}, {"$5", usd, ""}, {"5 USD", usd, ""},
		{"9.140", usd, ""}, // a third decimal is refused even where it is zero: the writer had another unit in mind
		{"500", jpy, "500"}, {"500.0", jpy, ""}, {"1.234", bhd, "1.234"}, {"0.000001", usdc, "0.000001"}, {"0.0000001", usdc, ""},
	} {
		a, err := money.ParseDecimal(c.text, c.asset)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%q is accepted as %s", c.text, a)
		case c.want != "" && (err != nil || a.String() != c.want):
			t.Errorf("%q is read as %s (%v), want %s", c.text, a, err, c.want)
		case err != nil && len(c.text) > 2 && strings.Contains(err.Error(), c.text):
			t.Errorf("%q: the error repeats the input: %v", c.text, err)
		}
	}
	if _, err := money.ParseMinor("12.0", usd); err == nil {
		t.Error("a fraction of the smallest unit is accepted")
	}
}

func TestAssetsNeverMix(t *testing.T) {
	t.Parallel()
	dollars := decimal(t, "5", usd)
	for _, other := range []money.Amount{decimal(t, "5", jpy), decimal(t, "5", money.Asset{Code: "USD", Decimals: 3}), {}} {
		_, add := dollars.Add(other)
		_, sub := dollars.Sub(other)
		_, cmp := dollars.Cmp(other)
		for _, err := range []error{add, sub, cmp} {
			if !errors.Is(err, money.ErrMixedAssets) {
				t.Errorf("USD and %v: %v", other.Asset(), err)
			}
		}
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	a, b := decimal(t, "9.95", usd), decimal(t, "3.30", usd)
	rest, err := a.Sub(b)
	if err != nil || rest.String() != "6.65" {
		t.Errorf("9.95 - 3.30 = %s, %v", rest, err)
	}
	back, _ := b.Sub(a)
	if back.String() != "-6.65" || back.Sign() != -1 || rest.Sign() != 1 {
		t.Errorf("3.30 - 9.95 = %s", back)
	}
	if a.String() != "9.95" || b.String() != "3.30" {
		t.Error("an operand changed")
	}
	if c, err := rest.Cmp(decimal(t, "6.65", usd)); c != 0 || err != nil {
		t.Errorf("cmp: %d, %v", c, err)
	}
	if c, _ := b.Cmp(a); c != -1 {
		t.Errorf("3.30 against 9.95: %d", c)
	}
	n := big.NewInt(7)
	kept, _ := money.FromMinor(n, usd)
	n.SetInt64(8)
	if kept.String() != "0.07" {
		t.Error("the amount shares its number with the caller")
	}
}

func TestDisplay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		asset money.Asset
		want  string
	}{
		{"4200", usd, "4,200.00 USD"}, {"999.99", usd, "999.99 USD"}, {"-1234567.8", usd, "-1,234,567.80 USD"},
		{"0.05", usd, "0.05 USD"}, {"-100", jpy, "-100 JPY"}, {"100000", jpy, "100,000 JPY"}, {"1234.5", usdc, "1,234.500000 USDC"},
	} {
		if got := decimal(t, c.text, c.asset).Display(); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	var zero money.Amount
	if zero.String() != "0" {
		t.Errorf("the zero value is %q", zero.String())
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	if a, err := money.Currency("usd"); err != nil || a != usd {
		t.Errorf("usd: %v, %v", a, err)
	}
	if jpy.Decimals != 0 || bhd.Decimals != 3 {
		t.Errorf("ISO decimals: %v %v", jpy, bhd)
	}
	if _, err := money.Currency("USDC"); !errors.Is(err, money.ErrUnknownCurrency) {
		t.Errorf("USDC: %v", err)
	}
	if a, err := money.NewAsset("USDC", 6); err != nil || a != usdc {
		t.Errorf("USDC with decimals: %v, %v", a, err)
	}
	if a, err := money.NewAsset("usd", 2); err != nil || a != usd {
		t.Errorf("USD with its own decimals: %v, %v", a, err)
	}
	for _, c := range []money.Asset{{"USD", 6}, {"USDC", -1}, {"USDC", 37}, {"", 2}, {"A B", 2}, {"1X", 2}, {"a\n", 2}, {strings.Repeat("x", 129), 2}} {
		if _, err := money.NewAsset(c.Code, c.Decimals); err == nil {
			t.Errorf("%q with %d decimals is accepted", c.Code, c.Decimals)
		}
	}
}

func TestJSONIsStringsAndComesBack(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]money.Amount{
		`{"value":"4200.00","currency":"USD"}`:    decimal(t, "4200", usd),
		`{"value":"-0.000001","currency":"USDC"}`: decimal(t, "-0.000001", usdc),
		`{"value":"7","currency":"JPY"}`:          decimal(t, "7", jpy),
	} {
		got, err := json.Marshal(a)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		var back money.Amount
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%s: %v", got, err)
		}
		if c, err := back.Cmp(a); c != 0 || err != nil {
			t.Errorf("%s came back as %s (%v)", want, back.Display(), err)
		}
	}
	for _, bad := range []string{`"5"`, `5`, `{"value":5,"currency":"USD"}`, `{"value":"5.001","currency":"USD"}`, `{"value":"5","currency":"?"}`, `{"value":"","currency":"USD"}`} {
		var a money.Amount
		if err := json.Unmarshal([]byte(bad), &a); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	big38 := strings.Repeat("9", 38)
	for _, src := range []any{[]byte("-" + big38), big38, "0", int64(-7)} {
		var a money.Atomic
		if err := a.Scan(src); err != nil {
			t.Errorf("%v: %v", src, err)
		}
		v, err := a.Value()
		want := src
		switch src := src.(type) {
		case []byte:
			want = string(src)
		case int64:
			want = "-7"
		}
		if err != nil || v != want {
			t.Errorf("%v came back as %v, %v", src, v, err)
		}
	}
	for _, src := range []any{nil, 1.5, "1.5", "x", "", "NaN", "1" + big38} {
		var a money.Atomic
		if err := a.Scan(src); err == nil {
			t.Errorf("%v is accepted", src)
		}
	}
	var null sql.Null[money.Atomic]
	if err := null.Scan(nil); err != nil || null.Valid {
		t.Errorf("NULL: %v, %v", null, err)
	}
	var _ driver.Valuer = money.Atomic{}
}
