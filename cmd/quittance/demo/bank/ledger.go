package bank

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// entry is a line of the ledger: an order that was accepted, with the times at which
// it becomes what it will be.
type entry struct {
	ID string `json:"id"`
	Order
	Key       string    `json:"idempotency_key,omitempty"`
	BookedAt  time.Time `json:"booked_at"`
	LandsAt   time.Time `json:"lands_at"`
	SettlesAt time.Time `json:"settles_at"`
}

func (e entry) payment(now time.Time) Payment {
	p := Payment{ID: e.ID, Order: e.Order, Status: Processing, BookedAt: e.BookedAt}
	if !e.SettlesAt.After(now) {
		p.Status, p.Final = Paid, true
	}
	return p
}

// Ledger is the bank's book: a file to which lines are added and nothing else. Not
// safe for concurrent use.
type Ledger struct {
	file    *os.File
	entries []entry
}

// OpenLedger opens the file at path, or makes it. A last line that a crash cut short
// was never answered: it is taken out.
func OpenLedger(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("couldn't open the bank's ledger: %w", err)
	}
	l := &Ledger{file: file}
	if err := l.load(path); err != nil {
		_ = file.Close()
		return nil, err
	}
	return l, nil
}

func (l *Ledger) load(path string) error {
	entries, whole, err := read(path)
	if err != nil {
		return err
	}
	l.entries = entries
	if err := l.file.Truncate(whole); err != nil {
		return fmt.Errorf("couldn't cut the bank's ledger: %w", err)
	}
	if _, err := l.file.Seek(whole, 0); err != nil {
		return fmt.Errorf("couldn't go to the end of the bank's ledger: %w", err)
	}
	return nil
}

// read returns the entries of a ledger and how many bytes its whole lines have.
func read(path string) (entries []entry, whole int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("couldn't read the bank's ledger: %w", err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("couldn't read line %d of the bank's ledger: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
		whole += int64(len(line))
	}
	return entries, whole, nil
}

// add writes e and returns once it is on the disk.
func (l *Ledger) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("couldn't write an entry: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("couldn't add to the bank's ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("couldn't store the bank's ledger: %w", err)
	}
	l.entries = append(l.entries, e)
	return nil
}

// Close closes the file. Nothing waits in memory.
func (l *Ledger) Close() error { return l.file.Close() }

// landed are the payments for a reference that can be seen at a time.
func landed(entries []entry, reference string, now time.Time) []Payment {
	found := []Payment{}
	for _, e := range entries {
		if e.Reference == reference && !e.LandsAt.After(now) {
			found = append(found, e.payment(now))
		}
	}
	return found
}

// ReadLedger reads the payments for a reference from the file, past any server: the
// truth that a look-up is checked against. A file that does not exist holds none.
func ReadLedger(path, reference string) ([]Payment, error) {
	entries, _, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Payment{}, nil
	}
	if err != nil {
		return nil, err
	}
	return landed(entries, reference, time.Now()), nil
}

// Booked reads everything that the file at path holds, by reference, past any server.
func Booked(path string) (map[string][]Payment, error) {
	entries, _, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	booked := map[string][]Payment{}
	for _, e := range entries {
		booked[e.Reference] = append(booked[e.Reference], e.payment(time.Now()))
	}
	return booked, nil
}
