package payments

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"strings"

	"quittance/ledger/payments"
)

// ResponseLimit is how much of an answer's body is kept, in bytes. Of a longer one only
// size and digest are.
const ResponseLimit = 256 << 10

// Response is an answer of a gateway.
type Response struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// notKept are headers of one connection, and what lets somebody in: neither is an answer to
// anybody else's question.
var notKept = map[string]bool{
	"set-cookie": true, "set-cookie2": true, "cookie": true, "authorization": true, "proxy-authorization": true, "authentication-info": true,
	"proxy-authentication-info": true, "x-api-key": true, "x-auth-token": true,
	"date": true, "connection": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"content-length": true,
}

// headerName is a token of RFC 9110, section 5.6.2.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")

// check refuses what could not be answered again as it stands: what is frozen goes out to
// payers later, and a line break in it would make an answer of its own.
func (r *Response) check(f *faults) {
	if r == nil {
		return
	}
	if r.Status < 100 || r.Status > 599 {
		f.add("/response/status", "must be an HTTP status")
	}
	size, seen := 0, map[string]bool{}
	for name, value := range r.Headers {
		size += len(name) + len(value)
		lower := strings.ToLower(name)
		switch {
		case !headerName.MatchString(name):
			f.add("/response/headers", "holds a name that is no header's")
		case seen[lower]:
			f.add("/response/headers", "holds a name twice, in another case")
		case strings.ContainsFunc(value, func(c rune) bool { return c < 0x20 && c != '\t' || c == 0x7f }):
			f.add("/response/headers", "holds a value with a control character")
		}
		seen[lower] = true
	}
	if size > 32<<10 {
		f.add("/response/headers", "has more than 32 KiB")
	}
}

// frozen is an answer as it is kept.
func frozen(r *Response) (payments.Answer, error) {
	if r == nil {
		return payments.Answer{}, nil
	}
	headers := map[string]string{}
	for name, value := range r.Headers {
		if !notKept[strings.ToLower(name)] {
			headers[name] = value
		}
	}
	raw, err := json.Marshal(headers)
	if err != nil {
		return payments.Answer{}, err
	}
	sum := sha256.Sum256(r.Body)
	a := payments.Answer{Status: r.Status, Headers: string(raw), Body: r.Body, Size: int64(len(r.Body)), Digest: sum[:]}
	if a.Body == nil {
		a.Body = []byte{}
	}
	if len(r.Body) > ResponseLimit {
		a.Body = nil
	}
	return a, nil
}
