package redact

import (
	"strings"
	"unicode"
)

// secretNames are member names, written without marks between their words, whose value
// is a secret whatever stands before them: tvly_api_key, DB-PASSWORD, webhookSecret.
var secretNames = set("apikey", "password", "passwd", "secret", "clientsecret", "secretkey", "secretaccesskey",
	"privatekey", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken", "sessiontoken",
	"setcookie", "proxyauthorization")

// wholeNames are secrets only where they are the whole name: page_token,
// payment_token_type and card_authorization are ordinary data.
var wholeNames = set("authorization", "cookie", "token")

// quantityWords mark members whose plain digits are an amount or an identifier, of
// which some pass for a card number by chance.
var quantityWords = set("amount", "value", "wei", "units", "unit", "id", "ids", "reference", "ref", "minor", "atomic", "nonce", "timestamp")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// hints are parts of every secret name. Nearly all names hold none and cost no more.
var hints = []string{"auth", "cookie", "pass", "secret", "token", "key"}

func isSecretName(name string) bool {
	hinted := false
	for _, h := range hints {
		hinted = hinted || containsFold(name, h)
	}
	if !hinted {
		return false
	}
	w := words(name)
	for i := range w {
		joined := strings.Join(w[i:], "")
		if secretNames[joined] || i == 0 && wholeNames[joined] {
			return true
		}
	}
	return false
}

func isQuantityName(name string) bool {
	for _, w := range words(name) {
		if quantityWords[w] {
			return true
		}
	}
	return false
}

// words splits a name at marks, spaces and where a capital follows a small letter, and
// lowers it: "X-API-Key" and "xApiKey" are x, api, key.
func words(name string) []string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r) || unicode.IsDigit(r)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}

// containsFold looks for an ASCII text in small letters, ignoring case.
func containsFold(s, small string) bool {
	for i := 0; i+len(small) <= len(s); i++ {
		if s[i]|0x20 == small[0] && strings.EqualFold(s[i:i+len(small)], small) {
			return true
		}
	}
	return false
}
