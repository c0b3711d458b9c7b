package logfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Record{
		`{"v":1,"type":"intent","run":"r","key":"k","tool":"pay","arguments":{"a":1.0},"occurrence":2,"at":"2026-01-02T03:04:05Z","attempt":3}`: {
			Kind: Intent, Word: "intent", Run: "r", Key: "k", Tool: "pay", Arguments: []byte(`{"a":1.0}`), Occurrence: 2, Time: "2026-01-02T03:04:05Z"},
		`{"event":"STARTED","tool_name":"pay","args":{"a":1},"ts":1767323045.5,"team":"ap"}`: {
			Kind: Intent, Word: "STARTED", Tool: "pay", Arguments: []byte(`{"a":1}`), Time: "1767323045.5", Foreign: []byte(`{"team":"ap"}`)},
		`{"state":"done","idempotency_key":"k","output":null,"ref":"po_1"}`: {Kind: Completed, Word: "done", Key: "k", Reference: "po_1"},
		`{"type":"effect","status":"timeout","key":"k","error":"slow"}`:     {Kind: Unknown, Word: "timeout", Key: "k", Error: []byte(`"slow"`), Foreign: []byte(`{"type":"effect"}`)},
		`{"type":"intent","tool":"pay","input":"{\"a\": 1}"}`:               {Kind: Intent, Word: "intent", Tool: "pay", Arguments: []byte(`{"a": 1}`)},
		`{"type":"resolved","id":"x","key":"k","outcome":"retry"}`:          {Kind: Resolved, Word: "resolved", ID: "x", Key: "k", Verdict: NotTaken},
		`{"type":"resolved","key":"k","verdict":"perhaps"}`:                 {Kind: Resolved, Word: "resolved", Key: "k"},
	} {
		got, err := Parse([]byte(line))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n%+v %v, want\n%+v", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		``: "not JSON", `[1]`: "not JSON", `{"type":"intent"`: "not JSON: at byte", "{\"type\":\"intent\",\"key\":\"\xC3\"}": "not JSON: at byte",
		`{"type":"intent","type":"failed","key":"k"}`: "not JSON", `{"key":"k"}`: "no type", `{"type":"note","key":"k"}`: "no type",
		`{"type":"intent"}`: "names no effect", `{"type":"intent","key":7}`: "its key is not a string", `{"type":"intent","key":"k","arguments":[]}`: "its arguments is no JSON object",
		`{"type":"intent","key":"k","occurrence":0}`: "its occurrence", `{"v":2,"type":"intent","key":"k"}`: "another version", strings.Repeat("\x00", 12): "12 bytes of zero",
	} {
		if _, err := Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	for _, text := range []string{"2026-01-02T03:04:05.5Z", "2026-01-02T04:04:05.5+01:00", "1767323045.5", "1767323045500"} {
		if got := When(text); !got.Equal(want) {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{"", "yesterday", "NaN", "1e300"} {
		if !When(text).IsZero() {
			t.Errorf("%s is read as %v", text, When(text))
		}
	}
}

func TestFragments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Fragment{
		`{"type":"intent","key":"K-41","to{"type":"completion","key":"K-40","result":"ok"}`: {{Kind: Intent, Key: "K-41"}, {Kind: Completed, Key: "K-40"}},
		`{"key":"K-9","run":"r","tool":"pay","type":"intent","argu`:                         {{Kind: Intent, Key: "K-9", Run: "r", Tool: "pay"}},
		`"status":"note","key":"K"`:           nil,
		`{"type":"failed","key":"a\"b\u00e9"`: {{Kind: Failed, Key: `a"bé`}},
	} {
		if got := Fragments([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestScanner(t *testing.T) {
	t.Parallel()
	text := "\xEF\xBB\xBFone\r\n\ntwo\nthree"
	s := NewScanner(strings.NewReader(text), 0, 0, nil)
	var got []string
	for {
		l, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d@%d+%d %s %v", l.Number, l.Start, l.Size, l.Bytes, l.Torn))
		if l.Torn {
			break
		}
	}
	if want := []string{"1@0+8 one false", "2@8+1  false", "3@9+4 two false", "4@13+5 three true"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	start, lines := s.At()
	whole := sha256.Sum256([]byte(text[:13]))
	if start != 13 || lines != 3 || !bytes.Equal(s.Digest(), whole[:]) {
		t.Error("a torn line was passed over")
	}
}

func TestALongLineIsPassedOverInLittleMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxLine+1)
	s := NewScanner(strings.NewReader(long+"\n{}\n"), 0, 0, nil)
	l, err := s.Next()
	if err != nil || !l.Long || len(l.Bytes) > keptOfLong || l.Size != int64(MaxLine+2) {
		t.Fatalf("%v %d %d %v", l.Long, len(l.Bytes), l.Size, err)
	}
	if l, err = s.Next(); err != nil || string(l.Bytes) != "{}" || l.Number != 2 {
		t.Errorf("%q %v", l.Bytes, err)
	}
}

func placeOf(text string) Place {
	sum := sha256.Sum256([]byte(text))
	return Place{ReadTo: int64(len(text)), Lines: int64(strings.Count(text, "\n")), Digest: sum[:]}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	const old = "{\"a\":1}\n"
	fine := func(context.Context) error { return nil }
	for _, c := range []struct {
		name, before string
		torn         int64
		last         func(context.Context) error
		want         error
		after        string
	}{
		{"behind what was read", old, 0, fine, nil, old + "new\n"},
		{"behind an unread line", old + "x\n", 0, fine, ErrUnread, old + "x\n"},
		{"behind a torn line that was seen", old + "{\"b", 3, fine, nil, old + "{\"b\nnew\n"},
		{"behind a torn line that grew", old + "{\"b\"", 3, fine, ErrUnread, old + "{\"b\""},
		{"when it may not", old, 0, func(context.Context) error { return ErrGone }, ErrGone, old},
	} {
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Append(t.Context(), path, placeOf(old), c.torn, []byte("new\n"), c.last)
		got, _ := os.ReadFile(path)
		if !errors.Is(err, c.want) || string(got) != c.after {
			t.Errorf("%s: %v, %q", c.name, err, got)
		}
	}
	if err := os.WriteFile(path, []byte("{\"a\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if alarm, ok := errors.AsType[*Alarm](Append(t.Context(), path, placeOf(old), 0, []byte("new\n"), fine)); !ok || alarm.Kind != "rewritten" {
		t.Errorf("%v", alarm)
	}
	if err := Append(t.Context(), path+"x", placeOf(""), 0, nil, fine); !errors.Is(err, ErrGone) {
		t.Errorf("a file is made: %v", err)
	}
}

func TestAppendWaitsForTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- Append(t.Context(), path, placeOf(""), 0, []byte("new\n"), func(context.Context) error { return nil })
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := f.Close(); err != nil { // lets the lock go
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEntryIsReadBack(t *testing.T) {
	t.Parallel()
	line, err := Entry{Type: Resolved, ID: "id", Run: "r", Key: "<k>", Tool: "t", Verdict: Taken, Result: json.RawMessage(`{"a":"<"}`), Reference: "po"}.Line()
	if err != nil || !bytes.HasPrefix(line, []byte(`{"v":1,"type":"resolved"`)) || bytes.Count(line, []byte("\n")) != 1 || !bytes.Contains(line, []byte("<k>")) {
		t.Fatalf("%s %v", line, err)
	}
	r, err := Parse(line)
	if err != nil || r.ID != "id" || r.Verdict != Taken || string(r.Result) != `{"a":"<"}` || r.Foreign != nil {
		t.Errorf("%+v %v", r, err)
	}
}

// Whatever stands in a file: every byte belongs to one line, reading in pieces is
// reading at once, and no line makes the reader fail.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "{}\n", "\xEF\xBB\xBF{}\r\n{", `{"type":"intent","key":"K-41","to{"type":"completion","key":"K-40","result":"ok"}` + "\n", "\x00\x00\n\n\r", `{"type":"intent","tool":"a","arguments":{"a":[1e400,"` + "\xff" + `"]}}`} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		_ = CheckHead(text)
		var at int64
		read := func(s *Scanner) (lines []string) {
			for {
				l, err := s.Next()
				if errors.Is(err, io.EOF) {
					return lines
				}
				if err != nil {
					t.Fatal(err)
				}
				if l.Start != at || l.Number != int64(len(lines))+1 && at != l.Start {
					t.Fatalf("line %d begins at %d, not at %d", l.Number, l.Start, at)
				}
				at += l.Size
				if r, err := Parse(l.Bytes); err == nil {
					if r.Key == "" && r.Tool == "" || r.Arguments != nil && !json.Valid(r.Arguments) || r.Result != nil && !json.Valid(r.Result) {
						t.Fatalf("%+v", r)
					}
				}
				Fragments(l.Bytes)
				lines = append(lines, string(l.Bytes))
				if l.Torn {
					return lines
				}
			}
		}
		s := NewScanner(bytes.NewReader(text), 0, 0, nil)
		all := read(s)
		if at != int64(len(text)) {
			t.Fatalf("%d of %d bytes", at, len(text))
		}
		// Reading on behind the first whole lines gives the rest, and the same digest.
		end := bytes.LastIndexByte(text[:min(int(cut), len(text))], '\n') + 1
		if end == 0 {
			return
		}
		sum := sha256.New()
		sum.Write(text[:end])
		n := bytes.Count(text[:end], []byte("\n"))
		at = int64(end)
		on := NewScanner(bytes.NewReader(text[end:]), int64(end), int64(n), sum)
		if rest := read(on); !slices.Equal(rest, all[n:]) || !bytes.Equal(on.Digest(), s.Digest()) {
			t.Fatalf("%q, want %q", rest, all[n:])
		}
	})
}
