package desk_test

import (
	"encoding/csv"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"quittance/ledger/ledgertest"
)

// BenchmarkMoney measures the server's time for finance's list over a million refunds, a
// hundred thousand of them open (QUITTANCE_BENCH_REFUNDS sets another number): each filter
// and the ageing, and the memory of an export of all of them. It fails where a page is
// slower, or the export larger, than the design allows, and where its totals are not the
// sums of its rows.
func BenchmarkMoney(b *testing.B) {
	total := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("QUITTANCE_BENCH_REFUNDS")); err == nil {
		total = n
	}
	w := newMoneyWorld(b)
	began := time.Now()
	ledgertest.Refunds(b, w.db, total, total/10)
	b.Logf("%d refunds made in %v", total, time.Since(began).Round(time.Second))
	v := w.signedIn("vera")
	began = time.Now() // once: it takes minutes, whatever -benchtime says
	rows, most := export(b, v, "/refunds.csv?state=any")
	b.Logf("an export of %d rows took %v and at most %d MB", rows, time.Since(began).Round(time.Second), most>>20)
	if rows != total || most > 100<<20 {
		b.Errorf("%d rows of %d, %d MB in use", rows, total, most>>20)
	}
	const limit = 50 * time.Millisecond
	day := func(n int) string { return time.Now().UTC().AddDate(0, 0, -n).Format(time.DateOnly) }
	for _, page := range []struct{ name, path string }{
		{"first page", "/refunds"}, {"to approve", "/refunds?state=owed"}, {"to send", "/refunds?state=approved"}, {"sent", "/refunds?state=sent"}, {"held", "/refunds?state=held"},
		{"came back", "/refunds?state=returned"}, {"refunded", "/refunds?state=confirmed"}, {"written off", "/refunds?state=written_off"}, {"all", "/refunds?state=any"},
		{"rail", "/refunds?rail=bank%3Amain"}, {"asset", "/refunds?asset=asset-1"}, {"rail and asset", "/refunds?rail=bank%3Amain&asset=asset-1"}, {"reason", "/refunds?reason=over"},
		{"gateway", "/refunds?gateway=gateway-3"}, {"gateway that is not", "/refunds?gateway=nobodys"}, {"gateway that is not, all", "/refunds?state=any&gateway=nobodys"},
		{"reason, refunded", "/refunds?state=confirmed&reason=over"}, {"payer", "/refunds?payer=payer-70"}, {"payer, all", "/refunds?state=any&payer=payer-77"},
		{"age 0-1", "/refunds?age=0-1"}, {"age 2-7", "/refunds?age=2-7"}, {"age 31-60", "/refunds?age=31-60"}, {"age 61+", "/refunds?age=61"},
		{"days", "/refunds?state=any&from=" + day(40) + "&to=" + day(30)}, {"as of", "/refunds?as_of=" + day(30)},
		{"ageing of all", "/refunds?count=yes"}, {"ageing of an asset", "/refunds?count=yes&asset=asset-1"}, {"ageing of a gateway", "/refunds?count=yes&gateway=gateway-3"},
		{"ageing of a bucket", "/refunds?count=yes&age=61"},
		{"payments", "/payments"},
	} {
		b.Run(page.name, func(b *testing.B) { v.pace(b, page.path, limit) })
	}
}

// export reads an export to its end and adds its rows up; most is the largest heap meanwhile,
// of this reader and the server.
func export(b *testing.B, v *visitor, path string) (rows int, most uint64) {
	b.Helper()
	u, err := url.Parse(v.w.url + path)
	if err != nil {
		b.Fatal(err)
	}
	client := *v.c
	client.Timeout = 0 // an export takes as long as it takes
	resp, err := client.Do(&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	r := csv.NewReader(resp.Body)
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		b.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	sums, whole := map[string]*big.Int{}, false
	for {
		x, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		key := x[at["network"]] + " " + x[at["asset"]]
		n, _ := new(big.Int).SetString(x[at["amount_atomic"]], 10)
		switch x[at["record"]] {
		case "refund":
			if sums[key] == nil {
				sums[key] = new(big.Int)
			}
			sums[key].Add(sums[key], n)
			if rows++; rows%20_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		case "total":
			if sums[key] == nil || sums[key].Cmp(n) != 0 {
				b.Errorf("the total of %s is %s, its rows say %s", key, n, sums[key])
			}
			delete(sums, key)
		case "export":
			whole = x[at["rows"]] == strconv.Itoa(rows)
		}
	}
	if !whole || len(sums) != 0 {
		b.Errorf("the export is not whole: %d assets without a total", len(sums))
	}
	return rows, most
}
