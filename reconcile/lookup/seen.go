package lookup

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Seen is what one look at a downstream showed. The zero value is a look that showed
// nothing and proves nothing.
type Seen struct {
	Hits []Hit
	// Complete: everything that the source has for the question was read, to the last page.
	Complete bool
	// Canary: an object that is known to exist was visible to the same credentials.
	Canary bool
	// World is where the source says that it is ("live", "sandbox"); "" if it does not say.
	World string
	// AsOf is up to when the source says that its view is whole; zero if it does not say.
	AsOf time.Time
	// Never says why the effect did not take place and never can (an authorization that
	// expired unused at a final block); "" where it may.
	Never string

	// Problem is why nothing, or not everything, could be read.
	Problem Problem
	// Detail says more about the problem, in words that hold nothing of the answer.
	Detail string
	// RetryAfter is how long the downstream wants to be left alone.
	RetryAfter time.Duration

	// For the record.
	Request string        // what was asked, secrets masked
	Status  int           // the last HTTP status; 0 where there is none
	Latency time.Duration // of all requests together
	Pages   int
	Digest  string // SHA-256 of everything that came, in hexadecimal
	Excerpt string // the begin of the last answer, redacted
	body    []byte // of the last answer; never leaves this package
}

// Body hands over the last answer as it came. [Lookup.Ask] makes the excerpt of it, and
// the rest is forgotten.
func (s *Seen) Body(raw []byte) { s.body = raw }

// Problem is why a look-up could not check.
type Problem string

// Problems.
const (
	NoProblem    Problem = ""
	Unreachable  Problem = "unreachable"   // no connection, DNS, TLS, a refused address
	TimedOut     Problem = "timed_out"     // no whole answer in time
	Denied       Problem = "denied"        // 401, 403: our credentials, not our effect
	Throttled    Problem = "throttled"     // 429
	Failing      Problem = "failing"       // 5xx
	Redirected   Problem = "redirected"    // 3xx is never followed
	Unexpected   Problem = "unexpected"    // any other status that was not declared to mean "not found"
	TooLarge     Problem = "too_large"     // past the limit
	Unreadable   Problem = "unreadable"    // HTML, cut off, not the JSON it should be
	RuleFailed   Problem = "rule_failed"   // an expression of the policy did not fit the answer
	Unaskable    Problem = "unaskable"     // the effect lacks what the question is made of
	PageFailed   Problem = "page_failed"   // an earlier page came, a later one did not
	MorePages    Problem = "more_pages"    // the answer says that there is more than was read
	CanaryFailed Problem = "canary_failed" // the canary could not be asked for
	AdapterError Problem = "adapter_error" // our own or the team's code broke
	Unanswered   Problem = "unanswered"    // a worker, or an event, that has not come yet
)

var problemWords = map[Problem]string{
	Unreachable: "it could not be reached", TimedOut: "it did not answer in time", Denied: "it refused our credentials",
	Throttled: "it asks to be left alone", Failing: "it failed", Redirected: "it points elsewhere, which is not followed",
	Unexpected: "it answered something that is not declared to mean anything", TooLarge: "its answer is too large",
	Unreadable: "its answer cannot be read", RuleFailed: "an expression of the policy does not fit its answer",
	Unaskable: "the effect lacks what the question is made of", PageFailed: "a later page of its answer failed",
	MorePages: "it says that there is more than was read", CanaryFailed: "the canary could not be asked for",
	AdapterError: "the look-up itself broke", Unanswered: "nobody has answered yet",
}

// Hit is one record of the downstream that may be the effect.
type Hit struct {
	// Reference is the downstream's name for the record; "" where it has none.
	Reference string
	// Match: amount, currency and recipient agree with the intent.
	Match bool
	// Final: it will not change any more.
	Final bool
	// Ours: it carries our own key, so it can be nobody else's.
	Ours bool
	// Possible: it does not name our business key and may be ours all the same.
	Possible bool
	// Passing: where it stands can be undone as a whole (a block that is not final). That it
	// is gone later does not contradict a source that says [Seen.Never].
	Passing bool
	// Never: its state says that it did not and never will take effect (cancelled).
	Never bool
	// Reversed: it took effect, and the money came back.
	Reversed bool
	// Result replaces the tool's own result when the effect is taken; JSON.
	Result []byte
	// State is the downstream's own word for where it stands, for people.
	State string
	// Amount and Currency are what Match compared, for people: decimal text where the
	// currency is known, "" where the rules do not say where they stand.
	Amount, Currency string
	// Record is the record itself, JSON; redacted and cut once [Lookup.Ask] returns.
	Record string
}

// Name is how people and decisions name a record: its reference, or, where it has none, a
// digest of what was shown of it.
func (h *Hit) Name() string {
	if h.Reference != "" {
		return h.Reference
	}
	sum := sha256.Sum256([]byte(h.Record))
	return "record:" + hex.EncodeToString(sum[:8])
}

// References are the references of all hits, each once: whoever judges reads first which
// of them other effects own.
func (s *Seen) References() (list []string) {
	for _, h := range s.Hits {
		if h.Reference != "" && !slices.Contains(list, h.Reference) {
			list = append(list, h.Reference)
		}
	}
	return list
}

// distinct joins what was seen of one record twice, as on two pages that moved. Where the
// two disagree the one that proves less counts. A record found by our key is not merely
// possible, whatever else is true of it.
func distinct(hits []Hit) (list []Hit) {
	for _, h := range hits {
		i := slices.IndexFunc(list, func(x Hit) bool { return h.Reference != "" && x.Reference == h.Reference })
		if i < 0 {
			list = append(list, h)
			continue
		}
		x := &list[i]
		if x.Possible != h.Possible {
			if x.Possible {
				*x = h
			}
			continue
		}
		x.Match, x.Final, x.Ours = x.Match && h.Match, x.Final && h.Final, x.Ours && h.Ours
		x.Never, x.Reversed, x.Passing = x.Never && h.Never, x.Reversed || h.Reversed, x.Passing && h.Passing
	}
	return list
}
