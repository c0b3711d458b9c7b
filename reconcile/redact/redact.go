// Package redact takes secrets out of what agents send, before anything is stored,
// logged or hashed into a key.
//
// A secret becomes "redacted:" and 32 hexadecimal digits of its HMAC-SHA-256 under a
// key kept in the database. Equal secrets give equal replacements, so two calls that
// differ in a secret alone still differ; without the key a short secret cannot be
// guessed from its replacement.
//
// What is found: members by their name, members by the policy's pointers, and secrets
// that have a recognisable form inside any text. A secret that is none of these is not
// found: the policy's pointers are for it.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"
)

const prefix = "redacted:"

// marker is a replacement. It is never replaced again.
var marker = regexp.MustCompile(`redacted:[0-9a-f]{32}`)

const markerLen = len(prefix) + 32

// Redactor replaces secrets. Safe for concurrent use.
type Redactor struct{ key []byte }

// New returns a redactor under key, which is copied.
func New(key []byte) *Redactor { return &Redactor{append([]byte(nil), key...)} }

// Text replaces the secrets of recognisable form in s, for error texts and notes.
// Redacting twice changes nothing more.
func (r *Redactor) Text(s string) string {
	return string(apply([]byte(s), r.inText(s, true)))
}

// Forms are how a text may read in a document whose secrets were taken out: as it is, as a
// secret whole, and without the secrets in it.
func (r *Redactor) Forms(text string) []string {
	forms := []string{text, r.replacement([]byte(text))}
	if safe := r.Text(text); safe != text && safe != forms[1] {
		forms = append(forms, safe)
	}
	return forms
}

// Redacted tells whether something may have been taken out of a document.
func Redacted(document string) bool { return strings.Contains(document, prefix) }

// Restore puts texts that are known back where they were taken out of a JSON document as
// secrets, or something in them was: a number of ours that has the form of a card's, say.
// What is not among them stays hidden. A text that JSON would have to escape is not put back.
func (r *Redactor) Restore(raw []byte, known ...string) []byte {
	for _, text := range known {
		if !bytes.Contains(raw, []byte(prefix)) {
			break
		}
		if text == "" || strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c == utf8.RuneError }) >= 0 {
			continue
		}
		for _, form := range r.Forms(text)[1:] {
			raw = bytes.ReplaceAll(raw, []byte(form), []byte(text))
		}
	}
	return raw
}

func (r *Redactor) replacement(secret []byte) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write(secret)
	return prefix + hex.EncodeToString(mac.Sum(nil)[:16])
}

// edit puts text in the place of the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// apply makes edits, which are in order and apart. Without any it returns src itself.
func apply(src []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return src
	}
	out := make([]byte, 0, len(src)+len(edits)*markerLen)
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, src[at:]...)
}
