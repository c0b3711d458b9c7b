package effects

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"quittance/ledger/runs"
	"quittance/reconcile/canon"
	"quittance/reconcile/policy"
)

// ArgumentLimit is the most that one call's arguments may hold, in bytes: a person
// has to be able to read what they decide about, so they are never cut.
const ArgumentLimit = 1 << 20

// prepared is an Op with everything done that needs no database.
type prepared struct {
	Op
	refusal  *Refusal
	pos      *position
	lease    []byte // hash of the lease token
	args     *canon.Value
	text     string // arguments as they will be stored
	redacted bool   // something in them was redacted
	result   kept
	failure  kept // the error

	newID   string // of the effect, when this begin is its first
	watched string // the observed call that this finish may be of
	written bool   // a line of a log file says so: nobody holds its run
	answer  *Answer
}

// kept is a JSON text as it will be stored: redacted, or cut to size and digest.
type kept struct {
	text   string
	stored Stored
	value  *canon.Value
}

func (p *prepared) account() int64 {
	if p.Begin != nil {
		return p.Begin.Account
	}
	return p.Finish.Account
}

func (p *prepared) runID() string {
	if p.Begin != nil {
		return p.Begin.RunID
	}
	return p.Finish.RunID
}

func hashLease(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// leaseToken derives a holder's secret from its place, so that the same attempt_id
// gets the same lease again although only a hash is stored.
func (e *Engine) leaseToken(run int64, epoch int64, attempt string) string {
	m := hmac.New(sha256.New, e.secrets.Lease)
	m.Write([]byte(strconv.FormatInt(run, 10) + "/" + strconv.FormatInt(epoch, 10) + "/" + attempt))
	return "ql_" + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func invalid(pointer, format string, args ...any) *Refusal {
	return &Refusal{Code: CodeInvalid, Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}

// text limits of design section 4, in bytes.
func limited(pointer, s string, max int) *Refusal {
	switch {
	case s == "":
		return invalid(pointer, "It is missing.")
	case len(s) > max:
		return invalid(pointer, "It is %d bytes long; at most %d are accepted.", len(s), max)
	case strings.IndexByte(s, 0) >= 0:
		return invalid(pointer, "It holds a NUL character.")
	case !utf8.ValidString(s):
		return invalid(pointer, "It is not valid UTF-8.")
	}
	return nil
}

// storable is free text as PostgreSQL takes it: what it refuses is shown as an escape.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\u0000`)
}

// words is what a person wrote, as it is stored.
func (e *Engine) words(s string) string { return e.redact.Text(storable(s)) }

func firstRefusal(list ...*Refusal) *Refusal {
	for _, r := range list {
		if r != nil {
			return r
		}
	}
	return nil
}

// prepare checks and parses an Op. What it refuses never reaches the database.
func (e *Engine) prepare(op Op) *prepared {
	p := &prepared{Op: op}
	switch {
	case op.Begin != nil && op.Finish == nil:
		p.refusal = e.prepareBegin(p, op.Begin)
	case op.Finish != nil && op.Begin == nil:
		p.refusal = e.prepareFinish(p, op.Finish)
	default:
		p.refusal = invalid("", "An operation is either a begin or a finish.")
	}
	return p
}

func (e *Engine) prepareBegin(p *prepared, b *Begin) *Refusal {
	if b.Occurrence == 0 {
		b.Occurrence = 1
	}
	if r := firstRefusal(
		limited("/run_id", b.RunID, 512), limited("/tool", b.Tool, 256), limited("/attempt_id", b.AttemptID, 256),
	); r != nil {
		return r
	}
	if b.Occurrence < 1 || b.Occurrence > 1<<30 {
		return invalid("/occurrence", "It counts identical calls from 1.")
	}
	if b.Key != "" {
		if r := limited("/key", b.Key, 512); r != nil {
			return r
		}
	}
	for _, t := range []struct{ at, s string }{{"/call_id", b.CallID}, {"/client_time", b.ClientTime}} {
		if t.s != "" {
			if r := limited(t.at, t.s, 1024); r != nil {
				return r
			}
		}
	}
	p.lease = hashLease(b.Lease)
	r := e.arguments(p, b.Tool, b.Arguments)
	if r == nil {
		p.pos, r = e.parsePosition(b.Account, b.RunID, b.LogPosition)
	}
	return r
}

func (e *Engine) arguments(p *prepared, tool string, raw []byte) *Refusal {
	if len(raw) > ArgumentLimit {
		return &Refusal{Code: CodeTooLarge, Pointer: "/arguments", Detail: fmt.Sprintf("The arguments are %d bytes; at most %d are accepted.", len(raw), ArgumentLimit)}
	}
	var err error
	if p.args, err = canon.ParseObject(raw); err != nil {
		return badJSON("/arguments", err)
	}
	return e.redactArguments(p, e.Policy().Tool(tool), raw)
}

// redactArguments sets the arguments as they are stored and as the key is made
// from: after redaction.
func (e *Engine) redactArguments(p *prepared, t *policy.Tool, raw []byte) *Refusal {
	clean, changed, err := e.redact.JSON(raw, t.Redact, t.Keep())
	if err == nil && (changed || p.redacted) {
		p.args, err = canon.ParseObject(clean)
	}
	if err != nil {
		return badJSON("/arguments", err)
	}
	p.text, p.redacted = string(clean), changed
	return nil
}

func badJSON(at string, err error) *Refusal {
	var c *canon.Error
	if errors.As(err, &c) {
		return invalid(at+c.Pointer, "At byte %d: %s.", c.Offset, c.Problem)
	}
	return invalid(at, "It is not JSON that can be stored.")
}

func (e *Engine) prepareFinish(p *prepared, f *Finish) *Refusal {
	if f.Occurrence == 0 {
		f.Occurrence = 1
	}
	if f.Outcome == "" || len(f.Outcome) > 256 {
		return invalid("/outcome", "It says how the attempt ended: taken, failed, or any other word for unknown.")
	}
	if f.Fence < 0 {
		return invalid("/fence", "It is the number begin gave.")
	}
	if f.Reference != "" {
		if r := limited("/reference", f.Reference, 1024); r != nil {
			return r
		}
	}
	if f.EffectID != "" {
		id, err := uuid.Parse(f.EffectID)
		if err != nil {
			return noEffect()
		}
		f.EffectID = id.String()
	} else {
		if r := limited("/run_id", f.RunID, 512); r != nil {
			return r
		}
		if f.Key == "" && f.Tool == "" {
			return invalid("", "A finish names its effect by effect_id, by run_id and key, or by run_id, tool, arguments and occurrence. A call id alone is ambiguous and is not used.")
		}
		if f.Key == "" {
			if r := limited("/tool", f.Tool, 256); r != nil {
				return r
			}
			if r := e.arguments(p, f.Tool, f.Arguments); r != nil {
				return r
			}
		} else if r := limited("/key", f.Key, 512); r != nil {
			return r
		}
	}
	var r *Refusal
	if p.result, r = e.keep("/result", f.Tool, f.Result); r != nil {
		return r
	}
	if p.failure, r = e.keep("/error", f.Tool, f.Error); r != nil {
		return r
	}
	if f.Result == nil && (f.ResultOmitted || f.ResultSize > 0) {
		p.result.stored = Stored{Size: f.ResultSize, Cut: true, Limit: ResultLimit}
		if f.ResultDigest != "" {
			if d, err := hex.DecodeString(f.ResultDigest); err != nil || len(d) != sha256.Size {
				return invalid("/result_digest", "It is the SHA-256 of the result, 64 hex digits.")
			}
			p.result.stored.Digest = f.ResultDigest
		}
	}
	run := f.RunID
	if f.EffectID != "" {
		run = ""
	}
	p.pos, r = e.parsePosition(f.Account, run, f.LogPosition)
	return r
}

// keep redacts a JSON text, or cuts one that is too long to size and digest. The
// size is of what was sent, the digest of what is left after redaction: a digest of
// a short secret could be guessed.
func (e *Engine) keep(at, tool string, raw []byte) (kept, *Refusal) {
	if len(raw) == 0 {
		return kept{}, nil
	}
	k := kept{stored: Stored{Size: int64(len(raw)), Limit: ResultLimit, Cut: len(raw) > ResultLimit}}
	clean := raw
	if k.stored.Cut {
		if !json.Valid(raw) {
			return kept{}, invalid(at, "It is not JSON.")
		}
	} else {
		var err error
		if k.value, err = canon.Parse(raw); err != nil {
			return kept{}, badJSON(at, err)
		}
		t := e.Policy().Tool(tool)
		if clean, _, err = e.redact.JSON(raw, t.Redact, t.Keep()); err != nil {
			return kept{}, badJSON(at, err)
		}
		k.text = string(clean)
	}
	sum := sha256.Sum256(clean)
	k.stored.Digest = hex.EncodeToString(sum[:])
	return k, nil
}

// call is what the keys of a begin, or of a finish that repeats one, are made of.
type call struct {
	tool    *policy.Tool // of the policy in force
	key     canon.Key
	before  canon.Key // key of the occurrence before; zero for the first
	minted  canon.Key // the other reading of a finish's key; zero when there is one only
	digest  canon.Key
	missing []string // fields of the business key that are not there
	claims  []claim  // the one under the tool's template first
}

// callOf computes the keys of a call. What is left out of the key, and what is
// redacted before it is made, are those of the policy the run was opened under;
// the business key is made with the templates that are in force for every server.
func (e *Engine) callOf(run *runs.Row, opened *policy.Policy, in *keying, p *prepared, tool string, raw []byte, occurrence int, minted string) (call, *Refusal) {
	c := call{tool: e.Policy().Tool(tool)}
	if before := opened.Tool(tool); opened != e.Policy() && !slices.Equal(before.Redact, c.tool.Redact) {
		if r := e.redactArguments(p, before, raw); r != nil {
			return c, r
		}
	}
	args := p.args
	stable := args.Without(opened.Tool(tool).Volatile)
	c.digest = canon.CallDigest(tool, stable)
	if minted != "" {
		c.key = canon.MintedKey(run.RunID, minted)
	} else {
		c.key = canon.EffectKey(run.RunID, tool, stable, occurrence)
		if occurrence > 1 {
			c.before = canon.EffectKey(run.RunID, tool, stable, occurrence-1)
		}
	}
	now, missing, err := in.claim(tool, run.Account, args, c.digest)
	if err != nil {
		return c, invalid("/arguments", "The business key made from them is not usable: %v.", err)
	}
	c.missing, c.claims = missing, []claim{now}
	if was, ok := in.earlier(tool, run.Account, args, c.digest); ok && !bytes.Equal(was.digest, now.digest) {
		c.claims = append(c.claims, was)
	}
	return c, nil
}

// accountText is how an account goes into a key.
func accountText(account int64) string { return strconv.FormatInt(account, 10) }

// keyOf reads a key as a finish gives it: one the client minted, or the 64 hex digits
// that begin gave. A client may mint such a text too; then there are two readings.
func keyOf(run, text string) (c call) {
	c.key = canon.MintedKey(run, text)
	if len(text) == 64 {
		var given canon.Key
		if _, err := hex.Decode(given[:], []byte(text)); err == nil {
			c.key, c.minted = given, c.key
		}
	}
	return c
}
