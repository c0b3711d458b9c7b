package inbox_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/lookup/inbox"
)

// FuzzVerify: an event is believed only where one of our secrets made one of its signatures
// over exactly this id, time and body, within the tolerance; whatever the headers hold.
func FuzzVerify(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	keys := []string{"old-secret-of-letters", "new-secret-of-letters"}
	standard, stripe := open(f, "standard_webhooks").Source.(*inbox.Source), open(f, "stripe").Source.(*inbox.Source)
	b64 := base64.StdEncoding.EncodeToString
	f.Add("msg_1", "1800000000", "v1,"+b64(mac(keys[0], "msg_1.1800000000.{}")), "t=1800000000,v1="+hex.EncodeToString(mac(env["NEW"], "1800000000.{}")), []byte("{}"))
	f.Add("", "", "", "", []byte(nil))
	f.Add("a", "+1800000000", "v1, v1,= v2,x", "t=,v1=,t=1800000000", []byte("x"))
	f.Add("a", "1800000000.a", "v1,"+b64(mac("", "a.1800000000.x")), "t=1800000000,v1=", []byte("x"))
	f.Fuzz(func(t *testing.T, id, stamp, signature, stripes string, body []byte) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}, "Stripe-Signature": {stripes}}
		near := func(stamp string) bool {
			n, err := strconv.ParseInt(stamp, 10, 64)
			return err == nil && now.Unix()-n <= 300 && n-now.Unix() <= 300
		}
		if got, err := standard.Verify(h, body, now); err == nil {
			signed := false
			for _, secret := range []string{env["OLD"], env["NEW"], env["DOC"]} {
				key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
				want := mac(string(key), id+"."+stamp+"."+string(body))
				for _, s := range strings.Fields(signature) {
					raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "v1,"))
					signed = signed || strings.HasPrefix(s, "v1,") && bytes.Equal(raw, want)
				}
			}
			if !signed || got != id || id == "" || !near(stamp) {
				t.Fatalf("id %q, stamp %q, signature %q, body %q: believed as %q", id, stamp, signature, body, got)
			}
		}
		if _, err := stripe.Verify(h, body, now); err == nil {
			signed := false
			for _, part := range strings.Split(stripes, ",") {
				stamp, isStamp := strings.CutPrefix(strings.TrimSpace(part), "t=")
				if !isStamp || !near(stamp) {
					continue
				}
				for _, secret := range []string{env["OLD"], env["NEW"], env["DOC"]} {
					want := hex.EncodeToString(mac(secret, stamp+"."+string(body)))
					signed = signed || strings.Contains(strings.ToLower(stripes), "v1="+want)
				}
			}
			if !signed {
				t.Fatalf("header %q, body %q: believed", stripes, body)
			}
		}
	})
}
