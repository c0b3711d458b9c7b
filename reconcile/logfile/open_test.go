package logfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWhatAnAgentPutsInThePlaceOfItsFile: the folder is the agent's, the server's rights are
// not. Neither a link to another file is read or appended to, nor a pipe waited for.
func TestWhatAnAgentPutsInThePlaceOfItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "of-the-server")
	const line = `{"type":"intent","tool":"pay","arguments":{"a":1}}` + "\n"
	if err := os.WriteFile(secret, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	link, hanging, pipe, folder := filepath.Join(dir, "link.jsonl"), filepath.Join(dir, "hanging.jsonl"), filepath.Join(dir, "pipe.jsonl"), filepath.Join(dir, "folder.jsonl")
	if err := errors.Join(os.Symlink(secret, link), os.Symlink(filepath.Join(dir, "none"), hanging), syscall.Mkfifo(pipe, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, hanging, pipe, folder} {
		f, _, err := Open(path, Place{})
		if _, ok := errors.AsType[*FormatError](err); !ok {
			t.Errorf("%s: %v, %v", filepath.Base(path), f, err)
		}
		err = Append(t.Context(), path, Place{}, 0, []byte("{}\n"), func(context.Context) error { return nil })
		if err == nil {
			t.Errorf("%s was written to", filepath.Base(path))
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != line {
		t.Errorf("the other file is %q, %v", b, err)
	}
	f, _, err := Open(secret, Place{})
	if err != nil {
		t.Fatalf("the file itself: %v", err)
	}
	_ = f.Close()
}
