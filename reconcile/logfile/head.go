package logfile

import (
	"bytes"
	"fmt"
)

// HeadSize is how much of a file's beginning CheckHead wants to see.
const HeadSize = 64 << 10

// FormatError is a file that holds no lines as they are read here. Nothing of it is.
type FormatError struct{ Problem string }

func (e *FormatError) Error() string { return e.Problem }

// CheckHead refuses a file by its beginning: another encoding, a compressed file, or
// lines that end in a way that would make one line of all of them.
func CheckHead(head []byte) error {
	refuse := func(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }
	for _, m := range []struct{ mark, name string }{
		{"\xFF\xFE\x00\x00", "UTF-32 (little end first)"}, {"\x00\x00\xFE\xFF", "UTF-32 (big end first)"},
		{"\xFF\xFE", "UTF-16 (little end first)"}, {"\xFE\xFF", "UTF-16 (big end first)"},
	} {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return refuse("the file is in %s; convert it to UTF-8 first", m.name)
		}
	}
	for _, m := range []struct{ mark, name string }{{"\x1F\x8B", "gzip"}, {"\x28\xB5\x2F\xFD", "zstd"}, {"PK\x03\x04", "zip"}, {"BZh", "bzip2"}, {"\xFD7zXZ\x00", "xz"}} {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return refuse("the file is compressed (%s); unpack it first", m.name)
		}
	}
	switch {
	case len(head) >= 4 && head[0] == '{' && head[1] == 0:
		return refuse("the file is in UTF-16 (little end first) without its mark; convert it to UTF-8 first")
	case len(head) >= 4 && head[0] == 0 && head[1] == '{':
		return refuse("the file is in UTF-16 (big end first) without its mark; convert it to UTF-8 first")
	case bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0:
		return refuse("the file's lines end in a lone carriage return; convert them to line feeds first")
	}
	return nil
}
