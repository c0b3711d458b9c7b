package ledger

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Time is a timestamptz where NULL is the zero time. In JSON it is an RFC 3339
// string of microseconds, or null.
type Time struct{ time.Time }

// At wraps t, cut to the microseconds that PostgreSQL keeps.
func At(t time.Time) Time { return Time{t.Truncate(time.Microsecond)} }

func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case time.Time:
		t.Time = v
	default:
		return fmt.Errorf("couldn't read a time from %T", src)
	}
	return nil
}

func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.Time, nil
}

func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().AppendFormat([]byte{'"'}, `2006-01-02T15:04:05.000000Z"`), nil
}

// Bytes is a bytea that travels through JSON the way PostgreSQL reads it: \x and
// hex digits.
type Bytes []byte

func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	out := make([]byte, 0, len(b)*2+5)
	out = append(out, `"\\x`...)
	out = hex.AppendEncode(out, b)
	return append(out, '"'), nil
}

func (b *Bytes) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*b = nil
	case []byte:
		*b = append(Bytes(nil), v...)
	default:
		return errors.New("couldn't read bytes")
	}
	return nil
}

func (b Bytes) Value() (driver.Value, error) {
	if b == nil {
		return nil, nil
	}
	return []byte(b), nil
}
