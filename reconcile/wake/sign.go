package wake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sign gives a request the headers of Standard Webhooks (https://www.standardwebhooks.com):
// one signature for each secret, so that a receiver can be given a new one while the old
// one still counts.
func sign(h http.Header, id string, at time.Time, body []byte, secrets [][]byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
