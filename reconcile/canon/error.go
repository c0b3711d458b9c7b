package canon

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a document and where. It never holds a value of the
// document, only member names in Pointer.
type Error struct {
	// Pointer is the RFC 6901 pointer of the value at fault, "" for the whole
	// document. Its end is cut and marked with "…" past maxPointer bytes.
	Pointer string
	// Offset counts bytes from the start of the document.
	Offset  int64
	Problem string
}

func (e *Error) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem)
	}
	return fmt.Sprintf("at %s (byte %d): %s", e.Pointer, e.Offset, e.Problem)
}

// maxPointer keeps an error short when member names are megabytes long.
const maxPointer = 512

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer joins segments that were collected innermost first.
func pointer(inward []string) string {
	var b strings.Builder
	for i := len(inward) - 1; i >= 0; i-- {
		s := strings.ToValidUTF8(inward[i], "\uFFFD") // lone surrogates
		if b.Len()+1+len(s) > maxPointer {
			return b.String() + "/…"
		}
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(s))
	}
	return b.String()
}
