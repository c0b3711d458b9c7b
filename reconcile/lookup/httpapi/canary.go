package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
)

// canary is a record that is known to exist. It is asked for like an effect whose business
// key is its key, and seen where the rules then find a hit.
type canary struct {
	key string
	url string // "" for the usual one with key in it
}

func (c *canary) request(r request, q lookup.Question) (*http.Request, error) {
	if c.url != "" {
		return r.to(c.url, q)
	}
	return r.build(q)
}

// readCanary takes a URL, from which the key is read off where it stands in the place of
// the effect's, or {key, url}.
func readCanary(b *block.Block, u *urlTemplate) *canary {
	n, path := b.At("canary")
	if n == nil {
		if b.AbsenceIsProof {
			absence, at := b.At("absence_is_proof")
			b.Mistake(absence, at, "needs canary: a record that exists, without which a blind account looks like absence")
		}
		return nil
	}
	if n.Type() == ast.MappingType {
		f := b.Reader.Fields(n, path, "key", "url")
		c := &canary{}
		c.key, _ = b.Text(f["key"], path+".key")
		if c.key == "" {
			b.Mistake(n, path, "key is missing: the business key of the record that exists")
		}
		if text, ok := b.Text(f["url"], path+".url"); ok {
			b.CheckTarget(f["url"], path+".url", text)
			if u != nil && !onHost(text, u) {
				b.Mistake(f["url"], path+".url", "must be on the host of the look-up: another host proves nothing about this one")
			}
			c.url = text
		}
		return c
	}
	text, ok := b.Text(n, path)
	if !ok || u == nil {
		return nil
	}
	key := u.keyIn(text)
	if key == "" {
		b.Mistake(n, path, "must be the look-up's URL with the canary's key in the place of the effect's, or {key: ..., url: ...}")
		return nil
	}
	return &canary{key: key}
}

// keyIn is what stands in a URL where the template has the effect's key; "" where the rest of
// the two differs, or the key stands beside other fields.
func (u *urlTemplate) keyIn(text string) string {
	parts := u.template.Parts
	at := -1
	for i, p := range parts {
		switch {
		case (p.Path == "business_key" || p.Path == "vendor_key" || p.Path == "reference") && at < 0:
			at = i
		case p.Path != "":
			return ""
		}
	}
	if at < 0 {
		return ""
	}
	before, after := "", ""
	for i, p := range parts {
		if i < at {
			before += p.Text
		} else if i > at {
			after += p.Text
		}
	}
	key, ok := strings.CutPrefix(text, before)
	if !ok || !strings.HasSuffix(key, after) || len(key) <= len(after) {
		return ""
	}
	key = strings.TrimSuffix(key, after)
	unescape := url.PathUnescape
	if strings.Contains(before, "?") {
		unescape = url.QueryUnescape
	}
	plain, err := unescape(key)
	if err != nil {
		return ""
	}
	return plain
}
