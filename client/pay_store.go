package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"quittance/client/x402"
)

// intents is a folder with one below it for each purchase. A file in it is there whole or
// not at all, also after a crash of the machine, and never changes: of several processes
// that write the same one the first wins, and the others go on with what it wrote.
type intents struct{ dir string }

// intent is what is known of a purchase before anything is sent.
type intent struct {
	Key       string    `json:"key"`
	PaymentID string    `json:"payment_id"`
	Method    string    `json:"method"`
	URL       string    `json:"url"`
	Digest    string    `json:"body_sha256"`
	At        time.Time `json:"at"`
}

// authorized is what was signed for a purchase, and the header that is sent for it.
type authorized struct {
	N       int          `json:"n"` // from 1
	Quote   string       `json:"quote,omitempty"`
	Payment x402.Payload `json:"payment"`
	Sent    string       `json:"sent"`
}

// usableUntil is when the authorization stops being one, where the scheme says so.
func (a *authorized) usableUntil() time.Time {
	var x x402.Exact
	if json.Unmarshal(a.Payment.Payload, &x) != nil {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(x.Authorization.ValidBefore, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (s intents) folder(key string) string { return filepath.Join(s.dir, hashed(key)) }

// begin stores the intent of a purchase, or reads the one that is stored.
func (s intents) begin(r *purchase) (in intent, err error) {
	body := sha256.Sum256(r.body)
	mine := intent{
		Key: r.key, PaymentID: "pay_" + newID(), Method: r.req.Method, URL: r.req.URL.String(), Digest: hex.EncodeToString(body[:]), At: time.Now().UTC(),
	}
	if mine.Method == "" {
		mine.Method = http.MethodGet
	}
	if err := first(s.folder(r.key), "intent.json", mine, &in); err != nil {
		return in, err
	}
	if in.Method != mine.Method || in.URL != mine.URL || in.Digest != mine.Digest {
		return in, fmt.Errorf("%w: %s %s", ErrOtherPurchase, in.Method, in.URL)
	}
	return in, nil
}

// takeQuote makes a quote the purchase's own, for ever.
func (s intents) takeQuote(r *purchase, quote string) error {
	if quote == "" {
		return nil
	}
	type owner struct {
		Key   string `json:"key"`
		Quote string `json:"quote"`
	}
	var had owner
	if err := first(filepath.Join(s.dir, "quotes"), hashed(r.req.URL.Host, quote)+".json", owner{r.key, quote}, &had); err != nil {
		return err
	}
	if had.Key != r.key {
		return fmt.Errorf("%w: %q", ErrQuoteSigned, had.Key)
	}
	return nil
}

// authorize stores what was signed, before it is sent; where another process was faster,
// what it signed.
func (s intents) authorize(dir string, mine authorized) (*authorized, error) {
	var a authorized
	err := first(dir, fmt.Sprintf("authorization-%d.json", mine.N), mine, &a)
	return &a, err
}

// newest is what was signed last; nil where nothing was.
func (s intents) newest(dir string) (last *authorized, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "authorization-*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var a authorized
		if err := readJSON(name, &a); err != nil {
			return nil, err
		}
		if last == nil || a.N > last.N {
			last = &a
		}
	}
	return last, nil
}

// answer is the final one; nil while there is none.
func (s intents) answer(dir string) (*Paid, error) {
	var p Paid
	err := readJSON(filepath.Join(dir, "answer.json"), &p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	p.Replayed = true
	return &p, err
}

func (s intents) finish(dir string, p *Paid) (*Paid, error) {
	var had Paid
	err := first(dir, "answer.json", p, &had)
	return &had, err
}

func readJSON(name string, v any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("couldn't read %s, which a person has to look at: %w", name, err)
	}
	return nil
}

// first writes a file that must never be another one, and reads what stands there: what
// was written, or what was there before. Errors of writing wrap [ErrNotStored].
func first(dir, name string, mine, stands any) (err error) {
	to := filepath.Join(dir, name)
	err = readJSON(to, stands)
	if !errors.Is(err, fs.ErrNotExist) {
		// It may have been written a moment ago, by a process that has not synced it yet.
		return errors.Join(err, stored(syncDir(dir)))
	}
	raw, err := marshal(mine)
	if err != nil {
		return err
	}
	if err := stored(writeFirst(dir, to, raw)); err != nil {
		return err
	}
	return readJSON(to, stands)
}

func stored(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotStored, err)
}

func writeFirst(dir, to string, raw []byte) (err error) {
	if err := makeDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(to)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if _, err = f.Write(raw); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A link, unlike a rename, fails where the name is taken.
	if err := os.Link(f.Name(), to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// makeDir makes a folder, and its entries in those above it, survive a crash.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	above := filepath.Dir(strings.TrimRight(dir, string(filepath.Separator)))
	if above != dir {
		if err := makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(above)
}
