package redact

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// form is a secret that can be told by its form. The group of the pattern is the secret,
// without a group all of it; check, where there is one, has the last word. hint is a part
// of every match, looked for first because patterns are slow; fold: in any case.
type form struct {
	hint    string
	fold    bool
	pattern *regexp.Regexp
	check   func(secret string) bool
}

var forms = []form{
	// RFC 7468, also where the end was cut off.
	{hint: "-----BEGIN ", pattern: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)},
	// scheme://user:password@host
	{hint: "://", pattern: regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"']*:([^\s/?#"']+)@`)},
	// RFC 6750 and RFC 7617
	{hint: "bearer", fold: true, pattern: regexp.MustCompile(`(?i)\bbearer[\s:=]+"?([A-Za-z0-9._~+/-]+=*)`), check: isToken},
	{hint: "basic", fold: true, pattern: regexp.MustCompile(`(?i)\bbasic[\s:]+"?([A-Za-z0-9+/_-]{4,}=*)`), check: isCredentials},
	// name=secret of forms and connection strings; "name": "secret" of JSON amid other text.
	{hint: "=", pattern: regexp.MustCompile(`(?i)\b` + assigned + `\s*=\s*["']?([^\s"'&;,<>]+)`)},
	{hint: ":", pattern: regexp.MustCompile(`(?i)["']` + assigned + `\\*["']\s*:\s*\\*["']([^"'\\]+)`)},
	// Keys to which their vendors gave a form of their own.
	{hint: "_live_", pattern: regexp.MustCompile(`\b(?:sk|rk|pk|key|api|secret|token)_live_[A-Za-z0-9]{6,}`)},
	{hint: "_test_", pattern: regexp.MustCompile(`\b(?:sk|rk)_test_[A-Za-z0-9]{6,}`)},
	{hint: "whsec_", pattern: regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/=]{6,}`)},
	{hint: "sk-", pattern: regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`)},
	{hint: "gh", pattern: regexp.MustCompile(`\bgh[opsur]_[A-Za-z0-9]{20,}`)},
	{hint: "github_pat_", pattern: regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{hint: "glpat-", pattern: regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`)},
	{hint: "xox", pattern: regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`)},
	{hint: "AKIA", pattern: regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{hint: "AIza", pattern: regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	// JSON Web Tokens
	{hint: "eyJ", pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`)},
}

// assigned are the names that make what is assigned to them a secret; page_token is none.
const assigned = `(?:(?:[a-z0-9]+[_-])*(?:password|passwd|pwd|secret|client[_-]?secret|api[_-]?key|private[_-]?key|secret[_-]?key|` +
	`secret[_-]?access[_-]?key|(?:access|refresh|id|auth|bearer|session)[_-]?token)|token)`

// inText finds the secrets in a text. It looks at the pieces between replacements, and
// again at the pieces that leaves, until a round finds nothing: redacting the result then
// finds nothing either.
func (r *Redactor) inText(s string, cards bool) []edit {
	if len(s) < minSecret {
		return nil
	}
	var found []span
	pieces := between(s)
	for range maxRounds {
		before := len(found)
		for i := range forms {
			pieces, found = forms[i].cut(s, pieces, found)
		}
		if cards {
			pieces, found = split(pieces, found, func(p span) []span { return findCards(s, p) })
		}
		if len(found) == before {
			break
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	edits := make([]edit, 0, len(found))
	for _, f := range found {
		edits = append(edits, edit{f.start, f.end, r.replacement([]byte(s[f.start:f.end]))})
	}
	return edits
}

// maxRounds bounds the work on a text made to need many; two are usual.
const maxRounds = 16

// minSecret is the length of the shortest match of any form, "pwd=x".
const minSecret = 5

// span is a part of a text.
type span struct{ start, end int }

// between are the pieces of s between markers.
func between(s string) (pieces []span) {
	at := 0
	if strings.Contains(s, prefix) {
		for _, m := range marker.FindAllStringIndex(s, -1) {
			pieces = append(pieces, span{at, m[0]})
			at = m[1]
		}
	}
	return append(pieces, span{at, len(s)})
}

// cut moves every match of the form from the pieces to found.
func (f *form) cut(s string, pieces, found []span) (rest, all []span) {
	if !f.hinted(s) {
		return pieces, found
	}
	return split(pieces, found, func(p span) (secrets []span) {
		part := s[p.start:p.end]
		if !f.hinted(part) {
			return nil
		}
		for _, m := range f.pattern.FindAllStringSubmatchIndex(part, -1) {
			secret := m[len(m)-2:] // the group, or all where there is none
			if f.check == nil || f.check(part[secret[0]:secret[1]]) {
				secrets = append(secrets, span{p.start + secret[0], p.start + secret[1]})
			}
		}
		return secrets
	})
}

func (f *form) hinted(s string) bool {
	if f.fold {
		return containsFold(s, f.hint)
	}
	return strings.Contains(s, f.hint)
}

// split takes what find finds in each piece out of it.
func split(pieces, found []span, find func(span) []span) (rest, all []span) {
	for i, p := range pieces {
		secrets := find(p)
		if len(secrets) == 0 {
			if rest != nil {
				rest = append(rest, p)
			}
			continue
		}
		if rest == nil {
			rest = append(make([]span, 0, len(pieces)+len(secrets)), pieces[:i]...)
		}
		for _, secret := range secrets {
			rest = append(rest, span{p.start, secret.start})
			p.start = secret.end
		}
		rest = append(rest, p)
		found = append(found, secrets...)
	}
	if rest == nil {
		return pieces, found
	}
	return rest, found
}

// isToken tells a credential after "bearer" from the prose of an error message.
func isToken(s string) bool { return !prose[strings.ToLower(strings.TrimRight(s, "."))] }

var prose = set("token", "tokens", "auth", "authentication", "authorization", "credential", "credentials", "scheme",
	"header", "error", "realm", "is", "was", "of", "not", "or", "and", "required", "missing", "expected", "invalid", "expired")

// isCredentials tells RFC 7617's base64 of user:password from prose after "basic".
func isCredentials(s string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(s))
	return err == nil && bytes.ContainsRune(plain, ':')
}
