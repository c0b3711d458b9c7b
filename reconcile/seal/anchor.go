package seal

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"quittance/ledger/seal"
)

// Anchor is a file outside the database that names the head of the chain. A database
// that does not hold the block it names has lost part of its log. Several servers may
// share one file.
type Anchor struct{ path string }

// NewAnchor is the anchor in a file, which need not exist; "" keeps none.
func NewAnchor(path string) *Anchor { return &Anchor{path} }

// Path is where the file is, "" for nowhere.
func (a *Anchor) Path() string { return a.path }

// anchored is the file's content.
type anchored struct {
	What   string    `json:"what"`
	Number int64     `json:"block"`
	Digest string    `json:"digest"`
	At     time.Time `json:"written_at"` // by this machine's clock, for people
}

// anchorWhat says in the file itself what it is for.
const anchorWhat = "The newest sealed block of a Quittance log. Keep it apart from the database and its backups: a database that does not hold this block has lost events."

// ErrAnchor says that the file is there and is not an anchor.
var ErrAnchor = errors.New("the anchor cannot be read")

// Read gives the anchored head; number 0 when there is no file.
func (a *Anchor) Read() (h seal.Head, err error) {
	if a.path == "" {
		return h, nil
	}
	b, err := os.ReadFile(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("%w: %w", ErrAnchor, err)
	}
	var v anchored
	if err := json.Unmarshal(b, &v); err != nil {
		return h, fmt.Errorf("%w: %s: %w", ErrAnchor, a.path, err)
	}
	digest, err := hex.DecodeString(v.Digest)
	if err != nil || len(digest) != len(none) || v.Number < 1 {
		return h, fmt.Errorf("%w: %s names no block", ErrAnchor, a.path)
	}
	return seal.Head{Number: v.Number, Digest: digest}, nil
}

// SetAside keeps the anchor under another name before it is replaced: it is the proof of
// what was lost, and the way back to a newer database that turns up. At worst it is not
// kept; the record has what it says.
func (a *Anchor) SetAside(number int64) {
	_ = os.Link(a.path, fmt.Sprintf("%s.lost-%d", a.path, number))
}

// Write replaces the file: after a crash it is the old one or the new one, whole.
func (a *Anchor) Write(h seal.Head) error {
	if a.path == "" || h.Number == 0 {
		return nil
	}
	b, err := json.MarshalIndent(anchored{anchorWhat, h.Number, hex.EncodeToString(h.Digest), time.Now().UTC()}, "", "  ")
	if err != nil {
		return fmt.Errorf("couldn't write the anchor: %w", err)
	}
	if err := a.replace(append(b, '\n')); err != nil {
		return fmt.Errorf("couldn't write the anchor: %w", err)
	}
	return nil
}

func (a *Anchor) replace(text []byte) (err error) {
	dir := filepath.Dir(a.path)
	// A name of its own: another server may be writing the same anchor.
	f, err := os.CreateTemp(dir, filepath.Base(a.path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), a.path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Prepare makes the folder and proves that the file can be written there: an anchor
// that fails only later protects nobody meanwhile.
func (a *Anchor) Prepare() error {
	if a.path == "" {
		return nil
	}
	dir := filepath.Dir(a.path)
	err := os.MkdirAll(dir, 0o711)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, filepath.Base(a.path)+".*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("couldn't write the anchor (name another place for it with --anchor FILE, or keep none with --anchor off): %w", err)
	}
	return nil
}
