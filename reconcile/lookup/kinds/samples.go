package kinds

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/policy/read"
)

// replayer is a source that can be given an answer that was written down.
type replayer interface {
	Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, canary bool) lookup.Seen
}

// samples runs the answers that the team wrote down with their verdicts. Time is on the
// look-up's side in them: whatever only has to be waited for has been waited for.
func samples(b *block.Block, l *lookup.Lookup) {
	n, at := b.At("samples")
	file, ok := b.Text(n, at)
	if !ok {
		return
	}
	source, ok := l.Source.(replayer)
	if !ok {
		b.Mistake(n, at, "means nothing for %s", l.Kind)
		return
	}
	raw, err := b.ReadFile(file)
	if err != nil {
		b.Mistake(n, at, "couldn't read the file %s", file)
		return
	}
	root, m := read.Document(file, raw)
	if m != nil {
		b.Adopt(read.Mistakes{*m})
		return
	}
	r := read.New(file, b.Surroundings)
	list := r.Items(root, "")
	if len(list) == 0 && r.Count() == 0 {
		b.Mistake(n, at, "%s holds no samples", file)
	}
	if b.Count() > 0 {
		return // expressions with a mistake would make every sample fail
	}
	for i, item := range list {
		if s := readSample(r, item, "["+strconv.Itoa(i)+"]", b); s != nil {
			s.run(r, source, l)
		}
	}
	b.Adopt(r.Found())
}

// sample is one answer with what it must be judged to be.
type sample struct {
	node      ast.Node
	path      string
	q         lookup.Question
	pages     []fetch.Canned
	canary    bool
	verdict   lookup.Verdict
	reason    lookup.Reason
	reference string
}

const inconclusive = "inconclusive"

func readSample(r *read.Reader, n ast.Node, path string, b *block.Block) *sample {
	before := r.Count()
	f := r.Fields(n, path, "name", "arguments", "vendor_key", "reference", "answer", "pages", "canary", "verdict", "reason", "found")
	if f == nil {
		return nil
	}
	s := &sample{node: n, path: path, canary: true}
	if name, ok := r.Text(f["name"], path+".name"); ok {
		s.path = fmt.Sprintf("%s %q", path, name)
	}
	for _, name := range []string{"arguments", "verdict"} {
		if f[name] == nil {
			r.Mistake(n, path, "%s is missing", name)
		}
	}
	if (f["answer"] == nil) == (f["pages"] == nil) {
		r.Mistake(n, path, "has one answer, or pages of it")
	}
	if f["canary"] != nil {
		s.canary = r.Boolean(f["canary"], path+".canary")
	}
	verdict := r.Choice(f["verdict"], path+".verdict", inconclusive, string(lookup.Taken), string(lookup.NotTaken), inconclusive)
	if verdict != inconclusive {
		s.verdict = lookup.Verdict(verdict)
	}
	reason, _ := r.Text(f["reason"], path+".reason")
	s.reason = lookup.Reason(reason)
	s.reference, _ = r.Text(f["found"], path+".found")
	if f["answer"] != nil {
		s.pages = append(s.pages, readAnswer(r, f["answer"], path+".answer"))
	}
	for i, page := range r.Items(f["pages"], path+".pages") {
		s.pages = append(s.pages, readAnswer(r, page, fmt.Sprintf("%s.pages[%d]", path, i)))
	}
	s.q.Tool, s.q.Effect, s.q.Account, s.q.Run = "sample", "effect", "account", "run"
	s.q.VendorKey, _ = r.Text(f["vendor_key"], path+".vendor_key")
	s.q.Reference, _ = r.Text(f["reference"], path+".reference")
	if f["arguments"] != nil {
		arguments, err := canon.ParseObject(r.JSON(nil, f["arguments"], path+".arguments"))
		if err == nil && b.Tool.Fill != nil {
			s.q.Arguments = arguments
			err = b.Tool.Fill(&s.q)
		}
		if err != nil {
			r.Mistake(f["arguments"], path+".arguments", "%s", err)
		}
	}
	if r.Count() > before {
		return nil
	}
	return s
}

// readAnswer reads {status, body} or {status, text}: text is for what is not JSON.
func readAnswer(r *read.Reader, n ast.Node, path string) fetch.Canned {
	f := r.Fields(n, path, "status", "body", "text")
	page := fetch.Canned{Status: r.Whole(f["status"], path+".status", 200, 100, 599)}
	if text, ok := r.Text(f["text"], path+".text"); ok {
		page.Body = []byte(text)
	}
	if f["body"] != nil {
		page.Body = r.JSON(nil, f["body"], path+".body")
	}
	return page
}

// run judges the sample and reports a verdict that is another than the one written down.
func (s *sample) run(r *read.Reader, source replayer, l *lookup.Lookup) {
	begun := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lands := time.Duration(0)
	s.q.Attempts = []lookup.Attempt{{Begun: begun, Deadline: begun.Add(time.Second)}}
	s.q.LandsWithin = &lands
	// A sample shows what an answer means, not how long to wait for a second one.
	t := l.Terms
	none, ever := time.Duration(0), 24*time.Hour
	if t.VisibleAfter != nil {
		t.VisibleAfter = &none
	}
	if t.KeptFor != nil {
		t.KeptFor = &ever
	}
	s.q.AskedAt = begun.Add(time.Hour)
	seen := source.Replay(context.Background(), s.q, s.pages, s.canary)
	var reads []lookup.Read
	var a lookup.Answer
	for range 2 {
		if !seen.AsOf.IsZero() {
			seen.AsOf = s.q.AskedAt
		}
		a = lookup.Judge(s.q, t, seen, reads)
		reads = append(reads, a.Read)
		s.q.AskedAt = s.q.AskedAt.Add(lookup.Apart)
	}
	switch {
	case a.Verdict != s.verdict, s.reason != "" && a.Reason != s.reason:
		r.Mistake(s.node, s.path, "is judged %s, not %s", said(a.Verdict, a.Reason, a.Why), said(s.verdict, s.reason, ""))
	case s.reference != "" && s.reference != a.Reference:
		r.Mistake(s.node, s.path, "is taken with another reference than %q", s.reference)
	}
}

func said(v lookup.Verdict, reason lookup.Reason, why string) string {
	word := string(v)
	if v == lookup.Inconclusive {
		word = inconclusive
	}
	if reason != "" {
		word += " (" + strings.TrimSpace(string(reason)+"; "+why) + ")"
	}
	return strings.ReplaceAll(word, "; )", ")")
}
