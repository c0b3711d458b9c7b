package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"quittance/cmd/quittance/demo/bank"
)

// bare is an agent as most are: it saves its turns, and pays in the turn after.
type bare struct{ Config }

func (b *bare) path() string { return filepath.Join(b.Dir, b.Run+".json") }

func (b *bare) load(context.Context) (m memory, err error) {
	text, err := os.ReadFile(b.path())
	if errors.Is(err, fs.ErrNotExist) {
		return memory{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return memory{}, fmt.Errorf("couldn't read the agent's state: %w", err)
	}
	return m, nil
}

// save replaces the file whole: a crash leaves the turn before or the turn after.
func (b *bare) save(_ context.Context, m memory) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	next := b.path() + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, b.path())
}

func (b *bare) pay(ctx context.Context, o bank.Order) (Receipt, Event, error) {
	p, err := bank.Pay(ctx, b.Bank, "", o)
	return Receipt{p.ID}, Event{}, err
}

func (b *bare) close(context.Context, bool) error { return nil }
