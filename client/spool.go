package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// spooled is one outcome on its way to the server.
type spooled struct {
	RunID    string        `json:"run_id"`
	EffectID string        `json:"effect_id"`
	Key      string        `json:"key"`
	Finish   FinishRequest `json:"finish"`
}

// spool is a folder with one file for each outcome that the server does not have yet.
// A file is there whole or not at all, also after a crash of the machine. Several
// processes may share the folder; an outcome delivered twice is recorded once.
type spool struct{ dir string }

// rejectedDir holds what the server refused as malformed: an outcome is never dropped,
// but repeating it would not help.
const rejectedDir = "rejected"

// save writes an outcome durably and returns its file's name. Names sort by time.
func (s *spool) save(o spooled) (name string, err error) {
	name = fmt.Sprintf("%s-%s.json", time.Now().UTC().Format("20060102T150405.000000"), newID()[:8])
	if err := s.write(s.dir, name, o); err != nil {
		return "", fmt.Errorf("couldn't spool an outcome: %w", err)
	}
	return name, nil
}

// reject keeps an outcome aside for a person.
func (s *spool) reject(name string, o spooled) error {
	if err := s.write(filepath.Join(s.dir, rejectedDir), name, o); err != nil {
		return fmt.Errorf("couldn't keep a rejected outcome: %w", err)
	}
	return nil
}

func (s *spool) write(dir, name string, o spooled) (err error) {
	raw, err := marshal(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(raw); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename in dir survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// names lists what waits, oldest first. A folder that does not exist holds nothing.
func (s *spool) names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read the spool: %w", err)
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && strings.HasSuffix(n, ".json") && !strings.HasPrefix(n, ".") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// load reads one outcome; fs.ErrNotExist when another process delivered it meanwhile.
func (s *spool) load(name string) (o spooled, err error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, fmt.Errorf("couldn't read the spooled outcome %s: %w", name, err)
	}
	return o, nil
}

// remove forgets a delivered outcome. Should the removal be lost in a crash, the
// outcome is delivered once more, which changes nothing.
func (s *spool) remove(name string) error {
	err := os.Remove(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// setAside moves a file that cannot be read out of the way.
func (s *spool) setAside(name string) error {
	dir := filepath.Join(s.dir, rejectedDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Rename(filepath.Join(s.dir, name), filepath.Join(dir, name))
}
