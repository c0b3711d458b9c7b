package effects

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	store "quittance/ledger/effects"
)

// A log position names one event of one run: its number, the first half of its
// digest, the run, and an HMAC by a key in the database over all of it. Opaque to
// callers. A server that does not hold exactly that event has lost part of its log.

const (
	digestPart   = 16
	positionHead = 8 + digestPart + 8 + 8
	positionSize = positionHead + 16
)

type position struct {
	id     int64
	digest [digestPart]byte
	run    int64 // the run's number in this database when the event was written
}

func (e *Engine) positionMAC(account int64, head []byte) []byte {
	m := hmac.New(sha256.New, e.secrets.Position)
	m.Write([]byte("position\x00" + strconv.FormatInt(account, 10) + "\x00"))
	m.Write(head)
	return m.Sum(nil)[:16]
}

// nameMark tells the positions of two runs apart by what their agents call them.
func nameMark(runID string) []byte {
	sum := sha256.Sum256([]byte(runID))
	return sum[:8]
}

// positionOf is the log position of an event.
func (e *Engine) positionOf(account int64, runID string, v store.Event) string {
	if v.ID == 0 {
		return ""
	}
	b := make([]byte, 0, positionSize)
	b = binary.BigEndian.AppendUint64(b, uint64(v.ID))
	b = append(b, v.Digest[:digestPart]...)
	b = binary.BigEndian.AppendUint64(b, uint64(v.Run))
	b = append(b, nameMark(runID)...)
	b = append(b, e.positionMAC(account, b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePosition verifies a position a caller returned; nil for none. runID "" is a
// call that names its effect and not its run.
func (e *Engine) parsePosition(account int64, runID, text string) (*position, *Refusal) {
	if text == "" {
		return nil, nil
	}
	bad := &Refusal{Code: CodeInvalid, Pointer: "/log_position", Detail: "The log position is not one this installation gave for this run."}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != positionSize {
		return nil, bad
	}
	head := b[:positionHead]
	if !hmac.Equal(b[positionHead:], e.positionMAC(account, head)) {
		return nil, bad
	}
	if runID != "" && !bytes.Equal(head[positionHead-8:], nameMark(runID)) {
		return nil, bad
	}
	p := &position{id: int64(binary.BigEndian.Uint64(b)), run: int64(binary.BigEndian.Uint64(b[8+digestPart:]))}
	copy(p.digest[:], b[8:])
	return p, nil
}

// holds tells whether the event found under the position's number is the one it
// names, of that run (0: the run itself is missing).
func (p *position) holds(v store.Event, run int64) bool {
	return v.ID == p.id && v.Run == run && bytes.HasPrefix(v.Digest, p.digest[:])
}
