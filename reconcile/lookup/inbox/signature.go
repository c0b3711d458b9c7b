package inbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrSignature is returned for an event that nobody signed, that somebody else signed, or
// that was signed too long ago.
var ErrSignature = errors.New("the event is not signed by the sender, or not now")

// tolerance is how old a signature may be: what both schemes recommend against replays.
const tolerance = 5 * time.Minute

// scheme is how events are signed.
type scheme string

const (
	standard scheme = "standard_webhooks" // https://www.standardwebhooks.com
	stripe   scheme = "stripe"            // https://docs.stripe.com/webhooks#verify-manually
)

// check says what is wrong with a secret of the scheme.
func (s scheme) check(key string) error {
	if s != standard {
		return nil
	}
	if _, err := standardKey(key); err != nil {
		return errors.New("must hold a secret of Standard Webhooks: whsec_ and base64")
	}
	return nil
}

func standardKey(key string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
}

// Verify checks an event as it came, before anything in it is believed, and returns the
// sender's id for it ("" where there is none in the headers): the same id is the same
// event sent again. The error is [ErrSignature].
func (s *Source) Verify(h http.Header, body []byte, now time.Time) (id string, err error) {
	for _, key := range s.keys {
		ok := false
		switch s.scheme {
		case standard:
			id, ok = verifyStandard(h, body, key.Reveal(), now)
		case stripe:
			ok = verifyStripe(h, body, key.Reveal(), now)
		}
		if ok {
			return id, nil
		}
	}
	return "", ErrSignature
}

func verifyStandard(h http.Header, body []byte, secret string, now time.Time) (id string, ok bool) {
	key, err := standardKey(secret)
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	if err != nil || len(key) == 0 || id == "" || strings.Contains(id, ".") || !recent(stamp, now) {
		return "", false
	}
	mac := sign(key, id+"."+stamp+".", body)
	for _, one := range strings.Fields(h.Get("Webhook-Signature")) {
		version, signature, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(signature)
		if version == "v1" && err == nil && hmac.Equal(got, mac) {
			return id, true
		}
	}
	return "", false
}

func verifyStripe(h http.Header, body []byte, secret string, now time.Time) bool {
	if secret == "" {
		return false
	}
	stamp := ""
	var signatures []string
	for _, part := range strings.Split(h.Get("Stripe-Signature"), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			stamp = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if !recent(stamp, now) {
		return false
	}
	mac := sign([]byte(secret), stamp+".", body)
	for _, one := range signatures {
		if got, err := hex.DecodeString(one); err == nil && hmac.Equal(got, mac) {
			return true
		}
	}
	return false
}

func sign(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

// recent reads seconds since 1970.
func recent(stamp string, now time.Time) bool {
	n, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return false
	}
	age := now.Sub(time.Unix(n, 0))
	return age <= tolerance && age >= -tolerance
}
