package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"quittance/client"
)

// hand is a browser without JavaScript.
type hand struct {
	t *testing.T
	http.Client
	base, at, body string // the page it is on
}

func (h *hand) read(r *http.Response, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: status %d\n%s", r.Request.URL.Path, r.StatusCode, b)
	}
	h.at, h.body = r.Request.URL.Path, string(b)
}

func (h *hand) open(path string) {
	h.t.Helper()
	h.read(h.Get(h.base + path))
}

// follow goes where a link of this text leads.
func (h *hand) follow(text string) {
	h.t.Helper()
	link := regexp.MustCompile(`href="([^"]+)"[^>]*>\s*<bdi>\s*` + regexp.QuoteMeta(html.EscapeString(text)) + `\s*<`).FindStringSubmatch(h.body)
	if link == nil {
		h.t.Fatalf("%s has no link %q:\n%s", h.at, text, h.body)
	}
	h.open(html.UnescapeString(link[1]))
}

var (
	aForm  = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*)".*?</form>`)
	aField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"|<textarea[^>]* name="([^"]*)"[^>]*>([^<]*)</textarea>`)
)

// press sends the page's form of this action as it is, but for what is typed.
func (h *hand) press(action string, typed url.Values) {
	h.t.Helper()
	for _, form := range aForm.FindAllStringSubmatch(h.body, -1) {
		if html.UnescapeString(form[1]) != action {
			continue
		}
		values := url.Values{}
		for _, f := range aField.FindAllStringSubmatch(form[0], -1) {
			values.Set(f[1]+f[3], html.UnescapeString(f[2]+f[4]))
		}
		for name, v := range typed {
			values[name] = v
		}
		h.read(h.PostForm(h.base+action, values))
		return
	}
	h.t.Fatalf("%s has no form of %s", h.at, action)
}

// Everything the demo asks of a person is done here, from the link it prints to the
// agent's end, with the desk's own forms.
func TestDemoByHand(t *testing.T) {
	t.Parallel()
	tmp, env := demoEnv(t)
	d := play(t, env)
	link := d.until(`(http://127\.0\.0\.1:\d+)(/enter/\S+)`)
	row := d.until(`Open "([^"]*)"`)[1]
	books := d.until(`grep (\S+) (\S+)\n`)
	d.until(`open the link yourself`)

	jar, _ := cookiejar.New(nil) // never fails
	h := &hand{t: t, Client: http.Client{Jar: jar}, base: link[1]}
	h.open(link[2])
	h.press(link[2], nil)
	if h.at != "/" || !strings.Contains(h.body, html.EscapeString(row)) {
		t.Fatalf("the link leads to %s, and %q is not there", h.at, row)
	}
	for _, waits := range []string{"2026-118", "SO-3088", "NH 204", "CM-204", "Harbour Estates"} { // held, interrupted, differing, and for a second person
		if !strings.Contains(h.body, waits) {
			t.Errorf("%s is not in the queue", waits)
		}
	}
	if strings.Contains(h.body, "GS-311") {
		t.Error("what the bank's answer proved is in the queue")
	}
	for run, word := range map[string]string{
		"ap-0120": "Taken", "ap-0121": "Not known",
		"ap-0117": "Taken", "ap-0117-again": "Held, not started", "ap-0118-again": "Allowed", "ap-0119-again": "Cancelled",
		"shop-refund-88": "Not known", "trip-lisbon": "Failed", "restore-staging": "In flight",
	} {
		h.open("/runs")
		h.follow(run)
		if !regexp.MustCompile(`(?s)<span class="state[^>]*>.{0,400}</svg>\s*` + word).MatchString(h.body) {
			t.Errorf("the effect of %s is not shown as %q", run, word)
		}
	}

	for closed, page := range map[string]string{"look_up": "GS-311", "person": "Week 48"} {
		h.open("/?closed=" + closed)
		for _, other := range []string{"GS-311", "Week 48"} {
			if strings.Contains(h.body, other) != (other == page) {
				t.Errorf("closed by %s: %s is shown wrongly", closed, other)
			}
		}
	}
	h.open("/")
	h.follow("Pay Copper Mill CM-204: 856.00 USD")
	if !strings.Contains(h.body, "its amount, currency or recipient differs") || !strings.Contains(h.body, "865.00") {
		t.Errorf("the page does not show that the bank has another amount:\n%s", h.body)
	}

	h.open("/")
	h.follow(row)
	effect := h.at
	if !strings.Contains(h.body, "not final") {
		t.Errorf("the page does not show what the bank said:\n%s", h.body)
	}
	text, err := os.ReadFile(books[2])
	if err != nil {
		t.Fatal(err)
	}
	paid := regexp.MustCompile(`"id":"([^"]*)","reference":"` + books[1] + `"`).FindStringSubmatch(string(text))
	if paid == nil {
		t.Fatalf("the bank's ledger names no payment: %s", text)
	}
	h.press(effect+"/review", url.Values{
		"verdict": {client.VerdictTaken}, "note": {"It is in the bank's ledger."}, "reference": {paid[1]}, "result": {`{"payment_id":"` + paid[1] + `"}`},
	})
	h.press(effect+"/decision", nil)

	d.until(`agent: \{"event":"started","turn":1\}`)
	d.until(fmt.Sprintf(`agent: .*"payment":"%s","replayed":true,"decided_by":"person"`, paid[1]))
	d.until(`agent: .*"event":"finished"`)
	d.until(`✓ The bank's ledger: one payment for INV-9`)
	d.until(`Ctrl-C ends the demo`)

	if len(running(tmp)) == 0 {
		t.Error("nothing runs, so nothing is shown by its end")
	}
	if s := d.end(syscall.SIGINT); s.ExitStatus() != exitOK {
		t.Errorf("%v, %q", s, d.log.String())
	}
	if left := entries(t, tmp); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	nothingRuns(t, tmp)
}

// What is kept can be served again, by the command that is printed.
func TestDemoKeepsItsFilesWhereItIsTold(t *testing.T) {
	t.Parallel()
	tmp, env := demoEnv(t)
	kept := tmp + "/kept"
	d := play(t, env, "--data", kept)
	d.until(`open the link yourself`)
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	again := d.until(`quittance serve --data (\S+) --policy (\S+)\n`)
	if s := d.wait(); s.ExitStatus() != exitOK {
		t.Errorf("%v, %q", s, d.log.String())
	}
	nothingRuns(t, tmp)
	p := serve(t, []string{"DATABASE_URL="}, "--data", again[1], "--policy", again[2])
	if code, _ := p.get("/sign-in"); code != http.StatusOK {
		t.Errorf("the kept desk answers %d", code)
	}
	p.end(syscall.SIGTERM)
}

// A folder that holds something is refused before anything is started or written.
func TestDemoKeepsNothingInAFolderThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	tmp, env := demoEnv(t)
	if err := os.WriteFile(tmp+"/mine", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := once(t, env, "demo", "--data", tmp)
	if left := entries(t, tmp); code != exitFailed || !strings.Contains(errs, "not empty") || len(left) != 1 {
		t.Errorf("exit %d, %q, %v", code, errs, left)
	}
	nothingRuns(t, tmp)
}
