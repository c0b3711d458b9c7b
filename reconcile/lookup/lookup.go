// Package lookup asks a downstream whether an effect took place, and says what the answer
// proves. It never guesses: what is not proven is inconclusive, and so is every error.
//
// A [Source] is one kind of downstream and lives in a package of its own below; it says
// what it saw. What that proves is [Judge]'s, and the same for all.
package lookup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"quittance/reconcile/redact"
)

// Source can be asked about an effect. Safe for concurrent use.
type Source interface {
	// Ask looks once. It changes nothing at the downstream and waits no longer than ctx and
	// its own limits. Neither Request nor Problem may hold a secret of its own.
	Ask(ctx context.Context, q Question) Seen
	// Host names what rate limits are counted by; "" for a source without one.
	Host() string
	// Mask replaces the source's own secrets in a text.
	Mask(text string) string
}

// Lookup is a tool's look-up as its policy declares it.
type Lookup struct {
	Kind   string // as in the policy: "http", "sql"
	Source Source // nil in a policy that is only remembered
	Terms  Terms

	// PerSecond and AtOnce limit how often the source's host is asked; PerSecond 0 does not.
	PerSecond int
	AtOnce    int
}

// Limits of what is kept of an answer, in bytes.
const (
	maxExcerpt = 2048
	maxRecord  = 2048
	maxWord    = 100 // a world, a record's state
	maxHits    = 50
)

// Ask asks the source once. What it returns is free of the source's secrets and of those
// that redactor finds, and short enough to be stored. A source that panics is
// inconclusive.
func (l *Lookup) Ask(ctx context.Context, redactor *redact.Redactor, q Question) Seen {
	if l.Source == nil {
		return Seen{Problem: AdapterError}
	}
	return l.tidied(redactor, func() Seen { return l.Source.Ask(ctx, q) })
}

func (l *Lookup) tidied(redactor *redact.Redactor, look func() Seen) (s Seen) {
	begun := time.Now()
	defer func() {
		if recover() != nil {
			s = Seen{Problem: AdapterError}
		}
		if s.Latency == 0 {
			s.Latency = time.Since(begun)
		}
		l.tidy(&s, redactor)
	}()
	return look()
}

// tidy makes what was seen fit to be stored and shown.
func (l *Lookup) tidy(s *Seen, redactor *redact.Redactor) {
	mask := l.Source.Mask
	if s.body != nil {
		if s.Digest == "" {
			s.Digest = Digest(s.body)
		}
		s.Excerpt, s.body = clean(s.body, maxExcerpt, mask, redactor), nil
	}
	s.Request = redactor.Text(mask(s.Request))
	s.Detail = clean([]byte(s.Detail), maxRecord, mask, redactor)
	s.World = clean([]byte(s.World), maxWord, mask, redactor)
	if len(s.Hits) > maxHits {
		// So many are no answer to a question about one call.
		s.Hits, s.Complete = s.Hits[:maxHits], false
	}
	for i := range s.Hits {
		h := &s.Hits[i]
		if mask(h.Reference) != h.Reference {
			h.Reference = "" // it holds a secret, and so names nothing
		}
		h.Record = clean([]byte(h.Record), maxRecord, mask, redactor)
		for _, word := range []*string{&h.State, &h.Amount, &h.Currency} {
			*word = clean([]byte(*word), maxWord, mask, redactor)
		}
		if h.Result != nil {
			h.Result, _, _ = redactor.JSON([]byte(mask(string(h.Result))), nil, nil) // nil where it is not JSON
		}
	}
}

// Digest is how what came is recorded: SHA-256 in hexadecimal.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// window is how much of a body is searched for secrets before it is cut: a secret that
// begins inside the excerpt must be whole to be recognised.
const window = 64 << 10

// clean redacts and then cuts, so that no half of a secret is left.
func clean(raw []byte, most int, mask func(string) string, redactor *redact.Redactor) string {
	text := mask(string(raw)) // all of it: masking what was cut would leave the half at the end
	if plain := unescaped(text); mask(plain) != plain {
		return fmt.Sprintf("left out: it holds a secret (%d bytes)", len(raw))
	}
	if len(text) > window {
		text = text[:window]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if safe, _, err := redactor.JSON([]byte(text), nil, nil); err == nil {
		text = string(safe)
	} else {
		text = redactor.Text(text)
	}
	text = strings.ReplaceAll(text, "\x00", "\uFFFD") // PostgreSQL stores none
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes in all)", text[:cut], len(raw))
}

var escape = regexp.MustCompile(`\\(?:/|u[0-9a-fA-F]{4})`)

// unescaped reads the escapes in which JSON can hide any character.
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(text, func(e string) string {
		if e == `\/` {
			return "/"
		}
		n, _ := strconv.ParseUint(e[2:], 16, 32) // four hexadecimal digits
		return string(rune(n))
	})
}

// Told is a source that is not asked but told: by a worker that answers, or by events that
// arrive. Its Ask is [Unanswered].
type Told interface {
	Source
	// See reads what was brought, each a JSON document, the oldest first.
	See(ctx context.Context, q Question, brought [][]byte) Seen
}

// See is [Lookup.Ask] for a source that is told. It is [Unanswered] for any other.
func (l *Lookup) See(ctx context.Context, redactor *redact.Redactor, q Question, brought [][]byte) Seen {
	told, ok := l.Source.(Told)
	if !ok {
		return Seen{Problem: Unanswered}
	}
	return l.tidied(redactor, func() Seen { return told.See(ctx, q, brought) })
}
