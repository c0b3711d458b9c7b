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
// digest, and an HMAC by a key in the database over both and the run. Opaque to
// callers. A server that does not hold exactly that event has lost part of its log.

const (
	digestPart   = 16
	positionSize = 8 + digestPart + 16
)

type position struct {
	id     int64
	digest [digestPart]byte
}

func (e *Engine) positionMAC(account int64, runID string, head []byte) []byte {
	m := hmac.New(sha256.New, e.secrets.Position)
	m.Write([]byte("position\x00" + strconv.FormatInt(account, 10) + "\x00" + runID + "\x00"))
	m.Write(head)
	return m.Sum(nil)[:16]
}

// positionOf is the log position of an event.
func (e *Engine) positionOf(account int64, runID string, v store.Event) string {
	if v.ID == 0 {
		return ""
	}
	b := make([]byte, 0, positionSize)
	b = binary.BigEndian.AppendUint64(b, uint64(v.ID))
	b = append(b, v.Digest[:digestPart]...)
	b = append(b, e.positionMAC(account, runID, b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePosition verifies a position a caller returned; nil for none.
func (e *Engine) parsePosition(account int64, runID, text string) (*position, *Refusal) {
	if text == "" {
		return nil, nil
	}
	bad := &Refusal{Code: CodeInvalid, Pointer: "/log_position", Detail: "The log position is not one this installation gave for this run."}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != positionSize {
		return nil, bad
	}
	head := b[:8+digestPart]
	if !hmac.Equal(b[len(head):], e.positionMAC(account, runID, head)) {
		return nil, bad
	}
	p := &position{id: int64(binary.BigEndian.Uint64(b))}
	copy(p.digest[:], b[8:])
	return p, nil
}

// holds tells whether the event found under the position's number is the one it
// names, of that run (0: the run itself is missing).
func (p *position) holds(v store.Event, run int64) bool {
	return v.ID == p.id && v.Run == run && bytes.HasPrefix(v.Digest, p.digest[:])
}
